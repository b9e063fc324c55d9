package workload

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// dialTime is how long it may take until an API server takes a connection, answerTime until it answers.
	dialTime   = 5 * time.Second
	answerTime = 10 * time.Second
	// callsStay is how long a connection for single requests is kept for the next one.
	callsStay = 5 * time.Second
	// unusedStay is how long one is kept on which nothing is watched any more.
	unusedStay = time.Minute
)

// scheme and mapper know the kinds that are read and written in the clusters. All clusters share them: what a cluster says of its own kinds, which are hundreds, is
// never asked for.
var scheme, mapper = kinds()

func kinds() (*runtime.Scheme, meta.RESTMapper) {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(configv1.Install(s))
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Node"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"Secret", "ServiceAccount"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	m.Add(configv1.GroupVersion.WithKind(clusterVersionKind), meta.RESTScopeRoot)
	m.Add(configv1.GroupVersion.WithKind(clusterOperatorKind), meta.RESTScopeRoot)
	return s, m
}

// access is the way to a cluster that a kubeconfig tells. It has two connections: one that lasts, for probes and watches, which bring little, and one for single
// requests, which is closed when they are done. The buffers of a connection are as large as the largest answer was.
type access struct {
	lasting rest.Interface
	config  *rest.Config
	calls   *http.Client
	close   func()
}

// open does not connect yet.
func open(kubeconfig []byte, userAgent string) (*access, error) {
	if err := CheckKubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, RefusedError("it is no kubeconfig")
	}
	config.UserAgent = userAgent
	certificates, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, RefusedError("its certificates cannot be read")
	}
	lasting, calls := transportFor(config, certificates, unusedStay), transportFor(config, certificates, callsStay)
	a := &access{
		// The certificates in the kubeconfig are large, and stand in the transports already.
		config: &rest.Config{Host: config.Host, APIPath: config.APIPath, UserAgent: userAgent, QPS: -1},
		close:  func() { lasting.CloseIdleConnections(); calls.CloseIdleConnections() },
	}
	if a.calls, err = authenticated(config, calls); err != nil {
		return nil, err
	}
	watches, err := authenticated(config, lasting)
	if err != nil {
		return nil, err
	}
	plain := *a.config
	plain.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	if a.lasting, err = rest.UnversionedRESTClientForConfigAndClient(&plain, watches); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return a, nil
}

// transportFor makes one that nobody else uses. client-go's own are never dropped once they were made, and each renewed token would add one.
func transportFor(config *rest.Config, certificates *tls.Config, idle time.Duration) *http.Transport {
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         (&net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     certificates.Clone(), // shares the certificates
		TLSHandshakeTimeout: answerTime,
		IdleConnTimeout:     idle,
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
	}
}

// authenticated adds the credentials.
func authenticated(config *rest.Config, transport http.RoundTripper) (*http.Client, error) {
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, RefusedError("its credentials cannot be used")
	}
	return &http.Client{Transport: wrapped}, nil
}

// client is for single requests.
func (a *access) client() (client.Client, error) {
	return client.New(a.config, client.Options{HTTPClient: a.calls, Scheme: scheme, Mapper: mapper})
}
