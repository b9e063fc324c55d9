package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestLateWorkerWaitsForTheClusterToAcceptHosts(t *testing.T) {
	w := booted(t)
	install := read(w, "cp", lab()["install"])
	w.setState(install, "installing")
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "it is not bound while the cluster installs")
	w.setState(install, "adding-hosts")
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "it is bound once the cluster accepts hosts")
}

// TestNoHostForAMachineThatIsBeingDeleted covers a Machine whose config Cluster API deletes only after the host was
// given back: until then a host that shows up would be installed, and wiped in the middle of it. Of a Cluster that goes
// the workers are deleted first, while the Machines of the control plane are not.
func TestNoHostForAMachineThatIsBeingDeleted(t *testing.T) {
	t.Run("Machine", func(t *testing.T) {
		noHostAfter(t, func(w *world) {
			machine := read(w, "m", &clusterv1.Machine{})
			w.change(machine, func() { machine.Finalizers = []string{clusterv1.MachineFinalizer} })
			w.remove(machine)
		})
	})
	t.Run("Cluster", func(t *testing.T) {
		noHostAfter(t, func(w *world) {
			cluster := read(w, "c", &clusterv1.Cluster{})
			w.change(cluster, func() { cluster.Finalizers = []string{clusterv1.ClusterFinalizer} })
			w.remove(cluster)
		})
	})
}

// noHostAfter plays a deletion before, between and after what is told to an Agent.
func noHostAfter(t *testing.T, deleted func(*world)) {
	t.Helper()
	t.Run("before its host is known", func(t *testing.T) {
		w := booted(t)
		deleted(w)
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)
		w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "it is not bound")
		w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	})
	t.Run("when its host was bound", func(t *testing.T) {
		w := booted(t)
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		w.registerWithCluster("a", "known")
		deleted(w)
		w.reconcile()
		w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "it was bound, and is released with the config")
		w.Expect(w.agent("a").Spec.Approved).To(BeFalse(), "it is not approved")
	})
	t.Run("after its host was approved", func(t *testing.T) {
		w := booted(t)
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		w.registerWithCluster("a", "known")
		w.reconcile()
		w.Expect(w.agent("a").Spec.Approved).To(BeTrue())
		deleted(w)
		w.reconcile()
		w.lasts(bootstrapv1.HostApprovedCondition, metav1.ConditionTrue, bootstrapv1.HostApprovedReason)
	})
}

// TestWorkerOfAClusterThatIsInstalledAlone covers single nodes: one known host more, and assisted-service would never start.
func TestWorkerOfAClusterThatIsInstalledAlone(t *testing.T) {
	w := booted(t)
	install := read(w, "cp", &hiveext.AgentClusterInstall{})
	w.change(install, func() { install.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: 1} })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "it is not bound to a cluster that is installed without workers")
	w.setState(install, "adding-hosts")
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "it is bound after the installation")
}

// TestNoHostForAClusterThatIsReregistered covers an assisted-service whose database came back empty or older: it would
// install the host into a cluster that does not exist.
func TestNoHostForAClusterThatIsReregistered(t *testing.T) {
	runs := func(w *world) {
		w.create(&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp-0", Labels: map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""}},
			Spec:       clusterv1.MachineSpec{ClusterName: "c", ProviderID: "metal3://x", InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: metal3.MachineKind, Name: "cp-0"}},
		})
	}
	stated := func(w *world) {
		deployment := read(w, "cp", &hivev1.ClusterDeployment{})
		w.change(deployment, func() { deployment.Spec.Installed = true })
	}
	for evidence, show := range map[string]func(w *world){"the control plane has Nodes": runs, "the ClusterDeployment says that it is installed": stated} {
		t.Run(evidence, func(t *testing.T) {
			w := booted(t)
			show(w)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterReregisteredReason)
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "it is not bound")
			w.setState(read(w, "cp", &hiveext.AgentClusterInstall{}), "adding-hosts")
			w.reconcile()
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "it is bound to the cluster that was imported")
		})
		t.Run(evidence+", and the host was bound before", func(t *testing.T) {
			w := booted(t)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.registerWithCluster("a", "known")
			show(w)
			w.reconcile()
			w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterReregisteredReason)
			w.Expect(w.agent("a").Spec.Approved).To(BeFalse(), "it is not approved")
		})
	}
}

// TestRefusedBindingIsTakenBack covers the race in which the installation starts between our look and our write.
func TestRefusedBindingIsTakenBack(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.setState(read(w, "cp", lab()["install"]), "preparing-for-installation")
	agent := w.agent("a")
	w.change(agent, func() {
		agent.Status.Conditions[0] = conditionsv1.Condition{Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionFalse, Reason: "InputError"}
	})
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "it is no longer bound")
}

// TestApprovalFromAnEarlierLife covers a host that was unbound: its approval stays on the Agent, and would install it
// as soon as it is bound.
func TestApprovalFromAnEarlierLife(t *testing.T) {
	w := booted(t)
	agent := discovered("a", "m", bootMAC)
	agent.Spec.Approved = true
	w.create(agent)
	w.reconcile()
	bound := w.agent("a")
	w.Expect(bound.Spec.ClusterDeploymentName).NotTo(BeNil(), "it is bound")
	w.Expect(bound.Spec.Approved).To(BeFalse(), "it is not approved before the service has taken in what the host is told")
}

// A process that stood still between proof and approval must not bind and approve again what another has refused, and unbound, meanwhile.
func TestARefusedAgentIsNotApprovedByAProcessThatIsBehind(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.outdated = w.agent("a")
	refused := w.agent("a")
	w.change(refused, func() { refused.Spec.ClusterDeploymentName = nil })
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "m"}})
	w.Expect(err).To(MatchError(apierrors.IsConflict, "a conflict"))
	w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil())
}

// TestApprovalIsNotTakenBack covers a cache that does not have our approval yet: what it shows looks like an Agent that
// is to be told everything first.
func TestApprovalIsNotTakenBack(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	before := w.agent("a")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "it is approved")
	w.outdated = before
	w.outdated.ResourceVersion = "1"
	w.outdated.Status.DebugInfo.State = "preparing-for-installation"
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "m"}})
	w.Expect(err).To(MatchError(apierrors.IsConflict, "a conflict"))
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "the approval is not taken back")
}
