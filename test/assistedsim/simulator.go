// Package assistedsim simulates the Kubernetes API of assisted-service: InfraEnv, Agent, ClusterDeployment and
// AgentClusterInstall behave as the real service makes them behave, in the order and with the reasons that test/journeys
// sees in both, its traps included. The hosts talk to it in-process, through [hosts.Service].
//
// What is simulated is what an API client can see: states, conditions, secrets, download URLs and the discovery ignition.
// No image is built and nothing is installed; the stages of an installation are those that a host reports.
package assistedsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/token"
)

// FieldManager is the field manager and user agent of everything that the simulator writes, as with the real service.
const FieldManager = "assisted-service"

// AuthType says how assisted-service protects its downloads.
type AuthType string

const (
	// AuthNone leaves every download open; URLs never change.
	AuthNone AuthType = "none"
	// AuthLocal signs download URLs with a token, again whenever the image is regenerated.
	AuthLocal AuthType = "local"
)

// Options configure a Simulator. The zero value acts at once, without authentication, over plain HTTP.
type Options struct {
	// WorkloadKubeconfig returns the administrator's kubeconfig of an installed cluster, named after its ClusterDeployment.
	// It is called when the installation starts and again when it ends. Required as soon as a cluster installs.
	WorkloadKubeconfig func(ctx context.Context, namespace, cdName string) ([]byte, error)
	// StageDelay is how long every state of a host or cluster lasts that would otherwise end at once. Default: none.
	StageDelay time.Duration
	// PreparationRetry is the pause between a failed preparation and the next attempt. Default: one second.
	PreparationRetry time.Duration
	// NodePoll is how often the Node of a host is looked at that joins an installed cluster. Default: 50 ms.
	NodePoll time.Duration
	// Flapping, when set, lets a cluster that has no host alternate between insufficient and pending-for-input with this
	// period, as the real service does when VIPs and a machine network are given.
	Flapping time.Duration
	// Auth protects the downloads. Default: AuthNone.
	Auth AuthType
	// HTTPS serves the downloads over TLS with a private CA, see [Simulator.CA].
	HTTPS bool
	// BeforeDownload stands before each download, of which it is told the InfraEnv. Nil: nothing does.
	BeforeDownload func(infraEnv types.NamespacedName, next http.Handler) http.Handler
	// ImageServiceURL is the base of image URLs, which are only computed. Default: http://127.0.0.1:8888.
	ImageServiceURL string
	// OSVersions are the OpenShift minor versions that have an OS image, oldest first. Default: 4.14 to 4.22.
	OSVersions []string
	// Namespaces are those that the service looks at. Default: all.
	Namespaces map[string]cache.Config
	// Logger receives what the controllers of the simulator log. Default: nothing.
	Logger logr.Logger
}

// Simulator is an assisted-service for tests. It implements [hosts.Service].
type Simulator struct {
	opts   Options
	config *rest.Config
	client client.Client
	live   client.Reader
	certs  *certificates
	tokens *token.Key

	serviceURL string
	webhookURL string

	mu        sync.Mutex
	changed   chan struct{}
	infraEnvs map[types.NamespacedName]*infraEnv
	hosts     map[types.NamespacedName]*host
	clusters  map[types.NamespacedName]*cluster
	spokes    map[types.NamespacedName]spoke
	faults    faults
	// still is how many want that nothing of a cluster starts to install, see [Simulator.Still].
	still map[types.NamespacedName]int
	// downloaded counts the downloads by namespace.
	downloaded map[string]int
	// back is closed when a service that is away comes back; nil while it is here.
	back chan struct{}
	// missed is how often somebody wanted something of it meanwhile.
	missed int
	// references are the clusterRefs of InfraEnvs, of those too that still wait for their cluster.
	references map[types.NamespacedName]types.NamespacedName

	agentQueue, clusterQueue, infraEnvQueue queue

	running sync.WaitGroup
	failed  error
}

var _ hosts.Service = (*Simulator)(nil)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// New prepares a simulator that works on the API server of cfg, which must serve the custom resources of assisted-service
// and of Hive.
func New(cfg *rest.Config, opts Options) (*Simulator, error) {
	config := rest.CopyConfig(cfg)
	config.UserAgent = FieldManager
	config.QPS = -1 // the API server's own fairness is limit enough
	opts.applyDefaults()
	certs, err := newCertificates()
	if err != nil {
		return nil, err
	}
	tokens, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	return &Simulator{
		opts: opts, config: config, certs: certs, tokens: tokens,
		changed:   make(chan struct{}),
		infraEnvs: map[types.NamespacedName]*infraEnv{},
		hosts:     map[types.NamespacedName]*host{},
		clusters:  map[types.NamespacedName]*cluster{},
		spokes:    map[types.NamespacedName]spoke{},
		faults:    newFaults(),
		still:     map[types.NamespacedName]int{},

		downloaded: map[string]int{},

		references: map[types.NamespacedName]types.NamespacedName{},
	}, nil
}

func (o *Options) applyDefaults() {
	if o.PreparationRetry == 0 {
		o.PreparationRetry = time.Second
	}
	if o.NodePoll == 0 {
		o.NodePoll = 50 * time.Millisecond
	}
	if o.Auth == "" {
		o.Auth = AuthNone
	}
	if o.ImageServiceURL == "" {
		o.ImageServiceURL = "http://127.0.0.1:8888"
	}
	if len(o.OSVersions) == 0 {
		o.OSVersions = []string{"4.14", "4.15", "4.16", "4.17", "4.18", "4.19", "4.20", "4.21", "4.22"}
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.New(log.NullLogSink{})
	}
}

// Scheme knows the kinds that the simulator works with.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, aiv1beta1.AddToScheme, hiveext.AddToScheme, hivev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot build scheme: %w", err)
		}
	}
	return scheme, nil
}

// Start serves downloads and admission, starts the controllers and returns once they work. All of it ends with ctx;
// [Simulator.Wait] waits for that.
func (s *Simulator) Start(ctx context.Context) error {
	if err := s.serve(ctx); err != nil {
		return err
	}
	mgr, err := s.newManager()
	if err != nil {
		return err
	}
	s.live = mgr.GetAPIReader()
	s.client = client.WithFieldOwner(mgr.GetClient(), FieldManager)
	if err := s.addControllers(mgr); err != nil {
		return err
	}
	stopped := make(chan struct{})
	s.running.Go(func() {
		defer close(stopped)
		if err := mgr.Start(ctx); err != nil {
			s.failed = fmt.Errorf("simulator of assisted-service stopped: %w", err)
		}
	})
	select {
	case <-mgr.Elected():
	case <-stopped:
		return errors.Join(s.failed, ctx.Err())
	}
	return s.waitUntilWatching(ctx, mgr)
}

// waitUntilWatching blocks until every controller has its queue, so that no call of a host can be lost.
func (s *Simulator) waitUntilWatching(ctx context.Context, mgr ctrl.Manager) error {
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("cannot watch the API server: %w", ctx.Err())
	}
	for {
		s.mu.Lock()
		ready, changed := s.agentQueue != nil && s.clusterQueue != nil && s.infraEnvQueue != nil, s.changed
		s.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Wait blocks until everything that Start began has ended, and returns why the controllers stopped if it was a failure.
func (s *Simulator) Wait() error {
	s.running.Wait()
	return s.failed
}

func (s *Simulator) newManager() (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(s.config, ctrl.Options{
		Cache:                  cache.Options{DefaultNamespaces: s.opts.Namespaces},
		Scheme:                 scheme,
		Logger:                 s.opts.Logger,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Client:                 client.Options{Cache: &client.CacheOptions{}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create manager: %w", err)
	}
	return mgr, nil
}

// serve opens the two listeners: downloads, and admission (always TLS, as the API server demands).
func (s *Simulator) serve(ctx context.Context) error {
	scheme := "http"
	if s.opts.HTTPS {
		scheme = "https"
	}
	address, err := s.listen(ctx, s.answering(s.downloads()), s.opts.HTTPS)
	if err != nil {
		return err
	}
	s.serviceURL = scheme + "://" + address
	if address, err = s.listen(ctx, s.admission(), true); err != nil {
		return err
	}
	s.webhookURL = "https://" + address
	return nil
}

func (s *Simulator) listen(ctx context.Context, handler http.Handler, secure bool) (string, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot listen: %w", err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		TLSConfig:         s.certs.serverConfig(),
	}
	s.running.Go(func() {
		if secure {
			_ = server.ServeTLS(listener, "", "")
		} else {
			_ = server.Serve(listener)
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return listener.Addr().String(), nil
}

// URL is the base URL of the simulated service. It is known once Start has returned.
func (s *Simulator) URL() string { return s.serviceURL }

// CA is the PEM certificate of the authority that signed the simulator's own certificates.
func (s *Simulator) CA() []byte { return s.certs.caPEM }
