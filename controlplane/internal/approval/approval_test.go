package approval

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// world is a cluster with a worker w0, and a request of its kubelet.
type world struct {
	facts    *facts.Facts
	machines []clusterv1.Machine
	node     *corev1.Node
	// others are the other Nodes of the cluster.
	others  []*corev1.Node
	subject x509.CertificateRequest
	request certificatesv1.CertificateSigningRequest
}

// asleep returns a cluster whose hosts were off until their certificates expired. The kubelet of w0 requests
// a client certificate.
func asleep() *world {
	w := &world{
		facts: &facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}},
		node:  nodeOf("w0", corev1.ConditionUnknown, "192.168.1.10", "fd00:0:0::10"),
	}
	w.facts.ControlPlane.Spec.Config.APIVIPs, w.facts.ControlPlane.Spec.Config.IngressVIPs = []string{"192.168.1.2"},
		[]string{"192.168.1.3"}
	w.machines = []clusterv1.Machine{machineOf("w0", "192.168.1.10"), machineOf("w1", "192.168.1.11")}
	w.subject.Subject = pkix.Name{CommonName: "system:node:w0", Organization: []string{"system:nodes"}}
	w.request.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Username:   "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups: []string{
			"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator",
			"system:authenticated",
		},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}
	return w
}

// awake returns a cluster in which the kubelet of w0 has a client certificate, and requests a serving
// certificate.
func awake() *world {
	w := asleep()
	w.node.Status.Conditions[0].Status = corev1.ConditionTrue
	w.subject.DNSNames, w.subject.IPAddresses = []string{"w0"}, []net.IP{net.ParseIP("192.168.1.10"), net.ParseIP("fd00::10")}
	w.request.Spec.SignerName, w.request.Spec.Username = certificatesv1.KubeletServingSignerName, "system:node:w0"
	w.request.Spec.Groups = []string{"system:nodes", "system:authenticated"}
	w.request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	return w
}

// joining returns a cluster whose Machine w0 has no Node yet. Its host has just booted the installed system.
func joining() *world {
	w := asleep()
	w.node, w.machines[0].Status.NodeRef.Name = nil, ""
	agent := w.record(&w.machines[0], "a")
	agent.Spec.Hostname, agent.Status.Progress.CurrentStage = "w0", aiv1beta1.HostStageRebooting
	return w
}

// record adds an Agent, and records it as the Agent of the host of a Machine.
func (w *world) record(m *clusterv1.Machine, name string) *aiv1beta1.Agent {
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: name}
	if w.facts.Configs == nil {
		w.facts.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	}
	w.facts.Configs[m.Name] = config
	w.facts.Agents = append(w.facts.Agents, aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: name,
		Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: m.Name},
	}})
	return &w.facts.Agents[len(w.facts.Agents)-1]
}

// strangerFirst adds an Agent of another host before the host's own, which booted the same image.
func strangerFirst(w *world) {
	stranger := *w.facts.Agents[0].DeepCopy()
	stranger.Name, stranger.Spec.Hostname = "stranger", "w7"
	w.facts.Agents = append([]aiv1beta1.Agent{stranger}, w.facts.Agents...)
}

func nodeOf(name string, ready corev1.ConditionStatus, addresses ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	for _, address := range addresses {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name + ".example.com"})
	return node
}

func machineOf(node, address string) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "machine-" + node, UID: types.UID("uid-" + node)}}
	m.Status.NodeRef.Name = node
	m.Status.Addresses = clusterv1.MachineAddresses{
		{Type: clusterv1.MachineInternalIP, Address: address},
		{Type: clusterv1.MachineHostName, Address: node + ".local"},
	}
	return m
}

// nodes returns all Nodes of the cluster.
func (w *world) nodes() Nodes {
	nodes := Nodes{}
	for _, node := range append(w.others, w.node) {
		if node != nil {
			nodes[node.Name] = node
		}
	}
	return nodes
}

// read parses the request.
func (w *world) read(t *testing.T) *Request {
	t.Helper()
	return w.readDER(w.der(t))
}

// der returns the signed request.
func (w *world) der(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &w.subject, key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return der
}

func (w *world) readDER(der []byte) *Request {
	w.request.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return Read(&w.request)
}

func TestObstacle(t *testing.T) {
	for situation, tc := range map[string]struct {
		world  func() *world
		change func(*world)
		// obstacle is a part of the obstacle. Empty: the request is approved.
		obstacle string
	}{
		"client: silent Node with expired certificate": {world: asleep},
		"client: Node reports NotReady": {
			world:  asleep,
			change: func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionFalse },
		},
		"client: Node deleted, Machine exists": {world: asleep, change: func(w *world) { w.node = nil }},
		"client: RSA key": {world: asleep, change: func(w *world) {
			w.request.Spec.Usages = append(w.request.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}},
		"client: Machine being deleted, Node exists": {
			world: asleep, change: func(w *world) { w.machines[0].DeletionTimestamp = now() },
			obstacle: "Machine machine-w0 is being deleted",
		},
		"client: joining host": {world: joining},
		"client: joined host with Ready Node": {
			world: joining, change: func(w *world) { w.node = nodeOf("w0", corev1.ConditionTrue) },
			obstacle: "Node w0 is Ready, and has a valid certificate",
		},
		"client: joining host is still being written": {world: joining, change: func(w *world) {
			w.facts.Agents[0].Status.Progress.CurrentStage = aiv1beta1.HostStageWritingImageToDisk
		}, obstacle: "the host of Machine machine-w0 is still being installed"},
		"client: joining Machine is being deleted": {
			world: joining, change: func(w *world) { w.machines[0].DeletionTimestamp = now() },
			obstacle: "no Machine has a Node of that name",
		},
		"client: joining Agent is being deleted": {
			world: joining, change: func(w *world) { w.facts.Agents[0].DeletionTimestamp = now() },
			obstacle: "no Machine has a Node of that name",
		},
		"client: Agent of another Machine": {
			world:    joining,
			change:   func(w *world) { w.facts.Agents[0].Labels[aiv1beta1.InfraEnvNameLabel] = "other" },
			obstacle: "no Machine has a Node of that name",
		},
		"client: name of joining host belongs to another Machine": {
			world:  joining,
			change: func(w *world) { w.machines[1].Status.NodeRef.Name = "w0" }, obstacle: "machine-w0 and machine-w1 both have",
		},
		"client: Ready Node": {
			world: asleep, change: func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionTrue },
			obstacle: "Node w0 is Ready, and has a valid certificate",
		},
		"client: Node reboots": {
			world: asleep, change: lastReportBefore(time.Hour, 2*time.Hour-time.Minute),
			obstacle: "Node w0 reported less than 2 h ago, and still has a valid certificate",
		},
		"client: long absence":                       {world: asleep, change: lastReportBefore(time.Hour, 2*time.Hour+time.Minute)},
		"client: Node renewed its first certificate": {world: asleep, change: lastReportBefore(47*time.Hour, 2*time.Hour+time.Minute)},
		"client: old Node absent for two hours": {
			world: asleep, change: lastReportBefore(49*time.Hour, 2*time.Hour+time.Minute),
			obstacle: "Node w0 reported less than 60 h ago, and still has a valid certificate",
		},
		"client: old Node absent for a weekend": {
			world: asleep, change: lastReportBefore(1000*time.Hour, 60*time.Hour-time.Minute),
			obstacle: "Node w0 reported less than 60 h ago, and still has a valid certificate",
		},
		"client: old Node with expired certificate": {world: asleep, change: lastReportBefore(1000*time.Hour, 60*time.Hour+time.Minute)},
		"client: Node silent since its first day":   {world: asleep, change: lastReportBefore(time.Hour, 59*time.Hour)},
		"client: last report in the future": {
			world: asleep, change: lastReportBefore(time.Hour, -26*time.Hour),
			obstacle: "reported less than 2 h ago",
		},
		"client: new Node of old cluster (certificate valid for 30 days)": {world: asleep, change: func(w *world) {
			lastReportBefore(time.Hour, 3*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), 72*time.Hour)}
		}, obstacle: "reported less than 60 h ago"},
		"client: new Node of old cluster, long absence": {world: asleep, change: func(w *world) {
			lastReportBefore(time.Hour, 61*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), 1000*time.Hour)}
		}},
		"client: cluster off since its first day, Node added": {world: asleep, change: func(w *world) {
			lastReportBefore(time.Hour, 1000*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), time.Hour)}
		}},
		"client: cluster off during its first day": {world: asleep, change: func(w *world) {
			lastReportBefore(time.Hour, 3*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), 26*time.Hour)}
		}},
		"client: new Node without status": {world: asleep, change: func(w *world) {
			w.node.Status.Conditions, w.node.CreationTimestamp = nil,
				*now()
		}, obstacle: "reported less than 2 h ago"},
		"serving: Node reboots": {world: awake, change: lastReportBefore(time.Hour, 0)},
		"client: Machine being deleted, no Node": {world: asleep, change: func(w *world) {
			w.machines[0].DeletionTimestamp, w.node = now(),
				nil
		}, obstacle: "Machine machine-w0 is being deleted"},
		"client: requester with a long name": {
			world: asleep, change: func(w *world) {
				w.request.Spec.Username = strings.Repeat("é",
					1000)
			},
			obstacle: `by "` + strings.Repeat("é", 125) + `…", not`,
		},
		"serving: requester with a long name": {
			world: awake, change: func(w *world) {
				w.request.Spec.Username = strings.Repeat("é",
					1000)
			},
			obstacle: `by "` + strings.Repeat("é", 125) + `…", not`,
		},
		"serving: long DNS name": {
			world: awake, change: func(w *world) { w.subject.DNSNames = []string{strings.Repeat("a", 1000)} },
			obstacle: `the name "` + strings.Repeat("a", 250) + `…", which`,
		},
		"client: unknown Node": {
			world: asleep, change: func(w *world) { w.subject.Subject.CommonName = "system:node:w9" },
			obstacle: "no Machine has a Node of that name",
		},
		"client: another ServiceAccount": {
			world:    asleep,
			change:   func(w *world) { w.request.Spec.Username = "system:serviceaccount:default:node-bootstrapper" },
			obstacle: "not by the ServiceAccount",
		},
		"client: requested by another Node": {
			world: asleep, change: func(w *world) { w.request.Spec.Username = "system:node:w1" },
			obstacle: "not by the ServiceAccount",
		},
		"client: bootstrapper with additional group": {
			world:    asleep,
			change:   func(w *world) { w.request.Spec.Groups = append(w.request.Spec.Groups, "system:masters") },
			obstacle: "not by the ServiceAccount",
		},
		"client: bootstrapper without its groups": {
			world:  asleep,
			change: func(w *world) { w.request.Spec.Groups = w.request.Spec.Groups[:2] }, obstacle: "not by the ServiceAccount",
		},
		"client: usage server auth": {world: asleep, change: func(w *world) {
			w.request.Spec.Usages = append(w.request.Spec.Usages,
				certificatesv1.UsageServerAuth)
		}, obstacle: "usages differ"},
		"client: without usage client auth": {
			world: asleep, change: func(w *world) { w.request.Spec.Usages = w.request.Spec.Usages[:1] },
			obstacle: "usages differ",
		},
		"client: group of administrators": {
			world:    asleep,
			change:   func(w *world) { w.subject.Subject.Organization = []string{"system:masters"} },
			obstacle: "only organization must be system:nodes",
		},
		"client: additional group of administrators": {
			world:    asleep,
			change:   func(w *world) { w.subject.Subject.Organization = []string{"system:nodes", "system:masters"} },
			obstacle: "only organization must be system:nodes",
		},
		"client: no group": {
			world: asleep, change: func(w *world) { w.subject.Subject.Organization = nil },
			obstacle: "only organization must be system:nodes",
		},
		"client: additional subject name": {world: asleep, change: alsoNamed, obstacle: "only organization must be system:nodes"},
		"client: DNS name": {
			world: asleep, change: func(w *world) { w.subject.DNSNames = []string{"w0"} },
			obstacle: "contains names or addresses",
		},
		"client: address": {
			world: asleep, change: func(w *world) { w.subject.IPAddresses = []net.IP{net.ParseIP("192.168.1.10")} },
			obstacle: "contains names or addresses",
		},
		"client: e-mail address": {
			world: asleep, change: func(w *world) { w.subject.EmailAddresses = []string{"a@b"} },
			obstacle: "e-mail addresses or URIs",
		},
		"serving: name and addresses of the Node": {world: awake},
		"serving: Node is not Ready": {
			world:  awake,
			change: func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionUnknown },
		},
		"serving: joining host": {world: servingWhileJoining},
		"serving: names reported by Machine and Node": {world: awake, change: func(w *world) {
			w.subject.DNSNames = []string{
				"w0.local",
				"w0.example.com",
			}
		}},
		"serving: address reported only by the Machine": {
			world:  awake,
			change: func(w *world) { w.node.Status.Addresses = nil; w.subject.IPAddresses = w.subject.IPAddresses[:1] },
		},
		"serving: only a name": {world: awake, change: func(w *world) { w.subject.IPAddresses = nil }},
		"serving: neither name nor address": {
			world: awake, change: func(w *world) {
				w.subject.DNSNames, w.subject.IPAddresses = nil,
					nil
			},
			obstacle: "contains no name and no address",
		},
		"serving: no Node": {world: awake, change: func(w *world) { w.node = nil }, obstacle: "Node w0 does not exist"},
		"serving: requested by another Node": {
			world: awake, change: func(w *world) { w.request.Spec.Username = "system:node:w1" },
			obstacle: "not by the kubelet of the Node",
		},
		"serving: requested by the bootstrapper": {
			world: awake, change: func(w *world) { w.request.Spec.Username = bootstrapperUser },
			obstacle: "not by the kubelet of the Node",
		},
		"serving: requester with another group": {
			world: awake, change: func(w *world) { w.request.Spec.Groups[0] = "system:masters" },
			obstacle: "not by the kubelet of the Node",
		},
		"serving: usage client auth": {world: awake, change: func(w *world) {
			w.request.Spec.Usages = append(w.request.Spec.Usages,
				certificatesv1.UsageClientAuth)
		}, obstacle: "usages differ"},
		"serving: unknown name": {
			world: awake, change: func(w *world) {
				w.subject.DNSNames = append(w.subject.DNSNames,
					"api.example.com")
			},
			obstacle: `the name "api.example.com", which neither`,
		},
		"serving: name of another host, which the Node reports": {
			world:    awake,
			change:   func(w *world) { reportName(w, "w1.local"); w.subject.DNSNames = []string{"w1.local"} },
			obstacle: `the name "w1.local", which neither`,
		},
		"serving: name of another Node, which the Node reports": {
			world:    awake,
			change:   func(w *world) { reportName(w, "w1"); w.subject.DNSNames = []string{"w1"} },
			obstacle: `the name "w1", which neither`,
		},
		"serving: unknown address": {
			world: awake, change: func(w *world) { requestAddress(w, "192.168.1.99") },
			obstacle: "the address 192.168.1.99, which neither",
		},
		"client: Agent of another namespace": {
			world: joining, change: func(w *world) { w.facts.Agents[0].Namespace = "tenant" },
			obstacle: "no Machine has a Node of that name",
		},
		"client: unproven Agent in the InfraEnv of the Machine": {
			world:  joining,
			change: func(w *world) { w.facts.Agents[0].Name = "stranger" }, obstacle: "no Machine has a Node of that name",
		},
		"client: unproven Agent listed first": {world: joining, change: strangerFirst},
		"serving: address of another host, which the Node reports": {world: awake, change: func(w *world) {
			report(w, "192.168.1.11")
			requestAddress(w, "192.168.1.11")
		}, obstacle: "the address 192.168.1.11, which is Machine machine-w1's"},
		"serving: address also reported by another Node": {
			world: awake, change: claims,
			obstacle: "the address 10.0.0.11, which Node w1 reports as well",
		},
		"serving: address of the Machine also reported by another Node": {world: awake, change: func(w *world) {
			claims(w)
			w.machines[0].Status.Addresses = append(w.machines[0].Status.Addresses,
				clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.0.0.11"})
		}},
		"serving: address also reported by a Node without Machine": {
			world:  awake,
			change: func(w *world) { claims(w); w.machines = w.machines[:1] }, obstacle: "which Node w1 reports as well",
		},
		"serving: name also reported by another Node": {world: awake, change: func(w *world) {
			claims(w)
			reportName(w, "w1.example.com")
			w.subject.DNSNames, w.subject.IPAddresses = []string{"w1.example.com"}, nil
		}, obstacle: `the name "w1.example.com", which neither`},
		"serving: address of a joining host": {
			world: awake, change: discovers(1),
			obstacle: "the address 10.0.0.11, which is Machine machine-w1's",
		},
		"serving: former address of another host": {world: awake, change: func(w *world) {
			discovers(1)(w)
			w.others = []*corev1.Node{nodeOf("w1", corev1.ConditionTrue, "10.0.0.12")}
		}},
		"serving: former address of the same host": {world: awake, change: discovers(0)},
		"serving: address of the API, which the Node reports": {
			world:    awake,
			change:   func(w *world) { report(w, "192.168.1.2"); requestAddress(w, "192.168.1.2") },
			obstacle: "the address 192.168.1.2, which is the cluster's",
		},
		"serving: address of the ingress, which the Node reports": {world: awake, change: func(w *world) {
			report(w, "192.168.1.3")
			requestAddress(w, "192.168.1.3")
		}, obstacle: "the address 192.168.1.3, which is the cluster's"},
		"serving: URI": {
			world: awake, change: func(w *world) { w.subject.URIs = []*url.URL{{Scheme: "spiffe", Host: "w0"}} },
			obstacle: "e-mail addresses or URIs",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := tc.world()
			if tc.change != nil {
				tc.change(w)
			}
			request := w.read(t)
			g.Expect(request).NotTo(BeNil())
			obstacle := request.Obstacle(HostsOf(w.facts, w.machines), w.nodes(), now().Time)
			if tc.obstacle == "" {
				g.Expect(obstacle).To(BeEmpty())
			} else {
				g.Expect(obstacle).To(ContainSubstring(tc.obstacle))
			}
		})
	}
}

func now() *metav1.Time {
	at := metav1.Now()
	return &at
}

// lastReportBefore makes the Node absent since some time, and sets its age at that time.
func lastReportBefore(age, before time.Duration) func(*world) {
	return func(w *world) {
		w.node.Status.Conditions[0].Status, w.node.Status.Conditions[0].LastHeartbeatTime = corev1.ConditionUnknown,
			metav1.NewTime(now().Add(-before))
		w.node.CreationTimestamp = metav1.NewTime(now().Add(-before - age))
	}
}

// joined sets when a Node joined the cluster.
func joined(node *corev1.Node, ago time.Duration) *corev1.Node {
	node.CreationTimestamp = metav1.NewTime(now().Add(-ago))
	return node
}

// claims makes the Node report an address of another Node, and request a certificate for it.
func claims(w *world) {
	w.others = []*corev1.Node{nodeOf("w1", corev1.ConditionTrue, "10.0.0.11")}
	report(w, "10.0.0.11")
	requestAddress(w, "10.0.0.11")
}

// discovers adds an address to the Agent of a Machine's host. The Node reports the same address.
func discovers(machine int) func(w *world) {
	return func(w *world) {
		agent := w.record(&w.machines[machine], "b")
		agent.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{{IPV4Addresses: []string{"10.0.0.11/24"}}}
		report(w, "10.0.0.11")
		requestAddress(w, "10.0.0.11")
	}
}

// alsoNamed adds a third name to the subject.
func alsoNamed(w *world) {
	w.subject.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "unit"}}
}

func servingWhileJoining() *world {
	w := awake()
	proven := joining().facts
	w.facts.Agents, w.facts.Configs, w.machines[0].Status.NodeRef.Name = proven.Agents, proven.Configs, ""
	w.facts.Agents[0].Status.Progress.CurrentStage = aiv1beta1.HostStageJoined
	return w
}

func report(w *world, address string) {
	w.node.Status.Addresses = append(w.node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
}

func reportName(w *world, name string) {
	w.node.Status.Addresses = append(w.node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
}

func requestAddress(w *world, address string) {
	w.subject.IPAddresses = append(w.subject.IPAddresses, net.ParseIP(address))
}

func TestRead(t *testing.T) {
	for situation, change := range map[string]func(*world){
		"foreign signer": func(w *world) { w.request.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName },
		"failed request": func(w *world) { decide(w, certificatesv1.CertificateFailed) },
		"denied request": func(w *world) { decide(w, certificatesv1.CertificateDenied) },
		"no Node name":   func(w *world) { w.subject.Subject.CommonName = "system:node:" },
		"administrator":  func(w *world) { w.subject.Subject.CommonName = "system:admin" },
	} {
		t.Run(situation, func(t *testing.T) {
			w := asleep()
			change(w)
			NewWithT(t).Expect(w.read(t)).To(BeNil())
		})
	}
	g := NewWithT(t)
	w := asleep()
	g.Expect(w.read(t)).To(And(HaveField("Node", "w0"), HaveField("Approved", false)))
	g.Expect(HostsOf(w.facts, w.machines).Have("w0")).To(BeTrue())
	g.Expect(HostsOf(w.facts, w.machines).Have("w9")).To(BeFalse())
	decide(w, certificatesv1.CertificateApproved)
	g.Expect(w.read(t).Approved).To(BeTrue())
	w.request.Status.Conditions = nil
	for _, content := range []string{"", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"} {
		w.request.Spec.Request = []byte(content)
		g.Expect(Read(&w.request)).To(BeNil())
	}
}

func decide(w *world, how certificatesv1.RequestConditionType) {
	w.request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: how}}
}
