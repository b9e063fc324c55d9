package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

const requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// requestsName is the name of the resource.
var requestsName = objects.Resources[slices.IndexFunc(objects.Resources, func(r objects.Resource) bool {
	return r.Path == requestsPath
})].Name

// requestOf returns a request that was created some time after a fixed date.
func requestOf(uid string, after time.Duration) *certificatesv1.CertificateSigningRequest {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after))
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), CreationTimestamp: at}}
}

// A watch takes memory, and most clusters have no request for months.
func TestRequestsAreReadOnceAndWatchedOnDemand(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.put(requestsPath, requestOf("late", time.Hour))
	s.put(requestsPath, requestOf("early", 0))
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ensureConnection(clusterKey).watchTime = time.Second
	h.visit(t.Context())
	h.Expect(h.observeChange().Requested).To(BeEmpty())
	h.visit(t.Context())
	h.Expect(s.requests()).NotTo(ContainElement(ContainSubstring(requestsPath)), "optional resources are not read at the start of a manager")
	h.settle()
	h.Expect(h.visit(t.Context())).To(BeNumerically(">=", visitInterval))
	h.Expect(h.observeChange().Requested).To(Equal(types.UID("late")), "requests may have been created without a watch")
	selected := "spec.signerName!=kubernetes.io/kube-apiserver-client"
	h.Expect(s.requests()).To(ContainElement("GET " + requestsPath + " " + selected))
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)), "once per connection")

	for range 2 {
		h.ExpectHosts(clusterKey, true)
	}
	h.Eventually(h.visits).Should(Receive())
	h.Expect(h.visits).NotTo(Receive(), "only once")
	h.visit(t.Context())
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1))
	h.Expect(s.requests()).To(ContainElement("GET " + requestsPath + " true" + selected))
	h.ExpectHosts(clusterKey, true)
	h.Expect(h.visits).NotTo(Receive(), "requests are watched")
	s.put(requestsPath, requestOf("next", 0))
	h.Expect(h.observeChange().Requested).To(Equal(types.UID("next")))
	s.put(requestsPath, requestOf("early", 0))
	s.remove(requestsPath, "late")
	h.Consistently(h.changes, 100*time.Millisecond).ShouldNot(Receive(), "known requests are no change")

	h.ExpectHosts(clusterKey, false)
	s.endWatches(requestsPath, nil)
	h.Eventually(func() bool {
		conn := h.ensureConnection(clusterKey)
		conn.mu.Lock()
		defer conn.mu.Unlock()
		return conn.onDemand.Has(requestsName)
	}, time.Minute).Should(BeFalse(), "the watch ends after its duration")
	h.Expect(s.watched(requestsPath)).To(BeZero())
	h.ExpectHosts(clusterKey, true)
	h.Eventually(h.visits).Should(Receive())
	h.visit(t.Context())
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1), "the watch restarts")
}

func TestRequestsAreReadAgainOnNextConnection(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	h.settle()
	h.visit(t.Context())
	s.set(func() { s.token = "another-token" })
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeFalse())
	s.set(func() { s.token = "secret-token" })
	s.put(requestsPath, requestOf("meanwhile", 0))
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeTrue())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)), "all clusters of a site reconnect together")
	h.settle()
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Requested).To(Equal(types.UID("meanwhile")))
}

// The serving certificate of a Ready Node may expire while a connection lasts for months.
func TestUnexpectedRequestsAreReadDaily(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	h.settle()
	h.visit(t.Context())
	h.Expect(h.observeChange().Requested).To(BeEmpty())
	resting := func() bool {
		conn := h.ensureConnection(clusterKey)
		conn.mu.Lock()
		defer conn.mu.Unlock()
		return !conn.onDemand.Has(requestsName)
	}
	h.Eventually(resting, time.Minute).Should(BeTrue())
	s.put(requestsPath, requestOf("later", 0))
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)))

	h.clock.step(24 * time.Hour)
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Requested).To(Equal(types.UID("later")))
	h.Eventually(resting, time.Minute).Should(BeTrue(), "requests are read, and not watched")
	begun = len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)), "once a day")
}

func TestExpectedRequestsAreReadImmediately(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	s.put(requestsPath, requestOf("first", 0))
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	h.ExpectHosts(clusterKey, true)
	h.Eventually(h.visits).Should(Receive())
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Requested).To(Equal(types.UID("first")))
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1))
}

// The health of the cluster, and whether hosts may be removed, do not depend on requests.
func TestUnreadableRequestsHideNothing(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	s.refuse[requestsPath] = true
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	h.settle()
	h.Expect(h.visit(t.Context())).To(BeNumerically(">", time.Minute), "the next regular visit is soon enough, because no host is expected")
	h.Expect(s.requests()).To(ContainElement(ContainSubstring(requestsPath)))
	h.Expect(h.observeChange().UnreadSince).To(BeZero())
	h.ExpectHosts(clusterKey, true)
	h.Expect(h.visit(t.Context())).To(BeNumerically("<", 4*retryFirst), "hosts are expected")
	h.Expect(h.Observe(clusterKey).UnreadSince).To(BeZero())
}

func TestFailedWatchOnDemandHidesNothing(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.refuseWatch[requestsPath] = true
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ensureConnection(clusterKey)
	h.ExpectHosts(clusterKey, true)
	h.visit(t.Context())
	tried := func() int { return strings.Count(strings.Join(s.requests(), "\n"), requestsPath+" true") }
	h.Eventually(tried, time.Minute).Should(BeNumerically(">", 1))
	h.ExpectHosts(clusterKey, false)
	h.Eventually(func() bool {
		conn := h.ensureConnection(clusterKey)
		conn.mu.Lock()
		defer conn.mu.Unlock()
		return conn.onDemand.Has(requestsName)
	}, time.Minute).Should(BeFalse())
	h.Expect(h.Observe(clusterKey).UnreadSince).To(BeZero())
}

func TestRequestsAreWatchedFromFirstConnection(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ExpectHosts(clusterKey, true)
	h.Expect(h.visits).NotTo(Receive(), "the cluster was not visited yet")
	h.ensureConnection(clusterKey)
	h.ExpectHosts(clusterKey, true)
	h.visit(t.Context())
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1))
	h.Expect(h.observeChange().Requested).To(BeEmpty())
}
