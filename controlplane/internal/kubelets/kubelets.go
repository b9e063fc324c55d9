// Package kubelets reads the certificate requests of kubelets in workload clusters, and approves them.
package kubelets

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/approval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

// Clusters connects to workload clusters.
type Clusters interface {
	Connect(ctx context.Context, key client.ObjectKey, requests func(context.Context, *conn.Conn) error) error
}

// Kubelets reads and approves the requests of kubelets.
type Kubelets struct{ clusters Clusters }

// New returns Kubelets for clusters.
func New(clusters Clusters) *Kubelets { return &Kubelets{clusters} }

// Seen holds the requests of the kubelets of a cluster, and the facts to decide them.
type Seen struct {
	// Requests are those that may be approved, the newest approved ones, and the newest that may not be
	// approved: see [approval.Kept].
	Requests []*approval.Request
	// More is true if there are more requests than are read.
	More bool
	// Nodes are all Nodes of the cluster, with their reported names and addresses, and the time of their last
	// report. They are read only while a request is pending.
	Nodes approval.Nodes
	// MachineAPI is true if the cluster's own Machine API creates its hosts: then its approver decides.
	MachineAPI bool
}

// Observe reads the requests of a cluster for Nodes for which known returns true.
func (k *Kubelets) Observe(ctx context.Context, key client.ObjectKey, known func(node string) bool) (Seen, error) {
	seen := Seen{}
	err := k.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error { return seen.read(ctx, conn.Client, known) })
	return seen, err
}

func (s *Seen) read(ctx context.Context, c client.Client, known func(node string) bool) (err error) {
	kept := approval.Kept{}
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
		if err := s.readRequests(ctx, c, kept, signer, known); err != nil {
			return err
		}
	}
	s.Requests = kept.Requests()
	if !slices.ContainsFunc(s.Requests, func(r *approval.Request) bool { return !r.Approved }) {
		return nil
	}
	if s.Nodes, err = readNodes(ctx, c); err != nil {
		return err
	}
	s.MachineAPI, err = objects.RunsMachineAPI(ctx, c)
	return err
}

func (s *Seen) readRequests(ctx context.Context, c client.Client, kept approval.Kept, signer string, known func(node string) bool) error {
	_, complete, err := objects.EachPage(ctx, c, func() *certificatesv1.CertificateSigningRequestList {
		return &certificatesv1.CertificateSigningRequestList{}
	},
		func(page *certificatesv1.CertificateSigningRequestList) {
			for i := range page.Items {
				if request := approval.Read(page.Items[i].DeepCopy()); request != nil && known(request.Node) {
					kept.Add(request)
				}
			}
		}, client.MatchingFields{"spec.signerName": signer})
	if err != nil {
		return fmt.Errorf("cannot list the CertificateSigningRequests of the workload cluster: %w", err)
	}
	s.More = s.More || !complete
	return nil
}

// readNodes keeps the facts of each Node that approvals depend on. All Nodes are read, because no other Node
// may report a requested address.
func readNodes(ctx context.Context, c client.Client) (approval.Nodes, error) {
	nodes := approval.Nodes{}
	_, err := objects.EachNode(ctx, c, func(read *corev1.Node) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: read.Name, CreationTimestamp: read.CreationTimestamp}}
		node.Status.Conditions, node.Status.Addresses = read.Status.Conditions, read.Status.Addresses
		nodes[node.Name] = node
	})
	return nodes, err
}

// Approve approves a request as it was read. It returns false if another client decided or deleted the
// request.
func (k *Kubelets) Approve(ctx context.Context, key client.ObjectKey, request *approval.Request) (bool, error) {
	approved := request.CertificateSigningRequest.DeepCopy()
	approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubeletOfMachine",
		Message: "Approved by cluster-api-provider-openshift-agent: the request is for the host of a Machine of the cluster",
	}}
	err := k.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error {
		return conn.SubResource("approval").Update(ctx, approved)
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
