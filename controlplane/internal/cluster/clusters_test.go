package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
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
	// selected and isInstalled are what is said of the cluster.
	selected, isInstalled atomic.Bool
	// secretReads counts the reads of Secrets as a whole.
	secretReads atomic.Int32
}

func newHub(t *testing.T, kubeconfig []byte) *hub {
	t.Helper()
	h := &hub{WithT: NewWithT(t)}
	h.selected.Store(true)
	scheme := runtime.NewScheme()
	h.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	h.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: clusterKey.Namespace, Name: clusterKey.Name}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}, Data: map[string][]byte{"value": kubeconfig}}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, secret).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Secret); ok {
				h.secretReads.Add(1)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	h.Clusters = NewClusters(Options{
		Cached: h.Client, Live: h.Client, UserAgent: "test",
		Selected:  func(context.Context, *clusterv1.Cluster) (bool, error) { return h.selected.Load(), nil },
		Installed: func(context.Context, *clusterv1.Cluster) bool { return h.isInstalled.Load() },
	})
	t.Cleanup(func() { h.Forget(clusterKey) })
	return h
}

// visit visits the cluster, as when its Secret changed or the time for it came, and tells when the next visit is.
func (h *hub) visit(ctx context.Context) time.Duration {
	result, err := h.Reconcile(ctx, ctrl.Request{NamespacedName: clusterKey})
	h.Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

// settle lets the connection be one that has lasted.
func (h *hub) settle() {
	l := h.connectionOf(clusterKey)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = l.since.Add(-settled)
}

// told waits for the control plane to be reconciled, and tells what is then known.
func (h *hub) told() facts.Workload {
	h.Eventually(h.news, time.Minute).Should(Receive(), "the control plane must be reconciled")
	return h.Observe(clusterKey)
}

// sessions is how many are kept of connections to the cluster.
func (h *hub) sessions() int {
	s := h.connectionOf(clusterKey).access.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

func (h *hub) setKubeconfig(ctx context.Context, content []byte) {
	secret := &corev1.Secret{}
	h.Expect(h.Get(ctx, secretKey, secret)).To(Succeed())
	secret.Data["value"] = content
	h.Expect(h.Update(ctx, secret)).To(Succeed())
}

// expectFailure looks at what is told of an attempt to connect.
func (h *hub) expectFailure(ctx context.Context, kind facts.FailureKind, message string) {
	seen := h.told()
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

// connectedHub is one that is connected to a server, of which the control plane knows.
func connectedHub(t *testing.T) (*hub, *apiServer) {
	t.Helper()
	s := newAPIServer(t, "secret-token")
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).To(BeNumerically("~", visitInterval, float64(visitInterval)*spread*1.1))
	h.Expect(h.told().Connected).To(BeTrue())
	for _, path := range []string{nodesPath, secretsPath, versionsPath, operatorsPath} {
		h.Eventually(func() int { return s.watched(path) }).Should(Equal(1), path)
	}
	return h, s
}

// Somebody who may edit Secrets in the namespace of a cluster asks the manager to bring its own token to a server of theirs.
func TestNothingConnectsForAKubeconfigWithATokenFile(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Error(w, "got "+r.Header.Get("Authorization"), http.StatusTeapot)
	}))
	defer server.Close()
	h := newHub(t, kubeconfigFor(t, server.URL, func(c *clientcmdapi.Config) {
		c.AuthInfos["admin"] = &clientcmdapi.AuthInfo{TokenFile: fileWith(t, "token of the manager")}
	}))
	h.Expect(h.visit(t.Context())).To(BeZero(), "only another kubeconfig changes that")
	h.expectFailure(t.Context(), facts.KubeconfigRefused, "it has tokenFile")
	h.visit(t.Context())
	h.Expect(requests.Load()).To(BeZero())
	h.Expect(h.secretReads.Load()).To(BeEquivalentTo(2), "once by us and once by the test")
}

func TestCredentialsThatAreNotAccepted(t *testing.T) {
	s := newAPIServer(t, "new-token")
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.Expect(h.visit(t.Context())).NotTo(BeZero())
	h.expectFailure(t.Context(), facts.Unauthorized, "401 Unauthorized")

	h.setKubeconfig(t.Context(), kubeconfigFor(t, s.URL, withToken("new-token")))
	h.visit(t.Context())
	seen := h.told()
	h.Expect(seen.Connected).To(BeTrue())
	h.Expect(seen.Failure).To(BeNil(), "it is past")

	// The same connection would go on: what the kubeconfig now says is what counts.
	h.setKubeconfig(t.Context(), kubeconfigFor(t, s.URL, withToken("wrong-token")))
	h.visit(t.Context())
	h.expectFailure(t.Context(), facts.Unauthorized, "401 Unauthorized")
	h.Eventually(func() int { return s.watched(nodesPath) }, time.Minute).Should(BeZero())
}

// Credentials are renewed every few weeks: nobody is to be told that the cluster cannot be reached while they are taken into use.
func TestWhatIsKnownStandsUntilAnotherKubeconfigWasTried(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.refuse[operatorsPath] = true
	s.endWatches(operatorsPath, &metav1.Status{Code: http.StatusGone})
	h.Eventually(func() time.Time { return h.Observe(clusterKey).UnreadSince }, time.Minute).ShouldNot(BeZero())
	before := h.Observe(clusterKey)
	h.Expect(before.Tokens).NotTo(BeNil())

	s.set(func() { s.token = "renewed-token" })
	h.setKubeconfig(t.Context(), kubeconfigFor(t, s.URL, withToken("renewed-token")))
	h.Expect(h.refresh(t.Context(), h.known(clusterKey))).To(Succeed())
	before.Tokens = nil // that of the new credentials may not be among them
	h.Expect(h.Observe(clusterKey)).To(Equal(before))
	h.visit(t.Context())
	after := h.Observe(clusterKey)
	h.Expect(after.Connected).To(BeTrue())
	h.Expect(after.UnreadSince).To(Equal(before.UnreadSince))
	h.Expect(after.Tokens).NotTo(BeNil())

	h.setKubeconfig(t.Context(), kubeconfigFor(t, "https://127.0.0.1:1", nil))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeFalse())
	h.Expect(h.Observe(clusterKey).UnreadSince).To(BeZero(), "it was not reached")
}

func TestADeletedKubeconfigStaysInUse(t *testing.T) {
	h, _ := connectedHub(t)
	h.Expect(h.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}})).To(Succeed())
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeTrue())
}

// Whether its control plane was taken from this manager, or the Cluster is gone.
func TestClustersOfOthersAreNotConnectedTo(t *testing.T) {
	h, s := connectedHub(t)
	h.selected.Store(false)
	h.Expect(h.visit(t.Context())).To(BeZero())
	h.Expect(h.connections).To(BeEmpty())
	h.Eventually(func() int { return s.watched(nodesPath) }, time.Minute).Should(BeZero())

	h.selected.Store(true)
	h.Expect(h.Observe(clusterKey)).To(Equal(facts.Workload{}))
	h.Expect(h.visits).To(Receive(), "it may be ours since a moment ago")
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Connected).To(BeTrue())
	h.Expect(h.Client.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: clusterKey.Namespace, Name: clusterKey.Name}})).To(Succeed())
	h.visit(t.Context())
	h.Expect(h.connections).To(BeEmpty())
}

func TestACertificateOfAnotherAuthority(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, kubeconfigFor(t, s.URL, func(c *clientcmdapi.Config) { c.Clusters["c"].InsecureSkipTLSVerify = false }))
	h.visit(t.Context())
	h.expectFailure(t.Context(), facts.Untrusted, "not from the authority in the kubeconfig")
}

// People wait for a cluster that is being installed, also when the API of its bootstrap has answered; one that is installed may be down for long.
func TestWhenAClusterIsTriedAgain(t *testing.T) {
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
			h := newHub(t, kubeconfigFor(t, server.URL, nil))
			cluster := &clusterv1.Cluster{}
			h.Expect(h.Get(t.Context(), clusterKey, cluster)).To(Succeed())
			cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			h.Expect(h.Update(t.Context(), cluster)).To(Succeed())
			h.isInstalled.Store(tc.installed)
			first := h.visit(t.Context())
			h.Expect(first).To(BeNumerically("~", retryFirst, float64(retryFirst)*spread*1.1))
			h.expectFailure(t.Context(), facts.Unreachable, "connection refused")
			var last time.Duration
			for range 15 {
				last = h.visit(t.Context())
			}
			h.Expect(last).To(BeNumerically("~", tc.latest, float64(tc.latest)*spread*1.1))
			h.Expect(h.news).To(BeEmpty(), "told once")

			h.setKubeconfig(t.Context(), kubeconfigFor(t, server.URL, withToken("another")))
			h.Expect(h.visit(t.Context())).To(BeNumerically("<", 2*retryFirst), "another kubeconfig begins anew")
		})
	}
}

func TestAnAPIServerThatComesAndGoesIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	now, told := time.Now(), 0
	l := newConnection(clusterKey, func() time.Time { return now }, nil, func() { told++ }, func() {})
	for range 3 {
		l.failed(syscall.ECONNREFUSED)
		l.failed(context.DeadlineExceeded)
	}
	g.Expect(told).To(Equal(1))
	g.Expect(l.observe().Failure.Message).To(ContainSubstring("connection refused"))
	now = now.Add(steadyFor)
	l.failed(context.DeadlineExceeded)
	g.Expect(told).To(Equal(2), "it has come to stay")
	g.Expect(l.observe().Failure.Message).To(ContainSubstring("does not answer in time"))
	l.failed(apierrors.NewUnauthorized("no"))
	g.Expect(told).To(Equal(3), "another kind is told at once")
}

func TestWhatIsKnownOfACluster(t *testing.T) {
	h, s := connectedHub(t)
	seen := h.Observe(clusterKey)
	h.Expect(seen.LastSuccess).To(BeTemporally("~", time.Now(), time.Minute))
	seen.LastSuccess = time.Time{}
	h.Expect(seen).To(Equal(facts.Workload{
		Connected: true, KubernetesVersion: "v1.32.6", OpenShiftVersion: "4.19.3", ReleaseImage: "release:4.19.3",
		Nodes: []facts.Node{{Name: "n0", UID: "n0", HostUID: "h0"}}, Tokens: seen.Tokens, Etcd: facts.EtcdOperator{Known: true, Available: true},
	}))
	h.Expect(seen.Tokens).NotTo(BeNil())
	h.Expect(seen.Tokens).To(BeEmpty())
	h.Eventually(s.requests).Should(ConsistOf("GET /version", "GET "+nodesPath, "GET "+secretsPath,
		"GET "+versionsPath+" metadata.name=version", "GET "+operatorsPath+" metadata.name=etcd", "GET "+operatorsPath+" metadata.name=kube-apiserver",
		"GET "+nodesPath+" true", "GET "+secretsPath+" true", "GET "+versionsPath+" true", "GET "+operatorsPath+" true"), "each is asked once")
	s.set(func() {
		h.Expect(s.resumed).To(HaveLen(5), "what is read once comes by the session of the connection that lasts")
	})
	h.Expect(h.sessions()).To(BeZero(), "they are not kept")
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).To(Equal([]string{"GET /version"}), "what is watched is not read again")
	s.put(operatorsPath, operatorOf("etcd", configv1.ConditionFalse))
	h.told()
	h.Eventually(h.sessions).Should(BeZero())
}

// Of thousands of clusters that answer at the start of a manager a few are read at a time, and each has its full time for that.
func TestClustersAreReadInTurn(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	h := newHub(t, kubeconfigFor(t, s.URL, nil))
	h.Expect(h.reading.TryAcquire(readers)).To(BeTrue())
	go h.visit(t.Context())
	h.Eventually(s.requests).Should(ConsistOf("GET /version"))
	h.Consistently(s.requests, 100*time.Millisecond).Should(HaveLen(1))
	h.reading.Release(readers)
	h.Expect(h.told().Connected).To(BeTrue())
}

// Its API server answers, but cannot read: it has lost its etcd, for example.
func TestAClusterThatHangsHoldsUpNobodyForLong(t *testing.T) {
	h, _ := connectedHub(t)
	asked := 0
	answering := func(err error) resource {
		return resource{read: func(context.Context, client.Client) (string, func(*connection), error) {
			asked++
			return "", func(*connection) {}, err
		}}
	}
	l := h.known(clusterKey)
	forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	found := l.read(t.Context(), l.access, answering(nil), answering(forbidden), answering(fmt.Errorf("too late: %w", context.DeadlineExceeded)), answering(nil))
	h.Expect(asked).To(Equal(3))
	h.Expect(found[0].err).NotTo(HaveOccurred())
	h.Expect(found[1].err).To(MatchError(forbidden))
	h.Expect(found[2].err).To(MatchError(context.DeadlineExceeded))
	h.Expect(found[3].err).To(MatchError(context.DeadlineExceeded))
	h.Expect(h.reading.TryAcquire(readers)).To(BeTrue(), "others may be read")
}

// From then on it counts for how long a cluster is down.
func TestWhenAClusterAnsweredLast(t *testing.T) {
	h, s := connectedHub(t)
	l := h.known(clusterKey)
	l.mu.Lock()
	l.lastSuccess = time.Time{}
	l.mu.Unlock()
	s.put(secretsPath, boundSecret("t1"))
	last := h.told().LastSuccess
	h.Expect(last).To(BeTemporally("~", time.Now(), time.Minute), "a watch told something")
	h.Expect(s.Listener.Close()).To(Succeed())
	s.CloseClientConnections()
	h.visit(t.Context())
	seen := h.told()
	h.Expect(seen.Connected).To(BeFalse())
	h.Expect(seen.LastSuccess).To(BeTemporally(">=", last))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).LastSuccess).To(Equal(seen.LastSuccess), "an attempt is no answer")
}

func TestARevokedTokenIsNoticedByWhoUsesIt(t *testing.T) {
	h, s := connectedHub(t)
	s.put(secretsPath, boundSecret("t1"))
	h.told()
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
	h.expectFailure(t.Context(), facts.Unauthorized, "401 Unauthorized")
	_, err = h.HasToken(t.Context(), clusterKey, "t1")
	h.Expect(err).To(MatchError(ErrNotConnected))
}

func TestAClusterThatAnsweredIsTriedSoonAgain(t *testing.T) {
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

// The latest time counts from the first visit after it changed, and what can be read in part is looked at no later than what is read as a whole.
func TestWhenAClusterThatWasInstalledMeanwhileIsTriedAgain(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	l := h.known(clusterKey)
	latest := func(answeredOnce bool) (next time.Duration) {
		for range 15 {
			next = l.visit(t.Context(), answeredOnce)
		}
		return next
	}
	s.set(func() { s.refuse[nodesPath] = true })
	s.set(func() { s.token = "another" })
	s.CloseClientConnections()
	h.Expect(latest(false)).To(BeNumerically("<", 2*retryInstalling))
	h.Expect(latest(true)).To(BeNumerically(">=", retryDown))
	s.set(func() { s.token = "secret-token" })
	h.Expect(l.visit(t.Context(), true)).To(BeNumerically("<", 2*retryFirst), "it answers, but not all")
	h.Expect(l.observe().Connected).To(BeTrue())
	h.Expect(latest(true)).To(BeNumerically("~", retryIncomplete, float64(retryIncomplete)*spread*1.1))
	s.set(func() { s.refuse[nodesPath] = false })
	l.visit(t.Context(), true)
	h.Expect(l.observe().UnreadSince).To(BeZero())
}

func TestNobodyWaitsLongForATokenOfAClusterThatHangs(t *testing.T) {
	h, s := connectedHub(t)
	h.callTime = 100 * time.Millisecond
	began := time.Now()
	s.mu.Lock() // no request is answered
	defer s.mu.Unlock()
	_, err := h.HasToken(t.Context(), clusterKey, "t1")
	h.Expect(err).To(MatchError(context.DeadlineExceeded))
	_, err = h.IssueToken(t.Context(), clusterKey)
	h.Expect(err).To(MatchError(context.DeadlineExceeded))
	h.Expect(time.Since(began)).To(BeNumerically("<", time.Minute))
}

func TestTheEndOfTheManagerIsNoFailureOfACluster(t *testing.T) {
	h, _ := connectedHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.visit(ctx)
	h.Expect(h.Observe(clusterKey).Failure).To(BeNil())
	h.Expect(h.news).To(BeEmpty())
}

func TestAClusterThatWasForgottenTakesNoKubeconfig(t *testing.T) {
	h, _ := connectedHub(t)
	l := h.known(clusterKey)
	h.Forget(clusterKey)
	l.use(&corev1.Secret{Data: map[string][]byte{"value": kubeconfigFor(t, "https://127.0.0.1:1", nil)}}, "test")
	h.Expect(l.access).To(BeNil())
}

func TestAVisitDoesNotConnectAClusterThatWasForgottenMeanwhile(t *testing.T) {
	h, s := connectedHub(t)
	l := h.known(clusterKey)
	way := l.access
	h.Forget(clusterKey)
	h.Eventually(func() int { return s.watched(nodesPath) }, time.Minute).Should(BeZero())
	l.follow(t.Context(), way, "v1")
	h.Expect(l.observe().Connected).To(BeFalse())
	h.Consistently(func() int { return s.watched(nodesPath) }, 200*time.Millisecond).Should(BeZero())
}

func TestNewsOfClustersThatAreInstalledComesFirst(t *testing.T) {
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
		h.notify(h.news, client.ObjectKey{Namespace: clusterKey.Namespace, Name: name})
	}
	h.Eventually(queue.Len, time.Minute).Should(Equal(2))
	for _, wanted := range []string{"installing", "installed"} {
		next, _ := queue.Get()
		h.Expect(next.Name).To(Equal(wanted))
	}
}
