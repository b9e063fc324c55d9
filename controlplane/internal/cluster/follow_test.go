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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestChangesAreReported(t *testing.T) {
	h, s := connectedHub(t)
	s.put(operatorsPath, operatorOf("etcd", configv1.ConditionFalse))
	h.Expect(h.observeChange().Unhealthy).To(ConsistOf("ClusterOperator etcd is not available (Test)"))
	s.remove(operatorsPath, "kube-apiserver")
	h.Expect(h.observeChange().Unhealthy).To(ConsistOf("ClusterOperator etcd is not available (Test)",
		"the cluster has no ClusterOperator kube-apiserver yet"))
	s.put(versionsPath, clusterVersionOf("4.19.4"))
	h.Expect(h.observeChange().OpenShiftVersion).To(Equal("4.19.4"))

	s.put(nodesPath, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}})
	h.Expect(h.observeChange().Nodes).To(ConsistOf(HaveField("Name", "n0"), workload.Node{Name: "n1", UID: "n1"}))
	s.put(nodesPath, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Spec: corev1.NodeSpec{ProviderID: "metal3://x"}})
	h.Expect(h.observeChange().Nodes).To(ContainElement(workload.Node{Name: "n1", UID: "n1", ProviderID: "metal3://x"}))
	s.remove(nodesPath, "n0")
	h.Expect(h.observeChange().Nodes).To(HaveLen(1))

	s.put(secretsPath, boundSecret("t1"))
	h.Expect(h.observeChange().Tokens.UnsortedList()).To(ConsistOf(types.UID("t1")))
	s.remove(secretsPath, "t1")
	h.Expect(h.observeChange().Tokens).To(BeEmpty())
}

// A hub has thousands of clusters with dozens of operators. Nodes update their status every few minutes.
func TestIrrelevantChangesAreNotRead(t *testing.T) {
	h, s := connectedHub(t)
	linked := nodeWith("config", "v1.32.6")
	s.put(nodesPath, linked.DeepCopy())
	h.observeChange()
	begun := len(s.requests())
	s.put(operatorsPath, operatorOf("console", configv1.ConditionFalse))
	s.put(nodesPath, linked.DeepCopy())
	s.put(operatorsPath, operatorOf("etcd", configv1.ConditionFalse)) // comes last in its watch
	h.observeChange()
	h.Expect(s.requests()[begun:]).To(ConsistOf("GET " + operatorsPath + " metadata.name=etcd"))
	h.Consistently(h.changes, 100*time.Millisecond).ShouldNot(Receive())
}

func TestWatchIsResumed(t *testing.T) {
	for situation, problem := range map[string]*metav1.Status{
		"regular end":     nil,
		"version expired": {Code: http.StatusGone, Reason: metav1.StatusReasonExpired},
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
				h.Expect(h.observeChange().Nodes).To(ConsistOf(HaveField("HostUID", "changed unseen")))
			}
			s.remove(nodesPath, "n0")
			h.Expect(h.observeChange().Nodes).To(BeEmpty())
		})
	}
}

func TestBrokenConnectionIsVisited(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.CloseClientConnections()
	h.Eventually(h.visits, time.Minute).Should(Receive())
	s.Close()
	h.visit(t.Context())
	h.expectFailure(t.Context(), workload.Unreachable, "connection refused")
}

// Only visits connect, so that there is one connection.
func TestWatchesResumeOnNextConnection(t *testing.T) {
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
	h.Expect(s.requests()[begun:]).To(ConsistOf("GET /version", "GET "+nodesPath+" true", "GET "+secretsPath+" true",
		"GET "+versionsPath+" true", "GET "+operatorsPath+" true"),
		"no resource is read again")
	h.Expect(h.resumesSession(s)).To(BeFalse(), "no TLS session is kept")
	s.remove(nodesPath, "n0")
	h.Expect(h.observeChange().Nodes).To(BeEmpty())
}

// API servers occasionally close connections gracefully, to distribute load.
func TestDrainedConnectionEndsWithForget(t *testing.T) {
	h, s := connectedHub(t)
	s.set(func() { s.draining = true })
	h.visit(t.Context())
	h.Eventually(h.ensureConnection(clusterKey).access.Transport.Broken).Should(BeTrue())
	s.set(func() { s.draining = false })
	h.visit(t.Context())
	h.Expect(s.watched(nodesPath)).To(Equal(1), "the watch continues")
	h.Forget(clusterKey)
	h.Eventually(func() int { return s.watched(nodesPath) }).Should(BeZero())
}

// The address of an API server moves to another host. That host does not know the former connections, and
// does not end them.
func TestDeadConnectionIsReplaced(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	address, freeze := forward(t, s.Listener.Addr().String())
	h := newHub(t, conntest.Kubeconfig(t, "https://"+address, nil))
	h.visit(t.Context())
	h.Expect(h.observeChange().Connected).To(BeTrue())
	freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	h.visit(ctx)
	h.expectFailure(t.Context(), workload.Unreachable, "does not answer in time")
	h.visit(t.Context())
	h.Expect(h.observeChange().Connected).To(BeTrue())
}

// forward relays connections to an address. After freeze, the existing connections relay nothing any more.
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

// For example permissions were withdrawn.
func TestUnreadSince(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.refuse[nodesPath] = true
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).To(BeNumerically("<", 2*retryFirst), "it is retried soon")
	first := h.observeChange()
	h.Expect(first.Connected).To(BeTrue())
	h.Expect(first.UnreadSince).To(BeTemporally("~", time.Now(), time.Minute))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).UnreadSince).To(Equal(first.UnreadSince), "the first failure counts")

	s.set(func() { s.refuse[nodesPath] = false })
	h.visit(t.Context())
	h.Expect(h.observeChange().UnreadSince).To(BeZero())

	s.set(func() { s.refuse[nodesPath] = true })
	s.endWatches(nodesPath, &metav1.Status{Code: http.StatusGone})
	h.Eventually(func() time.Time { return h.Observe(clusterKey).UnreadSince }, time.Minute).ShouldNot(BeZero(),
		"also after a successful read")
	s.set(func() { s.refuse[nodesPath] = false })
	h.Eventually(func() time.Time { return h.Observe(clusterKey).UnreadSince }, time.Minute).Should(BeZero())
}

// The credentials permit list, but not watch: the state is up to a minute old.
func TestForbiddenWatchIsReported(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.refuseWatch[nodesPath] = true
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	unread := func() time.Time { return h.Observe(clusterKey).UnreadSince }
	h.Eventually(unread, time.Minute).ShouldNot(BeZero())
	since := unread()
	h.Eventually(func() int { return strings.Count(strings.Join(s.requests(), "\n"), nodesPath+" true") },
		time.Minute).Should(BeNumerically(">", 1))
	h.Expect(unread()).To(Equal(since), "although it is read repeatedly")

	s.set(func() { s.refuseWatch[nodesPath] = false })
	h.Eventually(unread, time.Minute).Should(BeZero())
}

// Without pages a list of 2,000 Nodes would reach the limit of a response.
func TestListsAreReadInPages(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	for i := range 2*objects.PageSize + 1 {
		s.put(nodesPath, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%d", i), UID: types.UID(strconv.Itoa(i))}})
		s.put(requestsPath, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("r%d", i), UID: types.UID(strconv.Itoa(i)), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
		}})
	}
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ensureConnection(clusterKey).expectHosts(true)
	h.visit(t.Context())
	seen := h.observeChange()
	h.Expect(seen.Nodes).To(HaveLen(2*objects.PageSize + 2))
	h.Expect(seen.Requested).To(Equal(types.UID(strconv.Itoa(2 * objects.PageSize))))
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

// A proxy accepts the request, and never responds.
func TestUnansweredWatchIsRetried(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	s.blockWatch = nodesPath
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	h.Eventually(func() int { return strings.Count(strings.Join(s.requests(), "\n"), nodesPath+" true") }, time.Minute).Should(Equal(2))
}

// A proxy has dropped the watch, and the server does not end it after the requested time.
func TestLostWatchIsRestarted(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ensureConnection(clusterKey).watchTime = time.Second
	h.visit(t.Context())
	watches := func() int { return strings.Count(strings.Join(s.requests(), "\n"), nodesPath+" true") }
	h.Eventually(watches).Should(Equal(1))
	h.Consistently(watches, conn.ResponseTimeout/2).Should(Equal(1))
	h.Eventually(watches, time.Minute).Should(Equal(2))
	h.Eventually(func() int { return s.watched(nodesPath) }).Should(Equal(1), "the lost one has ended")
}

// An empty set would mean that the token was revoked.
func TestUnreadableTokensAreUnknown(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	s.refuse[secretsPath] = true
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.visit(t.Context())
	seen := h.observeChange()
	h.Expect(seen.Connected).To(BeTrue())
	h.Expect(seen.Tokens).To(BeNil())
	s.set(func() { s.refuse[secretsPath] = false })
	h.visit(t.Context())
	h.Expect(h.observeChange().Tokens).NotTo(BeNil())
}

func TestClusterWithoutOpenShiftKinds(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	versions := s.objects[versionsPath]
	delete(s.objects, versionsPath)
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).To(BeNumerically("<", 2*retryFirst))
	seen := h.observeChange()
	h.Expect(seen.Unhealthy).To(ConsistOf("the cluster has no ClusterVersion version yet"))
	h.Expect(seen.UnreadSince).To(BeZero())
	s.set(func() { s.objects[versionsPath] = versions })
	h.Expect(h.visit(t.Context())).To(BeNumerically(">", retryIncomplete/2))
	h.Expect(h.observeChange().OpenShiftVersion).To(Equal("4.19.3"))
}
