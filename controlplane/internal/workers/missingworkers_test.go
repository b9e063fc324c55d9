package workers

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMissingWorkersNameTheirBlocker(t *testing.T) {
	created := metav1.Unix(1000, 0)
	skew := metav1.Condition{
		Type: clusterv1.ScalingUpCondition, Status: metav1.ConditionTrue, Reason: clusterv1.ScalingUpReason,
		Message: "Scaling up from 1 to 2 replicas is blocked because:\n* MachineSet version (1.33.0) and ControlPlane version (1.31.0) do " +
			"not conform to the kubernetes version skew policy",
	}
	for name, tc := range map[string]struct {
		change   func(d *clusterv1.MachineDeployment, s *clusterv1.MachineSet)
		machines int
		want     []Missing
	}{
		"all exist": {func(*clusterv1.MachineDeployment, *clusterv1.MachineSet) {}, 2, nil},
		"one does not exist yet": {
			func(*clusterv1.MachineDeployment, *clusterv1.MachineSet) {},
			1,
			[]Missing{{Owner: "MachineDeployment w", UID: "d", Count: 1, Blocker: ""}},
		},
		"the MachineDeployment is paused": {
			func(d *clusterv1.MachineDeployment, _ *clusterv1.MachineSet) { d.Spec.Paused = ptr.To(true) },
			1,
			[]Missing{{Owner: "MachineDeployment w", UID: "d", Count: 1, Blocker: "spec.paused is true"}},
		},
		"paused by annotation": {func(d *clusterv1.MachineDeployment, _ *clusterv1.MachineSet) {
			d.Status.Conditions = []metav1.Condition{{Type: clusterv1.PausedCondition, Status: metav1.ConditionTrue}}
		}, 0, []Missing{{Owner: "MachineDeployment w", UID: "d", Count: 2, Blocker: "it is paused"}}},
		"its MachineSet fails preflight checks": {func(_ *clusterv1.MachineDeployment, s *clusterv1.MachineSet) {
			s.Status.Conditions = []metav1.Condition{skew}
		}, 1, []Missing{{
			Owner: "MachineDeployment w", UID: "d", Count: 1,
			Blocker: "because: * MachineSet version (1.33.0) and ControlPlane version (1.31.0) do not conform to the kubernetes version skew policy",
		}}},
		"it failed preflight checks, and no longer scales up": {func(_ *clusterv1.MachineDeployment, s *clusterv1.MachineSet) {
			passed := skew
			passed.Status = metav1.ConditionFalse
			s.Status.Conditions = []metav1.Condition{passed}
		}, 1, []Missing{{Owner: "MachineDeployment w", UID: "d", Count: 1}}},
		"being deleted": {func(d *clusterv1.MachineDeployment, _ *clusterv1.MachineSet) { d.DeletionTimestamp = &created }, 0, nil},
		"of another bootstrap provider": {func(d *clusterv1.MachineDeployment, _ *clusterv1.MachineSet) {
			d.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfigTemplate"
		}, 0, nil},
		"a MachineSet without owner": {func(d *clusterv1.MachineDeployment, s *clusterv1.MachineSet) {
			d.Spec.Replicas, s.OwnerReferences = ptr.To[int32](0), nil
		}, 1, []Missing{{Owner: "MachineSet w-1", UID: "s", Count: 1}}},
		"a MachineSet without owner that is being deleted": {func(d *clusterv1.MachineDeployment, s *clusterv1.MachineSet) {
			d.Spec.Replicas, s.OwnerReferences, s.DeletionTimestamp = ptr.To[int32](0), nil, &created
		}, 1, nil},
		"a MachineSet without owner, of another bootstrap provider": {func(d *clusterv1.MachineDeployment, s *clusterv1.MachineSet) {
			d.Spec.Replicas, s.OwnerReferences, s.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = ptr.To[int32](0), nil, "KubeadmConfigTemplate"
		}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "d", CreationTimestamp: created}}
			d.Spec.Replicas, d.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = ptr.To[int32](2), ConfigTemplateKind
			s := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
				Name:              "w-1",
				UID:               "s",
				CreationTimestamp: metav1.Unix(2000, 0),
				OwnerReferences:   []metav1.OwnerReference{{Kind: "MachineDeployment", UID: "d", Controller: ptr.To(true)}},
			}}
			s.Spec.Replicas, s.Spec.Template = d.Spec.Replicas, d.Spec.Template
			tc.change(&d, &s)
			var machines []*clusterv1.Machine
			for range tc.machines {
				machines = append(machines, &clusterv1.Machine{
					ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", UID: "s", Controller: ptr.To(true)}}},
				})
			}
			NewWithT(t).Expect(FindMissing([]clusterv1.MachineDeployment{d}, []clusterv1.MachineSet{s}, machines)).To(Equal(tc.want))
		})
	}
}

// The index returns objects in random order. The result must not depend on it.
func TestMissingWorkersAreInAStableOrder(t *testing.T) {
	blocked := func(name, why string) clusterv1.MachineSet {
		s := clusterv1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "MachineDeployment", UID: "a", Controller: ptr.To(true)}},
			},
		}
		s.Status.Conditions = []metav1.Condition{
			{Type: clusterv1.ScalingUpCondition, Status: metav1.ConditionTrue, Message: "Scaling up is blocked " + why},
		}
		return s
	}
	deployment := func(name string) clusterv1.MachineDeployment {
		d := clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		d.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = ConfigTemplateKind
		return d
	}
	deployments := []clusterv1.MachineDeployment{deployment("b"), deployment("a")}
	sets := []clusterv1.MachineSet{blocked("a-2", "later"), blocked("a-1", "first")}
	want := FindMissing(deployments, sets, nil)
	g := NewWithT(t)
	g.Expect(want).To(
		HaveExactElements(
			And(HaveField("Owner", "MachineDeployment a"), HaveField("Blocker", "first")), HaveField("Owner", "MachineDeployment b"),
		),
	)
	slices.Reverse(deployments)
	slices.Reverse(sets)
	g.Expect(FindMissing(deployments, sets, nil)).To(Equal(want))
}
