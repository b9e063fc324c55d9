package objects

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// pools are the MachineConfigPools, which show why Nodes are not updated. They are needed only during an
// upgrade, and while Nodes lag behind.
var pools = Resource{
	Name: "MachineConfigPools", Path: "/apis/" + machineconfigurationv1.GroupVersion.String() + "/machineconfigpools",
	Demand: (*State).NeedsPools, OnlyIfNeeded: true,
	Read: readPools,
}

// readPools reads the MachineConfigPools that block or delay an update.
func readPools(ctx context.Context, c client.Client) (string, func(*State), error) {
	list := &machineconfigurationv1.MachineConfigPoolList{}
	if err := c.List(ctx, list); err != nil {
		return "", nil, fmt.Errorf("cannot list the MachineConfigPools of the workload cluster: %w", err)
	}
	var found []workload.Pool
	var unpaused []string
	for i := range list.Items {
		pool := PoolOf(&list.Items[i])
		if pool.Name != "" && (pool.Paused || pool.Degraded != "" || pool.Behind || pool.PausedUntil != "") {
			found = append(found, pool)
		}
		if !pool.Paused && !pool.ControlPlane() && list.Items[i].Status.MachineCount > 0 {
			unpaused = append(unpaused, pool.Name)
		}
	}
	slices.Sort(unpaused)
	slices.SortFunc(found, func(a, b workload.Pool) int { return cmp.Compare(a.Name, b.Name) })
	// The names in our status are unique.
	found = slices.CompactFunc(found, func(a, b workload.Pool) bool { return a.Name == b.Name })
	return list.ResourceVersion, func(s *State) { s.pools, s.unpaused = found, unpaused }, nil
}

// degradations are the conditions that explain why a pool is degraded. The condition Degraded itself has no
// message.
var degradations = []machineconfigurationv1.MachineConfigPoolConditionType{
	machineconfigurationv1.MachineConfigPoolNodeDegraded, machineconfigurationv1.MachineConfigPoolRenderDegraded,
	machineconfigurationv1.MachineConfigPoolImageBuildDegraded, machineconfigurationv1.MachineConfigPoolPinnedImageSetsDegraded,
}

// PoolOf returns the facts of a pool. A paused pool without Nodes blocks nothing, and is not reported as
// paused.
func PoolOf(pool *machineconfigurationv1.MachineConfigPool) workload.Pool {
	conditions := map[machineconfigurationv1.MachineConfigPoolConditionType]machineconfigurationv1.MachineConfigPoolCondition{}
	for _, c := range pool.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			conditions[c.Type] = c
		}
	}
	_, updated := conditions[machineconfigurationv1.MachineConfigPoolUpdated]
	found := workload.Pool{
		Name: bound.Identifier(pool.Name, longestName), Paused: pool.Spec.Paused && pool.Status.MachineCount > 0,
		Behind: pool.Status.MachineCount > 0 && (!updated || pool.Status.ObservedGeneration < pool.Generation),
	}
	found.PausedUntil, found.PausedSince = ourPause(pool)
	if c, degraded := conditions[machineconfigurationv1.MachineConfigPoolDegraded]; degraded {
		found.Degraded = cmp.Or(truncated(c.Message), truncated(c.Reason))
		for _, kind := range degradations {
			found.Degraded = cmp.Or(found.Degraded, truncated(conditions[kind].Message), truncated(conditions[kind].Reason))
		}
		found.Degraded = cmp.Or(found.Degraded, "no reason is reported")
	}
	return found
}

// The annotations of a MachineConfigPool that this provider pauses: the Kubernetes version of the control plane that ends the
// pause, and its start (RFC 3339). A pause without them belongs to the user.
const (
	PausedUntilAnnotation = "controlplane.cluster.x-k8s.io/paused-until-version"
	PausedSinceAnnotation = "controlplane.cluster.x-k8s.io/paused-since"
)

// ourPause returns the annotations of our pause; "" if this provider does not pause the pool.
func ourPause(pool *machineconfigurationv1.MachineConfigPool) (until string, since time.Time) {
	since, err := time.Parse(time.RFC3339, pool.Annotations[PausedSinceAnnotation])
	version, invalid := versions.ParseKubernetes(pool.Annotations[PausedUntilAnnotation])
	if err != nil || invalid != nil {
		return "", time.Time{}
	}
	return "v" + version.String(), since
}
