package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// BootTime is an [Options.BootDelay] for hosts that move from one Machine to another. A host that registers
// while its former Agent is being deleted is lost for ever, though assisted-service still answers it. The source
// is CreateAgentCR in crd_utils.go, which updates the deleted Agent. That deletion takes a second on a busy
// machine. Servers boot for minutes.
const BootTime = 5 * time.Second

// Options of a Rack.
type Options struct {
	// Service is the assisted-service with which booted hosts register. Required.
	Service Service
	// Workload returns a client of the API of a workload cluster, given by namespace and name of its
	// ClusterDeployment. It is called when a host needs the API, and again (with back-off) after an error.
	// [ErrClusterDeleted] ends attempts that would not end otherwise. Required.
	Workload func(ctx context.Context, namespace, clusterName string) (client.Client, error)
	// WorkloadAs returns a client that acts as another user: a host that joins an installed cluster requests its
	// certificates under its own identities. Required for day-2 hosts.
	WorkloadAs func(ctx context.Context, namespace, clusterName string, user rest.ImpersonationConfig) (client.Client, error)
	// Cluster returns the configuration of a workload cluster. Nil: it is read from the cluster's
	// AgentClusterInstall and ClusterImageSet, and no release has kubelet drop-ins.
	Cluster func(ctx context.Context, namespace, clusterName string) (Cluster, error)
	// Version returns the OpenShift version of a release image whose name does not contain it, such as an image
	// with a digest; empty: unknown. Nil: none is known. It is not used if Cluster is set.
	Version func(releaseImage string) string
	// Pull returns an error if a host cannot pull an image, for example because no mirror has it. Nil: every
	// host can pull every image.
	Pull func(ctx context.Context, pull Pull) error
	// Site returns the site where the nodes of a workload cluster run static pods and serve as kubelets; nil:
	// its Nodes are only objects. A nil function has the same effect for all clusters.
	Site func(namespace, clusterName string) Site
	// BootDelay is how long a host takes from its discovery image to its registration. 0: no time, unlike any
	// server.
	BootDelay time.Duration
	// StageDelay is how long a host stays in each installation stage; 0: no longer than necessary.
	StageDelay time.Duration
	// StateDelay is how long a BareMetalHost stays in registering, inspecting, preparing, provisioning and
	// deprovisioning; 0: no longer than necessary.
	StateDelay time.Duration
	// StateJitter is the longest addition to StateDelay. The addition differs by host and attempt, and follows
	// from Seed. Default: 0.
	StateJitter time.Duration
	Seed        uint64
	// RealOperator is true if the Bare Metal Operator itself manages the BareMetalHosts, and runs tasks on the
	// machines through [Rack.ServeHTTP].
	RealOperator bool
	// Heartbeat is how often a node posts its status. Default: 15 s.
	Heartbeat time.Duration
	// Lost is called for each installed node that lost its disk, before anything else happens to the host. Nil:
	// it is not called.
	Lost func(ctx context.Context, loss Loss)
	// Namespaces are the namespaces whose BareMetalHosts are managed. Default: all.
	Namespaces map[string]cache.Config
	// Log is the log of the operator and the hosts. The zero value discards it.
	Log logr.Logger
}

// Rack manages the hosts and runs the Bare Metal Operator on them.
type Rack struct {
	options Options
	manager ctrl.Manager
	client  client.Client
	// reader reads without a cache: Secrets and installation objects need no watch.
	reader client.Reader
	log    logr.Logger

	ctx    context.Context //nolint:containedctx // The hosts outlast the calls that start them.
	cancel context.CancelCauseFunc
	runs   sync.WaitGroup
	pokes  chan event.TypedGenericEvent[*metal3api.BareMetalHost]

	mu       sync.Mutex
	hosts    map[string]*Host
	spare    map[string]spare
	prepared map[string]func(*Host)
	clusters map[types.NamespacedName]*cluster
	leases   int
}

// spare is hardware that a test set before its BareMetalHost was seen.
type spare struct{ boots, reported *Hardware }

var errStopped = errors.New("the rack is stopped")

// New creates a Rack for the BareMetalHosts of the API server of cfg. Start runs it.
func New(cfg *rest.Config, options Options) (*Rack, error) {
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  newScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger:  orDiscard(options.Log),
		Cache:   cache.Options{DefaultNamespaces: options.Namespaces},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager of the hosts: %w", err)
	}
	rack := newRack(manager.GetClient(), manager.GetAPIReader(), options)
	rack.manager = manager
	if options.RealOperator {
		return rack, nil
	}
	if err := newOperator(rack).setUp(manager); err != nil {
		return nil, fmt.Errorf("cannot set up the Bare Metal Operator: %w", err)
	}
	return rack, nil
}

func newRack(c client.Client, reader client.Reader, options Options) *Rack {
	ctx, cancel := context.WithCancelCause(context.Background())
	rack := &Rack{
		options: options, client: c, reader: reader, log: orDiscard(options.Log), ctx: ctx, cancel: cancel,
		pokes:    make(chan event.TypedGenericEvent[*metal3api.BareMetalHost]),
		hosts:    map[string]*Host{},
		spare:    map[string]spare{},
		prepared: map[string]func(*Host){},
		clusters: map[types.NamespacedName]*cluster{},
	}
	rack.options.Heartbeat = cmp.Or(options.Heartbeat, defaultHeartbeat)
	if rack.options.Cluster == nil {
		rack.options.Cluster = rack.clusterFromHub
	}
	return rack
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(metal3api.AddToScheme(scheme))
	utilruntime.Must(hivev1.AddToScheme(scheme))
	utilruntime.Must(hiveext.AddToScheme(scheme))
	return scheme
}

func orDiscard(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return logr.Discard()
	}
	return log
}

// Start runs the operator and the hosts until ctx ends, then switches every host off and returns. A Rack starts once.
func (r *Rack) Start(ctx context.Context) error {
	defer r.stop()
	if err := r.manager.Start(ctx); err != nil {
		return fmt.Errorf("the Bare Metal Operator ended: %w", err)
	}
	return nil
}

// stop ends the hosts and waits for them.
func (r *Rack) stop() {
	r.cancel(errStopped)
	r.runs.Wait()
}

// Host returns the host with a name: that of its BareMetalHost, or of the hardware of an unmanaged host. If
// several namespaces have the name, use namespace/name. Nil: no such host was seen yet.
func (r *Rack) Host(name string) *Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	if host, ok := r.hosts[name]; ok {
		return host
	}
	for _, key := range slices.Sorted(maps.Keys(r.hosts)) {
		if strings.HasSuffix(key, "/"+name) {
			return r.hosts[key]
		}
	}
	return nil
}

// HostOf returns the host that registered a Node of a workload cluster; nil if none did.
func (r *Rack) HostOf(namespace, clusterName, node string) *Host {
	for _, host := range r.Hosts() {
		if host.hasNode(types.NamespacedName{Namespace: namespace, Name: clusterName}, node) {
			return host
		}
	}
	return nil
}

// Hosts returns all hosts that were seen, ordered by name.
func (r *Rack) Hosts() []*Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Host, 0, len(r.hosts))
	for _, key := range slices.Sorted(maps.Keys(r.hosts)) {
		all = append(all, r.hosts[key])
	}
	return all
}

// Escaped returns a line for each boot of a system other than a discovery system or the installed node.
func (r *Rack) Escaped() []string {
	var lines []string
	for _, host := range r.Hosts() {
		for _, boot := range host.Boots() {
			if boot.System == Unknown {
				lines = append(lines, fmt.Sprintf("%s booted %s", host.Name(), boot.Source))
			}
		}
	}
	return lines
}

// SetHardware sets the hardware of the BareMetalHost namespace/name, for its inspection too. It takes effect at
// the next boot and inspection.
func (r *Rack) SetHardware(key string, hardware Hardware) {
	r.putHardware(key, spare{boots: &hardware, reported: &hardware})
}

// SwapHardware swaps the machine of the BareMetalHost namespace/name, except for its inspection: from the next
// boot on, another machine boots than the reported one.
func (r *Rack) SwapHardware(key string, hardware Hardware) {
	r.putHardware(key, spare{boots: &hardware})
}

func (r *Rack) putHardware(key string, s spare) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if host, ok := r.hosts[key]; ok {
		host.replaceHardware(s)
		return
	}
	if s.reported == nil {
		s.reported = r.spare[key].reported
	}
	r.spare[key] = s
}

// Prepare runs prepare on the host of the BareMetalHost namespace/name before the Bare Metal Operator does
// anything with it. A fault that is set later may be too late. The BareMetalHost must not exist yet.
func (r *Rack) Prepare(key string, prepare func(*Host)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prepared[key] = prepare
}

// HandOver moves the machines of a namespace to another rack, whose hub gets their BareMetalHosts.
func (r *Rack) HandOver(to *Rack, namespace string) {
	moved := map[string]*Host{}
	r.mu.Lock()
	for key, host := range r.hosts {
		if host.key.Namespace == namespace {
			moved[key] = host
			delete(r.hosts, key)
		}
	}
	r.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	maps.Copy(to.hosts, moved)
}

// BootUnmanaged switches on a machine without a BareMetalHost and boots the discovery image of an InfraEnv. The
// image is given by the URL of its ISO, or by the id of the InfraEnv if no token is needed.
func (r *Rack) BootUnmanaged(infraEnv string, hardware Hardware) (*Host, error) {
	id, token := infraEnv, ""
	if strings.Contains(infraEnv, "://") {
		var err error
		if id, token, err = infraEnvOfISO(infraEnv); err != nil {
			return nil, fmt.Errorf("cannot boot %s: %w", hardware.Name, err)
		}
	}
	host := r.Server(hardware)
	host.provision(liveISO(id, token))
	return host, nil
}

// hostOf returns the host behind a BareMetalHost.
func (r *Rack) hostOf(bmh *metal3api.BareMetalHost) (*Host, error) {
	key := bmh.Namespace + "/" + bmh.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	if host, ok := r.hosts[key]; ok {
		return host, nil
	}
	hardware, err := HardwareOf(bmh)
	if err != nil {
		return nil, err
	}
	networks, err := networksOf(bmh)
	if err != nil {
		return nil, err
	}
	host := r.newHost(key, hardware, networks)
	if s, ok := r.spare[key]; ok {
		host.replaceHardware(s)
		delete(r.spare, key)
	}
	if prepare, ok := r.prepared[key]; ok {
		prepare(host)
		delete(r.prepared, key)
	}
	host.key = client.ObjectKeyFromObject(bmh)
	return host, nil
}

// newHost adds a host whose first NIC is in the networks; the caller holds the lock.
func (r *Rack) newHost(name string, hardware Hardware, networks []string) *Host {
	host := &Host{
		rack: r, name: name, log: r.log.WithValues("host", name), faults: map[models.HostStage]string{},
		lingers: map[models.HostStage]chan struct{}{}, tasks: map[Task]progress{},
	}
	r.leases++
	for _, network := range networks {
		host.leased = append(host.leased, lease(network, r.leases-1))
	}
	host.replaceHardware(spare{boots: &hardware, reported: &hardware})
	r.hosts[name] = host
	return host
}

// clusterOf returns the cluster of an instruction.
func (r *Rack) clusterOf(instruction Instruction) *cluster {
	key := types.NamespacedName{Namespace: instruction.ClusterNamespace, Name: instruction.ClusterName}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.clusters[key]; !ok {
		r.clusters[key] = newCluster(key)
	}
	return r.clusters[key]
}

// poke triggers a reconcile of a BareMetalHost whose host changed without the operator. The real operator polls
// every minute.
func (r *Rack) poke(key types.NamespacedName) {
	if key.Name == "" || r.options.RealOperator {
		return
	}
	bmh := &metal3api.BareMetalHost{}
	bmh.Namespace, bmh.Name = key.Namespace, key.Name
	r.runs.Go(func() {
		select {
		case r.pokes <- event.TypedGenericEvent[*metal3api.BareMetalHost]{Object: bmh}:
		case <-r.ctx.Done():
		}
	})
}
