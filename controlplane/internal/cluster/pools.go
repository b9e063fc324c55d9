package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// pools are the MachineConfigPools: what holds the Nodes of a cluster back. Nobody asks for them unless it is being upgraded, or Nodes lag behind.
var pools = resource{
	name: "MachineConfigPools", path: "/apis/" + machineconfigurationv1.GroupVersion.String() + "/machineconfigpools",
	demand: (*connection).poolsMatter, onlyIfNeeded: true,
	read: readPools,
}

func readPools(ctx context.Context, c client.Client) (string, func(*connection), error) {
	list := &machineconfigurationv1.MachineConfigPoolList{}
	if err := c.List(ctx, list); err != nil {
		return "", nil, fmt.Errorf("cannot list the MachineConfigPools of the workload cluster: %w", err)
	}
	var found []facts.Pool
	for i := range list.Items {
		if pool := PoolOf(&list.Items[i]); pool.Name != "" && (pool.Paused || pool.Degraded != "" || pool.Behind) {
			found = append(found, pool)
		}
	}
	slices.SortFunc(found, func(a, b facts.Pool) int { return cmp.Compare(a.Name, b.Name) })
	found = slices.CompactFunc(found, func(a, b facts.Pool) bool { return a.Name == b.Name }) // the status takes each name once
	return list.ResourceVersion, func(l *connection) { l.pools = found }, nil
}

// degradations are the conditions that say why a pool is degraded; the one that says that it is has no words.
var degradations = []machineconfigurationv1.MachineConfigPoolConditionType{
	machineconfigurationv1.MachineConfigPoolNodeDegraded, machineconfigurationv1.MachineConfigPoolRenderDegraded,
	machineconfigurationv1.MachineConfigPoolImageBuildDegraded, machineconfigurationv1.MachineConfigPoolPinnedImageSetsDegraded,
}

// PoolOf is what matters of a pool. To pause one without Nodes holds nothing back.
func PoolOf(pool *machineconfigurationv1.MachineConfigPool) facts.Pool {
	told := map[machineconfigurationv1.MachineConfigPoolConditionType]machineconfigurationv1.MachineConfigPoolCondition{}
	for _, c := range pool.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			told[c.Type] = c
		}
	}
	_, updated := told[machineconfigurationv1.MachineConfigPoolUpdated]
	found := facts.Pool{
		Name: bound.Identifier(pool.Name, longestName), Paused: pool.Spec.Paused && pool.Status.MachineCount > 0,
		Behind: pool.Status.MachineCount > 0 && (!updated || pool.Status.ObservedGeneration < pool.Generation),
	}
	if c, degraded := told[machineconfigurationv1.MachineConfigPoolDegraded]; degraded {
		found.Degraded = cmp.Or(shortened(c.Message), shortened(c.Reason))
		for _, kind := range degradations {
			found.Degraded = cmp.Or(found.Degraded, shortened(told[kind].Message), shortened(told[kind].Reason))
		}
		found.Degraded = cmp.Or(found.Degraded, "it does not say why")
	}
	return found
}

// poolsMatter reports whether anybody asks how the pools are; the caller holds the lock.
func (l *connection) poolsMatter() bool {
	released := l.released()
	return l.poolsNeeded || released != nil && released.upgrading != ""
}

// poolsBegin reports whether the cluster is to be visited for its pools; the caller holds the lock.
func (l *connection) poolsBegin(asked bool) bool {
	if asked || l.watching == nil || !l.poolsMatter() {
		return false
	}
	l.resume()
	return true
}

// AwaitPools says whether it matters how the MachineConfigPools of a cluster are although it is not being upgraded any more.
func (c *Clusters) AwaitPools(cluster client.ObjectKey, needed bool) {
	l := c.known(cluster)
	if l == nil {
		return
	}
	l.mu.Lock()
	asked := l.poolsMatter()
	l.poolsNeeded = needed
	begins := l.poolsBegin(asked)
	l.mu.Unlock()
	if begins {
		l.again()
	}
}
