package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestChangesThatReconcile(t *testing.T) {
	machine := func(change func(*clusterv1.Machine)) client.Object { m := &clusterv1.Machine{}; change(m); return m }
	agent := func(change func(*aiv1beta1.Agent)) client.Object {
		a := discovered("a", "m", bootMAC)
		change(a)
		return informer.TrimAgent(a)
	}
	host := func(change func(*metal3.Host)) client.Object { h := bareMetalHost(); change(h); return h }
	infra := func(change func(u *unstructured.Unstructured)) client.Object {
		u := metal3Machine("live-iso")
		change(u)
		return u
	}
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, fields...) }
	}
	reported := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}, Status: bootstrapv1.OpenshiftAssistedConfigStatus{DataSecretName: "m"},
	}
	ours := New(Options{})
	ours.remember(scope.New(&facts.Facts{Config: reported}), &reported.Status)
	for situation, tc := range map[string]struct {
		predicate     predicate.Predicate
		before, after client.Object
		passes        bool
	}{
		"status written by this provider":  {ours.configChanges(), &bootstrapv1.OpenshiftAssistedConfig{}, reported, false},
		"status removed by another client": {ours.configChanges(), reported, &bootstrapv1.OpenshiftAssistedConfig{}, true},
		"another spec": {
			ours.configChanges(), &bootstrapv1.OpenshiftAssistedConfig{},
			&bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Generation: 2}}, true,
		},
		"an annotation": {ours.configChanges(), &bootstrapv1.OpenshiftAssistedConfig{}, &bootstrapv1.OpenshiftAssistedConfig{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.PausedAnnotation: ""}},
		}, true},
		"the phase of a Machine": {
			informer.MachineChanges, &clusterv1.Machine{},
			machine(func(m *clusterv1.Machine) { m.Status.Phase = "Running" }), false,
		},
		"the Node of a Machine": {
			informer.MachineChanges, &clusterv1.Machine{},
			machine(func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }), true,
		},
		"a Node that is ready": {informer.MachineChanges, &clusterv1.Machine{}, machine(func(m *clusterv1.Machine) {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue}}
		}), true},
		"the percentage of an Agent": {
			informer.AgentChanges, agent(func(*aiv1beta1.Agent) {}),
			agent(func(a *aiv1beta1.Agent) { a.Status.Progress.InstallationPercentage = 7 }), false,
		},
		"the stage of an Agent": {
			informer.AgentChanges, agent(func(*aiv1beta1.Agent) {}),
			agent(func(a *aiv1beta1.Agent) { a.Status.Progress.CurrentStage = "Rebooting" }), true,
		},
		"the state of an Agent": {
			informer.AgentChanges, agent(func(*aiv1beta1.Agent) {}),
			agent(func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = "known" }), true,
		},
		"the rest of a host's status": {
			informer.HostChanges, host(func(*metal3.Host) {}),
			host(func(h *metal3.Host) { h.ResourceVersion = "2" }), false,
		},
		"an inspection": {
			informer.HostChanges, host(func(*metal3.Host) {}),
			host(func(h *metal3.Host) { h.Status.HardwareDetails = &metal3.Hardware{} }), true,
		},
		"conditions of a Metal3Machine": {
			informer.InfraMachineChanges, infra(set("x", "status", "phase")), infra(set("y", "status", "phase")),
			false,
		},
		"a Metal3Machine that is ready": {
			informer.InfraMachineChanges, infra(set(false, "status", "ready")),
			infra(set(true, "status", "ready")), true,
		},
		"its rendered metadata": {
			informer.InfraMachineChanges, infra(set("a", "status", "metaData", "name")),
			infra(set("b", "status", "metaData", "name")), true,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(tc.predicate.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.passes), "passes")
		})
	}
}
