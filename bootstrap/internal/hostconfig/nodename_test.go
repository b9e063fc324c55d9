package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// former returns a Machine with a Node name and a foreign finalizer: it is deleted only after the finalizer
// is removed.
func former(cluster, node string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "former", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}, Finalizers: []string{
				clusterv1.MachineFinalizer,
			},
		},
		Spec:   clusterv1.MachineSpec{ClusterName: cluster},
		Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: node}},
	}
}

// TestHostWaitsForNodeNameOfDeletedMachine: a host returns while its former Machine is still being deleted.
// The last step of that deletion deletes the Node of the same name.
func TestHostWaitsForNodeNameOfDeletedMachine(t *testing.T) {
	w := booted(t)
	machine := former("c", "rack1-u7")
	w.create(machine)
	w.remove(machine)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.NodeNameTakenReason)
	w.Expect(w.message(bootstrapv1.HostBoundCondition)).To(ContainSubstring("when that Machine and its Node are deleted"))
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "not bound")

	machine = read(w, "former", &clusterv1.Machine{})
	waiting := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())}
	w.Expect(w.reconciler.ofMachine(t.Context(), machine)).To(ContainElement(waiting), "reconciled")
	w.change(machine, func() { machine.Finalizers = nil })
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "bound after the Machine is deleted")
	w.Expect(w.reconciler.ofMachine(t.Context(), machine)).NotTo(ContainElement(waiting), "no longer waiting")
}

// TestNodeNameTakenBeforeApproval: a Node with the host's name appears between its binding and its approval.
func TestNodeNameTakenBeforeApproval(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.create(former("c", "rack1-u7"))
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.NodeNameTakenReason)
	w.Expect(w.message(bootstrapv1.HostBoundCondition)).To(ContainSubstring("nodeRegistration.name"))
	w.Expect(w.agent("a").Spec.Approved).To(BeFalse(), "not approved")
}

func TestFreeNodeNames(t *testing.T) {
	for situation, machine := range map[string]*clusterv1.Machine{
		"a Machine of another cluster": former("other", "rack1-u7"),
		"a Node of another name":       former("c", "rack1-u8"),
		"a Machine without a Node":     former("c", ""),
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			w.create(machine, discovered("a", "m", bootMAC))
			w.reconcile()
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "bound")
		})
	}
}

// TestDeletedConfigDoesNotWaitForNodeName: the wait is forgotten with the config.
func TestDeletedConfigDoesNotWaitForNodeName(t *testing.T) {
	w := booted(t)
	w.create(former("c", "rack1-u7"), discovered("a", "m", bootMAC))
	w.reconcile()
	w.Expect(w.reconciler.binder.WaitingForName(namespace, "rack1-u7")).NotTo(BeEmpty())
	config := w.config()
	w.change(config, func() { config.Finalizers = nil })
	w.remove(config)
	w.reconcile()
	w.Expect(w.reconciler.binder.WaitingForName(namespace, "rack1-u7")).To(BeEmpty())
}
