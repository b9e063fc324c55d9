// Package approval decides which certificates kubelets get. A certificate requires a host that provably
// belongs to a Machine of the cluster, and is limited to the names and addresses of that host. The package
// computes and has no client. Requests that do not match are not denied, because another approver may know
// more.
package approval

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/cluster-api/controllers/noderefutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// nodeUserPrefix precedes the Node name in the user name of its kubelet. nodeGroup is the group of all
	// kubelets.
	nodeUserPrefix, nodeGroup = "system:node:", "system:nodes"
	authenticatedGroup        = "system:authenticated"
	// bootstrapperUser is the user of a kubelet without certificate. The machine config server gives hosts the
	// token of this ServiceAccount.
	bootstrapperUser = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	// A kubelet renews its certificate after 70 to 90 % of the lifetime (client-go, util/certificate). So the
	// certificate of a reporting Node is valid for at least another tenth of its lifetime. The first certificate
	// of a new cluster is valid for 24 hours, which leaves more than firstAbsence. All later ones are valid for
	// 30 days, which leaves 72 hours and thus more than absence. A Node that reported more recently has a valid
	// certificate. It is absent for another reason, for example a reboot or a failed disk.
	firstAbsence, absence = 2 * time.Hour, 60 * time.Hour
	// firstCertificate is the age of a cluster up to which a Node may have a certificate of its first day.
	firstCertificate = 48 * time.Hour
)

// bootstrapperGroups are the groups of that ServiceAccount.
var bootstrapperGroups = []string{
	"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts",
	authenticatedGroup,
}

// Request is the certificate request of a kubelet.
type Request struct {
	*certificatesv1.CertificateSigningRequest

	// Node is the Node that the request names.
	Node string
	// Approved is true for an approved request. Older requests for its Node are obsolete.
	Approved bool
	parsed   *x509.CertificateRequest
}

// Read parses a request that is pending or approved. It returns nil for all others, and for requests that are
// not of a kubelet.
func Read(request *certificatesv1.CertificateSigningRequest) *Request {
	kubelets := request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		request.Spec.SignerName == certificatesv1.KubeletServingSignerName
	if !kubelets || slices.ContainsFunc(request.Status.Conditions, refuses) {
		return nil
	}
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return nil
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil
	}
	node, found := strings.CutPrefix(parsed.Subject.CommonName, nodeUserPrefix)
	if !found || node == "" {
		return nil
	}
	return &Request{request, node, len(request.Status.Conditions) > 0, parsed}
}

// refuses reports whether a condition ends a request without a certificate.
func refuses(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type != certificatesv1.CertificateApproved
}

// Description describes the requested certificate.
func (r *Request) Description() string {
	if r.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return "a serving certificate"
	}
	return "a client certificate"
}

// Obstacle returns why a request for the Node of a host is not approved. Empty: it is approved.
func (r *Request) Obstacle(hosts Hosts, nodes Nodes, now time.Time) string {
	host, obstacle := hosts.only(r.Node)
	if obstacle != "" {
		return obstacle
	}
	if obstacle = r.defect(); obstacle != "" {
		return obstacle
	}
	if r.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return r.servingObstacle(hosts, host, nodes)
	}
	return clientObstacle(host, nodes[r.Node], nodes, now)
}

// defect returns what is wrong with a request independently of hosts and Nodes.
func (r *Request) defect() string {
	if obstacle := r.shapeDefect(); obstacle != "" {
		return obstacle
	}
	if r.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return r.servingDefect()
	}
	return r.clientDefect()
}

// shapeDefect returns a violation of Kubernetes' rules for certificates of kubelets
// (pkg/apis/certificates/helpers.go).
func (r *Request) shapeDefect() string {
	switch subject := r.parsed.Subject; {
	// A kubelet's subject has two names: the group and the kubelet. Additional names would grant more rights.
	case len(subject.Names) != 2 || len(subject.Organization) != 1 || subject.Organization[0] != nodeGroup:
		return "its subject is not that of a kubelet: the only organization must be " + nodeGroup
	case len(r.parsed.EmailAddresses) > 0 || len(r.parsed.URIs) > 0:
		return "it contains e-mail addresses or URIs"
	}
	return ""
}

// clientDefect checks the request for a certificate by which a kubelet authenticates to the API server.
func (r *Request) clientDefect() string {
	switch {
	case r.Spec.Username != bootstrapperUser || !same(r.Spec.Groups, bootstrapperGroups):
		return fmt.Sprintf("it was requested by %q, not by the ServiceAccount node-bootstrapper", truncate(r.Spec.Username))
	case !usedFor(r.Spec.Usages, certificatesv1.UsageClientAuth):
		return "its usages differ from those of a kubelet's client certificate"
	case len(r.parsed.DNSNames) > 0 || len(r.parsed.IPAddresses) > 0:
		return "it contains names or addresses, which a client certificate must not have"
	}
	return ""
}

// clientObstacle returns why a Node does not get a client certificate now. Every host has the token of the
// bootstrapper, and can request a certificate for any Node. So a Node gets no second certificate while its
// kubelet may have a valid one, which the kubelet renews without approval. The host of a Machine that is
// being deleted does not return.
func clientObstacle(host *Host, node *corev1.Node, nodes Nodes, now time.Time) string {
	switch {
	case host.deleting:
		return fmt.Sprintf("Machine %s is being deleted", host.Machine)
	case node == nil:
		return ""
	case noderefutil.IsNodeReady(node):
		return "Node " + node.Name + " is Ready, and has a valid certificate"
	}
	if needed := nodes.absenceOf(node); now.Sub(lastReport(node)) < needed {
		return fmt.Sprintf("Node %s reported less than %d h ago, and still has a valid certificate", node.Name, int(needed.Hours()))
	}
	return ""
}

// absenceOf returns how long a Node must not have reported until its certificate has certainly expired. It
// depends on the age of the cluster, given by the oldest Node, at the last report: an absent Node renews no
// certificate. A Node that joins an old cluster has a first certificate that is valid for 30 days.
func (n Nodes) absenceOf(node *corev1.Node) time.Duration {
	oldest := node.CreationTimestamp.Time
	for _, other := range n {
		if other.CreationTimestamp.Time.Before(oldest) {
			oldest = other.CreationTimestamp.Time
		}
	}
	if lastReport(node).Sub(oldest) < firstCertificate {
		return firstAbsence
	}
	return absence
}

// servingDefect checks the request for a certificate by which a kubelet serves the API server.
func (r *Request) servingDefect() string {
	switch {
	case r.Spec.Username != nodeUserPrefix+r.Node || !same(r.Spec.Groups, []string{nodeGroup, authenticatedGroup}):
		return fmt.Sprintf("it was requested by %q, not by the kubelet of the Node", truncate(r.Spec.Username))
	case !usedFor(r.Spec.Usages, certificatesv1.UsageServerAuth):
		return "its usages differ from those of a kubelet's serving certificate"
	case len(r.parsed.DNSNames)+len(r.parsed.IPAddresses) == 0:
		return "it contains no name and no address"
	}
	return ""
}

// servingObstacle returns which name or address of a serving certificate does not belong to the Node.
func (r *Request) servingObstacle(hosts Hosts, host *Host, nodes Nodes) string {
	node := nodes[r.Node]
	if node == nil {
		return "Node " + r.Node + " does not exist"
	}
	for _, name := range r.parsed.DNSNames {
		if !hosts.named(host, nodes, name) {
			return fmt.Sprintf("it contains the name %q, which neither Machine nor Node has, or another Node reports", truncate(name))
		}
	}
	for _, ip := range r.parsed.IPAddresses {
		if obstacle := hosts.addressObstacle(host, nodes, ip); obstacle != "" {
			return obstacle
		}
	}
	return ""
}

// truncate limits a value of the cluster to the longest DNS name, because conditions are limited.
func truncate(name string) string {
	return bound.Shorten(name, validation.DNS1123SubdomainMaxLength)
}

// usedFor reports whether the usages are signatures and one purpose. Key encipherment, which kubelets request
// for RSA keys, is permitted.
func usedFor(usages []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) bool {
	expected := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose}
	return same(usages, expected) || same(usages, append(expected, certificatesv1.UsageKeyEncipherment))
}

// lastReport returns when the kubelet of a Node last reported. A Node without reports was created by its
// kubelet, with its certificate.
func lastReport(node *corev1.Node) time.Time {
	if c := noderefutil.GetReadyCondition(&node.Status); c != nil {
		return c.LastHeartbeatTime.Time
	}
	return node.CreationTimestamp.Time
}
