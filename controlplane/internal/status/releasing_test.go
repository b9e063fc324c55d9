package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
)

// Cluster API's contract: ScalingDown is about the number of Machines alone. Each blocker is in one of the two conditions.
func TestReleaseOfHostsIsNoScaleDown(t *testing.T) {
	const (
		waits   = "the host of Machine m0 is not touched"
		rule    = "MachineDrainRule c1-guard-pods is foreign"
		surplus = "Machine m1 is not deleted"
	)
	type expected struct {
		status          metav1.ConditionStatus
		reason, message string
	}
	isFalse := func(reason, message string) expected { return expected{metav1.ConditionFalse, reason, message} }
	isTrue := func(reason, message string) expected { return expected{metav1.ConditionTrue, reason, message} }
	block := func(task tasks.Task, reason, message string) func(*View) {
		return func(v *View) { v.Found.Block(task, reason, message) }
	}
	released := func(records string) func(*View) {
		return func(v *View) {
			v.ControlPlane.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: records}
		}
	}
	of := func(replicas int32) func(*View) {
		return func(v *View) { v.ControlPlane.Spec.Replicas = &replicas }
	}
	remove := func(names ...string) func(*View) {
		return func(v *View) {
			for _, m := range v.Machines {
				for _, name := range names {
					if m.Name == name {
						m.DeletionTimestamp = ptr.To(metav1.Now())
					}
				}
			}
		}
	}
	notScaling, notReleasing := isFalse(clusterv1.NotScalingDownReason, ""), isFalse(controlplanev1.NotReleasingReason, "")
	for situation, tc := range map[string]struct {
		changes                []func(*View)
		scalingDown, releasing expected
	}{
		"nothing is removed": {nil, notScaling, notReleasing},
		"the host of a replaced Machine waits": {
			[]func(*View){remove("m0"), block(tasks.HostRelease, controlplanev1.EtcdQuorumAtRiskReason, waits)},
			notScaling, isTrue(controlplanev1.EtcdQuorumAtRiskReason, waits),
		},
		"the host of a replaced Machine is being released": {
			[]func(*View){remove("m0")},
			notScaling, isTrue(controlplanev1.HostsReleasingReason, "releasing the host of Machine m0: see its condition Deleting"),
		},
		"two Machines are being deleted, and a third left its Node": {
			[]func(*View){remove("m0", "m1"), released(`[{"machine":"m9","node":"n9","uid":"n9"}]`)},
			notScaling, isTrue(controlplanev1.HostsReleasingReason,
				"releasing the hosts of Machines m0, m1: see their condition Deleting; cleaning up after the host of Node n9"),
		},
		"a member is removed, and its Machine still has the hook": {
			[]func(*View){remove("m0"), released(`[{"machine":"m0","machineUID":"m0","node":"n0","uid":"n0"}]`)},
			notScaling, isTrue(controlplanev1.HostsReleasingReason, "releasing the host of Machine m0: see its condition Deleting"),
		},
		"a host that was released is cleaned up": {
			[]func(*View){released(`[{"machine":"m9"}]`)},
			notScaling, isTrue(controlplanev1.HostsReleasingReason, "cleaning up after the host of Machine m9"),
		},
		"the record is invalid": {
			[]func(*View){released("n0"), block(tasks.HostRelease, controlplanev1.InvalidConfigurationReason, "the annotation cannot be read")},
			notScaling, isTrue(controlplanev1.InvalidConfigurationReason, "the annotation cannot be read"),
		},
		"a Machine that was taken out waits": {
			[]func(*View){block(tasks.HostRelease, controlplanev1.ControlPlaneLabelsMissingReason, waits)},
			notScaling, isTrue(controlplanev1.ControlPlaneLabelsMissingReason, waits),
		},
		"a foreign rule may block drains": {
			[]func(*View){block(tasks.GuardExclusion, controlplanev1.DrainRuleNotOursReason, rule)},
			notScaling, isFalse(controlplanev1.DrainRuleNotOursReason, rule),
		},
		"a foreign rule may block a drain that is not completed": {
			[]func(*View){
				remove("m0"), block(tasks.HostRelease, controlplanev1.WaitingForDrainReason, waits),
				block(tasks.GuardExclusion, controlplanev1.DrainRuleNotOursReason, rule),
			},
			notScaling, isTrue(controlplanev1.WaitingForDrainReason, waits+". "+rule),
		},
		"a surplus Machine is not deleted": {
			[]func(*View){of(1), block(tasks.ScaleDown, controlplanev1.EtcdQuorumAtRiskReason, surplus)},
			isTrue(controlplanev1.EtcdQuorumAtRiskReason, "scaling down from 3 to 1 Machine: "+surplus), notReleasing,
		},
		"a foreign rule may block the drains of a scale-down": {
			[]func(*View){of(1), block(tasks.GuardExclusion, controlplanev1.DrainRuleNotOursReason, rule)},
			isTrue(clusterv1.ScalingDownReason, "scaling down from 3 to 1 Machine"), isFalse(controlplanev1.DrainRuleNotOursReason, rule),
		},
		"the host of a surplus Machine waits": {
			[]func(*View){of(1), remove("m0"), block(tasks.HostRelease, controlplanev1.WaitingForEtcdReason, waits)},
			isTrue(clusterv1.ScalingDownReason, "scaling down from 3 to 1 Machine: see the condition HostsReleasing"),
			isTrue(controlplanev1.WaitingForEtcdReason, waits),
		},
		"a stuck Machine has a successor": {
			[]func(*View){of(2), remove("m0"), block(tasks.HostRelease, controlplanev1.InfrastructureDeletionStuckReason, waits)},
			isTrue(clusterv1.ScalingDownReason, "scaling down from 3 to 2 Machines: see the condition HostsReleasing"),
			isTrue(controlplanev1.InfrastructureDeletionStuckReason, waits),
		},
		"the control plane is being deleted": {
			[]func(*View){remove("m0", "m1", "m2"), func(v *View) { v.ControlPlane.DeletionTimestamp = ptr.To(metav1.Now()) }},
			isTrue(clusterv1.ScalingDownReason, "scaling down from 3 to 0 Machines"), notReleasing,
		},
		"the cluster is not installed": {
			[]func(*View){remove("m0"), func(v *View) { v.Phase = controlplanev1.InstallationInstalling }}, notScaling, notReleasing,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := installedWith("m0", "m1", "m2")
			for _, change := range tc.changes {
				change(v)
			}
			v.Compose(v.ControlPlane)
			for kind, wanted := range map[string]expected{
				controlplanev1.ScalingDownCondition: tc.scalingDown, controlplanev1.HostsReleasingCondition: tc.releasing,
			} {
				c := conditions.Get(v.ControlPlane, kind)
				g.Expect(c).NotTo(BeNil(), kind)
				g.Expect(expected{c.Status, c.Reason, c.Message}).To(Equal(wanted), kind)
			}
		})
	}
}

// installedWith returns the input of the conditions of an installed cluster with these Machines.
func installedWith(names ...string) *View {
	f := factsOf(nil)
	f.ControlPlane.Spec.Replicas = ptr.To(int32(len(names)))
	for _, name := range names {
		f.Machines = append(f.Machines, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
	f.Phase = controlplanev1.InstallationInstalled
	return &View{Facts: f, Found: tasks.FindingsOf(f), Removal: func() (*removal.Situation, error) { return removal.Of(f) }}
}
