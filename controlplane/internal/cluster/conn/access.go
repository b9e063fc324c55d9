package conn

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/http2conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

const (
	// dialTimeout limits the time to connect to an API server.
	dialTimeout = 5 * time.Second
	// ResponseTimeout limits the time to a response.
	ResponseTimeout = 10 * time.Second
	// pingAfter is the silence after which a connection is checked. It is well below facts.GracePeriod, and
	// below the minute after which load balancers drop silent connections.
	pingAfter = 45 * time.Second
	// idleTimeout is how long a connection without watches is kept, keepAlive the interval of TCP keep-alive
	// probes.
	idleTimeout, keepAlive = time.Minute, 30 * time.Second
	// unauthorizedRetry is the delay before the second request to an API server that refused the credentials.
	unauthorizedRetry = time.Second
)

// Scheme and mapper hold the kinds that are read and written in clusters. All clusters share them. The
// hundreds of kinds that a cluster has are not discovered.
var Scheme, mapper = newSchemeAndMapper()

func newSchemeAndMapper() (*runtime.Scheme, meta.RESTMapper) {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	for _, install := range []func(*runtime.Scheme) error{
		configv1.Install, operatorv1.Install, machinev1beta1.Install,
		machineconfigurationv1.Install,
	} {
		utilruntime.Must(install(s))
	}
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	m.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	m.Add(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"), meta.RESTScopeRoot)
	m.Add(configv1.GroupVersion.WithKind("ClusterVersion"), meta.RESTScopeRoot)
	m.Add(configv1.GroupVersion.WithKind("ClusterOperator"), meta.RESTScopeRoot)
	m.Add(configv1.GroupVersion.WithKind("Infrastructure"), meta.RESTScopeRoot)
	m.Add(machineconfigurationv1.GroupVersion.WithKind("MachineConfig"), meta.RESTScopeRoot)
	m.Add(machineconfigurationv1.GroupVersion.WithKind("MachineConfigPool"), meta.RESTScopeRoot)
	m.Add(operatorv1.GroupVersion.WithKind("Etcd"), meta.RESTScopeRoot)
	m.Add(machinev1beta1.GroupVersion.WithKind("Machine"), meta.RESTScopeNamespace)
	return s, m
}

// Access is the connection of one kubeconfig. The permanent connection carries probes and watches, which
// transfer little. Single requests use a connection that ends with them, because the buffers of a connection
// keep the size of the largest response.
type Access struct {
	// Transport makes the requests of the permanent connection.
	Transport *http2conn.Transport
	permanent rest.Interface
	// config is the content of the kubeconfig without its certificates. Those are large, and are kept in
	// certificates.
	config       *rest.Config
	certificates *tls.Config
	sessions     *tlsSessions
}

// Options are the parameters of New.
type Options struct {
	UserAgent string
	// Clock is the source of the time.
	Clock clock.PassiveClock
	// VerifyConnection is called for each TLS connection, including those with a resumed session. Its error refuses the
	// connection.
	VerifyConnection func(tls.ConnectionState) error
}

// New returns the access of a kubeconfig. It does not connect yet. The error for a kubeconfig that is not used is a
// RefusedError.
func New(kubeconfig []byte, options Options) (*Access, error) {
	_, config, err := LoadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	certificates, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, RefusedError("its certificates cannot be read")
	}
	if certificates == nil { // without an authority in the kubeconfig those of the system apply
		certificates = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.UserAgent, config.QPS = options.UserAgent, -1
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	a := &Access{config: config, certificates: certificates, sessions: &tlsSessions{}}
	certificates.ClientSessionCache = a.sessions
	certificates.VerifyConnection = options.VerifyConnection
	a.Transport = &http2conn.Transport{
		Dial:  a.newTransport,
		Times: http2conn.Times{Silence: pingAfter, Answer: ResponseTimeout, Clock: options.Clock},
	}
	authenticated, err := a.httpClient(a.Transport)
	if err != nil {
		return nil, err
	}
	if a.permanent, err = rest.UnversionedRESTClientForConfigAndClient(config, authenticated); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return a, nil
}

// Get starts a GET request over the permanent connection.
func (a *Access) Get() *rest.Request { return a.permanent.Get() }

// CloseIdle ends what the next request over the permanent connection does not need: idle connections of HTTP/1.1, and
// TLS sessions.
func (a *Access) CloseIdle() {
	a.Transport.CloseIdle()
	a.sessions.drop()
}

// Probe returns the Kubernetes version of the API server as the server reports it. This also checks the credentials:
// they are invalid if two requests are refused.
func (a *Access) Probe(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(http2conn.AllowOpen(ctx), ResponseTimeout)
	defer cancel()
	version := a.permanent.Get().AbsPath("/version")
	answer, err := version.DoRaw(ctx)
	if errors.Is(err, http2conn.ErrEnded) { // the connection had ended before the request
		answer, err = version.DoRaw(ctx)
	}
	if apierrors.IsUnauthorized(err) {
		// An API server that has just started, or cannot read etcd, refuses valid tokens. Another API server of the
		// cluster may accept them.
		a.Transport.Close()
		select {
		case <-ctx.Done():
		case <-time.After(unauthorizedRetry):
			answer, err = version.DoRaw(ctx)
		}
	}
	if err != nil {
		return "", err
	}
	info := apiversion.Info{}
	if err := json.Unmarshal(answer, &info); err != nil {
		return "", fmt.Errorf("cannot read the version of the API server: %w", err)
	}
	return info.GitVersion, nil
}

// newTransport returns a transport that is not shared. client-go caches its transports for ever, and each
// renewed token would add one.
func (a *Access) newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               a.proxy(),
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
		TLSClientConfig:     a.certificates.Clone(),
		TLSHandshakeTimeout: ResponseTimeout,
		IdleConnTimeout:     idleTimeout,
		// Responses of a workload cluster are limited including their headers, see limitOf.
		MaxResponseHeaderBytes: bound.HeaderBytes,
		OnProxyConnectResponse: reach.ProxyAnswer,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// proxy returns the function that selects the proxy to the API server.
func (a *Access) proxy() func(*http.Request) (*url.URL, error) {
	if a.config.Proxy != nil {
		return a.config.Proxy
	}
	return http.ProxyFromEnvironment
}

// httpClient returns a client that adds the credentials and limits responses.
func (a *Access) httpClient(transport http.RoundTripper) (*http.Client, error) {
	wrapped, err := rest.HTTPWrappersForConfig(a.config, bounded(transport))
	if err != nil {
		return nil, RefusedError("its credentials cannot be used")
	}
	return &http.Client{Transport: wrapped}, nil
}

// Call calls a function that makes single requests, over a connection that ends with them.
func (a *Access) Call(requests func(client.Client) error) error {
	transport := a.newTransport()
	defer a.sessions.drop()
	defer transport.CloseIdleConnections()
	authenticated, err := a.httpClient(transport)
	if err != nil {
		return err
	}
	c, err := client.New(a.config, client.Options{HTTPClient: authenticated, Scheme: Scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return requests(c)
}
