package workers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// Missing are worker Machines that Cluster API has not created.
type Missing struct {
	// Owner is kind and name of the MachineDeployment or MachineSet.
	Owner string
	// UID is the UID of the owner.
	UID types.UID
	// Count is the number of its Machines that do not exist.
	Count int32
	// Blocker is why Cluster API does not create them; "" if no condition states it.
	Blocker string
	// Since is when the caller first observed that Machines of the owner are missing. An owner that is scaled
	// up may be old.
	Since time.Time
}

// FindMissing compares the replicas of MachineDeployments, and of MachineSets without owner, with the
// Machines that exist. The result is sorted by owner and does not depend on the order of the arguments, which
// come from an index in random order. A status that names the owners would otherwise change again and again.
func FindMissing(
	deployments []clusterv1.MachineDeployment, sets []clusterv1.MachineSet, machines []*clusterv1.Machine,
) []Missing {
	created := map[types.UID]int32{}
	for _, m := range machines {
		if owner := metav1.GetControllerOf(m); owner != nil {
			created[owner.UID]++
		}
	}
	blockers := map[types.UID]string{}
	var missing []Missing
	sets = slices.SortedFunc(
		slices.Values(sets), func(a, b clusterv1.MachineSet) int { return cmp.Compare(a.Name, b.Name) },
	) // the first blocker of several counts
	for i := range sets {
		set := &sets[i]
		owner := metav1.GetControllerOf(set)
		switch {
		case owner != nil && owner.Kind == "MachineDeployment":
			created[owner.UID] += created[set.UID]
			blockers[owner.UID] = cmp.Or(blockers[owner.UID], Blocker(set))
		case set.DeletionTimestamp.IsZero() && set.Spec.Template.Spec.Bootstrap.ConfigRef.Kind == ConfigTemplateKind:
			if count := ptr.Deref(set.Spec.Replicas, 1) - created[set.UID]; count > 0 {
				missing = append(missing, Missing{Owner: "MachineSet " + set.Name, UID: set.UID, Count: count, Blocker: Blocker(set)})
			}
		}
	}
	for i := range deployments {
		d := &deployments[i]
		count := ptr.Deref(d.Spec.Replicas, 1) - created[d.UID]
		if count <= 0 || !d.DeletionTimestamp.IsZero() || d.Spec.Template.Spec.Bootstrap.ConfigRef.Kind != ConfigTemplateKind {
			continue
		}
		blocker := cmp.Or(blockers[d.UID], Blocker(d))
		if ptr.Deref(d.Spec.Paused, false) { // without MachineSet Cluster API creates none then, and sets no condition
			blocker = "spec.paused is true"
		}
		missing = append(missing, Missing{Owner: "MachineDeployment " + d.Name, UID: d.UID, Count: count, Blocker: blocker})
	}
	slices.SortFunc(missing, func(a, b Missing) int { return cmp.Compare(a.Owner, b.Owner) })
	return missing
}

// Blocker returns why Cluster API creates no Machines for a MachineDeployment or MachineSet, by its
// conditions; "" if they state nothing. The message of ScalingUp contains failed preflight checks, such as a
// version skew between workers and control plane. Source: machineset_controller_status.go of Cluster API
// 1.12 to 1.15.
func Blocker(obj conditions.Getter) string {
	if conditions.IsTrue(obj, clusterv1.PausedCondition) {
		return "it is paused"
	}
	scaling := conditions.Get(obj, clusterv1.ScalingUpCondition)
	if scaling == nil || scaling.Status != metav1.ConditionTrue {
		return ""
	}
	if _, why, blocked := strings.Cut(scaling.Message, "is blocked "); blocked {
		return strings.Join(strings.Fields(why), " ")
	}
	return ""
}
