// Package assistedsim simulates the Kubernetes API of assisted-service: InfraEnv, Agent, ClusterDeployment and
// AgentClusterInstall. The objects change in the same order and with the same reasons as with the real service,
// pitfalls included; test/journeys compares both. The hosts call it in-process, through [hosts.Service].
//
// The simulation covers all that an API client can see: states, conditions, Secrets, download URLs and the
// discovery ignition. It builds no image and installs no host; hosts report the stages of an installation.
package assistedsim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/token"
)

// FieldManager is the field manager and user agent of all writes of the simulator, as with the real service.
const FieldManager = "assisted-service"

// AuthType is the protection of assisted-service's downloads.
type AuthType string

const (
	// AuthNone leaves every download open; URLs never change.
	AuthNone AuthType = "none"
	// AuthLocal signs download URLs with a token, and again for each regenerated image.
	AuthLocal AuthType = "local"
)

// Options configure a Simulator. The zero value has no delays and no authentication, and serves plain HTTP.
type Options struct {
	// WorkloadKubeconfig returns the administrator's kubeconfig of an installed cluster, named after its
	// ClusterDeployment. The simulator calls it at the start and at the end of an installation. It is required
	// for installations.
	WorkloadKubeconfig func(ctx context.Context, namespace, cdName string) ([]byte, error)
	// StageDelay is the duration of each state of a host or cluster that would otherwise end at once. Default:
	// none.
	StageDelay time.Duration
	// PreparationRetry is the pause between a failed preparation and the next attempt. Default: one second.
	PreparationRetry time.Duration
	// NodePoll is the interval of polls of the Node of a host that joins an installed cluster. Default: 50 ms.
	NodePoll time.Duration
	// Flapping, if not zero, is the period in which a cluster without hosts alternates between insufficient and
	// pending-for-input. The real service does so for clusters with VIPs and a machine network.
	Flapping time.Duration
	// Auth protects the downloads. Default: AuthNone.
	Auth AuthType
	// HTTPS serves the downloads over TLS with a private CA, see [Simulator.CA].
	HTTPS bool
	// BeforeDownload is called before each download with the InfraEnv. It may be nil.
	BeforeDownload func(infraEnv types.NamespacedName, next http.Handler) http.Handler
	// ImageServiceURL is the base of image URLs, at which no server runs. Default: http://127.0.0.1:8888.
	ImageServiceURL string
	// OSVersions are the OpenShift minor versions that have an OS image, oldest first. Default: 4.14 to 4.22.
	OSVersions []string
	// DisabledHostValidations are validations that the service ignores for all clusters (DISABLED_HOST_VALIDATIONS).
	DisabledHostValidations []string
	// Namespaces are the namespaces that the service watches. Default: all.
	Namespaces map[string]cache.Config
	// Logger receives the logs of the simulator's controllers. Default: none.
	Logger logr.Logger
}

// Simulator is an assisted-service for tests. It implements [hosts.Service].
type Simulator struct {
	opts   Options
	config *rest.Config
	client client.Client
	live   client.Reader
	ca     *pki.Authority
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
	// startsBlocked counts, by cluster, the callers that block the start of installations: see [Simulator.Still].
	startsBlocked map[types.NamespacedName]int
	// downloaded counts the downloads by namespace.
	downloaded map[string]int
	// back is closed when a stopped service returns; nil while the service runs.
	back chan struct{}
	// missed counts the requests and reconciles while the service was stopped.
	missed int
	// references are the clusterRefs of InfraEnvs, including those that wait for their cluster.
	references map[types.NamespacedName]types.NamespacedName

	agentQueue, clusterQueue, infraEnvQueue queue

	running sync.WaitGroup
	failed  error
}

var _ hosts.Service = (*Simulator)(nil)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// New returns a simulator for the API server of cfg, which must serve the custom resources of assisted-service
// and Hive.
func New(cfg *rest.Config, opts Options) (*Simulator, error) {
	config := rest.CopyConfig(cfg)
	config.UserAgent = FieldManager
	config.QPS = -1 // priority and fairness of the API server suffices
	opts.applyDefaults()
	ca, err := pki.New("assisted-service simulator")
	if err != nil {
		return nil, err
	}
	tokens, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	return &Simulator{
		opts: opts, config: config, ca: ca, tokens: tokens,
		changed:       make(chan struct{}),
		infraEnvs:     map[types.NamespacedName]*infraEnv{},
		hosts:         map[types.NamespacedName]*host{},
		clusters:      map[types.NamespacedName]*cluster{},
		spokes:        map[types.NamespacedName]spoke{},
		faults:        newFaults(),
		startsBlocked: map[types.NamespacedName]int{},

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

// Scheme returns the scheme of the simulator's kinds.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, addToScheme, hiveext.AddToScheme, hivev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot build scheme: %w", err)
		}
	}
	return scheme, nil
}

// Start serves downloads and admission, starts the controllers and returns once they run. All of them end with
// ctx; [Simulator.Wait] waits for their end.
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

// waitUntilWatching blocks until every controller has its queue, so that no request of a host is lost.
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

// Wait blocks until all goroutines of Start have ended. It returns the error of the controllers, if any.
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

// serve opens the listeners of the downloads and of the admission webhooks. Webhooks always use TLS, which the
// API server requires.
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
	certificate, err := s.ca.ServerCertificate()
	if err != nil {
		return "", err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot listen: %w", err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
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

// URL returns the base URL of the simulated service. It is set once Start has returned.
func (s *Simulator) URL() string { return s.serviceURL }

// CA returns the PEM certificate of the CA that signed the simulator's certificates.
func (s *Simulator) CA() []byte { return s.ca.PEM() }
