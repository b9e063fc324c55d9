// Package controlplane reconciles OpenshiftAssistedControlPlanes: it installs a cluster through assisted-service and
// keeps its control plane.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/approval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubelets"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	// FieldOwner owns the fields that this provider writes into objects.
	FieldOwner = client.FieldOwner("openshift-agent-control-plane")

	// initialRequestDelay is after what time the same is asked of a cluster, or passed on, again that somebody else
	// changed there; the time doubles up to maxRequestDelay.
	initialRequestDelay, maxRequestDelay = 10 * time.Second, 10 * time.Minute

	// wakeUps is the number of finished look-ups that may wait to be noticed.
	wakeUps = 1024
)

// What a manager may do in the namespaces that it watches; what concerns kinds without namespace stands in main.go. One
// that watches a single namespace has these rights in it only (config/controlplane/namespaced).
//
// The verb delete on what is not deleted here (OpenshiftAssistedConfigs, infrastructure templates, MachineDrainRules)
// is what the admission plugin OwnerReferencesPermissionEnforcement, which OpenShift hubs have, asks of those who write
// owner references of objects that exist; update of our finalizers is what it asks of those who make something that
// blocks the deletion of its owner. For Secrets such hubs get the verb by config/controlplane/openshift-hub.yaml.
//
// Our own objects:
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes/status,verbs=patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=openshiftassistedcontrolplanes/finalizers,verbs=update
//
// The cluster, its workers, and the control-plane Machines, of which the status gets the condition UpToDate:
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments;machinesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedrainrules,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=openshiftassistedconfigs,verbs=get;list;watch;create;patch;delete
//
// Infrastructure machines and their templates, of whatever provider: without the right to read a kind the cache would
// wait for ever. RBAC cannot say "all kinds without their subresources"; those of a custom resource, status and scale,
// show nothing that is not in the object. Written are Metal3's; whoever installs another provider adds its kinds to an
// aggregated ClusterRole (config/controlplane/rbac/infrastructure_role.yaml):
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machines,verbs=create;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=metal3machinetemplates,verbs=patch;delete
//
// The installation:
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterdeployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=extensions.hive.openshift.io,resources=agentclusterinstalls,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=agent-install.openshift.io,resources=agents,verbs=get;list;watch
//
// Secrets: kubeconfigs, which have the names of Clusters; pull secrets, which users name. Content is read one by one,
// only metadata is watched:
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
//
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Workloads observes installed clusters.
type Workloads interface {
	Observe(cluster client.ObjectKey) facts.Workload
	IssueToken(ctx context.Context, cluster client.ObjectKey) (cluster.Token, error)
	RevokeToken(ctx context.Context, cluster client.ObjectKey, token cluster.Token) error
	HasToken(ctx context.Context, cluster client.ObjectKey, boundTo types.UID) (bool, error)
	ExpectHosts(cluster client.ObjectKey, needed bool)
	RequireReleases(cluster client.ObjectKey, needed bool)
	RequirePools(cluster client.ObjectKey, needed bool)
	Authorities(ctx context.Context, cluster client.ObjectKey) (cluster.Authorities, error)
	Identify(ctx context.Context, cluster client.ObjectKey) (facts.Identity, error)
	Forget(cluster client.ObjectKey)
}

// Etcds look at the etcd of installed clusters, and change its members.
type Etcds interface {
	Observe(ctx context.Context, cluster client.ObjectKey) (facts.Etcd, error)
	Serves(ctx context.Context, cluster client.ObjectKey) (bool, error)
	MoveLeader(ctx context.Context, cluster client.ObjectKey, leader, to facts.EtcdMember) error
	RemoveMember(ctx context.Context, cluster client.ObjectKey, via, member facts.EtcdMember) error
	DeleteSecrets(ctx context.Context, cluster client.ObjectKey, node string) error
	DeleteNode(ctx context.Context, cluster client.ObjectKey, node facts.ControlPlaneNode) error
}

// Kubelets read what the kubelets of installed clusters ask for, and approve it.
type Kubelets interface {
	Observe(ctx context.Context, cluster client.ObjectKey, known func(node string) bool) (kubelets.Seen, error)
	Approve(ctx context.Context, cluster client.ObjectKey, request *approval.Request) (bool, error)
}

// Versions read what upgrades of installed clusters depend upon, and ask them for a release.
type Versions interface {
	Observe(ctx context.Context, cluster client.ObjectKey) (facts.ClusterVersion, error)
	RequestUpdate(ctx context.Context, cluster client.ObjectKey, request facts.UpdateRequest) error
}

// Names say where DNS names lead. What is not known is asked for, and done called when there is an answer; what is
// known counts for some time.
type Names interface {
	Addresses(name string, done func()) (facts.Name, time.Duration)
}

// Options are what a Reconciler needs.
type Options struct {
	// Client reads from caches all but Secrets and ConfigMaps.
	Client client.Client
	// Metadata reads the metadata of Secrets and ConfigMaps from the cache, past the Client, which would ask the API server for them.
	Metadata client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Releases finds the digests of release images, Repositories says where they are.
	Releases     *release.Resolver
	Repositories openshift.Repositories
	// Names asks the hub's DNS.
	Names     Names
	Workloads Workloads
	Etcds     Etcds
	Kubelets  Kubelets
	Versions  Versions
	Recorder  record.EventRecorder
	// Selected reports whether this manager is to reconcile an object.
	Selected func(client.Object) bool
}

// Reconciler reconciles OpenshiftAssistedControlPlanes.
type Reconciler struct {
	Options

	applier *apply.Applier
	// metadata writes what is passed on.
	metadata *apply.Applier
	recent   *reconcile.RecentWrites
	// pullSecrets holds the contents of pull secrets by version.
	pullSecrets kube.Contents[pullSecretContents]
	// registries holds what ConfigMaps say of mirrors, by version.
	registries kube.Contents[*preflight.Registries]
	// adminDigests holds the digests of assisted-service's kubeconfigs by version of their Secrets.
	adminDigests *lru.Cache[string, string]
	// foreignRecoveries holds, by owner, the versions of Secrets that have the name of a copy of assisted-service's
	// kubeconfig and are foreign.
	foreignRecoveries *lru.Cache[string, struct{}]
	// deferred counts, by UID of the control plane, for how long its status differs from the stored one in words alone.
	deferred *reconcile.StatusLimiter
	// silent remembers since when the kubelets of control-plane Nodes do not report.
	silent *reconcile.StartTimes
	// missing remembers since when Machines of a MachineDeployment or MachineSet do not exist, by its UID.
	missing *reconcile.StartTimes
	// failing remembers since when requests fail for reasons that usually pass.
	failing *reconcile.StartTimes
	// inspections is the pace at which etcd is looked at, which cannot be watched.
	inspections *inspections
	// asked is what kubelets were seen to ask for, by the UID of the control plane.
	asked *lru.Cache[types.UID, pendingRequests]
	// requestBackoff is when what installed clusters were asked for, and what was passed on, may be written again.
	requestBackoff *flowcontrol.Backoff
	// passed is when what is in asks was passed on last.
	passed *lru.Cache[string, time.Time]
	// owners writes owner references that the API server may refuse.
	owners *reconcile.Owners
	// withdrawals counts connections for authorities that a spec has withdrawn, by the UID of the control plane.
	withdrawals *lru.Cache[types.UID, withdrawal]
	// retries says when to come back after an error.
	retries *retries
	// wake reconciles control planes whose release image was looked up.
	wake chan event.GenericEvent
	// progress is the log of what was reported.
	progress reconcile.ProgressLog
	// started is when this process began to observe.
	started time.Time
	now     func() time.Time
	// track makes a change of a kind of infra template reconcile its control planes.
	track func(template client.Object) error
	// trackReboots makes a change of what became of a reboot reconcile the control plane of its Machine.
	trackReboots func(reboot client.Object) error
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	options.Recorder = reconcile.LogEvents(options.Recorder, ctrl.Log.WithName("events"))
	r := &Reconciler{
		Options:           options,
		applier:           apply.New(options.Client, FieldOwner),
		metadata:          apply.New(options.Client, metadataOwner),
		pullSecrets:       kube.NewContents[pullSecretContents](),
		registries:        kube.NewContents[*preflight.Registries](),
		adminDigests:      lru.New[string, string](rememberedClusters),
		foreignRecoveries: lru.New[string, struct{}](rememberedClusters),
		asked:             lru.New[types.UID, pendingRequests](rememberedClusters),
		passed:            lru.New[string, time.Time](rememberedClusters),
		withdrawals:       lru.New[types.UID, withdrawal](rememberedClusters),
		retries:           newRetries(),
		wake:              make(chan event.GenericEvent, wakeUps),
		progress:          reconcile.NewProgressLog(ctrl.Log.WithName("progress")),
		started:           time.Now(),
		now:               time.Now,
		track:             func(client.Object) error { return nil },
		trackReboots:      func(client.Object) error { return nil },
	}
	r.recent = reconcile.NewRecentWrites(func() time.Time { return r.now() })
	r.deferred = reconcile.NewStatusLimiter(func() time.Time { return r.now() })
	r.silent = reconcile.NewStartTimes(func() time.Time { return r.now() })
	r.missing = reconcile.NewStartTimes(func() time.Time { return r.now() })
	r.failing = reconcile.NewStartTimes(func() time.Time { return r.now() })
	r.owners = reconcile.NewOwners(func() time.Time { return r.now() })
	r.inspections = newInspections(func() time.Time { return r.now() })
	r.requestBackoff = flowcontrol.NewBackOff(initialRequestDelay, maxRequestDelay)
	r.requestBackoff.Clock = injected{now: func() time.Time { return r.now() }}
	return r
}

// Reconcile brings the cluster of one control plane a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, reterr error) {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{}
	if err := r.Client.Get(ctx, req.NamespacedName, cp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.Selected(cp) {
		return ctrl.Result{}, nil
	}
	if left := r.recent.Pending(reconcile.Key("", cp), cp.ResourceVersion); left > 0 {
		// What was written last is on its way into the cache, and reconciles again when it is there.
		return ctrl.Result{RequeueAfter: left}, nil
	}
	s, err := r.gather(ctx, cp)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.Moved() {
		return ctrl.Result{}, r.release(ctx, s)
	}
	defer func() {
		reterr = errors.Join(reterr, r.report(ctx, s, reterr))
		result.RequeueAfter = s.again.Delay()
		if reterr != nil {
			r.retries.want(req, result.RequeueAfter)
		}
	}()
	return ctrl.Result{}, r.advance(ctx, s)
}

// advance runs the phases.
func (r *Reconciler) advance(ctx context.Context, s *scope) error {
	switch {
	case s.Paused():
		return nil
	case s.Deleting():
		// A hold that fails, as with the admission of assisted-service away, keeps nothing from being deleted.
		return errors.Join(reconcile.Run(ctx, s, r.blockInstallation), r.delete(ctx, s))
	case s.GivesUp() && !s.Installed():
		return reconcile.Run(ctx, s, r.confirmGivenUp, r.markGivenUp, r.giveUpMachines, r.giveUpRegistration, r.giveUpKubeconfig, r.restartInstallation)
	}
	if proceed, err := r.retry(ctx, s); err != nil || !proceed {
		return err
	}
	// What is installed is looked after whatever the installation waits for.
	return errors.Join(
		reconcile.Run(ctx, s, r.findStuck),
		reconcile.Run(ctx, s, r.passOn), // before the registration, which states what is passed on only when it makes an object
		reconcile.Run(ctx, s, r.guard, r.awaitDeletion, r.requirements, r.infraTemplates, r.pullSecret, r.resolveImage, r.infrastructure, r.register, r.machines),
		reconcile.Run(ctx, s, r.holdForForeignAgents),
		reconcile.Run(ctx, s, r.preflight),
		reconcile.Run(ctx, s, r.syncMachines),
		reconcile.Run(ctx, s, r.excludeGuards),
		reconcile.Run(ctx, s, r.protectHosts),
		reconcile.Run(ctx, s, r.remediate),
		reconcile.Run(ctx, s, r.blockMove, r.cleanUpHosts, r.releaseHosts),
		reconcile.Run(ctx, s, r.scaleUp, r.scaleDown),
		reconcile.Run(ctx, s, r.upgrade),
		reconcile.Run(ctx, s, r.followWorkers),
		reconcile.Run(ctx, s, r.approveKubelets),
		reconcile.Run(ctx, s, r.publishServerCA),
		reconcile.Run(ctx, s, r.markArbiter),
		reconcile.Run(ctx, s, r.markStray),
		reconcile.Run(ctx, s, r.reportStuck),
		reconcile.Run(ctx, s, r.relabel, r.markInstalled, r.dropImageSets),
		reconcile.Run(ctx, s, r.kubeconfig, r.trustAuthorities, r.touchInfraMachines, r.keepCredentials, r.allowMove),
		reconcile.Run(ctx, s, r.renewKubeconfig),
		reconcile.Run(ctx, s, r.propagateKubeconfig),
		reconcile.Run(ctx, s, r.markUpToDate),
		reconcile.Run(ctx, s, r.markEtcdMembers),
	)
}

// delete runs the phases of a deletion.
func (r *Reconciler) delete(ctx context.Context, s *scope) error {
	return reconcile.Run(ctx, s, r.releaseHosts, r.awaitWorkers, r.deleteMachines, r.relabel, r.deregister, r.deleteImageSets, r.confirmDeleted, r.removeFinalizer)
}

// apply writes desired unless observed holds it, or what was written a moment ago has not reached the cache yet.
func (r *Reconciler) apply(ctx context.Context, s *scope, desired, observed client.Object) error {
	_, err := r.applyBy(ctx, s, r.applier, appliedKey(desired), desired, observed)
	return err
}

// applyBy is apply by one of the field managers, and reports whether it wrote; key is under which it is remembered that
// it applied the object.
func (r *Reconciler) applyBy(ctx context.Context, s *scope, by *apply.Applier, key string, desired, observed client.Object) (wrote bool, err error) {
	version := kube.VersionOf(observed)
	if left := r.recent.Pending(key, version); left > 0 {
		s.again.In(left)
		return false, nil
	}
	wrote, err = by.Apply(ctx, desired, observed)
	if err == nil && wrote {
		r.recent.Record(key, version)
	}
	return wrote, err
}

// applyOwned is apply of a Secret whose owner references the API server may refuse: all else is written then, and the
// condition KubeconfigAvailable reports it.
func (r *Reconciler) applyOwned(ctx context.Context, s *scope, desired *corev1.Secret, observed client.Object) error {
	return r.writeOwned(s, desired, observed, func() error { return r.apply(ctx, s, desired, observed) })
}

// applyOwnedAtOnce is applyOwned of what is written whether or not the cache has the last write.
func (r *Reconciler) applyOwnedAtOnce(ctx context.Context, s *scope, desired *corev1.Secret, observed client.Object) error {
	return r.writeOwned(s, desired, observed, func() error {
		_, err := r.applier.Apply(ctx, desired, observed)
		return err
	})
}

func (r *Reconciler) writeOwned(s *scope, desired *corev1.Secret, observed client.Object, write func() error) error {
	refused, err := r.owners.Write(desired, observed, write)
	r.reportOwners(s, desired, refused)
	return err
}

// leavesOwners reports whether the owner references of a Secret stay as they are for some time, since the API server has refused others.
func (r *Reconciler) leavesOwners(s *scope, secret client.Object) bool {
	left := r.owners.Left(secret)
	r.reportOwners(s, secret, left)
	return left > 0
}

// reportOwners reports that owner references of a Secret were refused, and when they are written again; zero: they were not refused.
func (r *Reconciler) reportOwners(s *scope, secret client.Object, left time.Duration) {
	if left == 0 {
		return
	}
	s.again.In(left)
	s.found.Block(status.KubeconfigOwner, controlplanev1.KubeconfigAvailableReason, reconcile.OwnersRefusedMessage("Secret", secret.GetName(), reconcile.HubRights))
}

// appliedKey is the one under which it is remembered that an object was applied.
func appliedKey(obj client.Object) string {
	return reconcile.Key(fmt.Sprintf("%T%s", obj, obj.GetObjectKind().GroupVersionKind().Kind), obj)
}

func (r *Reconciler) event(about *controlplanev1.OpenshiftAssistedControlPlane, reason, format string, args ...any) {
	r.Recorder.Eventf(about, corev1.EventTypeNormal, reason, format, args...)
}

func (r *Reconciler) warn(about *controlplanev1.OpenshiftAssistedControlPlane, reason, format string, args ...any) {
	r.Recorder.Eventf(about, corev1.EventTypeWarning, reason, format, args...)
}
