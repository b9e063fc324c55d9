package clusterversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgrade"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	// InitialRequestDelay is the time after which the same request is written again that somebody else changed in the
	// cluster; it doubles up to maxRequestDelay.
	InitialRequestDelay, maxRequestDelay = 10 * time.Second, 10 * time.Minute
)

// Requests reads what upgrades of installed clusters depend upon, and requests updates.
type Requests interface {
	Observe(ctx context.Context, cluster client.ObjectKey) (facts.ClusterVersion, error)
	RequestUpdate(ctx context.Context, cluster client.ObjectKey, request facts.UpdateRequest) error
}

// Watcher watches the releases of Nodes and the MachineConfigPools of a cluster while they are needed.
type Watcher interface {
	RequireReleases(cluster client.ObjectKey, needed bool)
	RequirePools(cluster client.ObjectKey, needed bool)
}

// Upgrader upgrades installed clusters.
type Upgrader struct {
	client    client.Client
	versions  Requests
	workloads Watcher
	gate      *etcdgate.Gate
	writer    *writer.Writer
	clock     clock.Clock
	// failing remembers since when requests fail for reasons that usually pass.
	failing *reconcile.StartTimes
	// backoff is that of requests which somebody else changes.
	backoff *flowcontrol.Backoff
}

// NewUpgrader returns an Upgrader.
func NewUpgrader(c client.Client, versions Requests, workloads Watcher, gate *etcdgate.Gate, w *writer.Writer, clk clock.Clock) *Upgrader {
	u := &Upgrader{client: c, versions: versions, workloads: workloads, gate: gate, writer: w, clock: clk, failing: reconcile.NewStartTimes(clk.Now)}
	u.backoff = flowcontrol.NewBackOff(InitialRequestDelay, maxRequestDelay)
	u.backoff.Clock = clk
	return u
}

// Upgrade asks an installed cluster for the release that the spec asks for. The cluster does the rest by itself, host by host.
func (u *Upgrader) Upgrade(ctx context.Context, s *scope.Scope) (bool, error) {
	if !upgrade.Due(s.Facts) {
		u.gate.Done(s, status.Upgrade)
		return true, nil
	}
	inspection := u.gate.Begin(s, status.Upgrade)
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
	request, blocker := upgrade.Next(s.Facts, &seen)
	if asked := u.requestUpdate(ctx, s, inspection, request); !asked {
		return true, nil
	}
	if blocker != nil {
		inspection.Block(*blocker)
	}
	return true, nil
}

// blockUpgrade tells that the ClusterVersion, or what belongs to it, can be neither read nor written.
func (u *Upgrader) blockUpgrade(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, err error) {
	ctrl.LoggerFrom(ctx).Error(err, "Cannot read or write what the upgrade of the cluster depends upon")
	if left := kube.TransientPeriod - u.clock.Now().Sub(u.failing.Since(upgradeKey(s))); left > 0 && kube.IsTransient(err) {
		inspection.Block(decision.Wait(controlplanev1.UpgradeInProgressReason, "The upgrade is not requested yet: the API server of the cluster is busy or restarts. The request is tried again"))
		return
	}
	inspection.Block(decision.Wait(controlplanev1.ClusterVersionUnavailableReason, "what an upgrade depends upon cannot be read from the cluster, or it cannot be asked for another release: "+
		"it is tried again. Check that the credentials in its kubeconfig have the rights for it; see the log of the manager"))
}

func upgradeKey(s *scope.Scope) string { return reconcile.Key("upgrade", s.Stored) }

// requestUpdate writes into the cluster what it is asked for, if anything, and reports whether that was possible. What
// was written is not written again at once: others may write something else there.
func (u *Upgrader) requestUpdate(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, request facts.UpdateRequest) bool {
	if request.Empty() {
		u.failing.Clear(upgradeKey(s))
		return true
	}
	id := fmt.Sprintf("%s %s %v %+v %t", s.Stored.UID, request.Channel, request.Acknowledge, ptr.Deref(request.Update, facts.Update{}), request.Withdraw)
	if u.backoff.IsInBackOffSinceUpdate(id, u.clock.Now()) {
		inspection.Block(decision.Wait(controlplanev1.UpgradeInProgressReason, "the cluster was asked for the same a moment ago, and somebody changed it there: it is asked again later"))
		return false
	}
	switch err := u.versions.RequestUpdate(ctx, s.ClusterKey(), request); {
	case apierrors.IsConflict(err):
		s.Again.In(reconcile.CacheLag) // it changed since it was read
		return false
	case kube.IsRefused(err):
		inspection.Block(decision.Wait(controlplanev1.InvalidConfigurationReason, "the cluster does not take what it is asked for, correct spec.version or spec.upgrade: %v", err))
		return false
	case err != nil:
		u.blockUpgrade(ctx, s, inspection, err)
		return false
	}
	u.failing.Clear(upgradeKey(s))
	u.backoff.Next(id, u.clock.Now())
	u.backoff.GC()
	switch {
	case request.Update != nil:
		u.writer.Event(s.Stored, "UpgradeRequested", "Asked the cluster, which runs v%s, for v%s%s", s.Workload.OpenShiftVersion, request.Update.Version, inSpiteOf(request.Tolerated))
	case request.Withdraw:
		u.writer.Event(s.Stored, "UpgradeWithdrawn", "Took back what the cluster, which runs v%s, was asked for and had not begun", s.Workload.OpenShiftVersion)
	}
	return true
}

// inSpiteOf names what was tolerated for a request.
func inSpiteOf(tolerated []string) string {
	if len(tolerated) == 0 {
		return ""
	}
	return ". Tolerated: " + bound.Join(tolerated, "")
}
