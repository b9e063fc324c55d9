package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

var (
	clusterKey = client.ObjectKey{Namespace: "lab", Name: "cluster1"}
	secretKey  = client.ObjectKey{Namespace: "lab", Name: "cluster1-kubeconfig"}
)

// hub is a management cluster, on fakes, with the real cache of connections: what it connects to are servers of the tests.
type hub struct {
	*WithT
	client.Client
	*Clusters
	selected atomic.Bool
	// secretReads counts the reads of Secrets past the cache.
	secretReads atomic.Int32
}

// hubManager reads from the fakes.
type hubManager struct {
	manager.Manager
	cached cache.Cache
	live   client.Client
}

func (m hubManager) GetCache() cache.Cache       { return m.cached }
func (m hubManager) GetAPIReader() client.Reader { return m.live }
func (m hubManager) GetClient() client.Client    { return m.live }

// hubCache takes its informers from one fake, and its objects from another.
type hubCache struct {
	*informertest.FakeInformers
	objects client.Reader
}

func (c hubCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.objects.Get(ctx, key, obj, opts...)
}

func (c hubCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.objects.List(ctx, list, opts...)
}

func newHub(t *testing.T, kubeconfig []byte) *hub {
	t.Helper()
	h := &hub{WithT: NewWithT(t)}
	h.selected.Store(true)
	scheme := runtime.NewScheme()
	h.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	h.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: clusterKey.Namespace, Name: clusterKey.Name}}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}, Data: map[string][]byte{"value": kubeconfig}}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, secret).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Secret); ok {
				h.secretReads.Add(1)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	clusters := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			return &clusterv1.ClusterList{Items: []clusterv1.Cluster{*cluster}}, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, &clusterv1.Cluster{}, 0, nil)
	informers := &informertest.FakeInformers{Scheme: scheme, InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{
		clusterv1.GroupVersion.WithKind("Cluster"): clusters,
	}}
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:         scheme,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return informers, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return h.RESTMapper(), nil },
	})
	h.Expect(err).NotTo(HaveOccurred())
	h.Clusters, err = NewClusters(t.Context(), hubManager{mgr, hubCache{informers, h.Client}, h.Client}, Options{
		UserAgent: "test",
		Selected:  func(context.Context, *clusterv1.Cluster) (bool, error) { return h.selected.Load(), nil },
		Requests: func(_ context.Context, cluster client.ObjectKey) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: cluster}}
		},
	})
	h.Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() { clusters.RunWithContext(ctx) })
	running.Go(func() { h.Expect(mgr.Start(ctx)).To(Succeed()) })
	return h
}

// expectFailure waits for what is told of an attempt to connect.
func (h *hub) expectFailure(ctx context.Context, kind FailureKind, message string) {
	h.Eventually(h.wake, 10*time.Second).Should(Receive(), "the control plane must be reconciled")
	facts, err := h.Observe(ctx, clusterKey)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(facts.Connected).To(BeFalse())
	h.Expect(facts.Failure).NotTo(BeNil())
	h.Expect(facts.Failure.Kind).To(Equal(kind))
	h.Expect(facts.Failure.Message).To(ContainSubstring(message))
	h.Expect(facts.Failure.Message).NotTo(ContainSubstring("127.0.0.1"))
	secret := &corev1.Secret{}
	h.Expect(h.Get(ctx, secretKey, secret)).To(Succeed())
	h.Expect(facts.Failure.KubeconfigVersion).To(Equal(secret.ResourceVersion))
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
	h.expectFailure(t.Context(), KubeconfigRefused, "it has tokenFile")
	h.Consistently(requests.Load, 3*connectInterval).Should(BeZero())
	h.Expect(h.secretReads.Load()).To(BeEquivalentTo(2), "once by us and once by the test")
}

// apiServer is one that accepts a token, and serves no more than is asked of it.
func apiServer(t *testing.T, token string) string {
	t.Helper()
	answers := map[string]any{
		"/":     metav1.RootPaths{},
		"/api":  metav1.APIVersions{Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{},
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "Node", Verbs: metav1.Verbs{"list", "watch"}},
			{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}},
		}},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case !found:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestCredentialsThatAreNotAccepted(t *testing.T) {
	url := apiServer(t, "new-token")
	h := newHub(t, kubeconfigFor(t, url, nil))
	h.expectFailure(t.Context(), Unauthorized, "401 Unauthorized")

	h.setKubeconfig(t.Context(), kubeconfigFor(t, url, func(c *clientcmdapi.Config) { c.AuthInfos["admin"].Token = "new-token" }))
	h.Eventually(func() error {
		_, err := h.cache.GetReader(t.Context(), clusterKey)
		return err
	}, 10*time.Second).Should(Succeed())
	h.NotifyController(noWatches{})
	_, err := h.Observe(t.Context(), clusterKey)
	h.Expect(err).To(MatchError(errNoWatches))
	h.Expect(h.failure(clusterKey)).To(BeNil(), "it is past")
	h.Expect(h.kubeconfigs.read).To(BeEmpty(), "it is needed for the next attempt, not for the connection")
}

func TestTheKubeconfigOfAClusterThatIsNoLongerSelectedIsForgotten(t *testing.T) {
	h := newHub(t, kubeconfigFor(t, apiServer(t, "another-token"), nil))
	h.expectFailure(t.Context(), Unauthorized, "401")
	h.selected.Store(false)
	h.Eventually(func() bool { return h.kubeconfigs.versionFor(clusterKey) == "" && h.failure(clusterKey) == nil }, 10*time.Second).Should(BeTrue())
}

// Nobody tries to connect any more when the Cluster is gone, too.
func TestForgetDropsTheKubeconfig(t *testing.T) {
	c := &Clusters{kubeconfigs: &kubeconfigReader{read: map[client.ObjectKey]kubeconfig{secretKey: {secret: &corev1.Secret{}}}}}
	c.Forget(clusterKey)
	NewWithT(t).Expect(c.kubeconfigs.read).To(BeEmpty())
}

func TestACertificateOfAnotherAuthority(t *testing.T) {
	h := newHub(t, kubeconfigFor(t, apiServer(t, "secret-token"), func(c *clientcmdapi.Config) { c.Clusters["c"].InsecureSkipTLSVerify = false }))
	h.expectFailure(t.Context(), Unreachable, "not from the authority in the kubeconfig")
}

func TestNobodyListens(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	h := newHub(t, kubeconfigFor(t, server.URL, nil))
	h.expectFailure(t.Context(), Unreachable, "connection refused")
}

func TestTheKindOfAFailure(t *testing.T) {
	get := func(err error) error {
		return fmt.Errorf("cluster is not reachable: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1/?timeout=5s", Err: err})
	}
	for want, err := range map[string]error{
		"looked up in DNS":        get(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.internal", IsTimeout: true}}),
		"for another name":        get(&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"internal"}}, Host: "api.internal"}}),
		"has expired":             get(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "internal"}}),
		"is not valid":            get(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}}),
		"no route to host":        get(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}),
		"does not answer in time": get(context.DeadlineExceeded),
		"503 Service Unavailable": fmt.Errorf("cluster is not reachable: %w", apierrors.NewServiceUnavailable("internal")),
		"no valid answer":         get(errors.New("malformed HTTP response: internal")),
	} {
		failure := failureOf(err)
		NewWithT(t).Expect(failure.Kind).To(Equal(Unreachable))
		NewWithT(t).Expect(failure.Message).To(ContainSubstring(want))
		NewWithT(t).Expect(failure.Message).NotTo(Or(ContainSubstring("10.0.0.1"), ContainSubstring("internal")))
	}
}

func TestAnAPIServerThatComesAndGoesIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	read := map[client.ObjectKey]kubeconfig{secretKey: {secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}}}
	now := time.Now()
	c := &Clusters{now: func() time.Time { return now }, kubeconfigs: &kubeconfigReader{read: read}, wake: make(chan event.GenericEvent, wakeUps)}
	for range 3 {
		c.failed(clusterKey, syscall.ECONNREFUSED)
		c.failed(clusterKey, context.DeadlineExceeded)
	}
	g.Expect(c.wake).To(HaveLen(1))
	g.Expect(c.failure(clusterKey).Message).To(ContainSubstring("connection refused"))
	now = now.Add(steadyFor)
	c.failed(clusterKey, context.DeadlineExceeded)
	g.Expect(c.wake).To(HaveLen(2), "it has come to stay")
	g.Expect(c.failure(clusterKey).Message).To(ContainSubstring("does not answer in time"))
	c.failed(clusterKey, apierrors.NewUnauthorized("no"))
	g.Expect(c.wake).To(HaveLen(3), "another kind is told at once")

	c.Forget(clusterKey)
	g.Expect(c.failure(clusterKey)).To(BeNil())
	delete(read, secretKey)
	c.failed(clusterKey, apierrors.NewNotFound(corev1.Resource("secrets"), "s"))
	g.Expect(c.failure(clusterKey)).To(BeNil(), "without a kubeconfig nothing was tried")
}

var errNoWatches = errors.New("nothing is watched here")

// noWatches ends the observation of a cluster in which there is nothing.
type noWatches struct{}

func (noWatches) Watch(source.Source) error { return errNoWatches }

func (h *hub) setKubeconfig(ctx context.Context, content []byte) {
	secret := &corev1.Secret{}
	h.Expect(h.Get(ctx, secretKey, secret)).To(Succeed())
	secret.Data["value"] = content
	h.Expect(h.Update(ctx, secret)).To(Succeed())
}
