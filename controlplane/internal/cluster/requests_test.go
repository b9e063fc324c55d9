package cluster

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// requestOf is one that was made some time after the others.
func requestOf(uid string, after time.Duration) *certificatesv1.CertificateSigningRequest {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after))
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), CreationTimestamp: at}}
}

// A watch takes memory, and most clusters have no request for months.
func TestRequestsAreReadOnceAndWatchedWhileTheyAreAwaited(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.put(requestsPath, requestOf("late", time.Hour))
	s.put(requestsPath, requestOf("early", 0))
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.connectionOf(clusterKey).watchTime = time.Second
	h.visit(t.Context())
	h.Expect(h.told().Requested).To(BeEmpty())
	h.visit(t.Context())
	h.Expect(s.requests()).NotTo(ContainElement(ContainSubstring(requestsPath)), "of thousands of connections that are made at a start none asks for what nobody awaits")
	h.settle()
	h.Expect(h.visit(t.Context())).To(BeNumerically(">=", visitInterval))
	h.Expect(h.told().Requested).To(Equal(types.UID("late")), "they may have been made while nobody watched")
	selected := "spec.signerName!=kubernetes.io/kube-apiserver-client"
	h.Expect(s.requests()).To(ContainElement("GET " + requestsPath + " " + selected))
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)), "once for each connection")

	for range 2 {
		h.Await(clusterKey, true)
	}
	h.Eventually(h.visits).Should(Receive())
	h.Expect(h.visits).NotTo(Receive(), "once")
	h.visit(t.Context())
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1))
	h.Expect(s.requests()).To(ContainElement("GET " + requestsPath + " true" + selected))
	h.Await(clusterKey, true)
	h.Expect(h.visits).NotTo(Receive(), "it is watched")
	s.put(requestsPath, requestOf("next", 0))
	h.Expect(h.told().Requested).To(Equal(types.UID("next")))
	s.put(requestsPath, requestOf("early", 0))
	s.remove(requestsPath, "late")
	h.Consistently(h.news, 100*time.Millisecond).ShouldNot(Receive(), "what was decided is nothing new")

	h.Await(clusterKey, false)
	s.endWatches(requestsPath, nil)
	h.Eventually(func() bool {
		l := h.connectionOf(clusterKey)
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.onDemand.Has(requests.name)
	}, time.Minute).Should(BeFalse(), "it ends with its time")
	h.Expect(s.watched(requestsPath)).To(BeZero())
	h.Await(clusterKey, true)
	h.Eventually(h.visits).Should(Receive())
	h.visit(t.Context())
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1), "and begins anew")
}

func TestRequestsAreReadAgainWhenTheNextConnectionHasLasted(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
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
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)), "a site that is back brings all its clusters at once")
	h.settle()
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Requested).To(Equal(types.UID("meanwhile")))
}

// The serving certificate of a Node that is Ready may expire while a connection lasts for months.
func TestRequestsThatNobodyAwaitsAreReadDaily(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.visit(t.Context())
	h.settle()
	h.visit(t.Context())
	h.Expect(h.told().Requested).To(BeEmpty())
	resting := func() bool {
		l := h.connectionOf(clusterKey)
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.onDemand.Has(requestsName)
	}
	h.Eventually(resting, time.Minute).Should(BeTrue())
	s.put(requestsPath, requestOf("later", 0))
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)))

	l := h.connectionOf(clusterKey)
	l.mu.Lock()
	l.requestsRead = l.requestsRead.Add(-requestsAge)
	l.mu.Unlock()
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Requested).To(Equal(types.UID("later")))
	h.Eventually(resting, time.Minute).Should(BeTrue(), "it is read, and not watched")
	begun = len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(ContainSubstring(requestsPath)), "once a day")
}

func TestRequestsThatAreAwaitedAreReadAtOnce(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	s.put(requestsPath, requestOf("first", 0))
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.visit(t.Context())
	h.Await(clusterKey, true)
	h.Eventually(h.visits).Should(Receive())
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Requested).To(Equal(types.UID("first")))
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1))
}

// What is known of the health of the cluster, and whether hosts may be taken from it, does not depend on them.
func TestRequestsThatCannotBeReadMakeNothingUnknown(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	s.refuse[requestsPath] = true
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.visit(t.Context())
	h.settle()
	h.Expect(h.visit(t.Context())).To(BeNumerically(">", time.Minute), "the next visit is soon enough, for nobody awaits any")
	h.Expect(s.requests()).To(ContainElement(ContainSubstring(requestsPath)))
	h.Expect(h.told().UnreadSince).To(BeZero())
	h.Await(clusterKey, true)
	h.Expect(h.visit(t.Context())).To(BeNumerically("<", 4*retryFirst), "they are awaited")
	h.Expect(h.Observe(clusterKey).UnreadSince).To(BeZero())
}

func TestAWatchOnDemandThatFailedAndRestsMakesNothingUnknown(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.refuseWatch[requestsPath] = true
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.connectionOf(clusterKey)
	h.Await(clusterKey, true)
	h.visit(t.Context())
	tried := func() int { return strings.Count(strings.Join(s.requests(), "\n"), requestsPath+" true") }
	h.Eventually(tried, time.Minute).Should(BeNumerically(">", 1))
	h.Await(clusterKey, false)
	h.Eventually(func() bool {
		l := h.connectionOf(clusterKey)
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.onDemand.Has(requests.name)
	}, time.Minute).Should(BeFalse())
	h.Expect(h.Observe(clusterKey).UnreadSince).To(BeZero())
}

func TestRequestsAreWatchedFromTheFirstConnectionOn(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.Await(clusterKey, true)
	h.Expect(h.visits).NotTo(Receive(), "nobody has looked at the cluster yet")
	h.connectionOf(clusterKey)
	h.Await(clusterKey, true)
	h.visit(t.Context())
	h.Eventually(func() int { return s.watched(requestsPath) }).Should(Equal(1))
	h.Expect(h.told().Requested).To(BeEmpty())
}

func TestTheRequestThatWasMadeLastCounts(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			for name, after := range []time.Duration{0, time.Hour, time.Minute} {
				made := metav1.PartialObjectMetadata{ObjectMeta: requestOf(strconv.Itoa(name), after).ObjectMeta}
				list.(*metav1.PartialObjectMetadataList).Items = append(list.(*metav1.PartialObjectMetadataList).Items, made) //nolint:forcetypeassert // as it is read
			}
			return nil
		},
	}).Build()
	_, put, err := readRequests(t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())
	l := newConnection(clusterKey, time.Now, nil, func() {}, func() {})
	put(l)
	g.Expect(l.requested).To(Equal(types.UID("1")))
}
