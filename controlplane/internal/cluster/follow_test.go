package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

func TestChangesAreToldAtOnce(t *testing.T) {
	h, s := connectedHub(t)
	s.put(operatorsPath, operatorOf("etcd", configv1.ConditionFalse))
	h.Expect(h.told().Unhealthy).To(ConsistOf("ClusterOperator etcd is not available (Test)"))
	s.remove(operatorsPath, "kube-apiserver")
	h.Expect(h.told().Unhealthy).To(ConsistOf("ClusterOperator etcd is not available (Test)", "the cluster has no ClusterOperator kube-apiserver yet"))
	s.put(versionsPath, clusterVersionOf("4.19.4"))
	h.Expect(h.told().OpenShiftVersion).To(Equal("4.19.4"))

	s.put(nodesPath, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}})
	h.Expect(h.told().Nodes).To(ConsistOf(HaveField("Name", "n0"), facts.Node{Name: "n1", UID: "n1"}))
	s.put(nodesPath, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Spec: corev1.NodeSpec{ProviderID: "metal3://x"}})
	h.Expect(h.told().Nodes).To(ContainElement(facts.Node{Name: "n1", UID: "n1", ProviderID: "metal3://x"}))
	s.remove(nodesPath, "n0")
	h.Expect(h.told().Nodes).To(HaveLen(1))

	s.put(secretsPath, boundSecret("t1"))
	h.Expect(h.told().Tokens.UnsortedList()).To(ConsistOf(types.UID("t1")))
	s.remove(secretsPath, "t1")
	h.Expect(h.told().Tokens).To(BeEmpty())
}

// A hub has thousands of clusters with dozens of operators; Nodes say every few minutes that they are alive.
func TestWhatDoesNotMatterIsNotRead(t *testing.T) {
	h, s := connectedHub(t)
	linked := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", UID: "n0"}, Spec: corev1.NodeSpec{ProviderID: "metal3://x"}}
	s.put(nodesPath, linked.DeepCopy())
	h.told()
	begun := len(s.requests())
	s.put(operatorsPath, operatorOf("console", configv1.ConditionFalse))
	s.put(nodesPath, linked.DeepCopy())
	s.put(operatorsPath, operatorOf("etcd", configv1.ConditionFalse)) // comes last in its watch
	h.told()
	h.Expect(s.requests()[begun:]).To(ConsistOf("GET " + operatorsPath + " metadata.name=etcd"))
	h.Consistently(h.news, 100*time.Millisecond).ShouldNot(Receive())
}

func TestAWatchThatEndsIsTakenUp(t *testing.T) {
	for situation, problem := range map[string]*metav1.Status{
		"as API servers end it": nil,
		"its version is gone":   {Code: http.StatusGone, Reason: metav1.StatusReasonExpired},
	} {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			h, s := connectedHub(t)
			s.set(func() { s.objects[nodesPath]["n0"].SetLabels(map[string]string{"metal3.io/uuid": "changed unseen"}) })
			begun := len(s.requests())
			s.endWatches(nodesPath, problem)
			h.Eventually(func() int { return s.watched(nodesPath) }, time.Minute).Should(Equal(1))
			if problem == nil {
				h.Expect(s.requests()[begun:]).To(ConsistOf("GET " + nodesPath + " true"))
			} else {
				h.Expect(s.requests()[begun:]).To(ConsistOf("GET "+nodesPath, "GET "+nodesPath+" true"))
				h.Expect(h.told().Nodes).To(ConsistOf(HaveField("HostUID", "changed unseen")))
			}
			s.remove(nodesPath, "n0")
			h.Expect(h.told().Nodes).To(BeEmpty())
		})
	}
}

func TestAConnectionThatBreaksIsLookedAt(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.CloseClientConnections()
	h.Eventually(h.visits, time.Minute).Should(Receive())
	s.Close()
	h.visit(t.Context())
	h.expectFailure(t.Context(), facts.Unreachable, "connection refused")
}

// Visits connect, so that there is one connection.
func TestWatchesGoOnWithTheNextConnection(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	begun := len(s.requests())
	s.CloseClientConnections()
	h.Eventually(h.visits, time.Minute).Should(Receive())
	h.Consistently(s.requests, 2*retryFirst).Should(HaveLen(begun))
	h.visit(t.Context())
	for _, path := range []string{nodesPath, secretsPath, versionsPath, operatorsPath} {
		h.Eventually(func() int { return s.watched(path) }, time.Minute).Should(Equal(1), path)
	}
	h.Expect(s.requests()[begun:]).To(ConsistOf("GET /version", "GET "+nodesPath+" true", "GET "+secretsPath+" true", "GET "+versionsPath+" true", "GET "+operatorsPath+" true"),
		"nothing is read again")
	h.Expect(h.sessions()).To(BeZero(), "nothing is kept for connections that are not made")
	s.remove(nodesPath, "n0")
	h.Expect(h.told().Nodes).To(BeEmpty())
}

// API servers do so now and then, for others to get their share.
func TestAConnectionThatTheServerLeavesEndsWithTheLink(t *testing.T) {
	h, s := connectedHub(t)
	s.set(func() { s.leaving = true })
	h.visit(t.Context())
	h.Eventually(h.connectionOf(clusterKey).access.transport.Broken).Should(BeTrue())
	s.set(func() { s.leaving = false })
	h.visit(t.Context())
	h.Expect(s.watched(nodesPath)).To(Equal(1), "it goes on")
	h.Forget(clusterKey)
	h.Eventually(func() int { return s.watched(nodesPath) }).Should(BeZero())
}

// The address of an API server moves to another host, which knows nothing of the connections of the former one, and nobody ends these.
func TestAConnectionThatIsSilentlyDeadIsReplaced(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	address, freeze := forward(t, s.Listener.Addr().String())
	h := newHub(t, kubeconfigFor(t, "https://"+address, nil))
	h.visit(t.Context())
	h.Expect(h.told().Connected).To(BeTrue())
	freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	h.visit(ctx)
	h.expectFailure(t.Context(), facts.Unreachable, "does not answer in time")
	h.visit(t.Context())
	h.Expect(h.told().Connected).To(BeTrue())
}

// forward passes on what comes to an address. From when freeze is called nothing passes any more on the connections that there are then.
func forward(t *testing.T, to string) (address string, freeze func()) {
	t.Helper()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	var frozen atomic.Int32
	pass := func(into, from net.Conn, since int32) {
		defer into.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			if frozen.Load() == since {
				_, _ = into.Write(buffer[:n])
			}
		}
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			since := frozen.Load()
			go pass(out, in, since)
			go pass(in, out, since)
		}
	}()
	return listener.Addr().String(), func() { frozen.Add(1) }
}

// With rights that were taken away, for example.
func TestSinceWhenAClusterCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.refuse[nodesPath] = true
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).To(BeNumerically("<", 2*retryFirst), "it is tried again soon")
	first := h.told()
	h.Expect(first.Connected).To(BeTrue())
	h.Expect(first.UnreadSince).To(BeTemporally("~", time.Now(), time.Minute))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).UnreadSince).To(Equal(first.UnreadSince), "the first time counts")

	s.set(func() { s.refuse[nodesPath] = false })
	h.visit(t.Context())
	h.Expect(h.told().UnreadSince).To(BeZero())

	s.set(func() { s.refuse[nodesPath] = true })
	s.endWatches(nodesPath, &metav1.Status{Code: http.StatusGone})
	h.Eventually(func() time.Time { return h.Observe(clusterKey).UnreadSince }, time.Minute).ShouldNot(BeZero(), "also when it was read before")
	s.set(func() { s.refuse[nodesPath] = false })
	h.Eventually(func() time.Time { return h.Observe(clusterKey).UnreadSince }, time.Minute).Should(BeZero())
}

// Its rights are to list, not to watch: what is known is old by up to a minute.
func TestAWatchThatIsForbiddenIsTold(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.refuseWatch[nodesPath] = true
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.visit(t.Context())
	unread := func() time.Time { return h.Observe(clusterKey).UnreadSince }
	h.Eventually(unread, time.Minute).ShouldNot(BeZero())
	since := unread()
	h.Eventually(func() int { return strings.Count(strings.Join(s.requests(), "\n"), nodesPath+" true") }, time.Minute).Should(BeNumerically(">", 1))
	h.Expect(unread()).To(Equal(since), "though it is read again and again")

	s.set(func() { s.refuseWatch[nodesPath] = false })
	h.Eventually(unread, time.Minute).Should(BeZero())
}

// A list of 2,000 Nodes would be read as a whole, up to the limit of an answer.
func TestListsAreReadInPages(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	for i := range 2*PageSize + 1 {
		s.put(nodesPath, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%d", i), UID: types.UID(strconv.Itoa(i))}})
		s.put(requestsPath, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("r%d", i), UID: types.UID(strconv.Itoa(i)), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
		}})
	}
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.connectionOf(clusterKey).await(true)
	h.visit(t.Context())
	seen := h.told()
	h.Expect(seen.Nodes).To(HaveLen(2*PageSize + 2))
	h.Expect(seen.Requested).To(Equal(types.UID(strconv.Itoa(2 * PageSize))))
	count := func(prefix string) (n int) {
		for _, request := range s.requests() {
			if strings.HasPrefix(request, prefix) && !strings.Contains(request, " true") {
				n++
			}
		}
		return n
	}
	h.Expect(count("GET " + nodesPath)).To(Equal(3))
	h.Expect(count("GET " + requestsPath)).To(Equal(3))
}

// Somebody between takes the request, and says nothing.
func TestAWatchThatDoesNotBeginIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.hold = nodesPath
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.visit(t.Context())
	h.Eventually(func() int { return strings.Count(strings.Join(s.requests(), "\n"), nodesPath+" true") }, time.Minute).Should(Equal(2))
}

// Somebody between has lost it, and the server does not end it as it was asked to.
func TestAWatchThatIsLostIsBegunAnew(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.connectionOf(clusterKey).watchTime = time.Second
	h.visit(t.Context())
	watches := func() int { return strings.Count(strings.Join(s.requests(), "\n"), nodesPath+" true") }
	h.Eventually(watches).Should(Equal(1))
	h.Consistently(watches, answerTime/2).Should(Equal(1))
	h.Eventually(watches, time.Minute).Should(Equal(2))
	h.Eventually(func() int { return s.watched(nodesPath) }).Should(Equal(1), "the lost one has ended")
}

// None known is not none there: a token would be taken for a revoked one.
func TestTokensThatCannotBeReadAreUnknown(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	s.refuse[secretsPath] = true
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.visit(t.Context())
	seen := h.told()
	h.Expect(seen.Connected).To(BeTrue())
	h.Expect(seen.Tokens).To(BeNil())
	s.set(func() { s.refuse[secretsPath] = false })
	h.visit(t.Context())
	h.Expect(h.told().Tokens).NotTo(BeNil())
}

// The watch may tell late of the former Node that the one of its name has gone.
func TestANodeThatTookThePlaceOfAnotherStays(t *testing.T) {
	g := NewWithT(t)
	l := newConnection(clusterKey, time.Now, nil, func() {}, func() {})
	l.nodes.put(facts.Node{Name: "n0", UID: "new"})
	gone := watchEvent{Type: watch.Deleted}
	gone.Object.Metadata.Name = "n0"
	for uid, left := range map[types.UID]int{"old": 1, "new": 0} {
		gone.Object.Metadata.UID = uid
		put, err := takeNode(t.Context(), l, nil, gone)
		g.Expect(err).NotTo(HaveOccurred())
		l.nodes = nodeList{{Name: "n0", UID: "new"}}
		put(l)
		g.Expect(l.nodes).To(HaveLen(left))
	}
}

// Its kinds are defined while they are read.
func TestAKindThatWasNotKnownAtFirstIsReadAnew(t *testing.T) {
	g := NewWithT(t)
	lists := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if lists++; lists == 1 {
				return apierrors.NewNotFound(schema.GroupResource{}, "")
			}
			list.SetResourceVersion("101")
			return nil
		},
	}).Build()
	version, _, err := readHealth(t.Context(), c, clusterOperatorKind)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(BeEmpty(), "what was made between the two would not be told")
	version, _, err = readHealth(t.Context(), c, clusterOperatorKind)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(Equal("101"))
}

func TestAClusterThatDoesNotKnowOpenShiftYet(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	versions := s.objects[versionsPath]
	delete(s.objects, versionsPath)
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).To(BeNumerically("<", 2*retryFirst))
	seen := h.told()
	h.Expect(seen.Unhealthy).To(ConsistOf("the cluster has no ClusterVersion version yet"))
	h.Expect(seen.UnreadSince).To(BeZero())
	s.set(func() { s.objects[versionsPath] = versions })
	h.Expect(h.visit(t.Context())).To(BeNumerically(">", retryIncomplete/2))
	h.Expect(h.told().OpenShiftVersion).To(Equal("4.19.3"))
}
