package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/approval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubelets"
)

// fakeKubelets ask for what a test lets them ask for.
type fakeKubelets struct {
	kubelets.Seen
	// inspections is how often they were looked at, approved the requests that were approved; refusing and failing make that fail.
	inspections int
	approved    []string
	refusing    bool
	failing     error
	// failingFor is the name of the request that cannot be approved.
	failingFor string
}

func (f *fakeKubelets) Observe(_ context.Context, _ client.ObjectKey, known func(string) bool) (kubelets.Seen, error) {
	f.inspections++
	seen := f.Seen
	seen.Requests = nil
	for _, request := range f.Requests {
		if known(request.Node) {
			seen.Requests = append(seen.Requests, request)
		}
	}
	return seen, f.failing
}

func (f *fakeKubelets) Approve(_ context.Context, _ client.ObjectKey, request *approval.Request) (bool, error) {
	if f.failingFor == request.Name {
		return false, errors.New("forbidden")
	}
	if f.refusing {
		return false, f.failing
	}
	f.approved = append(f.approved, request.Name)
	return true, nil
}

// askFor lets the kubelet of a Node that is not Ready ask for a client certificate.
func (h *hub) askFor(name, node string) {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	h.Expect(err).NotTo(HaveOccurred())
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	h.Expect(err).NotTo(HaveOccurred())
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Username: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
		Usages:   []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}}
	h.kubelets.Requests = append(h.kubelets.Requests, approval.Read(request))
	if h.kubelets.Nodes == nil {
		h.kubelets.Nodes = map[string]*corev1.Node{}
	}
	h.kubelets.Nodes[node] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	h.workloads.facts.Requested += "+"
}

// setReady says of a Node that it is Ready, as it says itself.
func (h *hub) setReady(node string) {
	h.kubelets.Nodes[node].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

func TestWhatKubeletsOfOurHostsAskForIsApprovedOnce(t *testing.T) {
	h := newInstalledHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.Expect(h.kubelets.inspections).To(BeZero(), "nobody asked for anything")
	h.askFor("csr-1", "n1")
	h.askFor("csr-foreign", "n9")
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
	h.Expect(recorder.Events).To(Receive(Equal("Normal CertificateApproved Approved a client certificate for Node n1 of the cluster (CertificateSigningRequest csr-1)")))
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse())
	h.kubelets.Requests = h.kubelets.Requests[1:]
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(1), "there is nothing new, and what is not ours is nobody's to wait for")
}

// The connections of a manager that starts do not ask for requests at once, unless a host is awaited.
func TestWhatIsNoticedSomeTimeAfterARestartIsLookedAt(t *testing.T) {
	h := newInstalledHub(t)
	h.askFor("csr-1", "n1")
	noticed := h.workloads.facts.Requested
	h.workloads.facts.Requested = ""
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(BeZero())
	h.workloads.facts.Requested = noticed
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
}

func TestWhatDoesNotFitIsStillToldAfterARestart(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.askFor("csr-1", "n1")
	h.setReady("n1")
	h.reconcile()
	now = now.Add(etcdgate.InitialDelay)
	h.reconcile()
	told := conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)
	h.Expect(told).NotTo(BeNil())

	h.r.kubelets = kubelets.NewApprover(h.live, h.kubelets, h.workloads, h.r.writer, h.clock)
	h.workloads.facts.Connected = false
	h.reconcile()
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(Equal(told), "nothing is known that is newer")
	h.workloads.facts.Connected = true
	h.reconcile()
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(Equal(told), "it is seen again")

	h.r.kubelets = kubelets.NewApprover(h.live, h.kubelets, h.workloads, h.r.writer, h.clock)
	h.kubelets.Requests, h.workloads.facts.Requested = nil, ""
	h.reconcile()
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse(), "it was deleted meanwhile")
}

func TestWhatDoesNotFitIsToldWhenItLastsAndApprovedWhenItFits(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.askFor("csr-1", "n1")
	h.setReady("n1")
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialDelay))
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(1), "not at each event")
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse(), "it may be that the hub is behind")

	for _, after := range []time.Duration{2 * etcdgate.InitialDelay, 4 * etcdgate.InitialDelay} {
		now = now.Add(after / 2)
		h.Expect(h.reconcile().RequeueAfter).To(Equal(after))
		c := conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)
		h.Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.CertificateRequestMismatchReason),
			HaveField("Message", ContainSubstring("CertificateSigningRequest csr-1, a client certificate for Node n1: Node n1 is Ready"))))
	}
	now = now.Add(4 * etcdgate.InitialDelay)
	h.workloads.facts.Connected = false
	h.Expect(h.reconcile().RequeueAfter).To(Or(BeZero(), BeNumerically(">", time.Minute)), "the connection tells when it is back")
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeTrue(), "nothing is known that is newer")
	h.Expect(h.kubelets.inspections).To(Equal(3))

	h.workloads.facts.Connected = true
	h.kubelets.Nodes["n1"].Status.Conditions = nil
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse())
}

func TestWhoseApproverDecidesIsLeftAlone(t *testing.T) {
	h := newInstalledHub(t)
	h.kubelets.MachineAPI = true
	h.askFor("csr-1", "n1")
	h.reconcile()
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(1))
	h.Expect(h.kubelets.approved).To(BeEmpty())
}

func TestARequestThatSomebodyChangesMeanwhileIsLookedAtAgain(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.kubelets.refusing = true
	h.askFor("csr-1", "n1")
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialDelay))
	h.kubelets.Requests = nil
	now = now.Add(etcdgate.InitialDelay)
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(2))
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(2), "somebody else has approved it")
}

func TestAFailureIsTriedAgain(t *testing.T) {
	for situation, tc := range map[string]struct {
		failure error
		fails   bool
	}{
		"the cluster is away":      {cluster.ErrNotConnected, false},
		"it does not let us do it": {errors.New("forbidden"), true},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.askFor("csr-1", "n1")
			h.kubelets.failing = tc.failure
			_, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
			h.Expect(err != nil).To(Equal(tc.fails))
			h.kubelets.failing = nil
			h.reconcile()
			h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
		})
	}
}

func TestOneThatCannotBeApprovedDoesNotKeepTheOthersWaiting(t *testing.T) {
	h := newInstalledHub(t)
	h.askFor("csr-1", "n1")
	h.askFor("csr-2", "n2")
	h.kubelets.failingFor = "csr-1"
	_, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
	h.Expect(err).To(MatchError(ContainSubstring("cannot approve CertificateSigningRequest csr-1")))
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-2"}))
}

func TestNewRequestsAreNotLookedAtMoreOftenThanNeeded(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.askFor("csr-1", "n1")
	h.reconcile()
	h.askFor("csr-2", "n2")
	now = now.Add(etcdgate.InitialDelay / 5)
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialDelay - etcdgate.InitialDelay/5))
	h.Expect(h.kubelets.inspections).To(Equal(1))
	now = now.Add(etcdgate.InitialDelay)
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(2))
	h.Expect(h.kubelets.approved).To(ContainElement("csr-2"))
}

func TestBeforeTheClusterIsInstalledItsOwnControllerApproves(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.workloads.facts = facts.Workload{Connected: true, LastSuccess: time.Now()}
	h.askFor("csr-1", "n1")
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(BeZero())
}

func TestRequestsAreAwaitedWhileANodeIsAway(t *testing.T) {
	h := newInstalledHub(t)
	h.Expect(h.workloads.awaited).To(BeFalse())
	m := &h.machines()[0]
	for status, awaited := range map[metav1.ConditionStatus]bool{metav1.ConditionFalse: true, metav1.ConditionUnknown: true, metav1.ConditionTrue: false} {
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: status, Reason: "Test"})
		h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
		h.reconcile()
		h.Expect(h.workloads.awaited).To(Equal(awaited), status)
	}
	worker := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"}}
	conditions.Set(worker, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown, Reason: "Test"})
	h.Expect(h.Create(t.Context(), worker)).To(Succeed())
	h.Expect(h.Status().Update(t.Context(), worker)).To(Succeed())
	h.get(m.Name, m)
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue, Reason: "Test"})
	h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.Expect(h.workloads.awaited).To(BeTrue())
}

// The API server reaches a member through the kubelet of its Node, whose serving certificate may have expired though the Node is Ready.
func TestRequestsAreAwaitedWhileAMemberDoesNotAnswer(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.etcds.Members[2].Problem = "does not answer"
	h.deleteMachine(0)
	h.reconcile()
	h.reconcile()
	h.Expect(h.workloads.awaited).To(BeTrue())
	h.askFor("csr-1", "n1")
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))

	h.etcds.Members[2].Problem = ""
	now = now.Add(kubelets.SilentFor - time.Second)
	h.reconcile()
	h.Expect(h.workloads.awaited).To(BeTrue(), "it may answer now and then")
	now = now.Add(time.Minute)
	h.reconcile()
	h.Expect(h.workloads.awaited).To(BeFalse())
}

func TestMoreRequestsThanAreReadAreReported(t *testing.T) {
	h := newInstalledHub(t)
	h.kubelets.More = true
	h.workloads.facts.Requested = "many"
	h.reconcile()
	c := conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)
	h.Expect(c).To(HaveField("Message", ContainSubstring("more CertificateSigningRequests of kubelets than are read")))
}

func TestAWorkerWhoseNodeComesOrGoesIsNoticed(t *testing.T) {
	worker := func(ready metav1.ConditionStatus) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: ready, Reason: "Test"})
		return m
	}
	g := NewWithT(t)
	away, there := worker(metav1.ConditionUnknown), worker(metav1.ConditionTrue)
	g.Expect(machineChanges.Update(event.UpdateEvent{ObjectOld: away, ObjectNew: there})).To(BeTrue())
	g.Expect(machineChanges.Update(event.UpdateEvent{ObjectOld: there, ObjectNew: away})).To(BeTrue())
	g.Expect(machineChanges.Update(event.UpdateEvent{ObjectOld: away, ObjectNew: worker(metav1.ConditionFalse)})).To(BeFalse())
	g.Expect(machineChanges.Update(event.UpdateEvent{ObjectOld: away, ObjectNew: &clusterv1.Machine{}})).To(BeTrue())
	g.Expect(machineChanges.Update(event.UpdateEvent{ObjectOld: &clusterv1.Machine{}, ObjectNew: there})).To(BeFalse(), "nobody has waited for it")
}
