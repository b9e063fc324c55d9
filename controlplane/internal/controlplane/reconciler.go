// Package controlplane reconciles OpenshiftAssistedControlPlanes: it installs a cluster through assisted-service and
// maintains its control plane.
package controlplane

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/attempt"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/clusterversion"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdremoval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installation"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubeconfig"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubelets"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/machines"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/move"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/prerequisites"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/refresh"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/releaseimage"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

const (
	// rememberedClusters is more than the clusters of one hub.
	rememberedClusters = 8192

	// wakeUps is the number of finished lookups that may wait for a reconcile.
	wakeUps = 1024
)

// The rights of a manager in the namespaces that it watches. main.go has the rights for kinds without namespace. A manager
// that watches a single namespace has these rights in this namespace only (config/controlplane/namespaced).
//
// OpenShift hubs have the admission plugin OwnerReferencesPermissionEnforcement. It requires the verb delete for a change
// of the owner references of an existing object. Therefore the manager has this verb for kinds that it does not delete:
// OpenshiftAssistedConfigs, infrastructure templates and MachineDrainRules. The plugin also requires the verb update for the
// finalizers of an owner whose deletion a new object blocks. For Secrets, config/controlplane/openshift-hub.yaml adds the
// verb.
//
// Our own objects:
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes/status,verbs=patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes/finalizers,verbs=update
//
// The cluster, its workers, and the control-plane Machines, whose status gets conditions:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments;machinesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedrainrules,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,verbs=get;list;watch;create;patch;delete
//
// Two annotations of a MachineDeployment with the capacity for the cluster autoscaler, and the hosts with this capacity.
// RBAC cannot restrict the write to annotations. The hosts are read only if a MachineDeployment requests its capacity:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments,verbs=patch
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts;hardwaredata,verbs=get;list;watch
//
// Infrastructure machines and their templates of any provider: without the right to read a kind, the cache would wait for
// ever. RBAC cannot express "all kinds without their subresources". The subresources status and scale of a custom resource
// show nothing that the object does not contain. The manager writes the kinds of Metal3. A user who installs another provider
// adds its kinds to an aggregated ClusterRole (config/controlplane/rbac/infrastructure_role.yaml):
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=create;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machinetemplates,verbs=patch;delete
//
// The installation:
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=get;list;watch
//
// Secrets: kubeconfigs, which have the names of Clusters, and pull secrets, which users name. The manager watches only
// metadata, and reads the content of single Secrets:
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
//
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Workloads observes installed clusters.
type Workloads interface {
	Observe(cluster client.ObjectKey) workload.State
	kubeconfig.Workloads
	kubelets.Watcher
	clusterversion.Watcher
	installation.Identifier
	Forget(cluster client.ObjectKey)
}

// Etcds reads the etcd of workload clusters, and changes its members.
type Etcds interface {
	etcdgate.Observer
	etcdremoval.Etcds
}

// Options are what a Reconciler needs.
type Options struct {
	// Client reads all kinds but Secrets and ConfigMaps from caches.
	Client client.Client
	// Metadata reads the metadata of Secrets and ConfigMaps from the cache. Client would read them from the API server.
	Metadata client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Releases resolves the digests of release images, Repositories names their repositories.
	Releases     *release.Resolver
	Repositories versions.Repositories
	// Names queries the DNS of the hub.
	Names     prerequisites.Names
	Workloads Workloads
	Etcds     Etcds
	Kubelets  kubelets.Requests
	Versions  clusterversion.Requests
	Recorder  record.EventRecorder
	// Clock is nil for the time of the system.
	Clock clock.Clock
	// Selected reports whether this manager reconciles an object.
	Selected func(client.Object) bool
}

// Reconciler reconciles OpenshiftAssistedControlPlanes.
type Reconciler struct {
	Options

	writer     *writer.Writer
	images     *releaseimage.Resolver
	registrar  *installation.Registrar
	retrier    *installation.Retrier
	metadata   *installation.MetadataWriter
	refresher  *refresh.Refresher
	preflight  *prerequisites.Preflight
	kubeconfig *kubeconfig.Publisher
	// deferred records since when the status of a control plane differs from the stored status in words alone, by UID.
	deferred *reconcile.StatusLimiter[types.UID]
	// missing records since when Machines of a MachineDeployment or MachineSet are missing, by UID of the owner.
	missing *reconcile.StartTimes[types.UID]
	// gate decides when etcd, which cannot be watched, is inspected.
	gate       *etcdgate.Gate
	kubelets   *kubelets.Approver
	upgrader   *clusterversion.Upgrader
	hooks      *etcdremoval.Hooks
	removal    *etcdremoval.Remover
	creator    *machines.Creator
	updater    *machines.Updater
	deleter    *machines.Deleter
	remediator *machines.Remediator
	conditions *machines.ConditionWriter
	move       *move.Blocker
	// retries is the rate limiter of requests that failed.
	retries *retries
	// wake reconciles control planes whose release image or DNS name was resolved.
	wake chan event.GenericEvent
	// progress logs the changes of the status.
	progress reconcile.ProgressLog
	// started is the start of this process.
	started time.Time
	// trackReboots watches the kind of a reboot, so that its phase triggers a reconcile of the control plane.
	trackReboots func(reboot client.Object) error
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	options.Recorder = reconcile.LogEvents(options.Recorder, ctrl.Log.WithName("events"))
	r := &Reconciler{
		Options:      options,
		retries:      newRetries(),
		wake:         make(chan event.GenericEvent, wakeUps),
		progress:     reconcile.NewProgressLog(ctrl.Log.WithName("progress")),
		started:      options.Clock.Now(),
		trackReboots: func(client.Object) error { return nil },
	}
	r.writer = writer.New(options.Client, options.Live, options.Clock)
	r.images = releaseimage.NewResolver(options.Live, r.writer, options.Releases, options.Repositories, r.waker)
	r.preflight = prerequisites.NewPreflight(options.Client, options.Names, r.images, r.waker)
	r.kubeconfig = kubeconfig.New(options.Live, options.Workloads, r.writer, options.Clock)
	r.registrar = installation.NewRegistrar(
		options.Client, options.Live, options.Workloads, r.images, r.kubeconfig, r.writer, options.Clock,
	)
	r.retrier = installation.NewRetrier(options.Client, r.registrar, r.writer, options.Clock)
	r.metadata = installation.NewMetadataWriter(options.Client, r.writer, options.Clock)
	r.refresher = refresh.NewRefresher(options.Client, options.Clock)
	r.kubelets = kubelets.NewApprover(options.Live, options.Kubelets, options.Workloads, r.writer, options.Clock)
	r.deferred = reconcile.NewStatusLimiter[types.UID](r.Clock)
	r.missing = reconcile.NewStartTimes[types.UID](r.Clock)
	r.gate = etcdgate.New(options.Etcds, options.Clock)
	r.upgrader = clusterversion.NewUpgrader(
		options.Client, options.Versions, options.Workloads, r.images, r.gate, r.writer, options.Clock,
	)
	r.move = move.NewBlocker(r.writer)
	r.hooks = etcdremoval.NewHooks(options.Client, r.writer, options.Clock)
	r.removal = etcdremoval.NewRemover(options.Etcds, r.gate, r.hooks, r.writer, options.Clock)
	r.creator = machines.NewCreator(options.Client, r.gate, r.writer, options.Clock)
	r.updater = machines.NewUpdater(options.Client, r.writer)
	r.deleter = machines.NewDeleter(options.Client, options.Live, r.gate, r.writer)
	r.conditions = machines.NewConditionWriter(options.Client, r.gate, r.writer, options.Clock)
	r.remediator = machines.NewRemediator(options.Client, options.Live, r.gate, r.conditions, r.writer, options.Clock)
	return r
}

// waker returns a function that reconciles the control plane again.
func (r *Reconciler) waker(s *scope.Scope) func() {
	wanted := event.GenericEvent{Object: s.ControlPlane}
	return func() { r.wake <- wanted }
}

// Reconcile runs the phases of one control plane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, reterr error) {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, cp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.Selected(cp) {
		return ctrl.Result{}, nil
	}
	if left := r.writer.Recent.Pending(reconcile.Key("", cp), cp.ResourceVersion); left > 0 {
		// The cache does not show the last write yet. Its event triggers the next reconcile.
		return reconcile.ResultAfter(left), nil
	}
	s, err := r.gather(ctx, cp)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.Moved() {
		return ctrl.Result{}, r.release(ctx, s)
	}
	failure := reconcile.ErrPanicked
	defer func() {
		reterr = errors.Join(reterr, r.report(ctx, s, failure))
		result = reconcile.ResultAfter(s.Again.Delay())
		if reterr != nil {
			r.retries.want(req, result.RequeueAfter)
		}
	}()
	failure = r.advance(ctx, s)
	return ctrl.Result{}, failure
}

// advance runs the phases.
func (r *Reconciler) advance(ctx context.Context, s *scope.Scope) error {
	switch {
	case s.Paused():
		return nil
	case s.Deleting():
		// A hold that fails, as without the admission webhook of assisted-service, must not block the deletion.
		return errors.Join(reconcile.Run(ctx, s, r.registrar.BlockInstallation), r.delete(ctx, s))
	case attempt.GivesUp(s.Facts) && !s.Installed():
		return r.retrier.GiveUp(ctx, s)
	}
	proceed, err := r.retrier.Retry(ctx, s)
	if !proceed {
		return err
	}
	// An installed cluster is maintained even if the registration is blocked.
	return errors.Join(
		err,
		reconcile.Run(ctx, s, r.removal.FindStuck),
		// Before the registration, which sets propagated metadata only when it creates an object.
		reconcile.Run(ctx, s, r.metadata.Propagate),
		reconcile.Run(
			ctx, s, r.addFinalizer, r.registrar.AwaitDeletion, prerequisites.Requirements, r.creator.ReadTemplates, r.images.EnsurePullSecret,
			r.images.Resolve, r.images.CheckKubernetes, prerequisites.Infrastructure, r.registrar.Register, r.creator.CreateMissing,
		),
		reconcile.Run(ctx, s, r.registrar.BlockForKubernetes),
		reconcile.Run(ctx, s, r.registrar.BlockForForeignAgents),
		reconcile.Run(ctx, s, r.preflight.Check),
		reconcile.Run(ctx, s, r.hooks.AddLateHooks),
		reconcile.Run(ctx, s, r.updater.Sync),
		reconcile.Run(ctx, s, r.hooks.ExcludeGuards),
		reconcile.Run(ctx, s, r.hooks.Protect),
		reconcile.Run(ctx, s, r.remediator.Remediate),
		reconcile.Run(ctx, s, r.move.Block, r.removal.CleanUp, r.removal.Release),
		reconcile.Run(ctx, s, r.creator.ScaleUp, r.deleter.ScaleDown),
		reconcile.Run(ctx, s, r.upgrader.ResumePools),
		reconcile.Run(ctx, s, r.upgrader.Upgrade),
		reconcile.Run(ctx, s, r.upgrader.FollowWorkers),
		reconcile.Run(ctx, s, r.kubelets.Approve),
		reconcile.Run(ctx, s, r.metadata.Publish),
		reconcile.Run(ctx, s, r.removal.ReportStray),
		reconcile.Run(ctx, s, r.removal.ReportStuck),
		reconcile.Run(ctx, s, r.metadata.MarkInstalled, r.registrar.DropImageSets),
		reconcile.Run(ctx, s, r.kubeconfig.Publish, r.kubeconfig.TrustAuthorities, r.updater.Touch, r.kubeconfig.KeepCredentials, r.move.Allow),
		reconcile.Run(ctx, s, r.kubeconfig.Renew),
		reconcile.Run(ctx, s, r.kubeconfig.Propagate),
		reconcile.Run(ctx, s, r.refresher.Refresh),
		reconcile.Run(ctx, s, r.conditions.MarkUpToDate),
		reconcile.Run(ctx, s, r.conditions.MarkEtcdMembers),
	)
}

// delete runs the phases of a deletion.
func (r *Reconciler) delete(ctx context.Context, s *scope.Scope) error {
	return reconcile.Run(
		ctx, s, r.removal.Release, r.deleter.AwaitWorkers, r.deleter.DeleteAll, r.metadata.Relabel, r.registrar.Deregister,
		r.registrar.DeleteImageSets, r.confirmDeleted, r.removeFinalizer,
	)
}
