package assistedsim

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/assisted-service/models"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/controllers/noderefutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	nodeUserPrefix   = "system:node:"
	nodeGroup        = "system:nodes"
	nodeBootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
)

// joining reports whether a host that joins an installed cluster has rebooted. It sends no more reports, so the
// service polls its Node.
func (h *host) joining() bool {
	return h.dayTwo() && h.bound() && (h.stage == models.HostStageRebooting || h.stage == models.HostStageJoined) &&
		(h.state == models.HostStatusInstallingInProgress || h.state == models.HostStatusInstallingPendingUserAction)
}

// followNode replaces the assisted controller of the cluster for a joining host. It approves the certificates
// of the kubelet, labels the Node once it is Ready, and records the progress. It returns whether the host
// progressed.
func (s *Simulator) followNode(ctx context.Context, agent *Agent, view *host) (bool, error) {
	c, err := s.spokeClient(ctx, view.cluster)
	if err != nil {
		return false, err
	}
	node := &corev1.Node{}
	err = c.Get(ctx, client.ObjectKey{Name: view.hostname()}, node)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot read node %s: %w", view.hostname(), err)
	}
	if err != nil {
		node = nil
	}
	if !s.leavesCertificates(view.cluster) {
		if err := approveRequests(ctx, c, view.hostname(), node); err != nil {
			return false, err
		}
	}
	if node == nil {
		return false, nil
	}
	stage := models.HostStageJoined
	if noderefutil.IsNodeReady(node) {
		stage = models.HostStageDone
		base := node.DeepCopy()
		merge(&node.Labels, agent.Spec.NodeLabels)
		if !maps.Equal(base.Labels, node.Labels) {
			if err := c.Patch(ctx, node, client.MergeFrom(base)); err != nil {
				return false, fmt.Errorf("cannot label node %s: %w", node.Name, err)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[view.key]
	if h == nil || !h.joining() || h.stage == stage {
		return false, nil
	}
	s.progress(h, stage, "")
	s.touchHost(h)
	return true, nil
}

func (s *Simulator) leavesCertificates(cluster types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.unapproved[cluster]
}

// approveRequests approves the certificate requests of the host's kubelet: for a client certificate before the
// Node exists, for a serving certificate afterwards.
func approveRequests(ctx context.Context, c client.Client, hostname string, node *corev1.Node) error {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("cannot list certificate requests: %w", err)
	}
	for i := range list.Items {
		request := &list.Items[i]
		if len(request.Status.Conditions) > 0 || !trustworthy(request, hostname, node) {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "NodeCSRApprove",
			Message: "This CSR was approved by the assisted-service",
		}}
		if err := c.SubResource("approval").Update(ctx, request); err != nil {
			return fmt.Errorf("cannot approve certificate request %s: %w", request.Name, err)
		}
	}
	return nil
}

// trustworthy applies the checks of the service: the name of the host, the requesting user, and the names and
// addresses.
func trustworthy(request *certificatesv1.CertificateSigningRequest, hostname string, node *corev1.Node) bool {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || !strings.EqualFold(parsed.Subject.CommonName, nodeUserPrefix+hostname) ||
		!slices.Equal(parsed.Subject.Organization, []string{nodeGroup}) {
		return false
	}
	if node == nil {
		return request.Spec.Username == nodeBootstrapper && len(parsed.DNSNames)+len(parsed.IPAddresses) == 0 &&
			slices.Contains(request.Spec.Usages, certificatesv1.UsageClientAuth)
	}
	if request.Spec.Username != parsed.Subject.CommonName || !slices.Contains(request.Spec.Usages, certificatesv1.UsageServerAuth) {
		return false
	}
	known := []string{node.Name}
	for _, address := range node.Status.Addresses {
		known = append(known, address.Address)
	}
	requested := parsed.DNSNames
	for _, ip := range parsed.IPAddresses {
		requested = append(requested, ip.String())
	}
	return !slices.ContainsFunc(requested, func(name string) bool { return !slices.Contains(known, name) })
}
