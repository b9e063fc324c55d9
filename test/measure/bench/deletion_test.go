package bench

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// story feeds an observer with objects, one each minute.
type story struct {
	*observer
	now time.Time
}

func newStory() *story { return &story{observer: newObserver(), now: time.Now()} }

func (s *story) sees(objects ...any) {
	for _, object := range objects {
		s.now = s.now.Add(time.Minute)
		s.see(object, s.now)
	}
}

func (s *story) deletes(objects ...any) {
	for _, object := range objects {
		s.now = s.now.Add(time.Minute)
		s.seeGone(object, s.now)
	}
}

func named(name string, deleted bool) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)}
	if deleted {
		meta.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return meta
}

func master(name string, deleted bool) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: named(name, deleted), Spec: clusterv1.MachineSpec{ClusterName: "c"}}
	m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	return m
}

func controlPlane(deleted bool) *controlplanev1.OpenshiftAssistedControlPlane {
	return &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: named("c", deleted)}
}

func TestDeletionIsMeasured(t *testing.T) {
	g := NewWithT(t)
	s := newStory()
	install := &hiveext.AgentClusterInstall{ObjectMeta: named("c", false)}
	s.sees(controlPlane(false), install, master("m1", false), master("m2", false))
	s.sees(controlPlane(true), master("m1", true), master("m2", true))
	s.deletes(master("m1", true), master("m2", true))
	s.sees(&hivev1.ClusterDeployment{ObjectMeta: named("c", true)})
	s.deletes(&hivev1.ClusterDeployment{ObjectMeta: named("c", true)}, install, controlPlane(true))
	measured, without := s.measured()
	g.Expect(without.unanswered).To(BeEmpty())
	g.Expect(times(measured[machinesDeleted])).To(ConsistOf(time.Minute, 2*time.Minute))
	g.Expect(times(measured[clusterDeregistered])).To(ConsistOf(time.Minute))
	g.Expect(times(measured[controlPlaneGone])).To(ConsistOf(time.Minute))
}

func TestStoppedDeletionIsUnanswered(t *testing.T) {
	install, deployment := &hiveext.AgentClusterInstall{ObjectMeta: named("c", false)}, &hivev1.ClusterDeployment{ObjectMeta: named("c", true)}
	for handOver, until := range map[string]func(*story){
		machinesDeleted:     func(*story) {},
		clusterDeregistered: func(s *story) { s.sees(master("m", true)); s.deletes(master("m", true)) },
		controlPlaneGone: func(s *story) {
			s.sees(master("m", true))
			s.deletes(master("m", true), deployment, install)
		},
	} {
		t.Run(handOver, func(t *testing.T) {
			g := NewWithT(t)
			s := newStory()
			s.sees(controlPlane(false), install, master("m", false), controlPlane(true))
			until(s)
			_, without := s.measured()
			g.Expect(subjects(partOne, without.unanswered)).To(ConsistOf(HavePrefix("one cluster: " + handOver + ": ns/")))
		})
	}
}

func TestMasterReplacesAnother(t *testing.T) {
	g := NewWithT(t)
	s := newStory()
	s.sees(master("m1", false), master("m2", false), master("m3", false))
	s.deletes(master("m2", true))
	s.sees(master("m4", false))
	measured, without := s.measured()
	g.Expect(without.unexplained).To(BeEmpty())
	g.Expect(times(measured[masterReplaced])).To(ConsistOf(time.Minute))
}

// The next Agent of a host has the same name. Its binding and approval count separately.
func TestReusedHostIsMeasuredAgain(t *testing.T) {
	g := NewWithT(t)
	s := newStory()
	agent := func(uid, machine, state string, bound bool) *aiv1beta1.Agent {
		a := &aiv1beta1.Agent{ObjectMeta: named("host", false)}
		a.UID, a.Labels = types.UID(uid), map[string]string{aiv1beta1.InfraEnvNameLabel: machine}
		a.Status.DebugInfo.State, a.Spec.Role = state, aiv1beta1.HostRoleWorker
		a.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{{}}
		if bound {
			a.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: "ns", Name: "c"}
		}
		return a
	}
	s.note(addsHosts, "ns/c", true, s.now)
	for _, machine := range []string{"first", "second"} {
		s.note(hostChosen, "ns/"+machine, true, s.now)
		s.sees(&clusterv1.Machine{ObjectMeta: named(machine, false), Spec: clusterv1.MachineSpec{ClusterName: "c"}},
			agent(machine, machine, "known-unbound", false))
		if machine == "first" {
			s.sees(agent(machine, machine, "known", true), &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: named(machine, true)})
			s.deletes(agent(machine, machine, "known", true))
		}
		s.now = s.now.Add(time.Minute)
	}
	measured, without := s.measured()
	g.Expect(times(measured[addedHostBound])).To(ConsistOf(time.Minute))
	g.Expect(times(measured[agentReleased])).To(ConsistOf(time.Minute))
	g.Expect(subjects(partOne, without.unanswered)).To(ConsistOf("one cluster: "+hostBound+": ns/host second"),
		"the second Agent was never bound")
}
