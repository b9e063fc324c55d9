// Package approval decides which certificates kubelets get: those of hosts that are proven to be of Machines of the cluster, and for no name or address that is not
// theirs. It computes; it has no client. What does not fit is left alone, and never denied: somebody else may know more.
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
	// nodeUserPrefix comes before the name of a Node in the name of its kubelet's user, nodeGroup is the group of all of these.
	nodeUserPrefix, nodeGroup = "system:node:", "system:nodes"
	authenticatedGroup        = "system:authenticated"
	// bootstrapperUser is who a kubelet is before it has a certificate: the machine config server gives it the token of this ServiceAccount.
	bootstrapperUser = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	// A kubelet renews its certificate after 70 to 90 % of the lifetime (client-go, util/certificate): a Node that reports holds one that is valid for another tenth of it at least. The first
	// certificate of a new cluster is valid for 24 hours, which leaves more than firstAbsence; all later ones are valid for 30 days, which leaves 72 hours and thus more than absence.
	// A Node that reported later than that has a valid certificate, and is away for another reason, for example a reboot or a dead disk.
	firstAbsence, absence = 2 * time.Hour, 60 * time.Hour
	// firstCertificate is the age of a cluster up to which a Node may hold a certificate of its first day.
	firstCertificate = 48 * time.Hour
)

// bootstrapperGroups are the groups of that ServiceAccount.
var bootstrapperGroups = []string{"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts", authenticatedGroup}

// Request is what a kubelet asks for.
type Request struct {
	*certificatesv1.CertificateSigningRequest

	// Node is the one that it is to be for, as it says.
	Node string
	// Approved is true for a request that was approved already: older ones for its Node have no use any more.
	Approved bool
	parsed   *x509.CertificateRequest
}

// Read reads a request that is pending or approved. It is nil for everything else, and for one that is no kubelet's.
func Read(request *certificatesv1.CertificateSigningRequest) *Request {
	kubelets := request.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName || request.Spec.SignerName == certificatesv1.KubeletServingSignerName
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

// Description says what is asked for, for people.
func (r *Request) Description() string {
	if r.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return "a serving certificate"
	}
	return "a client certificate"
}

// Obstacle says why a request for the Node of a host is not approved; it is empty when it is to be.
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

// defect says what is wrong with a request whatever the hosts and Nodes are.
func (r *Request) defect() string {
	if obstacle := r.misshapen(); obstacle != "" {
		return obstacle
	}
	if r.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		return r.servingDefect()
	}
	return r.clientDefect()
}

// misshapen says what is not as Kubernetes wants it of the certificates of all kubelets (pkg/apis/certificates/helpers.go).
func (r *Request) misshapen() string {
	switch subject := r.parsed.Subject; {
	// Two names are what a kubelet has: a group, and itself. Who has more wants to be more.
	case len(subject.Names) != 2 || len(subject.Organization) != 1 || subject.Organization[0] != nodeGroup:
		return "its subject is not that of a kubelet, which is in the organization " + nodeGroup + " alone"
	case len(r.parsed.EmailAddresses) > 0 || len(r.parsed.URIs) > 0:
		return "it is for e-mail addresses or URIs"
	}
	return ""
}

// clientDefect is about the certificate with which a kubelet authenticates to the API server.
func (r *Request) clientDefect() string {
	switch {
	case r.Spec.Username != bootstrapperUser || !same(r.Spec.Groups, bootstrapperGroups):
		return fmt.Sprintf("it was asked for by %q, and not by the ServiceAccount that kubelets ask by", cut(r.Spec.Username))
	case !usedFor(r.Spec.Usages, certificatesv1.UsageClientAuth):
		return "it is for other usages than those of a kubelet's client certificate"
	case len(r.parsed.DNSNames) > 0 || len(r.parsed.IPAddresses) > 0:
		return "it is for names or addresses, which a client certificate has not"
	}
	return ""
}

// clientObstacle says why no kubelet gets a client certificate for a Node now. Every host has the token of the bootstrapper and can request one in the name of every Node. So a Node gets no
// second certificate while its kubelet may hold a valid one, which it renews on its own. The host of a Machine that is being deleted does not come back.
func clientObstacle(host *Host, node *corev1.Node, nodes Nodes, now time.Time) string {
	switch {
	case host.leaving:
		return fmt.Sprintf("Machine %s is being deleted", host.Machine)
	case node == nil:
		return ""
	case noderefutil.IsNodeReady(node):
		return "Node " + node.Name + " is Ready, and has its certificate"
	}
	if needed := nodes.absenceOf(node); now.Sub(heard(node)) < needed {
		return fmt.Sprintf("Node %s was heard less than %d h ago, and has its certificate", node.Name, int(needed.Hours()))
	}
	return ""
}

// absenceOf is how long a Node must not have reported until its certificate has surely expired. The age of the cluster, of which the oldest Node is the witness, when the Node reported last counts, since
// a Node renews no certificate while it is away. A Node that joins an old cluster has a first certificate that is valid for 30 days.
func (n Nodes) absenceOf(node *corev1.Node) time.Duration {
	oldest := node.CreationTimestamp.Time
	for _, other := range n {
		if other.CreationTimestamp.Time.Before(oldest) {
			oldest = other.CreationTimestamp.Time
		}
	}
	if heard(node).Sub(oldest) < firstCertificate {
		return firstAbsence
	}
	return absence
}

// servingDefect is about the certificate with which a kubelet serves the API server.
func (r *Request) servingDefect() string {
	switch {
	case r.Spec.Username != nodeUserPrefix+r.Node || !same(r.Spec.Groups, []string{nodeGroup, authenticatedGroup}):
		return fmt.Sprintf("it was asked for by %q, and not by the kubelet itself", cut(r.Spec.Username))
	case !usedFor(r.Spec.Usages, certificatesv1.UsageServerAuth):
		return "it is for other usages than those of a kubelet's serving certificate"
	case len(r.parsed.DNSNames)+len(r.parsed.IPAddresses) == 0:
		return "it is for no name and no address"
	}
	return ""
}

// servingObstacle says which name or address of a serving certificate is not that of the Node.
func (r *Request) servingObstacle(hosts Hosts, host *Host, nodes Nodes) string {
	node := nodes[r.Node]
	if node == nil {
		return "there is no Node " + r.Node
	}
	for _, name := range r.parsed.DNSNames {
		if !hosts.named(host, nodes, name) {
			return fmt.Sprintf("it is for the name %q, which neither Machine nor Node has, or another Node reports", cut(name))
		}
	}
	for _, ip := range r.parsed.IPAddresses {
		if obstacle := hosts.addressObstacle(host, nodes, ip); obstacle != "" {
			return obstacle
		}
	}
	return ""
}

// cut shortens what somebody in the cluster wrote for people to read: no name is longer than one of the DNS, and no condition holds more than some.
func cut(name string) string {
	return bound.Shorten(name, validation.DNS1123SubdomainMaxLength)
}

// usedFor reports whether a certificate is for a purpose and for signatures, and for nothing else but the encipherment of keys, which kubelets ask for where their key is one of RSA.
func usedFor(usages []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) bool {
	wanted := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose}
	return same(usages, wanted) || same(usages, append(wanted, certificatesv1.UsageKeyEncipherment))
}

// heard is when the kubelet of a Node was heard of last. One that has told nothing yet has made its Node, with its certificate.
func heard(node *corev1.Node) time.Time {
	if c := noderefutil.GetReadyCondition(&node.Status); c != nil {
		return c.LastHeartbeatTime.Time
	}
	return node.CreationTimestamp.Time
}
