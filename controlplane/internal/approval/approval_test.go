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
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// world is a cluster of which w0 is a worker, with a request of its kubelet.
type world struct {
	facts    *facts.Facts
	machines []clusterv1.Machine
	node     *corev1.Node
	// others are the other Nodes of the cluster.
	others  []*corev1.Node
	subject x509.CertificateRequest
	request certificatesv1.CertificateSigningRequest
}

// asleep is one whose hosts were off until their certificates expired: the kubelet of w0 asks for a client certificate.
func asleep() *world {
	w := &world{facts: &facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}, node: nodeOf("w0", corev1.ConditionUnknown, "192.168.1.10", "fd00:0:0::10")}
	w.facts.ControlPlane.Spec.Config.APIVIPs, w.facts.ControlPlane.Spec.Config.IngressVIPs = []string{"192.168.1.2"}, []string{"192.168.1.3"}
	w.machines = []clusterv1.Machine{machineOf("w0", "192.168.1.10"), machineOf("w1", "192.168.1.11")}
	w.subject.Subject = pkix.Name{CommonName: "system:node:w0", Organization: []string{"system:nodes"}}
	w.request.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Username:   "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:     []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}
	return w
}

// awake is one in which the kubelet of w0 has its client certificate, and asks for one to serve with.
func awake() *world {
	w := asleep()
	w.node.Status.Conditions[0].Status = corev1.ConditionTrue
	w.subject.DNSNames, w.subject.IPAddresses = []string{"w0"}, []net.IP{net.ParseIP("192.168.1.10"), net.ParseIP("fd00::10")}
	w.request.Spec.SignerName, w.request.Spec.Username = certificatesv1.KubeletServingSignerName, "system:node:w0"
	w.request.Spec.Groups = []string{"system:nodes", "system:authenticated"}
	w.request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	return w
}

// joining is one whose Machine w0 has no Node yet: its host has just booted what was installed on it.
func joining() *world {
	w := asleep()
	w.node, w.machines[0].Status.NodeRef.Name = nil, ""
	agent := w.record(&w.machines[0], "a")
	agent.Spec.Hostname, agent.Status.Progress.CurrentStage = "w0", models.HostStageRebooting
	return w
}

// record adds an Agent, and records that the host of a Machine is the one that it runs on.
func (w *world) record(m *clusterv1.Machine, name string) *aiv1beta1.Agent {
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: name}
	if w.facts.Configs == nil {
		w.facts.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	}
	w.facts.Configs[m.Name] = config
	w.facts.Agents = append(w.facts.Agents, aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name, Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: m.Name}}})
	return &w.facts.Agents[len(w.facts.Agents)-1]
}

// strangerFirst adds, before the host's own Agent, one that booted the same image.
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
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: address}, {Type: clusterv1.MachineHostName, Address: node + ".local"}}
	return m
}

// nodes are all of the cluster.
func (w *world) nodes() Nodes {
	nodes := Nodes{}
	for _, node := range append(w.others, w.node) {
		if node != nil {
			nodes[node.Name] = node
		}
	}
	return nodes
}

// read reads the request.
func (w *world) read(t *testing.T) *Request {
	t.Helper()
	return w.readDER(w.der(t))
}

// der is what the kubelet asks for, signed with its key.
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

func TestWhichRequestsAreApproved(t *testing.T) {
	for situation, tc := range map[string]struct {
		world  func() *world
		change func(*world)
		// obstacle is a part of why it is not; empty: it is.
		obstacle string
	}{
		"client: the Node is not Ready, its certificate has expired": {world: asleep},
		"client: the Node says of itself that it is not Ready":       {world: asleep, change: func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionFalse }},
		"client: the Node was deleted, its Machine is there":         {world: asleep, change: func(w *world) { w.node = nil }},
		"client: the key is one of RSA": {world: asleep, change: func(w *world) {
			w.request.Spec.Usages = append(w.request.Spec.Usages, certificatesv1.UsageKeyEncipherment)
		}},
		"client: the Machine is being deleted, its Node is there": {world: asleep, change: func(w *world) { w.machines[0].DeletionTimestamp = now() }, obstacle: "Machine machine-w0 is being deleted"},
		"client: a host joins":                               {world: joining},
		"client: a host joins, and its Node is Ready by now": {world: joining, change: func(w *world) { w.node = nodeOf("w0", corev1.ConditionTrue) }, obstacle: "Node w0 is Ready, and has its certificate"},
		"client: the host that is to join is still being written": {world: joining, change: func(w *world) {
			w.facts.Agents[0].Status.Progress.CurrentStage = models.HostStageWritingImageToDisk
		}, obstacle: "the host of Machine machine-w0 is still being installed"},
		"client: the Machine that was to join is being deleted":                      {world: joining, change: func(w *world) { w.machines[0].DeletionTimestamp = now() }, obstacle: "no Machine has a Node of that name"},
		"client: the Agent that joins is being deleted":                              {world: joining, change: func(w *world) { w.facts.Agents[0].DeletionTimestamp = now() }, obstacle: "no Machine has a Node of that name"},
		"client: the Agent is that of another Machine":                               {world: joining, change: func(w *world) { w.facts.Agents[0].Labels[aiv1beta1.InfraEnvNameLabel] = "other" }, obstacle: "no Machine has a Node of that name"},
		"client: the name of the host that joins is another's":                       {world: joining, change: func(w *world) { w.machines[1].Status.NodeRef.Name = "w0" }, obstacle: "machine-w0 and machine-w1 both have"},
		"client: the Node is Ready":                                                  {world: asleep, change: func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionTrue }, obstacle: "Node w0 is Ready, and has its certificate"},
		"client: the Node reboots":                                                   {world: asleep, change: heardBefore(time.Hour, 2*time.Hour-time.Minute), obstacle: "Node w0 was heard less than 2 h ago, and has its certificate"},
		"client: the Node was away for long":                                         {world: asleep, change: heardBefore(time.Hour, 2*time.Hour+time.Minute)},
		"client: the Node renewed its first certificate":                             {world: asleep, change: heardBefore(47*time.Hour, 2*time.Hour+time.Minute)},
		"client: the old Node was away for two hours":                                {world: asleep, change: heardBefore(49*time.Hour, 2*time.Hour+time.Minute), obstacle: "Node w0 was heard less than 60 h ago, and has its certificate"},
		"client: the old Node was away for a weekend":                                {world: asleep, change: heardBefore(1000*time.Hour, 60*time.Hour-time.Minute), obstacle: "Node w0 was heard less than 60 h ago, and has its certificate"},
		"client: the old Node was away for so long that its certificate has expired": {world: asleep, change: heardBefore(1000*time.Hour, 60*time.Hour+time.Minute)},
		"client: the Node fell silent when it was new, and is old by now":            {world: asleep, change: heardBefore(time.Hour, 59*time.Hour)},
		"client: the Node will be heard, by a clock that is ahead":                   {world: asleep, change: heardBefore(time.Hour, -26*time.Hour), obstacle: "was heard less than 2 h ago"},
		"client: a new Node of an old cluster, whose first certificate is valid for 30 days": {world: asleep, change: func(w *world) {
			heardBefore(time.Hour, 3*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), 72*time.Hour)}
		}, obstacle: "was heard less than 60 h ago"},
		"client: that Node is away for longer": {world: asleep, change: func(w *world) {
			heardBefore(time.Hour, 61*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), 1000*time.Hour)}
		}},
		"client: a cluster that slept since its first day, to which a Node was added": {world: asleep, change: func(w *world) {
			heardBefore(time.Hour, 1000*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), time.Hour)}
		}},
		"client: a cluster that sleeps in its first day": {world: asleep, change: func(w *world) {
			heardBefore(time.Hour, 3*time.Hour)(w)
			w.others = []*corev1.Node{joined(nodeOf("w1", corev1.ConditionTrue, "10.0.0.11"), 26*time.Hour)}
		}},
		"client: the Node was just made, and never told how it is":      {world: asleep, change: func(w *world) { w.node.Status.Conditions, w.node.CreationTimestamp = nil, *now() }, obstacle: "was heard less than 2 h ago"},
		"serving: the Node reboots":                                     {world: awake, change: heardBefore(time.Hour, 0)},
		"client: the Machine is being deleted, its Node is gone":        {world: asleep, change: func(w *world) { w.machines[0].DeletionTimestamp, w.node = now(), nil }, obstacle: "Machine machine-w0 is being deleted"},
		"client: asked for by one with a long name":                     {world: asleep, change: func(w *world) { w.request.Spec.Username = strings.Repeat("é", 1000) }, obstacle: `by "` + strings.Repeat("é", 125) + `…", and`},
		"serving: asked for by one with a long name":                    {world: awake, change: func(w *world) { w.request.Spec.Username = strings.Repeat("é", 1000) }, obstacle: `by "` + strings.Repeat("é", 125) + `…", and`},
		"serving: for a long name":                                      {world: awake, change: func(w *world) { w.subject.DNSNames = []string{strings.Repeat("a", 1000)} }, obstacle: `the name "` + strings.Repeat("a", 250) + `…", which`},
		"client: nobody has such a Node":                                {world: asleep, change: func(w *world) { w.subject.Subject.CommonName = "system:node:w9" }, obstacle: "no Machine has a Node of that name"},
		"client: another ServiceAccount":                                {world: asleep, change: func(w *world) { w.request.Spec.Username = "system:serviceaccount:default:node-bootstrapper" }, obstacle: "not by the ServiceAccount"},
		"client: a Node for another":                                    {world: asleep, change: func(w *world) { w.request.Spec.Username = "system:node:w1" }, obstacle: "not by the ServiceAccount"},
		"client: the bootstrapper in one group more":                    {world: asleep, change: func(w *world) { w.request.Spec.Groups = append(w.request.Spec.Groups, "system:masters") }, obstacle: "not by the ServiceAccount"},
		"client: the bootstrapper without its groups":                   {world: asleep, change: func(w *world) { w.request.Spec.Groups = w.request.Spec.Groups[:2] }, obstacle: "not by the ServiceAccount"},
		"client: to serve as well":                                      {world: asleep, change: func(w *world) { w.request.Spec.Usages = append(w.request.Spec.Usages, certificatesv1.UsageServerAuth) }, obstacle: "other usages"},
		"client: not for clients":                                       {world: asleep, change: func(w *world) { w.request.Spec.Usages = w.request.Spec.Usages[:1] }, obstacle: "other usages"},
		"client: in the group of administrators":                        {world: asleep, change: func(w *world) { w.subject.Subject.Organization = []string{"system:masters"} }, obstacle: "organization system:nodes alone"},
		"client: in the group of administrators, too":                   {world: asleep, change: func(w *world) { w.subject.Subject.Organization = []string{"system:nodes", "system:masters"} }, obstacle: "organization system:nodes alone"},
		"client: in no group":                                           {world: asleep, change: func(w *world) { w.subject.Subject.Organization = nil }, obstacle: "organization system:nodes alone"},
		"client: with one name more":                                    {world: asleep, change: alsoNamed, obstacle: "organization system:nodes alone"},
		"client: for a name":                                            {world: asleep, change: func(w *world) { w.subject.DNSNames = []string{"w0"} }, obstacle: "for names or addresses"},
		"client: for an address":                                        {world: asleep, change: func(w *world) { w.subject.IPAddresses = []net.IP{net.ParseIP("192.168.1.10")} }, obstacle: "for names or addresses"},
		"client: for an e-mail address":                                 {world: asleep, change: func(w *world) { w.subject.EmailAddresses = []string{"a@b"} }, obstacle: "e-mail addresses or URIs"},
		"serving: for the name and the addresses of the Node":           {world: awake},
		"serving: while the Node is not Ready":                          {world: awake, change: func(w *world) { w.node.Status.Conditions[0].Status = corev1.ConditionUnknown }},
		"serving: a host joins":                                         {world: servingWhileJoining},
		"serving: for the names that Machine and Node tell":             {world: awake, change: func(w *world) { w.subject.DNSNames = []string{"w0.local", "w0.example.com"} }},
		"serving: for an address that only the Machine tells":           {world: awake, change: func(w *world) { w.node.Status.Addresses = nil; w.subject.IPAddresses = w.subject.IPAddresses[:1] }},
		"serving: for a name alone":                                     {world: awake, change: func(w *world) { w.subject.IPAddresses = nil }},
		"serving: for nothing":                                          {world: awake, change: func(w *world) { w.subject.DNSNames, w.subject.IPAddresses = nil, nil }, obstacle: "for no name and no address"},
		"serving: there is no Node":                                     {world: awake, change: func(w *world) { w.node = nil }, obstacle: "there is no Node w0"},
		"serving: asked for by another Node":                            {world: awake, change: func(w *world) { w.request.Spec.Username = "system:node:w1" }, obstacle: "not by the kubelet itself"},
		"serving: asked for by the bootstrapper":                        {world: awake, change: func(w *world) { w.request.Spec.Username = bootstrapperUser }, obstacle: "not by the kubelet itself"},
		"serving: asked for by one in another group":                    {world: awake, change: func(w *world) { w.request.Spec.Groups[0] = "system:masters" }, obstacle: "not by the kubelet itself"},
		"serving: to be a client as well":                               {world: awake, change: func(w *world) { w.request.Spec.Usages = append(w.request.Spec.Usages, certificatesv1.UsageClientAuth) }, obstacle: "other usages"},
		"serving: for a name of nobody":                                 {world: awake, change: func(w *world) { w.subject.DNSNames = append(w.subject.DNSNames, "api.example.com") }, obstacle: `the name "api.example.com", which neither`},
		"serving: for the name of another host, which the Node reports": {world: awake, change: func(w *world) { reportName(w, "w1.local"); w.subject.DNSNames = []string{"w1.local"} }, obstacle: `the name "w1.local", which neither`},
		"serving: for the name of another Node, which the Node reports": {world: awake, change: func(w *world) { reportName(w, "w1"); w.subject.DNSNames = []string{"w1"} }, obstacle: `the name "w1", which neither`},
		"serving: for an address of nobody":                             {world: awake, change: func(w *world) { askFor(w, "192.168.1.99") }, obstacle: "the address 192.168.1.99, which neither"},
		"client: the Agent is of another namespace":                     {world: joining, change: func(w *world) { w.facts.Agents[0].Namespace = "tenant" }, obstacle: "no Machine has a Node of that name"},
		"client: the Agent is a stranger in the Machine's InfraEnv":     {world: joining, change: func(w *world) { w.facts.Agents[0].Name = "stranger" }, obstacle: "no Machine has a Node of that name"},
		"client: a stranger in the Machine's InfraEnv stands first":     {world: joining, change: strangerFirst},
		"serving: for an address of another host, which the Node reports": {world: awake, change: func(w *world) {
			report(w, "192.168.1.11")
			askFor(w, "192.168.1.11")
		}, obstacle: "the address 192.168.1.11, which is Machine machine-w1's"},
		"serving: for an address that another Node reports, too": {world: awake, change: claims, obstacle: "the address 10.0.0.11, which Node w1 reports as well"},
		"serving: for an address that another Node reports, though the Machine has it": {world: awake, change: func(w *world) {
			claims(w)
			w.machines[0].Status.Addresses = append(w.machines[0].Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.0.0.11"})
		}},
		"serving: for an address that a Node without Machine reports, too": {world: awake, change: func(w *world) { claims(w); w.machines = w.machines[:1] }, obstacle: "which Node w1 reports as well"},
		"serving: for a name that another Node reports, too": {world: awake, change: func(w *world) {
			claims(w)
			reportName(w, "w1.example.com")
			w.subject.DNSNames, w.subject.IPAddresses = []string{"w1.example.com"}, nil
		}, obstacle: `the name "w1.example.com", which neither`},
		"serving: for an address of a host that is about to join": {world: awake, change: discovers(1), obstacle: "the address 10.0.0.11, which is Machine machine-w1's"},
		"serving: for an address that another host had before it joined": {world: awake, change: func(w *world) {
			discovers(1)(w)
			w.others = []*corev1.Node{nodeOf("w1", corev1.ConditionTrue, "10.0.0.12")}
		}},
		"serving: for an address that its own host had before it joined": {world: awake, change: discovers(0)},
		"serving: for an address of the API, which the Node reports":     {world: awake, change: func(w *world) { report(w, "192.168.1.2"); askFor(w, "192.168.1.2") }, obstacle: "the address 192.168.1.2, which is the cluster's"},
		"serving: for an address of the ingress, which the Node reports": {world: awake, change: func(w *world) {
			report(w, "192.168.1.3")
			askFor(w, "192.168.1.3")
		}, obstacle: "the address 192.168.1.3, which is the cluster's"},
		"serving: for a URI": {world: awake, change: func(w *world) { w.subject.URIs = []*url.URL{{Scheme: "spiffe", Host: "w0"}} }, obstacle: "e-mail addresses or URIs"},
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

// heardBefore makes the Node one that is away, and was heard of some time before; its age is the one at that time.
func heardBefore(age, before time.Duration) func(*world) {
	return func(w *world) {
		w.node.Status.Conditions[0].Status, w.node.Status.Conditions[0].LastHeartbeatTime = corev1.ConditionUnknown, metav1.NewTime(now().Add(-before))
		w.node.CreationTimestamp = metav1.NewTime(now().Add(-before - age))
	}
}

// joined makes a Node one that joined the cluster some time ago.
func joined(node *corev1.Node, ago time.Duration) *corev1.Node {
	node.CreationTimestamp = metav1.NewTime(now().Add(-ago))
	return node
}

// claims lets the Node report an address that another Node reports too, and request a certificate for it.
func claims(w *world) {
	w.others = []*corev1.Node{nodeOf("w1", corev1.ConditionTrue, "10.0.0.11")}
	report(w, "10.0.0.11")
	askFor(w, "10.0.0.11")
}

// discovers lets the Agent on the host of a Machine find an address, which the Node reports.
func discovers(machine int) func(w *world) {
	return func(w *world) {
		agent := w.record(&w.machines[machine], "b")
		agent.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{{IPV4Addresses: []string{"10.0.0.11/24"}}}
		report(w, "10.0.0.11")
		askFor(w, "10.0.0.11")
	}
}

// alsoNamed gives the subject one name more than a kubelet has.
func alsoNamed(w *world) {
	w.subject.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "unit"}}
}

func servingWhileJoining() *world {
	w := awake()
	proven := joining().facts
	w.facts.Agents, w.facts.Configs, w.machines[0].Status.NodeRef.Name = proven.Agents, proven.Configs, ""
	w.facts.Agents[0].Status.Progress.CurrentStage = models.HostStageJoined
	return w
}

func report(w *world, address string) {
	w.node.Status.Addresses = append(w.node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
}

func reportName(w *world, name string) {
	w.node.Status.Addresses = append(w.node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
}

func askFor(w *world, address string) {
	w.subject.IPAddresses = append(w.subject.IPAddresses, net.ParseIP(address))
}

func TestWhichRequestsAreLookedAt(t *testing.T) {
	for situation, change := range map[string]func(*world){
		"another signer's":        func(w *world) { w.request.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName },
		"one that failed":         func(w *world) { decide(w, certificatesv1.CertificateFailed) },
		"one that was denied":     func(w *world) { decide(w, certificatesv1.CertificateDenied) },
		"one of nobody":           func(w *world) { w.subject.Subject.CommonName = "system:node:" },
		"one of an administrator": func(w *world) { w.subject.Subject.CommonName = "system:admin" },
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
