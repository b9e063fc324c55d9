// Package kubelets reads what the kubelets of workload clusters ask for, and approves it.
package kubelets

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/approval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// atOnce is how many requests are read at a time: anybody with the token of the bootstrapper makes as many as they like.
const atOnce = 200

// Clusters leads into workload clusters.
type Clusters interface {
	Enter(ctx context.Context, cluster client.ObjectKey, requests func(context.Context, *workload.Door) error) error
}

// Kubelets are those of the workload clusters.
type Kubelets struct{ clusters Clusters }

// New returns the kubelets of clusters.
func New(clusters Clusters) *Kubelets { return &Kubelets{clusters} }

// Seen is what kubelets of a cluster ask for.
type Seen struct {
	// Requests are those that nobody has decided: of each user for each Node the newest of each kind. Who asks again has no use for the former.
	Requests []*approval.Request
	// Nodes are those that they are for, as far as they exist, by name.
	Nodes map[string]*corev1.Node
	// MachineAPI is true where the cluster's own Machine API makes its hosts, and its approver decides.
	MachineAPI bool
}

// Observe reads the requests of a cluster for Nodes of which known tells that they are known.
func (k *Kubelets) Observe(ctx context.Context, cluster client.ObjectKey, known func(node string) bool) (Seen, error) {
	seen := Seen{Nodes: map[string]*corev1.Node{}}
	err := k.clusters.Enter(ctx, cluster, func(ctx context.Context, door *workload.Door) error { return seen.read(ctx, door.Client, known) })
	return seen, err
}

func (s *Seen) read(ctx context.Context, c client.Client, known func(node string) bool) error {
	for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
		if err := s.readRequests(ctx, c, signer, known); err != nil {
			return err
		}
	}
	if len(s.Requests) == 0 {
		return nil
	}
	for _, request := range s.Requests {
		if _, found := s.Nodes[request.Node]; found {
			continue
		}
		node, err := kube.Read(ctx, c, client.ObjectKey{Name: request.Node}, &corev1.Node{})
		if err != nil {
			return err
		}
		s.Nodes[request.Node] = node
	}
	var err error
	s.MachineAPI, err = workload.RunsMachineAPI(ctx, c)
	return err
}

func (s *Seen) readRequests(ctx context.Context, c client.Client, signer string, known func(node string) bool) error {
	list := &certificatesv1.CertificateSigningRequestList{}
	for first := true; first || list.Continue != ""; first = false {
		if err := c.List(ctx, list, client.MatchingFields{"spec.signerName": signer}, client.Limit(atOnce), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("cannot list the CertificateSigningRequests of the workload cluster: %w", err)
		}
		for i := range list.Items {
			if request := approval.Read(&list.Items[i]); request != nil && known(request.Node) {
				s.add(request)
			}
		}
	}
	return nil
}

// add takes in a request, unless there is a newer one. Another user's does not count: anybody can ask in any name, but not as any user.
func (s *Seen) add(request *approval.Request) {
	for i, other := range s.Requests {
		if other.Node == request.Node && other.Spec.SignerName == request.Spec.SignerName && other.Spec.Username == request.Spec.Username {
			if request.CreationTimestamp.After(other.CreationTimestamp.Time) {
				s.Requests[i] = request
			}
			return
		}
	}
	s.Requests = append(s.Requests, request)
}

// Approve approves a request as it was seen, and tells whether it did: another may have decided it, or it may be gone.
func (k *Kubelets) Approve(ctx context.Context, cluster client.ObjectKey, request *approval.Request) (bool, error) {
	approved := request.CertificateSigningRequest.DeepCopy()
	approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubeletOfMachine",
		Message: "Approved by cluster-api-provider-openshift-agent: it is for the host of a Machine of the cluster",
	}}
	err := k.clusters.Enter(ctx, cluster, func(ctx context.Context, door *workload.Door) error {
		return door.SubResource("approval").Update(ctx, approved)
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
