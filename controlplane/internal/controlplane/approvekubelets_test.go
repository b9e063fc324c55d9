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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubelets"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// fakeKubelets create the certificate requests that a test sets.
type fakeKubelets struct {
	kubelets.Seen
	// inspections is the number of inspections; approved are the approved requests; refusing and failing make
	// approvals fail.
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

// requestCertificate makes the kubelet of a Node that is not Ready request a client certificate.
func (h *hub) requestCertificate(name, node string) {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	h.Expect(err).NotTo(HaveOccurred())
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	h.Expect(err).NotTo(HaveOccurred())
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Username:   "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
			Groups:     []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	h.kubelets.Requests = append(h.kubelets.Requests, approval.Read(request))
	if h.kubelets.Nodes == nil {
		h.kubelets.Nodes = map[string]*corev1.Node{}
	}
	h.kubelets.Nodes[node] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	h.workloads.facts.Requested += "+"
}

// setReady makes a Node Ready, as its kubelet reports it.
func (h *hub) setReady(node string) {
	h.kubelets.Nodes[node].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

func TestRequestsOfKubeletsOfOurHostsAreApprovedOnce(t *testing.T) {
	h := newInstalledHub(t)
	recorder := record.NewFakeRecorder(100)
	h.recorder.EventRecorder = recorder
	h.Expect(h.kubelets.inspections).To(BeZero(), "no kubelet requested a certificate")
	h.requestCertificate("csr-1", "n1")
	h.requestCertificate("csr-foreign", "n9")
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
	h.Expect(recorder.Events).To(
		Receive(Equal("Normal CertificateApproved Approved a client certificate for Node n1 of the cluster (CertificateSigningRequest csr-1)")),
	)
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse())
	h.kubelets.Requests = h.kubelets.Requests[1:]
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(1), "no new request exists, and no inspection waits for a foreign one")
}

// Right after the start of a manager its connections do not read requests, unless hosts are expected.
func TestRequestIsInspectedWhenObservedAfterARestart(t *testing.T) {
	h := newInstalledHub(t)
	h.requestCertificate("csr-1", "n1")
	noticed := h.workloads.facts.Requested
	h.workloads.facts.Requested = ""
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(BeZero())
	h.workloads.facts.Requested = noticed
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
}

func TestMismatchingRequestStaysReportedAfterARestart(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.requestCertificate("csr-1", "n1")
	h.setReady("n1")
	h.reconcile()
	now = now.Add(etcdgate.InitialDelay)
	h.reconcile()
	reported := conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)
	h.Expect(reported).NotTo(BeNil())

	h.r.kubelets = kubelets.NewApprover(h.live, h.kubelets, h.workloads, h.r.writer, h.clock)
	h.workloads.facts.Connected = false
	h.reconcile()
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(Equal(reported), "no newer state is known")
	h.workloads.facts.Connected = true
	h.reconcile()
	h.Expect(
		conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition),
	).To(Equal(reported), "the request is observed again")

	h.r.kubelets = kubelets.NewApprover(h.live, h.kubelets, h.workloads, h.r.writer, h.clock)
	h.kubelets.Requests, h.workloads.facts.Requested = nil, ""
	h.reconcile()
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse(), "the request was deleted meanwhile")
}

func TestMismatchingRequestIsReportedWhenItLastsAndApprovedWhenItMatches(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.requestCertificate("csr-1", "n1")
	h.setReady("n1")
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialDelay))
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(1), "not at each event")
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse(), "the hub may be behind")

	for _, after := range []time.Duration{2 * etcdgate.InitialDelay, 4 * etcdgate.InitialDelay} {
		now = now.Add(after / 2)
		h.Expect(h.reconcile().RequeueAfter).To(Equal(after))
		c := conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)
		h.Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.CertificateRequestMismatchReason),
			HaveField("Message", ContainSubstring("CertificateSigningRequest csr-1, a client certificate for Node n1: Node n1 is Ready"))))
	}
	now = now.Add(4 * etcdgate.InitialDelay)
	h.workloads.facts.Connected = false
	h.Expect(h.reconcile().RequeueAfter).To(
		Or(BeZero(), BeNumerically(">", time.Minute)), "the connection triggers a reconcile when it is back",
	)
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeTrue(), "no newer state is known")
	h.Expect(h.kubelets.inspections).To(Equal(3))

	h.workloads.facts.Connected = true
	h.kubelets.Nodes["n1"].Status.Conditions = nil
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
	h.Expect(conditions.Has(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)).To(BeFalse())
}

func TestRequestsAreNotApprovedIfTheClusterHasAnApprover(t *testing.T) {
	h := newInstalledHub(t)
	h.kubelets.MachineAPI = true
	h.requestCertificate("csr-1", "n1")
	h.reconcile()
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(1))
	h.Expect(h.kubelets.approved).To(BeEmpty())
}

func TestRequestThatAnotherClientChangesIsInspectedAgain(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.kubelets.refusing = true
	h.requestCertificate("csr-1", "n1")
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialDelay))
	h.kubelets.Requests = nil
	now = now.Add(etcdgate.InitialDelay)
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(2))
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(Equal(2), "another client has approved it")
}

func TestFailedApprovalIsRetried(t *testing.T) {
	for situation, tc := range map[string]struct {
		failure error
		fails   bool
	}{
		"the cluster is unreachable":       {cluster.ErrNotConnected, false},
		"the cluster refuses the approval": {errors.New("forbidden"), true},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.requestCertificate("csr-1", "n1")
			h.kubelets.failing = tc.failure
			_, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
			h.Expect(err != nil).To(Equal(tc.fails))
			h.kubelets.failing = nil
			h.reconcile()
			h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))
		})
	}
}

func TestFailedApprovalDoesNotBlockOtherApprovals(t *testing.T) {
	h := newInstalledHub(t)
	h.requestCertificate("csr-1", "n1")
	h.requestCertificate("csr-2", "n2")
	h.kubelets.failingFor = "csr-1"
	_, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
	h.Expect(err).To(MatchError(ContainSubstring("cannot approve CertificateSigningRequest csr-1")))
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-2"}))
}

func TestNewRequestsAreInspectedAtLimitedRate(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.requestCertificate("csr-1", "n1")
	h.reconcile()
	h.requestCertificate("csr-2", "n2")
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
	h.workloads.facts = workload.State{Connected: true, LastSuccess: time.Now()}
	h.requestCertificate("csr-1", "n1")
	h.reconcile()
	h.Expect(h.kubelets.inspections).To(BeZero())
}

func TestRequestsAreExpectedWhileANodeIsNotReady(t *testing.T) {
	h := newInstalledHub(t)
	h.Expect(h.workloads.hostsExpected).To(BeFalse())
	m := &h.machines()[0]
	for status, hostsExpected := range map[metav1.ConditionStatus]bool{
		metav1.ConditionFalse: true, metav1.ConditionUnknown: true, metav1.ConditionTrue: false,
	} {
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: status, Reason: "Test"})
		h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
		h.reconcile()
		h.Expect(h.workloads.hostsExpected).To(Equal(hostsExpected), status)
	}
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w"}, Spec: clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	conditions.Set(worker, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown, Reason: "Test"})
	h.Expect(h.Create(t.Context(), worker)).To(Succeed())
	h.Expect(h.Status().Update(t.Context(), worker)).To(Succeed())
	h.get(m.Name, m)
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue, Reason: "Test"})
	h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.Expect(h.workloads.hostsExpected).To(BeTrue())
}

// The API server reaches a member through the kubelet of its Node. The serving certificate of the kubelet may
// have expired although the Node is Ready.
func TestRequestsAreExpectedWhileAMemberDoesNotAnswer(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.etcds.Members[2].Problem = "does not answer"
	h.deleteMachine(0)
	h.reconcile()
	h.reconcile()
	h.Expect(h.workloads.hostsExpected).To(BeTrue())
	h.requestCertificate("csr-1", "n1")
	h.reconcile()
	h.Expect(h.kubelets.approved).To(Equal([]string{"csr-1"}))

	h.etcds.Members[2].Problem = ""
	now = now.Add(kubelets.SilentFor - time.Second)
	h.reconcile()
	h.Expect(h.workloads.hostsExpected).To(BeTrue(), "it may answer now and then")
	now = now.Add(time.Minute)
	h.reconcile()
	h.Expect(h.workloads.hostsExpected).To(BeFalse())
}

func TestUnreadRequestsAreReported(t *testing.T) {
	h := newInstalledHub(t)
	h.kubelets.More = true
	h.workloads.facts.Requested = "many"
	h.reconcile()
	c := conditions.Get(h.controlPlane(), controlplanev1.CertificatesApprovedCondition)
	h.Expect(c).To(HaveField("Message", ContainSubstring("more CertificateSigningRequests of kubelets than are read")))
}

func TestWorkerWhoseNodeBecomesReadyOrUnreadyTriggersReconcile(t *testing.T) {
	worker := func(ready metav1.ConditionStatus) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: ready, Reason: "Test"})
		return m
	}
	g := NewWithT(t)
	notReady, ready := worker(metav1.ConditionUnknown), worker(metav1.ConditionTrue)
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{ObjectOld: notReady, ObjectNew: ready})).To(BeTrue())
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: notReady})).To(BeTrue())
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{ObjectOld: notReady, ObjectNew: worker(metav1.ConditionFalse)})).To(BeFalse())
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{ObjectOld: notReady, ObjectNew: &clusterv1.Machine{}})).To(BeTrue())
	g.Expect(informer.MachineChanges.Update(event.UpdateEvent{
		ObjectOld: &clusterv1.Machine{}, ObjectNew: ready,
	})).To(BeFalse(), "a Machine that waits for no Node triggers nothing")
}
