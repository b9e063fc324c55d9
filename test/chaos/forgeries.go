package main

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// forgery is a request for a certificate that must not be approved. Its client has the token of joining hosts,
// or the credentials of one Node.
type forgery struct {
	what, signer string
	as           rest.ImpersonationConfig
	template     x509.CertificateRequest
}

// forgeries returns the forged requests. node is a Node of the cluster, and joining the name of a host that is
// expected to join. elsewhere is an address that is not the Node's. taken is the address of another Node that
// the Node reports as its own.
func forgeries(node, joining string, elsewhere, taken net.IP, stranger string) []forgery {
	master := hosts.NodeSubject(node)
	master.Organization = append(master.Organization, "system:masters")
	const joins, serving = certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	of := func(subject pkix.Name) x509.CertificateRequest { return x509.CertificateRequest{Subject: subject} }
	tried := []forgery{
		{"a Node that no Machine has", joins, hosts.NodeBootstrapper, of(hosts.NodeSubject(stranger))},
		{"a Node in the group of administrators", joins, hosts.NodeBootstrapper, of(master)},
		{"a Node, requested by another Node", joins, hosts.Kubelet(stranger), of(hosts.NodeSubject(node))},
		{"a foreign address and name", serving, hosts.Kubelet(node), x509.CertificateRequest{
			Subject: hosts.NodeSubject(node), DNSNames: []string{node, "api.c.example.com"}, IPAddresses: []net.IP{elsewhere},
		}},
	}
	if taken != nil {
		tried = append(tried, forgery{
			"the address of another Node", serving, hosts.Kubelet(node),
			x509.CertificateRequest{Subject: hosts.NodeSubject(node), DNSNames: []string{node}, IPAddresses: []net.IP{taken}},
		})
	}
	if joining != "" { // newer than the request of the host itself, which has to be approved nevertheless
		tried = append(tried,
			forgery{"a joining host, requested by another Node", joins, hosts.Kubelet(stranger), of(hosts.NodeSubject(joining))})
	}
	return tried
}

// claim makes a Node report the address of another Node, as root on its host can. It returns the address; nil if
// no other Node exists. The type of the address is not the one by which OpenShift finds etcd members.
func claim(ctx context.Context, workload client.Client, node *corev1.Node, nodes []corev1.Node) (net.IP, error) {
	for i := range nodes {
		for _, address := range nodes[i].Status.Addresses {
			ip := net.ParseIP(address.Address)
			if nodes[i].Name == node.Name || address.Type != corev1.NodeInternalIP || ip == nil {
				continue
			}
			reports := node.DeepCopy()
			reports.Status.Addresses = append(reports.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: address.Address})
			if err := workload.Status().Patch(ctx, reports, client.StrategicMergeFrom(node)); err != nil {
				return nil, fmt.Errorf("cannot claim an address for Node %s: %w", node.Name, err)
			}
			return ip, nil
		}
	}
	return nil, nil
}

// forge requests forged certificates from a cluster while hosts are expected to join. The requests are left
// there, so that the approval of joining hosts meets them.
func (r *round) forge(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, state, m := r.machine(ctx, dice, func(_ *lab.State, m lab.Machine) bool { return !m.Status.NodeRef.IsDefined() })
	if m == nil {
		return false, nil
	}
	workload, err := t.cluster.Workload()
	if err != nil {
		return false, nil //nolint:nilerr // the cluster has no API yet
	}
	nodes := &corev1.NodeList{}
	if err := workload.List(ctx, nodes); err != nil {
		return false, err
	}
	node := chosen(dice, nodes.Items)
	if node == nil {
		return false, nil
	}
	var taken net.IP
	if hasJoined(state, node.Name) { // before that assisted-service approves the addresses that the Node reports
		if taken, err = claim(ctx, workload, node, nodes.Items); err != nil {
			return false, err
		}
	}
	joining := ""
	if m.Agent != nil {
		joining = m.Agent.Spec.Hostname
	}
	for _, f := range forgeries(node.Name, joining, net.IPv4(192, 0, 2, byte(dice.IntN(256))), taken,
		"stranger-"+strconv.FormatUint(dice.Uint64(), 36)) {
		if err := t.request(ctx, f); err != nil {
			return false, err
		}
	}
	return true, nil
}

// hasJoined reports whether a Node is that of a Machine whose host assisted-service has finished.
func hasJoined(state *lab.State, node string) bool {
	return slices.ContainsFunc(state.Machines, func(m lab.Machine) bool {
		return m.Status.NodeRef.Name == node && (m.Agent == nil || m.Agent.Status.Progress.CurrentStage == aiv1beta1.HostStageDone)
	})
}

// request sends a forged request.
func (t *activeJourney) request(ctx context.Context, f forgery) error {
	forger, err := t.cluster.WorkloadAs(ctx, f.as)
	if err != nil {
		return err
	}
	name, err := hosts.RequestCertificate(ctx, forger, f.signer, &f.template)
	if err == nil {
		t.forge(name, f.what)
	}
	return err
}

// forge records a forged request.
func (t *activeJourney) forge(name, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forged[name] = what
}

// judgeForgeries checks that no forged request was approved.
func (t *activeJourney) judgeForgeries(ctx context.Context) error {
	t.mu.Lock()
	forged := maps.Clone(t.forged)
	t.mu.Unlock()
	if len(forged) == 0 {
		return nil
	}
	workload, err := t.cluster.Workload()
	if err != nil {
		return err
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := workload.List(ctx, list); err != nil {
		return fmt.Errorf("cannot list forged certificates: %w", err)
	}
	for _, finding := range approvedOf(list.Items, forged) {
		t.follower.fail(certificateRule, t.namespace+": "+finding)
	}
	t.follower.check(certificateRule, len(forged))
	return nil
}

// approvedOf returns a message for each forged request that was approved.
func approvedOf(requests []certificatesv1.CertificateSigningRequest, forged map[string]string) (found []string) {
	for _, request := range requests {
		for _, c := range request.Status.Conditions {
			if what := forged[request.Name]; what != "" && c.Type == certificatesv1.CertificateApproved {
				found = append(found, fmt.Sprintf("a certificate for %s was approved (%s)", what, c.Reason))
			}
		}
	}
	return found
}
