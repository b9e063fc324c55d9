package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

// upgrade upgrades an installed cluster to its next patch, and waits until the upgrade is reported.
func (b *bench) upgrade(ctx context.Context, cluster *lab.Cluster) error {
	next, err := b.offerNext(ctx, cluster)
	if err != nil {
		return err
	}
	if err := b.seen.follow(ctx, b.lab.Env.Scheme(), cluster); err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"distributionVersion":%q,"config":{"releaseImage":%q}}}`, next.Version, next.Image)
	if err := cluster.PatchControlPlane(ctx, patch); err != nil {
		return err
	}
	release := releaseOf(cluster.Key().String(), next.Version)
	err = b.seen.await(ctx, "upgrade of "+release, func() bool { return b.seen.done(upgradeReported, release) })
	return cluster.Explain(err)
}

// offerNext offers a cluster the next patch of its release in a channel, and waits until the cluster offers it. This time
// does not depend on the managers.
func (b *bench) offerNext(ctx context.Context, cluster *lab.Cluster) (versionoperator.Release, error) {
	none := versionoperator.Release{}
	s, err := cluster.State(ctx)
	if err != nil {
		return none, err
	}
	next, err := semver.ParseTolerant(s.ControlPlane.Spec.DistributionVersion)
	if err != nil {
		return none, fmt.Errorf("cannot parse release %s: %w", s.ControlPlane.Spec.DistributionVersion, err)
	}
	next.Patch++
	channel := fmt.Sprintf("stable-%d.%d", next.Major, next.Minor)
	release, err := cluster.Versions().Publish(next.String(), channel)
	if err != nil {
		return none, err
	}
	if err := cluster.Versions().SetChannel(ctx, channel); err != nil {
		return none, err
	}
	offered := func(ctx context.Context) (bool, error) {
		version, err := cluster.Versions().ClusterVersion(ctx)
		return err == nil && slices.ContainsFunc(version.Status.AvailableUpdates,
			func(r configv1.Release) bool { return r.Version == release.Version }), err
	}
	if err := wait.PollUntilContextCancel(ctx, time.Second, true, offered); err != nil {
		return none, fmt.Errorf("release %s is not offered to %s: %w", release.Version, cluster.Key(), err)
	}
	return release, nil
}

// follow watches the ClusterVersion of a cluster until ctx ends.
func (o *observer) follow(ctx context.Context, scheme *runtime.Scheme, cluster *lab.Cluster) error {
	watches, err := cache.New(cluster.Server().Config(), cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("cannot watch cluster %s: %w", cluster.Key(), err)
	}
	go func() {
		// It ends with ctx.
		_ = watches.Start(ctx)
	}()
	informer, err := watches.GetInformer(ctx, &configv1.ClusterVersion{})
	if err != nil {
		return fmt.Errorf("cannot watch the ClusterVersion of %s: %w", cluster.Key(), err)
	}
	see := func(object any) {
		if version, is := object.(*configv1.ClusterVersion); is {
			o.seeVersion(cluster.Key().String(), version, time.Now())
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, object any) { see(object) },
	}); err != nil {
		return fmt.Errorf("cannot watch the ClusterVersion of %s: %w", cluster.Key(), err)
	}
	return nil
}

// releaseOf returns the subject of a release of a cluster.
func releaseOf(cluster, version string) string {
	return cluster + " " + strings.TrimPrefix(version, "v")
}

// seeVersion records the requested release of a cluster, and its completion.
func (o *observer) seeVersion(cluster string, v *configv1.ClusterVersion, at time.Time) {
	requested := v.Spec.DesiredUpdate
	if requested == nil {
		return
	}
	release := releaseOf(cluster, requested.Version)
	o.act(effect{handOver: upgradeRequested, subject: release, at: at, needs: []need{{{versionWanted, release}}}})
	completed := slices.ContainsFunc(v.Status.History, func(h configv1.UpdateHistory) bool {
		return h.Version == requested.Version && h.State == configv1.CompletedUpdate
	})
	o.note(upgradeCompleted, release, completed, at)
	o.expect(upgradeReported, release, need{{upgradeCompleted, release}})
	o.seeReported(release, at)
}

// seeControlPlane records the wanted release, and the reported upgrade to it. In all samples the control plane has the
// name of its Cluster.
func (o *observer) seeControlPlane(v *controlplanev1.OpenshiftAssistedControlPlane, at time.Time) {
	release := releaseOf(name(v), v.Spec.DistributionVersion)
	o.note(versionWanted, release, true, at)
	if former := o.holding(versionWanted, beginsWith(name(v)+" ")); len(former) > 1 { // the first release is installed without request
		o.expect(upgradeRequested, release, need{{versionWanted, release}})
	}
	if _, shown := o.since(fact{upgradeShown, release}); shown {
		o.note(upgradeOver, release, v.Status.Upgrade.DistributionVersion == "", at)
	}
	if v.Status.Upgrade.DistributionVersion != "" {
		o.note(upgradeShown, releaseOf(name(v), v.Status.Upgrade.DistributionVersion), true, at)
	}
	o.seeReported(release, at)
}

// seeReported records a reported completion. The watches of two API servers are independent, so the report may be seen
// before the completion.
func (o *observer) seeReported(release string, at time.Time) {
	completed := fact{upgradeCompleted, release}
	_, isCompleted := o.since(completed)
	if _, isOver := o.since(fact{upgradeOver, release}); isCompleted && isOver {
		o.act(effect{handOver: upgradeReported, subject: release, at: at, needs: []need{{completed}}})
	}
}
