package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

func TestMachinesReadyIsCoarseUntilTheClusterIsInstalled(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	s.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "m1"}}}
	conditions.Set(s.Machines[0], yes(clusterv1.MachineReadyCondition, "Ready"))
	conditions.Set(s.Machines[1], no(clusterv1.MachineReadyCondition, "NotReady", "no NTP at this moment"))
	c := viewOf(s).machinesReady()
	g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(c.Message).To(And(ContainSubstring("1 Machines are not ready"), ContainSubstring("m1"), Not(ContainSubstring("NTP"))))

	s.Progress.Phase = "Installed"
	s.Install = installOf("adding-hosts")
	g.Expect(viewOf(s).machinesReady().Message).To(ContainSubstring("NTP"))
}
