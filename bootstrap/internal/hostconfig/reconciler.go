// Package hostconfig reconciles OpenshiftAssistedConfigs: it takes the host of one Machine from nothing to installed.
// One reconciler does all of it, the Agent included, so that each field has one writer.
package hostconfig

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/controllers/external"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// FieldOwner owns the fields that the provider sets on the objects of others.
const FieldOwner = "openshift-agent-bootstrap"

// What a manager may do in the namespaces that it watches; what concerns kinds without namespace stands in main.go. One
// that watches a single namespace has these rights in it only (config/bootstrap/namespaced).
//
// Our own objects; finalizers/update is what the admission plugin OwnerReferencesPermissionEnforcement, which OpenShift
// hubs have, asks of those who make something that blocks the deletion of its owner, as the bootstrap data Secret does:
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs/finalizers,verbs=update
//
// Machine and Cluster that a config belongs to:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
//
// The protection of a Machine whose host is being installed from MachineHealthChecks, an annotation:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=patch
//
// The infrastructure machine, of whatever provider: without the right to read its kind the cache would wait for ever.
// RBAC cannot say "all kinds without their subresources"; those of a custom resource, status and scale, show nothing
// that is not in the object. Only Metal3's gets a boot image:
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=patch
//
// What the host is proven by:
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//
// Discovery, static networks included, binding and approval; the installation itself is only looked at:
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=infraenvs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=nmstateconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch
//
// Secrets: the bootstrap data, whose name is the Machine's; pull secrets, certificate authorities and host metadata,
// which users and CAPM3 name. None is deleted. The plugin asks for the verb delete of those who change the owner of an
// object that exists, as is done for bootstrap data that came without it (backups): hubs with the plugin get the verb
// by config/bootstrap/openshift-hub.yaml. Content is read one by one, only metadata is watched:
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
//
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Options are what a Reconciler needs.
type Options struct {
	// Client reads from caches all but Secrets and ConfigMaps.
	Client client.Client
	// Metadata reads the metadata of Secrets and ConfigMaps from the cache, past the Client, which would ask the API server for them.
	Metadata client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Recorder emits events on the OpenshiftAssistedConfig.
	Recorder record.EventRecorder
	// Selected reports whether this manager is to reconcile an object (its watch filter).
	Selected func(client.Object) bool
	// Clock is the time; nil: that of the system.
	Clock clock.Clock
}

// Reconciler takes the host of one Machine from nothing to installed.
type Reconciler struct {
	Options

	// metal3 is true from when BareMetalHosts are served and watched.
	metal3  atomic.Bool
	applier *apply.Applier
	tracker *external.ObjectTracker
	// ignitions are the downloads of discovery ignitions; downloads spaces the attempts, which cannot be watched.
	ignitions *bootmode.Downloads
	downloads *flowcontrol.Backoff
	// refusals spaces the attempts at what the API server refuses.
	refusals *flowcontrol.Backoff
	// owners writes the owner references of Secrets, which the API server may refuse.
	owners *reconcile.Owners
	// mirrors holds the digests of ConfigMaps with mirrors, by version.
	mirrors kube.Contents[string]
	// wake reconciles configs whose ignition was downloaded.
	wake chan event.GenericEvent
	// What was written last, by config: to itself, the InfraEnv that was made, the digest of what the data was made
	// from, whether the Machine is protected.
	ours      *reconcile.WriteCache[ownPart]
	made      *reconcile.WriteCache[*assisted.InfraEnv]
	data      *reconcile.WriteCache[string]
	protected *reconcile.WriteCache[bool]
	// waiters says which Agents are news for configs that did not make their image, nameWaiters which Machines keep the
	// name of another's Node, hostWaiters for which configs any BareMetalHost is news, secretWaiters of which Secrets a
	// host is fenced, serverWaiters what a BareMetalHost of any namespace has whose server is the same, agentWaiters
	// which Agents another config recorded.
	addressWaiters, nameWaiters, hostWaiters, secretWaiters, serverWaiters, agentWaiters *waiters
	// unbound says since when an Agent is bound that assisted-service has not taken in.
	unbound *reconcile.StartTimes
	// bound says since when assisted-service has a host in the cluster that has not registered with it.
	bound *reconcile.StartTimes
	// deferred counts for how long a status waits to be written.
	deferred *reconcile.StatusLimiter
	// progress is the log of what was reported.
	progress reconcile.ProgressLog
}

const (
	downloadBackOff    = 2 * time.Second
	maxDownloadBackOff = 2 * time.Minute
	// wakeUps is the number of finished downloads that may wait to be noticed.
	wakeUps = 1024
)

// New returns a Reconciler.
func New(options Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	options.Recorder = reconcile.LogEvents(options.Recorder, ctrl.Log.WithName("events"))
	r := &Reconciler{
		Options:   options,
		applier:   apply.New(options.Client, FieldOwner),
		ignitions: bootmode.NewDownloads(),
		downloads: flowcontrol.NewBackOff(downloadBackOff, maxDownloadBackOff),
		refusals:  flowcontrol.NewBackOff(refusedRetry, maxRefusedRetry),
		mirrors:   kube.NewContents[string](),
		wake:      make(chan event.GenericEvent, wakeUps),
		progress:  reconcile.NewProgressLog(ctrl.Log.WithName("progress")),
	}
	r.addressWaiters, r.nameWaiters, r.hostWaiters, r.secretWaiters = newWaiters(), newWaiters(), newWaiters(), newWaiters()
	r.serverWaiters, r.agentWaiters = newWaiters(), newWaiters()
	now := options.Clock.Now
	r.downloads.Clock, r.refusals.Clock = options.Clock, options.Clock
	r.ours = reconcile.NewWriteCache[ownPart](now)
	r.made = reconcile.NewWriteCache[*assisted.InfraEnv](now)
	r.data = reconcile.NewWriteCache[string](now)
	r.protected = reconcile.NewWriteCache[bool](now)
	r.unbound, r.bound = reconcile.NewStartTimes(now), reconcile.NewStartTimes(now)
	r.deferred = reconcile.NewStatusLimiter(now)
	r.owners = reconcile.NewOwners(options.Clock)
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
		r.ignitions.Drop(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if !r.Selected(config) {
		return ctrl.Result{}, nil
	}
	r.overlay(config)
	s, err := r.gather(ctx, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() { // conditions and status, one patch at most, on every path
		reterr = errors.Join(reterr, r.report(ctx, s, reterr))
		result.RequeueAfter = s.again.Delay()
	}()

	switch {
	case s.Paused():
		return result, nil
	case s.Deleting():
		return result, reconcile.Run(ctx, s, r.releaseForMove, r.releaseAgents, r.keepOthersAgents, r.releaseInfraEnv, r.releaseLeftAgents, r.confirmDeleted, r.releaseFinalizer)
	default:
		s.reportHost()
		return result, reconcile.Run(ctx, s, r.addFinalizer, r.protectMachine, r.relabel, r.restore, r.prerequisites, r.discoveryImage, r.bootData, r.identifyHost, r.fenceHost, r.bindHost, r.approveHost, r.observeInstallation)
	}
}
