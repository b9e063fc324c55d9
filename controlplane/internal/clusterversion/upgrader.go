package clusterversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgrade"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

const (
	// InitialRequestDelay is the time after which a request is written again that another client changed in the
	// cluster. The time doubles up to maxRequestDelay.
	InitialRequestDelay, maxRequestDelay = 10 * time.Second, 10 * time.Minute
)

// Requests reads the ClusterVersions of installed clusters with the related objects, and requests updates.
type Requests interface {
	Observe(ctx context.Context, cluster client.ObjectKey) (workload.ClusterVersion, error)
	RequestUpdate(ctx context.Context, cluster client.ObjectKey, request workload.UpdateRequest) error
	ResumePools(ctx context.Context, cluster client.ObjectKey, pools []string) error
}

// Releases reads the Kubernetes versions of releases from their images: see releaseimage.Resolver.
type Releases interface {
	KubernetesVersion(ctx context.Context, s *scope.Scope, wanted semver.Version, image string) (version string, unknown, err error)
}

// Watcher watches the MachineConfigPools of a cluster while they are needed.
type Watcher interface {
	RequirePools(cluster client.ObjectKey, needed bool)
}

// Upgrader upgrades installed clusters.
type Upgrader struct {
	client    client.Client
	versions  Requests
	workloads Watcher
	releases  Releases
	gate      *etcdgate.Gate
	writer    *writer.Writer
	clock     clock.Clock
	// failing holds the times since which requests fail for transient reasons.
	failing *reconcile.StartTimes[string]
	// backoff delays requests that another client changes in the cluster, and versions of workers that another controller
	// reverts.
	backoff *reconcile.Backoff
}

// NewUpgrader returns an Upgrader.
func NewUpgrader(
	c client.Client, versions Requests, workloads Watcher, releases Releases, gate *etcdgate.Gate, w *writer.Writer, clk clock.Clock,
) *Upgrader {
	return &Upgrader{
		client: c, versions: versions, workloads: workloads, releases: releases, gate: gate, writer: w, clock: clk,
		failing: reconcile.NewStartTimes[string](clk),
		backoff: reconcile.NewBackoff(clk, InitialRequestDelay, maxRequestDelay),
	}
}

// Upgrade requests the release of the spec from an installed cluster. The operators of the cluster then upgrade it, one
// host after another.
func (u *Upgrader) Upgrade(ctx context.Context, s *scope.Scope) (bool, error) {
	if !upgrade.Due(s.Facts) {
		u.gate.Done(s, tasks.Upgrade)
		return true, nil
	}
	inspection := u.gate.Begin(s, tasks.Upgrade)
	if inspection == nil {
		return true, nil
	}
	defer inspection.End()
	seen, err := u.versions.Observe(ctx, s.ClusterKey())
	switch {
	case errors.Is(err, cluster.ErrNotConnected):
		return true, nil
	case err != nil:
		u.blockUpgrade(ctx, s, inspection, err)
		return true, nil
	}
	kubernetes, err := u.kubernetesOf(ctx, s, upgrade.Image(s.Facts, &seen))
	if err != nil {
		return false, err
	}
	request, blocker := upgrade.Next(s.Facts, &seen, kubernetes)
	if requested := u.requestUpdate(ctx, s, inspection, request); !requested {
		return true, nil
	}
	if blocker != nil {
		inspection.Block(*blocker)
	}
	return true, nil
}

// unreadPeriod is how long the Kubernetes version of a release may be unreadable before the spec is assumed to be correct. A
// registry that never answers, as on a disconnected hub, must not prevent upgrades. One that answers late must not cause
// the upgrade to another version, which Cluster API cannot correct any more.
const unreadPeriod = 10 * time.Minute

// kubernetesOf returns what is known of the Kubernetes version of a release image. It queries a registry only if the version
// matters: the spec has one, and an image can be requested.
func (u *Upgrader) kubernetesOf(ctx context.Context, s *scope.Scope, image string) (upgrade.Kubernetes, error) {
	if versioning.WantedKubernetes(s.Facts) == "" || image == "" {
		return upgrade.Kubernetes{}, nil
	}
	wanted, _ := versioning.WantedVersion(s.Facts)
	key := upgradeKey(s) + " " + image
	version, unknown, err := u.releases.KubernetesVersion(ctx, s, wanted, image)
	switch {
	case err != nil:
		return upgrade.Kubernetes{}, err
	case unknown == nil:
		u.failing.Clear(key)
		return upgrade.Kubernetes{Version: version}, nil
	case errors.Is(unknown, release.ErrPending):
		return upgrade.Kubernetes{Pending: true}, nil
	}
	if errors.Is(unknown, release.ErrNoVersion) { // the image will not get one
		return upgrade.Kubernetes{Unknown: bound.Cause(unknown.Error())}, nil
	}
	left := unreadPeriod - u.clock.Now().Sub(u.failing.Since(key))
	if left > 0 {
		s.Again.In(left)
	}
	return upgrade.Kubernetes{Pending: left > 0, Unknown: bound.Cause(unknown.Error())}, nil
}

// blockUpgrade reports that the ClusterVersion, or an object related to it, cannot be read or written.
func (u *Upgrader) blockUpgrade(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, err error) {
	ctrl.LoggerFrom(ctx).Error(err, "Cannot read or write the ClusterVersion of the cluster, or an object on which the upgrade depends")
	if left := kube.TransientPeriod - u.clock.Now().Sub(u.failing.Since(upgradeKey(s))); left > 0 && kube.IsTransient(err) {
		inspection.Block(decision.Wait(controlplanev1.UpgradeInProgressReason,
			"The upgrade is not requested yet: the API server of the cluster is busy or restarts. The provider retries"))
		return
	}
	inspection.Block(decision.Wait(controlplanev1.ClusterVersionUnavailableReason, "The ClusterVersion of the cluster, or an object on which "+
		"an upgrade depends, cannot be read or written. The provider retries. Check that the credentials in the kubeconfig of the cluster have "+
		"the rights for it, and see the log of the manager"))
}

func upgradeKey(s *scope.Scope) string { return reconcile.Key("upgrade", s.Stored) }

// requestUpdate writes a request into the ClusterVersion unless the request is empty. It reports whether the cluster has
// the request. The same request is written again only after a backoff, because another client may change it in between.
func (u *Upgrader) requestUpdate(
	ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, request workload.UpdateRequest,
) bool {
	if request.Empty() {
		u.failing.Clear(upgradeKey(s))
		return true
	}
	update, pause := ptr.Deref(request.Update, workload.Update{}), ptr.Deref(request.Pause, workload.PoolPause{})
	id := fmt.Sprintf("%s %s %v %+v %v %t %v", s.Stored.UID, request.Channel, request.Acknowledge, update, request.AcceptRisks,
		request.Withdraw, pause.Pools)
	if u.backoff.Left(id) > 0 {
		inspection.Block(decision.Wait(controlplanev1.UpgradeInProgressReason,
			"Another client changed the requested release in the cluster. It is requested again later"))
		return false
	}
	if request.Pause != nil {
		request.Pause.Since = u.clock.Now()
	}
	switch err := u.versions.RequestUpdate(ctx, s.ClusterKey(), request); {
	case apierrors.IsConflict(err):
		s.Again.In(reconcile.CacheLag) // another client changed the ClusterVersion after the read
		return false
	case kube.IsRefused(err):
		inspection.Block(decision.Wait(controlplanev1.InvalidConfigurationReason,
			"The cluster refuses the requested release: %v. Correct %s, or spec.upgrade", err, s.Settings().Release))
		return false
	case err != nil:
		u.blockUpgrade(ctx, s, inspection, err)
		return false
	}
	u.failing.Clear(upgradeKey(s))
	u.backoff.Record(id)
	switch {
	case request.Pause != nil:
		s.Found.Event(corev1.EventTypeNormal, "WorkerPoolsPaused", "Paused MachineConfigPools of workers until the control plane has %s: %s",
			pause.Until, bound.List(pause.Pools))
	case request.Update != nil:
		s.Found.Event(corev1.EventTypeNormal, "UpgradeRequested", "Requested an upgrade of the cluster from v%s to v%s%s",
			s.Workload.OpenShiftVersion, request.Update.Version, exceptions(&request))
	case request.Withdraw:
		s.Found.Event(corev1.EventTypeNormal, "UpgradeWithdrawn",
			"Withdrew the requested upgrade of the cluster, which runs v%s and had not begun the upgrade", s.Workload.OpenShiftVersion)
	}
	return true
}

// exceptions returns the end of a message about a request. It lists the tolerated problems of the cluster, and the accepted
// risks of the release.
func exceptions(request *workload.UpdateRequest) string {
	text := ""
	if len(request.Tolerated) > 0 {
		text = ". Tolerated: " + bound.Join(request.Tolerated, "")
	}
	if len(request.Accepted) > 0 {
		text += ". Accepted risks: " + bound.List(request.Accepted)
	}
	return text
}
