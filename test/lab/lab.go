package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedrest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/assistedservice"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// Options of a Lab. The zero value has no delays.
type Options struct {
	// Dir is the folder for logs and kubeconfigs. Default: a new folder in _artifacts at the top of the
	// repository.
	Dir string
	// Out gets messages for people about what is built and started. Default: none.
	Out io.Writer
	// BootDelay is the boot time of hosts: see [hosts.Options].
	BootDelay time.Duration
	// StageDelay is the minimum duration of each state and stage of hosts and clusters. Default: none.
	StageDelay time.Duration
	// Heartbeat is the interval of status updates of installed Nodes. Default: that of [hosts.Options].
	Heartbeat time.Duration
	// Namespaces are the namespaces that the simulators watch; samples must be applied to them. Default: all.
	Namespaces map[string]cache.Config
	// Backend selects the real or the simulated assisted-service. Default: Simulated.
	Backend Backend
	// BareMetal selects the real or the simulated Bare Metal Operator. Default: Simulated. NoManagers implies
	// Simulated.
	BareMetal Backend
	// HostJitter is the maximum that a host adds to StageDelay for each operation of the Bare Metal Operator.
	// HostSeed determines the amounts: see [hosts.Options].
	HostJitter time.Duration
	HostSeed   uint64
	// Flapping is the time after which a cluster without hosts in the simulated assisted-service changes its
	// state: see [assistedsim.Options]. Default: no changes.
	Flapping time.Duration
	// Auth is the protection of assisted-service's downloads. Default: none.
	Auth assistedsim.AuthType
	// HTTPS makes assisted-service reachable only with HTTPS, under a private CA: see [Lab.CA].
	HTTPS bool
	// CoreTools is the folder of test/tools with the version of Cluster API core. Default:
	// [components.DefaultCoreTools].
	CoreTools string
	// NoManagers leaves out all but assisted-service: no Cluster API, no CAPM3, no managers of this repository.
	NoManagers bool
	// NoUpgrades leaves out the simulated version operator of workload clusters, for measurements: see
	// [Cluster.Versions].
	NoUpgrades bool
	// Drain is the time between the cordon of a Node and the reboot of its host for another machine
	// configuration. Default: that of [versionoperator.Options].
	Drain time.Duration
	// Core, Metal3, Bootstrap and ControlPlane configure the processes of Cluster API core, CAPM3 and the
	// managers of this repository.
	Core, Metal3, Bootstrap, ControlPlane env.ManagerOptions
	// BeforeRegistry is middleware of the registry of release images. BeforeDownload is called before each
	// download of the simulated assisted-service, with the InfraEnv. Both may be nil.
	BeforeRegistry func(http.Handler) http.Handler
	BeforeDownload func(infraEnv types.NamespacedName, next http.Handler) http.Handler
	// AllClusters also simulates clusters that a user applies to the management cluster, with the user's BareMetalHosts.
	// Without it, such a cluster waits for the end of its preparation. Only for the simulated assisted-service.
	AllClusters bool
	// LeaveSignals is for a caller that handles interrupts itself and calls Stop.
	LeaveSignals bool
}

// Lab is a running lab.
type Lab struct {
	// Env is the management cluster with its managers.
	Env *env.Env
	// Service is the simulated assisted-service and its faults; nil with the real one.
	Service *assistedsim.Simulator
	// Assisted is the real assisted-service, which can be stopped and started; nil with the simulated one.
	Assisted *assistedservice.Service
	// Rack has the simulated machines.
	Rack *hosts.Rack
	// Registry has the release images; Mirror has those for sites without internet access.
	Registry *Registry
	Mirror   *Mirror

	samples string
	options Options
	watched cache.Cache // cache of the management cluster
	reports *reports
	front   *front // of the real service
	rest    *assistedrest.Service
	ca      []byte
	logs    []io.Closer
	running sync.WaitGroup
	life    context.Context //nolint:containedctx // It ends all that runs in this process. Each call has its own context too.
	end     context.CancelFunc

	mu          sync.Mutex
	failure     error
	workloads   map[types.NamespacedName]*workload
	reserved    int
	unrequested []hosts.Loss
}

// New starts a lab. If it fails, no process keeps running. ctx bounds only the start: the lab runs until Stop.
func New(ctx context.Context, options Options) (*Lab, error) {
	samples, err := samplesDir()
	if err != nil {
		return nil, err
	}
	l := &Lab{samples: samples, options: options, reports: newReports(), workloads: map[types.NamespacedName]*workload{}}
	l.life, l.end = context.WithCancel(context.Background())
	if err := l.start(ctx, options); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context, options Options) error {
	var err error
	if l.Registry, err = startRegistry(l.life, options.BeforeRegistry); err != nil {
		return err
	}
	if l.Mirror, err = startMirror(l.life); err != nil {
		return err
	}
	controlPlane := options.ControlPlane
	controlPlane.ExtraArgs = slices.Concat([]string{
		"--ocp-release-repository=" + l.Registry.OCPRepository(),
		"--okd-release-repository=" + l.Registry.OKDRepository(),
	}, controlPlane.ExtraArgs)
	machines, err := l.listenForOperator(ctx, options)
	if err != nil {
		return err
	}
	l.Env, err = env.Start(ctx, env.Options{
		Dir: options.Dir, Out: options.Out, LeaveSignals: options.LeaveSignals,
		CoreTools: options.CoreTools, NoManagers: options.NoManagers, Core: options.Core, Metal3: options.Metal3,
		BareMetal: machines.operator(), Bootstrap: options.Bootstrap, ControlPlane: controlPlane,
	})
	if err != nil {
		return err
	}
	logger, err := l.log("hosts.log")
	if err != nil {
		return err
	}
	// Logs of libraries without their own logger would disturb the terminal.
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := l.watch(); err != nil {
		return err
	}
	service, err := l.startService(ctx, options)
	if err != nil {
		return err
	}
	if err := l.publishSamples(); err != nil {
		return err
	}
	if err := l.startRack(options, service, logger); err != nil {
		return err
	}
	machines.serve(l.life, l.Rack)
	return nil
}

// watch starts a cache that watches a kind from its first read on, and control planes from the start.
func (l *Lab) watch() error {
	var err error
	if l.watched, err = cache.New(l.Env.Config(), cache.Options{Scheme: l.Env.Scheme()}); err != nil {
		return fmt.Errorf("cannot watch the management cluster: %w", err)
	}
	if err := l.recordReports(); err != nil {
		return err
	}
	l.running.Go(func() {
		if err := l.watched.Start(l.life); err != nil {
			l.fail(err)
		}
	})
	return nil
}

// recordReports records the conditions of control planes. A lab without our providers has no control planes.
func (l *Lab) recordReports() error {
	controlPlanes, err := l.watched.GetInformer(l.life, &controlplanev1.OpenshiftAssistedControlPlane{}, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot watch control planes: %w", err)
	}
	if _, err := controlPlanes.AddEventHandler(l.reports.handler()); err != nil {
		return fmt.Errorf("cannot watch control planes: %w", err)
	}
	return nil
}

func (l *Lab) startRack(options Options, service hosts.Service, logger logr.Logger) error {
	var err error
	l.Rack, err = hosts.New(l.Env.Config(), hosts.Options{
		Service:     service,
		Workload:    l.workloadClient,
		WorkloadAs:  l.workloadClientAs,
		Version:     l.Registry.Version,
		Pull:        l.pull,
		Site:        l.site,
		Lost:        l.judge,
		BootDelay:   options.BootDelay,
		StageDelay:  options.StageDelay,
		StateDelay:  options.StageDelay,
		StateJitter: options.HostJitter, Seed: options.HostSeed, RealOperator: options.BareMetal == Real,
		Heartbeat:  options.Heartbeat,
		Namespaces: options.Namespaces,
		Log:        logger,
	})
	if err != nil {
		return err
	}
	l.running.Go(func() {
		if err := l.Rack.Start(l.life); err != nil {
			l.fail(err)
		}
	})
	return nil
}

// log opens a log file in the folder of the logs.
func (l *Lab) log(name string) (logr.Logger, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openLog(name)
}

// openLog is log for callers that hold the lock.
func (l *Lab) openLog(name string) (logr.Logger, error) {
	file, err := os.Create(filepath.Join(l.Env.Dir(), name))
	if err != nil {
		return logr.Discard(), fmt.Errorf("cannot open a log: %w", err)
	}
	l.logs = append(l.logs, file)
	return zap.New(zap.WriteTo(file), zap.UseDevMode(false)), nil
}

// Client returns an administrator's client of the management cluster, without a cache.
func (l *Lab) Client() client.Client { return l.Env.Client() }

// Dir returns the folder of the logs.
func (l *Lab) Dir() string { return l.Env.Dir() }

// Failure returns the error with which a simulator in this process ended, or nil.
func (l *Lab) Failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

func (l *Lab) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = errors.Join(l.failure, err)
}

// Freeze stops all processes except etcd and the API servers, so that only the caller writes objects. It
// removes the webhooks of the stopped managers. Managers can be started again. The etcd members of workload
// clusters keep running, without port-forwards.
func (l *Lab) Freeze(ctx context.Context) error {
	l.end()
	l.running.Wait()
	if l.Service != nil {
		// The end is intended.
		_ = l.Service.Wait()
	}
	for _, p := range l.clients() {
		p.Stop()
	}
	for _, webhooks := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
		if err := l.Client().DeleteAllOf(ctx, webhooks); err != nil {
			return fmt.Errorf("cannot delete the admission webhooks: %w", err)
		}
	}
	return l.serveStoredVersions(ctx)
}

// serveStoredVersions limits CRDs without running conversion webhook to their stored version. Otherwise the API
// server would retry without end to fill a cache for each version.
func (l *Lab) serveStoredVersions(ctx context.Context) error {
	definitions := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := l.Client().List(ctx, definitions); err != nil {
		return fmt.Errorf("cannot list the CRDs: %w", err)
	}
	for i := range definitions.Items {
		before := &definitions.Items[i]
		if before.Spec.Conversion == nil || before.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
			continue
		}
		after := before.DeepCopy()
		after.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		for v := range after.Spec.Versions {
			version := &after.Spec.Versions[v]
			version.Served = version.Served && version.Storage
		}
		if err := l.Client().Patch(ctx, after, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("cannot remove the conversion of %s: %w", before.Name, err)
		}
	}
	return nil
}

// While calls act while only etcd, the API servers and the simulators run, and then starts the other processes
// again.
func (l *Lab) While(ctx context.Context, act func() error) error {
	for _, p := range l.clients() {
		p.Stop()
	}
	if err := act(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range l.clients() {
		group.Go(func() error { return p.Start(ctx) })
	}
	return group.Wait()
}

// clients returns the processes that are clients of the API server.
func (l *Lab) clients() []*process.Process {
	return slices.DeleteFunc(slices.Clone(l.Env.Group().Processes()), func(p *process.Process) bool { return p.Layer != process.Clients })
}

// Stop stops all processes and returns when they have ended. Logs stay. It may be called more than once.
func (l *Lab) Stop() {
	l.end()
	l.running.Wait()
	if l.Service != nil {
		// The end is intended.
		_ = l.Service.Wait()
	}
	if l.Env != nil {
		l.Env.Stop()
	}
	for _, w := range l.workloads {
		w.end()
	}
	for _, log := range l.logs {
		_ = log.Close()
	}
	l.logs = nil
}

// samplesDir returns config/samples of the checkout that this program was built from.
func samplesDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("cannot find the samples: the program was built without file names")
	}
	dir := filepath.Join(filepath.Dir(file), "..", "..", "config", "samples")
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("cannot find the samples: %w", err)
	}
	return dir, nil
}
