// Package hostconfig reconciles OpenshiftAssistedConfigs. It takes the host of one Machine from its discovery to
// the end of its installation.
package hostconfig

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/controllers/external"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/binding"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootdata"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/claims"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/deletion"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/fencing"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/gather"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/identification"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/infraenv"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/prerequisites"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/protection"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/refresh"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// The rights of a manager in the namespaces that it watches. main.go has the rights on kinds without namespace. A
// manager that watches a single namespace has these rights in that namespace only (config/bootstrap/namespaced).
//
// Our own objects. The admission plugin OwnerReferencesPermissionEnforcement, which OpenShift hubs have, requires
// finalizers/update. The requirement concerns clients that create an object that blocks the deletion of its owner,
// as the bootstrap data Secret does:
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs/finalizers,verbs=update
//
// The Machine and the Cluster of a config:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
//
// The annotation that protects a Machine from MachineHealthChecks while its host is being installed:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=patch
//
// The infrastructure machine of any provider: without the right to read its kind, the cache would wait forever.
// RBAC cannot express "all kinds without their subresources". The subresources of a custom resource, status and
// scale, show nothing that is not in the object. Only Metal3's infrastructure machine gets a boot image:
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=patch
//
// The object that proves the identity of the host:
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//
// Discovery including static networks, binding and approval. The installation itself is only observed:
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=infraenvs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=nmstateconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch
//
// Secrets: the bootstrap data, whose name is the Machine's; pull secrets, certificate authorities and host
// metadata, which users and CAPM3 name. The managers delete no Secret. The plugin requires the verb delete of
// clients that change the owner of an existing object. The managers do so for bootstrap data that came without its
// owner (backups). Hubs with the plugin get the verb from config/bootstrap/openshift-hub.yaml. Content is read one
// by one, only metadata is watched:
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
//
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Options are the dependencies of a Reconciler.
type Options struct {
	// Client reads all kinds except Secrets and ConfigMaps from caches.
	Client client.Client
	// Metadata reads the metadata of Secrets and ConfigMaps from the cache. Client would query the API server for
	// them.
	Metadata client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Recorder emits events on the OpenshiftAssistedConfig.
	Recorder record.EventRecorder
	// Selected reports whether this manager reconciles an object (its watch filter).
	Selected func(client.Object) bool
	// Authorities verify assisted-service for all hosts, in addition to those of an OpenshiftAssistedConfig; nil if there
	// are none.
	Authorities *bootmode.Authorities
	// Clock is the source of the time; nil means the system clock.
	Clock clock.Clock
}

// Reconciler takes the host of one Machine from its discovery to the end of its installation.
type Reconciler struct {
	Options

	// metal3 is true once BareMetalHosts are served and watched.
	metal3  atomic.Bool
	writer  *writer.Writer
	tracker *external.ObjectTracker
	// wake triggers a reconcile of the configs whose ignition was downloaded.
	wake chan event.GenericEvent
	// ours are the last writes of the configs themselves.
	ours          *reconcile.WriteCache[types.NamespacedName, ownPart]
	gatherer      *gather.Gatherer
	infraEnvs     *infraenv.Registrar
	bootData      *bootdata.Publisher
	protector     *protection.Protector
	prerequisites *prerequisites.Checker
	claims        *claims.Checker
	deletion      *deletion.Releaser
	identifier    *identification.Identifier
	fencing       *fencing.Fencer
	binder        *binding.Binder
	refresher     *refresh.Refresher
	// deferred measures how long a status waits to be written.
	deferred *reconcile.StatusLimiter[types.NamespacedName]
	// progress is the log of reported changes.
	progress reconcile.ProgressLog
}

// wakeUps is the number of finished downloads that may wait for their reconcile.
const wakeUps = 1024

// New returns a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	options.Recorder = reconcile.LogEvents(options.Recorder, ctrl.Log.WithName("events"))
	r := &Reconciler{
		Options:  options,
		wake:     make(chan event.GenericEvent, wakeUps),
		progress: reconcile.NewProgressLog(ctrl.Log.WithName("progress")),
	}
	r.ours = reconcile.NewWriteCache[types.NamespacedName, ownPart](options.Clock)
	r.writer = writer.New(options.Client, options.Live, options.Clock)
	r.protector = protection.New(options.Client, options.Clock)
	r.prerequisites = prerequisites.New(options.Live)
	r.claims = claims.New(options.Client)
	r.gatherer = gather.New(r.writer, options.Metadata, r.claims, &r.metal3, r.watchInfraMachine)
	r.bootData = bootdata.New(r.writer, options.Metadata, r.protector, options.Authorities, r.wake, options.Clock)
	r.infraEnvs = infraenv.New(r.writer, options.Metadata, r.bootData, options.Clock)
	r.deletion = deletion.New(r.writer, r.claims, options.Clock, r.forget)
	r.identifier = identification.New(r.writer, r.claims, r.deletion, options.Clock)
	r.fencing = fencing.New(r.writer)
	r.binder = binding.New(r.writer, r.prerequisites, options.Clock)
	r.refresher = refresh.New(r.writer, options.Clock)
	r.deferred = reconcile.NewStatusLimiter[types.NamespacedName](options.Clock)
	return r
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, reterr error) {
	config, err := kube.Read(ctx, r.Client, req.NamespacedName, &bootstrapv1.OpenshiftAssistedConfig{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if config == nil {
		r.forget(req.NamespacedName)
		r.bootData.DropDownload(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if !r.Selected(config) {
		return ctrl.Result{}, nil
	}
	r.overlay(config)
	s, err := r.gatherer.Gather(ctx, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	failure := reconcile.ErrPanicked
	// Every path reports conditions and status, with one patch at most.
	defer func() {
		reterr = errors.Join(reterr, r.report(ctx, s, failure))
		result = reconcile.ResultAfter(s.Again.Delay())
	}()
	failure = r.advance(ctx, s)
	return result, failure
}

// advance runs the phases.
func (r *Reconciler) advance(ctx context.Context, s *scope.Scope) error {
	switch {
	case s.Paused():
		return nil
	case s.Deleting():
		return reconcile.Run(ctx, s, r.deletion.KeepInUse, r.deletion.DeleteBoundAgents, r.deletion.KeepForeignAgents,
			r.deletion.DeleteInfraEnv, r.deletion.DeleteLeftAgents, r.deletion.ConfirmDeleted, r.deletion.RemoveFinalizer)
	default:
		identification.ReportHost(s)
		return errors.Join(
			reconcile.Run(ctx, s, r.addFinalizer, r.protector.Protect, r.infraEnvs.Relabel, r.restore, r.prerequisites.Check,
				r.infraEnvs.EnsureImage, r.bootData.Publish, r.identifier.Identify, r.fencing.Fence, r.binder.Bind, r.binder.Approve,
				r.binder.Observe),
			reconcile.Run(ctx, s, r.refresher.Refresh),
		)
	}
}
