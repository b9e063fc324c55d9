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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedrest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/assistedservice"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// Options of a Lab. The zero value installs as fast as the machine can.
type Options struct {
	// Dir is the folder for logs and kubeconfigs. Default: a new one below _artifacts at the top of the repository.
	Dir string
	// Out gets lines for people: what is built and started. Default: nothing is written.
	Out io.Writer
	// BootDelay is how long hosts boot: see [hosts.Options].
	BootDelay time.Duration
	// StageDelay is how long each state and stage of hosts and clusters lasts at least. Default: none.
	StageDelay time.Duration
	// Heartbeat is how often installed nodes post their status. Default: that of [hosts.Options].
	Heartbeat time.Duration
	// Namespaces are those that the simulators look at; the samples must be applied to them. Default: all.
	Namespaces map[string]cache.Config
	// Backend is what stands for assisted-service. Default: Simulated.
	Backend Backend
	// BareMetal is what stands for the Bare Metal Operator. Default: Simulated. With NoManagers it is never the real one.
	BareMetal Backend
	// HostJitter is how much longer than StageDelay each host takes, at most, for each thing that the Bare Metal
	// Operator has it do; HostSeed says how long: see [hosts.Options].
	HostJitter time.Duration
	HostSeed   uint64
	// Flapping is how long a cluster of the simulated assisted-service that has no hosts stays in each of two states
	// between which it alternates: see [assistedsim.Options]. Default: it stays in one.
	Flapping time.Duration
	// Auth is how assisted-service protects its downloads. Default: not at all.
	Auth assistedsim.AuthType
	// HTTPS lets assisted-service be reached through https alone, under a private certificate authority: see [Lab.CA].
	HTTPS bool
	// CoreTools is the folder below test/tools whose version of Cluster API core runs. Default: [components.DefaultCoreTools].
	CoreTools string
	// NoManagers leaves out what an assisted-service is not made of: Cluster API, CAPM3 and the managers of this repository.
	NoManagers bool
	// NoUpgrades leaves out what upgrades workload clusters, for measurements: see [Cluster.Versions].
	NoUpgrades bool
	// Drain is how long a Node is cordoned before its host is rebooted with another machine configuration. Default:
	// that of [versionoperator.Options].
	Drain time.Duration
	// Core, Metal3, Bootstrap and ControlPlane change how Cluster API core, CAPM3 and the managers of this repository run.
	Core, Metal3, Bootstrap, ControlPlane env.ManagerOptions
	// BeforeRegistry stands before the registry of release images, BeforeDownload before each download of the simulated
	// assisted-service, of which it is told the InfraEnv. Nil: nothing does.
	BeforeRegistry func(http.Handler) http.Handler
	BeforeDownload func(infraEnv types.NamespacedName, next http.Handler) http.Handler
	// LeaveSignals is for a caller that handles interrupts itself and calls Stop.
	LeaveSignals bool
}

// Lab is a running laboratory.
type Lab struct {
	// Env is the management cluster with its managers.
	Env *env.Env
	// Service is the simulated assisted-service, with the faults that it can be given; nil with another backend.
	Service *assistedsim.Simulator
	// Assisted is the real assisted-service, which can be stopped and started; nil with another backend.
	Assisted *assistedservice.Service
	// Rack is the bare metal.
	Rack *hosts.Rack
	// Registry holds the release images, Mirror those of sites without a way to the internet.
	Registry *Registry
	Mirror   *Mirror

	samples string
	options Options
	watched cache.Cache // the management cluster, as far as waits have looked at it
	reports *reports
	front   *front // of the real service
	rest    *assistedrest.Service
	ca      []byte
	logs    []io.Closer
	running sync.WaitGroup
	life    context.Context //nolint:containedctx // The life of what runs in this process; every call has its own besides.
	end     context.CancelFunc

	mu        sync.Mutex
	failure   error
	workloads map[types.NamespacedName]*workload
	reserved  int
	unasked   []hosts.Loss
}

// New starts a laboratory; when it fails, nothing is left running. ctx bounds the start only: the laboratory runs until Stop.
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
	// What the libraries have to say without a logger of their own would disturb the terminal.
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

// watch has kinds watched from the moment on in which a wait first looks at them, and control planes from the start.
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

// recordReports has the conditions of control planes recorded. A laboratory without our providers has none.
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

// log opens a log file beside those of the processes.
func (l *Lab) log(name string) (logr.Logger, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openLog(name)
}

// openLog likewise, for a caller that holds the lock.
func (l *Lab) openLog(name string) (logr.Logger, error) {
	file, err := os.Create(filepath.Join(l.Env.Dir(), name))
	if err != nil {
		return logr.Discard(), fmt.Errorf("cannot open a log: %w", err)
	}
	l.logs = append(l.logs, file)
	return zap.New(zap.WriteTo(file), zap.UseDevMode(false)), nil
}

// Client is an administrator's client of the management cluster, without a cache.
func (l *Lab) Client() client.Client { return l.Env.Client() }

// Dir is the folder of the logs.
func (l *Lab) Dir() string { return l.Env.Dir() }

// Failure is why a part of the laboratory that runs in this process ended by itself; nil while all is well.
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

// Freeze ends everything but etcd and the API servers: what exists stays as it is, and what is written is written by
// nobody but the caller. Managers can be started again. The webhooks of those that are gone are taken out. Members of
// the etcd of workload clusters run on, and nobody forwards a port to them.
func (l *Lab) Freeze(ctx context.Context) error {
	l.end()
	l.running.Wait()
	if l.Service != nil {
		// Its end is what was asked for.
		_ = l.Service.Wait()
	}
	for _, p := range l.clients() {
		p.Stop()
	}
	for _, webhooks := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
		if err := l.Client().DeleteAllOf(ctx, webhooks); err != nil {
			return fmt.Errorf("cannot take the admission webhooks out: %w", err)
		}
	}
	return l.serveStoredVersions(ctx)
}

// serveStoredVersions is for CRDs whose conversion webhook is gone: the API server would try, without end, to fill a
// cache for each version.
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
			return fmt.Errorf("cannot take the conversion out of %s: %w", before.Name, err)
		}
	}
	return nil
}

// While calls act while no process runs but etcd and the API servers, and starts the others again. The simulators go on.
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

// clients are the processes that work on what the API servers have.
func (l *Lab) clients() []*process.Process {
	return slices.DeleteFunc(slices.Clone(l.Env.Group().Processes()), func(p *process.Process) bool { return p.Layer != process.Clients })
}

// Stop ends everything and returns when nothing runs any more. Logs stay. It may be called more than once.
func (l *Lab) Stop() {
	l.end()
	l.running.Wait()
	if l.Service != nil {
		// Its end is what was asked for.
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

// samplesDir is config/samples of the checkout that this program was built from.
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
