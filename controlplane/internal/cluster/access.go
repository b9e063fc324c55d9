package cluster

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/streams"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

const (
	// dialTime is how long it may take until an API server takes a connection, answerTime until it answers, callTime all that is to be done at once.
	dialTime   = 5 * time.Second
	answerTime = 10 * time.Second
	callTime   = 20 * time.Second
	// silence is after how long a silent connection is looked after. It is well below facts.GracePeriod, and below the minute after which load balancers drop it.
	silence = 45 * time.Second
	// unusedStay is how long a connection is kept on which nothing is watched any more, keepAlive how often the operating system looks after a silent one.
	unusedStay, keepAlive = time.Minute, 30 * time.Second
	// secondTry is after what time an API server is asked again that did not accept the credentials.
	secondTry = time.Second
)

// scheme and mapper know the kinds that are read and written in the clusters. All clusters share them: what a cluster says of its own kinds, which are hundreds, is
// never asked for.
var scheme, mapper = kinds()

func kinds() (*runtime.Scheme, meta.RESTMapper) {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	for _, install := range []func(*runtime.Scheme) error{configv1.Install, operatorv1.Install, machinev1beta1.Install, machineconfigurationv1.Install} {
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
	m.Add(configv1.GroupVersion.WithKind(clusterVersionKind), meta.RESTScopeRoot)
	m.Add(configv1.GroupVersion.WithKind(clusterOperatorKind), meta.RESTScopeRoot)
	m.Add(configv1.GroupVersion.WithKind("Infrastructure"), meta.RESTScopeRoot)
	m.Add(machineConfigs, meta.RESTScopeRoot)
	m.Add(machineconfigurationv1.GroupVersion.WithKind("MachineConfigPool"), meta.RESTScopeRoot)
	m.Add(operatorv1.GroupVersion.WithKind("Etcd"), meta.RESTScopeRoot)
	m.Add(machinev1beta1.GroupVersion.WithKind("Machine"), meta.RESTScopeNamespace)
	return s, m
}

// access is the way to a cluster that a kubeconfig tells. One connection lasts, for probes and watches, which bring little; single requests have one of their own while
// they are made. The buffers of a connection are as large as the largest answer was.
type access struct {
	lasting   rest.Interface
	transport *streams.Transport
	// config is what the kubeconfig says, without its certificates: they are large, and stand in certificates.
	config       *rest.Config
	certificates *tls.Config
	sessions     *tlsSessions
	// serving are the authorities of the latest connection.
	serving *serving
}

// open does not connect yet.
func open(kubeconfig []byte, userAgent string, now func() time.Time) (*access, error) {
	_, config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	certificates, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, RefusedError("its certificates cannot be read")
	}
	if certificates == nil { // it names no authority: those of the system count
		certificates = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.UserAgent, config.QPS = userAgent, -1
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	a := &access{config: config, certificates: certificates, sessions: &tlsSessions{}, serving: &serving{}}
	certificates.ClientSessionCache = a.sessions
	certificates.VerifyConnection = a.serving.record
	a.transport = &streams.Transport{Dial: a.dial, Times: streams.Times{Silence: silence, Answer: answerTime, Now: now}}
	authenticated, err := a.through(a.transport)
	if err != nil {
		return nil, err
	}
	if a.lasting, err = rest.UnversionedRESTClientForConfigAndClient(config, authenticated); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return a, nil
}

// probe asks the API server for its version, which tells also whether the credentials are accepted: they are not when two requests were refused.
func (a *access) probe(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(streams.MayOpen(ctx), answerTime)
	defer cancel()
	version := a.lasting.Get().AbsPath("/version")
	answer, err := version.DoRaw(ctx)
	if errors.Is(err, streams.ErrEnded) { // it had ended before
		answer, err = version.DoRaw(ctx)
	}
	if apierrors.IsUnauthorized(err) {
		// Another API server of the cluster may answer: one that has just started, or cannot read etcd, refuses valid tokens.
		a.transport.Close()
		select {
		case <-ctx.Done():
		case <-time.After(secondTry):
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
	return bound.Identifier(info.GitVersion, longestVersion), nil
}

// dial makes a transport that nobody else uses. client-go's own are never dropped once they were made, and each renewed token would add one.
func (a *access) dial() *http.Transport {
	return &http.Transport{
		Proxy:               a.proxy(),
		DialContext:         (&net.Dialer{Timeout: dialTime, KeepAlive: keepAlive}).DialContext,
		TLSClientConfig:     a.certificates.Clone(),
		TLSHandshakeTimeout: answerTime,
		IdleConnTimeout:     unusedStay,
		// The answers of a workload cluster are limited with their headers, see limitOf.
		MaxResponseHeaderBytes: bound.HeaderBytes,
		OnProxyConnectResponse: reach.ProxyAnswer,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// proxy tells which proxy leads to the API server.
func (a *access) proxy() func(*http.Request) (*url.URL, error) {
	if a.config.Proxy != nil {
		return a.config.Proxy
	}
	return http.ProxyFromEnvironment
}

// through adds the credentials.
func (a *access) through(transport http.RoundTripper) (*http.Client, error) {
	wrapped, err := rest.HTTPWrappersForConfig(a.config, bounded(transport))
	if err != nil {
		return nil, RefusedError("its credentials cannot be used")
	}
	return &http.Client{Transport: wrapped}, nil
}

// call makes single requests, over a connection that ends with them.
func (a *access) call(requests func(client.Client) error) error {
	transport := a.dial()
	defer a.sessions.drop()
	defer transport.CloseIdleConnections()
	authenticated, err := a.through(transport)
	if err != nil {
		return err
	}
	c, err := client.New(a.config, client.Options{HTTPClient: authenticated, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return requests(c)
}
