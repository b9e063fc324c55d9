package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

var (
	clusterKey = client.ObjectKey{Namespace: "lab", Name: "cluster1"}
	secretKey  = client.ObjectKey{Namespace: "lab", Name: "cluster1-kubeconfig"}
)

// hub is a management cluster on fakes. The workload clusters are servers of the tests.
type hub struct {
	*WithT
	client.Client
	*Clusters
	// selected and isInstalled are the results of the options of the same names.
	selected, isInstalled atomic.Bool
	// secretReads counts the reads of Secrets as a whole.
	secretReads atomic.Int32
	clock       laterClock
}

// laterClock is the system clock plus the steps of a test.
type laterClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *laterClock) step(by time.Duration) { c.ahead.Add(int64(by)) }

// Now returns the time of the test.
func (c *laterClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since returns the time that has passed since a time.
func (c *laterClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

func newHub(t *testing.T, kubeconfig []byte) *hub {
	t.Helper()
	h := &hub{WithT: NewWithT(t)}
	h.selected.Store(true)
	scheme := runtime.NewScheme()
	h.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	h.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: clusterKey.Namespace, Name: clusterKey.Name}}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name},
		Data:       map[string][]byte{"value": kubeconfig},
	}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, secret).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Secret); ok {
				h.secretReads.Add(1)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	h.Clusters = NewClusters(Options{
		Cached: h.Client, Live: h.Client, UserAgent: "test", Clock: &h.clock,
		Selected:  func(context.Context, *clusterv1.Cluster) (bool, error) { return h.selected.Load(), nil },
		Installed: func(context.Context, *clusterv1.Cluster) bool { return h.isInstalled.Load() },
	})
	t.Cleanup(func() { h.Forget(clusterKey) })
	return h
}

// visit visits the cluster, and returns the time until the next visit.
func (h *hub) visit(ctx context.Context) time.Duration {
	result, err := h.Reconcile(ctx, ctrl.Request{NamespacedName: clusterKey})
	h.Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

// settle makes the connection older than settleTime.
func (h *hub) settle() {
	conn := h.ensureConnection(clusterKey)
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.since = conn.since.Add(-settleTime)
}

// observeChange waits until the control plane is reconciled, and returns the state.
func (h *hub) observeChange() workload.State {
	h.Eventually(h.changes, time.Minute).Should(Receive(), "the control plane must be reconciled")
	return h.Observe(clusterKey)
}

// resumesSession makes a single request, and reports whether it resumed a TLS session.
func (h *hub) resumesSession(s *apiServer) bool {
	var before, after int
	s.set(func() { before = len(s.resumed) })
	h.Expect(h.Connect(context.Background(), clusterKey, func(ctx context.Context, remote *conn.Conn) error {
		return remote.Get(ctx, client.ObjectKey{Name: "n0"}, &corev1.Node{})
	})).To(Succeed())
	s.set(func() { after = len(s.resumed) })
	return after > before
}

func (h *hub) setKubeconfig(ctx context.Context, content []byte) {
	secret := &corev1.Secret{}
	h.Expect(h.Get(ctx, secretKey, secret)).To(Succeed())
	secret.Data["value"] = content
	h.Expect(h.Update(ctx, secret)).To(Succeed())
}

// expectFailure waits for a failed attempt to connect, and checks it.
func (h *hub) expectFailure(ctx context.Context, kind workload.FailureKind, message string) {
	seen := h.observeChange()
	h.Expect(seen.Connected).To(BeFalse())
	h.Expect(seen.Failure).NotTo(BeNil())
	h.Expect(seen.Failure.Kind).To(Equal(kind))
	h.Expect(seen.Failure.Message).To(ContainSubstring(message))
	h.Expect(seen.Failure.Message).NotTo(ContainSubstring("127.0.0.1"))
	secret := &corev1.Secret{}
	h.Expect(h.Get(ctx, secretKey, secret)).To(Succeed())
	h.Expect(seen.Failure.KubeconfigVersion).To(Equal(secret.ResourceVersion))
}

func withToken(token string) func(*clientcmdapi.Config) {
	return func(c *clientcmdapi.Config) { c.AuthInfos["admin"].Token = token }
}

// connectedHub returns a hub that is connected to a server, after the first reconciliation.
func connectedHub(t *testing.T) (*hub, *apiServer) {
	t.Helper()
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).To(BeNumerically("~", visitInterval, float64(visitInterval)*jitter*1.1))
	h.Expect(h.observeChange().Connected).To(BeTrue())
	for _, path := range []string{nodesPath, secretsPath, versionsPath, operatorsPath} {
		h.Eventually(func() int { return s.watched(path) }).Should(Equal(1), path)
	}
	return h, s
}

func fileWith(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// A user who may edit Secrets in the namespace of a cluster tries to send the token of the manager to a
// foreign server.
func TestKubeconfigWithTokenFileIsNotUsed(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Error(w, "got "+r.Header.Get("Authorization"), http.StatusTeapot)
	}))
	defer server.Close()
	h := newHub(t, conntest.Kubeconfig(t, server.URL, func(c *clientcmdapi.Config) {
		c.AuthInfos["admin"] = &clientcmdapi.AuthInfo{TokenFile: fileWith(t, "token of the manager")}
	}))
	h.Expect(h.visit(t.Context())).To(BeZero(), "only another kubeconfig helps")
	h.expectFailure(t.Context(), workload.KubeconfigRefused, "it has tokenFile")
	h.visit(t.Context())
	h.Expect(requests.Load()).To(BeZero())
	h.Expect(h.secretReads.Load()).To(BeEquivalentTo(2), "once by us and once by the test")
}

func TestUnauthorizedCredentialsAreReported(t *testing.T) {
	s := newAPIServer(t, "new-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).NotTo(BeZero())
	h.expectFailure(t.Context(), workload.Unauthorized, "401 Unauthorized")

	h.setKubeconfig(t.Context(), conntest.Kubeconfig(t, s.URL, withToken("new-token")))
	h.visit(t.Context())
	seen := h.observeChange()
	h.Expect(seen.Connected).To(BeTrue())
	h.Expect(seen.Failure).To(BeNil(), "it is resolved")

	// The existing connection would still work. The kubeconfig decides.
	h.setKubeconfig(t.Context(), conntest.Kubeconfig(t, s.URL, withToken("wrong-token")))
	h.visit(t.Context())
	h.expectFailure(t.Context(), workload.Unauthorized, "401 Unauthorized")
	h.Eventually(func() int { return s.watched(nodesPath) }, time.Minute).Should(BeZero())
}

// Credentials are renewed every few weeks. The cluster must not be reported as unreachable during the
// renewal.
func TestStateIsKeptUntilNewKubeconfigIsTried(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.refuse[operatorsPath] = true
	s.endWatches(operatorsPath, &metav1.Status{Code: http.StatusGone})
	h.Eventually(func() time.Time { return h.Observe(clusterKey).UnreadSince }, time.Minute).ShouldNot(BeZero())
	before := h.Observe(clusterKey)
	h.Expect(before.Tokens).NotTo(BeNil())

	s.set(func() { s.token = "renewed-token" })
	h.setKubeconfig(t.Context(), conntest.Kubeconfig(t, s.URL, withToken("renewed-token")))
	h.Expect(h.updateKubeconfig(t.Context(), h.lookup(clusterKey))).To(Succeed())
	before.Tokens = nil // the token of the new credentials may be missing
	h.Expect(h.Observe(clusterKey)).To(Equal(before))
	h.visit(t.Context())
	after := h.Observe(clusterKey)
	h.Expect(after.Connected).To(BeTrue())
	h.Expect(after.UnreadSince).To(Equal(before.UnreadSince))
	h.Expect(after.Tokens).NotTo(BeNil())

	h.setKubeconfig(t.Context(), conntest.Kubeconfig(t, "https://127.0.0.1:1", nil))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeFalse())
	h.Expect(h.Observe(clusterKey).UnreadSince).To(BeZero(), "it was not reachable")
}

func TestDeletedKubeconfigStaysInUse(t *testing.T) {
	h, _ := connectedHub(t)
	h.Expect(h.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: secretKey.Namespace,
		Name:      secretKey.Name,
	}})).To(Succeed())
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeTrue())
}

// Either another manager reconciles the control plane, or the Cluster is deleted.
func TestForeignClustersAreNotConnected(t *testing.T) {
	h, s := connectedHub(t)
	h.selected.Store(false)
	h.Expect(h.visit(t.Context())).To(BeZero())
	h.Expect(h.connections).To(BeEmpty())
	h.Eventually(func() int { return s.watched(nodesPath) }, time.Minute).Should(BeZero())

	h.selected.Store(true)
	h.Expect(h.Observe(clusterKey)).To(Equal(workload.State{}))
	h.Expect(h.visits).To(Receive(), "its control plane may have been selected since")
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeTrue())
	h.Expect(h.Client.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterKey.Namespace,
		Name:      clusterKey.Name,
	}})).To(Succeed())
	h.visit(t.Context())
	h.Expect(h.connections).To(BeEmpty())
}

func TestUntrustedCertificateIsReported(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, func(c *clientcmdapi.Config) { c.Clusters["c"].InsecureSkipTLSVerify = false }))
	h.visit(t.Context())
	h.expectFailure(t.Context(), workload.Untrusted, "not from the authority in the kubeconfig")
}

// An installing cluster is retried often, even if the API of its bootstrap has responded. An installed
// cluster may be down for long.
func TestRetryIntervals(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	for situation, tc := range map[string]struct {
		installed bool
		latest    time.Duration
	}{
		"it is being installed": {false, retryInstalling},
		"it is installed":       {true, retryDown},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, conntest.Kubeconfig(t, server.URL, nil))
			cluster := &clusterv1.Cluster{}
			h.Expect(h.Get(t.Context(), clusterKey, cluster)).To(Succeed())
			cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			h.Expect(h.Update(t.Context(), cluster)).To(Succeed())
			h.isInstalled.Store(tc.installed)
			first := h.visit(t.Context())
			h.Expect(first).To(BeNumerically("~", retryFirst, float64(retryFirst)*jitter*1.1))
			h.expectFailure(t.Context(), workload.Unreachable, "connection refused")
			var last time.Duration
			for range 15 {
				last = h.visit(t.Context())
			}
			h.Expect(last).To(BeNumerically("~", tc.latest, float64(tc.latest)*jitter*1.1))
			h.Expect(h.changes).To(BeEmpty(), "reported once")

			h.setKubeconfig(t.Context(), conntest.Kubeconfig(t, server.URL, withToken("another")))
			h.Expect(h.visit(t.Context())).To(BeNumerically("<", 2*retryFirst), "another kubeconfig resets the backoff")
		})
	}
}

func TestFlappingAPIServerIsReportedOnce(t *testing.T) {
	g := NewWithT(t)
	clk, reported := testingclock.NewFakePassiveClock(time.Now()), 0
	conn := newConnection(clusterKey, clk, nil, func() { reported++ }, func() {})
	for range 3 {
		conn.failed(syscall.ECONNREFUSED)
		conn.failed(context.DeadlineExceeded)
	}
	g.Expect(reported).To(Equal(1))
	g.Expect(conn.observe().Failure.Message).To(ContainSubstring("connection refused"))
	clk.SetTime(clk.Now().Add(minReportTime))
	conn.failed(context.DeadlineExceeded)
	g.Expect(reported).To(Equal(2), "it is stable")
	g.Expect(conn.observe().Failure.Message).To(ContainSubstring("does not answer in time"))
	conn.failed(apierrors.NewUnauthorized("no"))
	g.Expect(reported).To(Equal(3), "another kind is reported immediately")
}

func TestObserveConnectedCluster(t *testing.T) {
	h, s := connectedHub(t)
	seen := h.Observe(clusterKey)
	h.Expect(seen.LastSuccess).To(BeTemporally("~", time.Now(), time.Minute))
	seen.LastSuccess = time.Time{}
	h.Expect(seen).To(Equal(workload.State{
		Connected: true, KubernetesVersion: "v1.32.6", OpenShiftVersion: "4.19.3", ReleaseImage: "release:4.19.3",
		Nodes: []workload.Node{{Name: "n0", UID: "n0", HostUID: "h0"}}, Tokens: seen.Tokens,
		Etcd: workload.EtcdOperator{Known: true, Available: true},
	}))
	h.Expect(seen.Tokens).NotTo(BeNil())
	h.Expect(seen.Tokens).To(BeEmpty())
	h.Eventually(s.requests).Should(ConsistOf("GET /version", "GET "+nodesPath, "GET "+secretsPath,
		"GET "+versionsPath+" metadata.name=version", "GET "+operatorsPath+" metadata.name=etcd",
		"GET "+operatorsPath+" metadata.name=kube-apiserver",
		"GET "+nodesPath+" true", "GET "+secretsPath+" true", "GET "+versionsPath+" true", "GET "+operatorsPath+" true"),
		"each is requested once")
	s.set(func() {
		h.Expect(s.resumed).To(HaveLen(5), "single reads resume the TLS session of the permanent connection")
	})
	h.Expect(h.resumesSession(s)).To(BeFalse(), "sessions are dropped")
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).To(Equal([]string{"GET /version"}), "watched resources are not read again")
	s.put(operatorsPath, operatorOf("etcd", configv1.ConditionFalse))
	h.observeChange()
	h.Eventually(func() bool { return h.resumesSession(s) }).Should(BeFalse())
}

// When a manager starts, thousands of clusters respond. Only some are read at a time, and each has its full
// time limit.
func TestConcurrentReadsAreLimited(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.Expect(h.reading.TryAcquire(maxReads)).To(BeTrue())
	go h.visit(t.Context())
	h.Eventually(s.requests).Should(ConsistOf("GET /version"))
	h.Consistently(s.requests, 100*time.Millisecond).Should(HaveLen(1))
	h.reading.Release(maxReads)
	h.Expect(h.observeChange().Connected).To(BeTrue())
}

// The API server responds, but cannot read, for example because it has lost etcd.
func TestHangingClusterDelaysOtherReadsOnce(t *testing.T) {
	h, _ := connectedHub(t)
	reads := 0
	answering := func(err error) objects.Resource {
		return objects.Resource{Read: func(context.Context, client.Client) (string, func(*objects.State), error) {
			reads++
			return "", func(*objects.State) {}, err
		}}
	}
	conn := h.lookup(clusterKey)
	forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	found := conn.read(t.Context(), conn.access, answering(nil), answering(forbidden),
		answering(fmt.Errorf("too late: %w", context.DeadlineExceeded)), answering(nil))
	h.Expect(reads).To(Equal(3))
	h.Expect(found[0].err).NotTo(HaveOccurred())
	h.Expect(found[1].err).To(MatchError(forbidden))
	h.Expect(found[2].err).To(MatchError(context.DeadlineExceeded))
	h.Expect(found[3].err).To(MatchError(context.DeadlineExceeded))
	h.Expect(h.reading.TryAcquire(maxReads)).To(BeTrue(), "other clusters can be read")
}

// The downtime of a cluster is counted from then on.
func TestLastSuccess(t *testing.T) {
	h, s := connectedHub(t)
	conn := h.lookup(clusterKey)
	conn.mu.Lock()
	conn.lastSuccess = time.Time{}
	conn.mu.Unlock()
	s.put(secretsPath, boundSecret("t1"))
	last := h.observeChange().LastSuccess
	h.Expect(last).To(BeTemporally("~", time.Now(), time.Minute), "a watch received an event")
	h.Expect(s.Listener.Close()).To(Succeed())
	s.CloseClientConnections()
	h.visit(t.Context())
	seen := h.observeChange()
	h.Expect(seen.Connected).To(BeFalse())
	h.Expect(seen.LastSuccess).To(BeTemporally(">=", last))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).LastSuccess).To(Equal(seen.LastSuccess), "an attempt is no response")
}

func TestRevokedTokenIsNoticedOnUse(t *testing.T) {
	h, s := connectedHub(t)
	s.put(secretsPath, boundSecret("t1"))
	h.observeChange()
	found, err := h.HasToken(t.Context(), clusterKey, "t1")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(found).To(BeTrue())
	h.Expect(h.HasToken(t.Context(), clusterKey, "t2")).To(BeFalse())
	h.Expect(h.visits).To(BeEmpty())

	s.set(func() { s.token = "another" })
	_, err = h.HasToken(t.Context(), clusterKey, "t1")
	h.Expect(apierrors.IsUnauthorized(err)).To(BeTrue())
	h.Expect(h.visits).To(Receive())
	h.visit(t.Context())
	h.expectFailure(t.Context(), workload.Unauthorized, "401 Unauthorized")
	_, err = h.HasToken(t.Context(), clusterKey, "t1")
	h.Expect(err).To(MatchError(ErrNotConnected))
}

func TestBackoffRestartsAfterSuccess(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	failing := func() (next time.Duration) {
		s.set(func() { s.token = "another" })
		s.CloseClientConnections()
		for range 5 {
			next = h.visit(t.Context())
		}
		return next
	}
	h.Expect(failing()).To(BeNumerically(">", 2*retryFirst))
	s.set(func() { s.token = "secret-token" })
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeTrue())
	s.set(func() { s.token = "another" })
	s.CloseClientConnections()
	h.Expect(h.visit(t.Context())).To(BeNumerically("<", 2*retryFirst))
}

// The limit applies from the first visit after it changed. A cluster that can be read in part is retried no
// later than one that can be read completely.
func TestRetryLimitAfterInstallation(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	conn := h.lookup(clusterKey)
	latest := func(answeredOnce bool) (next time.Duration) {
		for range 15 {
			next = conn.visit(t.Context(), answeredOnce)
		}
		return next
	}
	s.set(func() { s.refuse[nodesPath] = true })
	s.set(func() { s.token = "another" })
	s.CloseClientConnections()
	h.Expect(latest(false)).To(BeNumerically("<", 2*retryInstalling))
	h.Expect(latest(true)).To(BeNumerically(">=", retryDown))
	s.set(func() { s.token = "secret-token" })
	h.Expect(conn.visit(t.Context(), true)).To(BeNumerically("<", 2*retryFirst), "it responds, but not completely")
	h.Expect(conn.observe().Connected).To(BeTrue())
	h.Expect(latest(true)).To(BeNumerically("~", retryIncomplete, float64(retryIncomplete)*jitter*1.1))
	s.set(func() { s.refuse[nodesPath] = false })
	conn.visit(t.Context(), true)
	h.Expect(conn.observe().UnreadSince).To(BeZero())
}

func TestTokenRequestsTimeOut(t *testing.T) {
	h, s := connectedHub(t)
	h.callTimeout = 100 * time.Millisecond
	began := time.Now()
	s.mu.Lock() // no request gets a response
	defer s.mu.Unlock()
	_, err := h.HasToken(t.Context(), clusterKey, "t1")
	h.Expect(err).To(MatchError(context.DeadlineExceeded))
	_, err = h.IssueToken(t.Context(), clusterKey)
	h.Expect(err).To(MatchError(context.DeadlineExceeded))
	h.Expect(time.Since(began)).To(BeNumerically("<", time.Minute))
}

func TestCanceledVisitIsNoFailure(t *testing.T) {
	h, _ := connectedHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.visit(ctx)
	h.Expect(h.Observe(clusterKey).Failure).To(BeNil())
	h.Expect(h.changes).To(BeEmpty())
}

func TestForgottenClusterIgnoresKubeconfig(t *testing.T) {
	h, _ := connectedHub(t)
	conn := h.lookup(clusterKey)
	h.Forget(clusterKey)
	conn.use(&corev1.Secret{Data: map[string][]byte{"value": conntest.Kubeconfig(t, "https://127.0.0.1:1", nil)}}, "test")
	h.Expect(conn.access).To(BeNil())
}

func TestVisitDoesNotConnectForgottenCluster(t *testing.T) {
	h, s := connectedHub(t)
	conn := h.lookup(clusterKey)
	access := conn.access
	h.Forget(clusterKey)
	h.Eventually(func() int { return s.watched(nodesPath) }, time.Minute).Should(BeZero())
	conn.readAndWatch(t.Context(), access, "v1")
	h.Expect(conn.observe().Connected).To(BeFalse())
	h.Consistently(func() int { return s.watched(nodesPath) }, 200*time.Millisecond).Should(BeZero())
}

func TestInstallingClustersAreReconciledFirst(t *testing.T) {
	h := newHub(t, nil)
	h.Requests = func(_ context.Context, cluster client.ObjectKey) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: cluster}}
	}
	h.Installed = func(_ context.Context, cluster *clusterv1.Cluster) bool { return cluster.Name == "installed" }
	for _, name := range []string{"installed", "installing"} {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: clusterKey.Namespace, Name: name}}
		h.Expect(h.Create(t.Context(), cluster)).To(Succeed())
	}
	queue := priorityqueue.New[ctrl.Request](t.Name())
	t.Cleanup(queue.ShutDown)
	h.Expect(h.Source().Start(t.Context(), queue)).To(Succeed())
	for _, name := range []string{"installed", "installing"} {
		h.notify(h.changes, client.ObjectKey{Namespace: clusterKey.Namespace, Name: name})
	}
	h.Eventually(queue.Len, time.Minute).Should(Equal(2))
	for _, wanted := range []string{"installing", "installed"} {
		next, _ := queue.Get()
		h.Expect(next.Name).To(Equal(wanted))
	}
}
