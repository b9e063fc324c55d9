package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestLateWorkerWaitsForClusterToAcceptHosts(t *testing.T) {
	w := booted(t)
	install := read(w, "cp", lab()["install"])
	w.setState(install, "installing")
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "not bound while the cluster installs")
	w.setState(install, "adding-hosts")
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "bound once the cluster accepts hosts")
}

// TestDeletedMachineGetsNoHost: Cluster API deletes the config only after the host is deprovisioned. A host
// that registers until then would be installed, and wiped during its installation. The deletion of a Cluster
// deletes the workers before the Machines of the control plane.
func TestDeletedMachineGetsNoHost(t *testing.T) {
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

// noHostAfter tests a deletion before, between and after the writes to an Agent.
func noHostAfter(t *testing.T, deleted func(*world)) {
	t.Helper()
	t.Run("before its host is known", func(t *testing.T) {
		w := booted(t)
		deleted(w)
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)
		w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "not bound")
		w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	})
	t.Run("when its host was bound", func(t *testing.T) {
		w := booted(t)
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		w.registerWithCluster("a", "known")
		deleted(w)
		w.reconcile()
		w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "bound before, and released with the config")
		w.Expect(w.agent("a").Spec.Approved).To(BeFalse(), "not approved")
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

// TestWorkerOfSingleNodeWaitsForInstallation: with one more host, assisted-service would never start the
// installation.
func TestWorkerOfSingleNodeWaitsForInstallation(t *testing.T) {
	w := booted(t)
	install := read(w, "cp", &hiveext.AgentClusterInstall{})
	w.change(install, func() { install.Spec.ProvisionRequirements = hiveext.ProvisionRequirements{ControlPlaneAgents: 1} })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "not bound while the cluster is installed without workers")
	w.setState(install, "adding-hosts")
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "bound after the installation")
}

// TestReregisteredClusterGetsNoHost: the database of assisted-service was lost or restored from an older
// backup. It would install the host into a cluster that does not exist.
func TestReregisteredClusterGetsNoHost(t *testing.T) {
	runs := func(w *world) {
		w.create(&clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "cp-0",
				Labels: map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
			},
			Spec: clusterv1.MachineSpec{
				ClusterName: "c", ProviderID: "metal3://x",
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: metal3.MachineKind, Name: "cp-0"},
			},
		})
	}
	stated := func(w *world) {
		deployment := read(w, "cp", &hivev1.ClusterDeployment{})
		w.change(deployment, func() { deployment.Spec.Installed = true })
	}
	for evidence, show := range map[string]func(w *world){
		"the control plane has Nodes":                  runs,
		"the ClusterDeployment is marked as installed": stated,
	} {
		t.Run(evidence, func(t *testing.T) {
			w := booted(t)
			show(w)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterReregisteredReason)
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "not bound")
			w.setState(read(w, "cp", &hiveext.AgentClusterInstall{}), "adding-hosts")
			w.reconcile()
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "bound to the imported cluster")
		})
		t.Run(evidence+", and the host was bound before", func(t *testing.T) {
			w := booted(t)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.registerWithCluster("a", "known")
			show(w)
			w.reconcile()
			w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterReregisteredReason)
			w.Expect(w.agent("a").Spec.Approved).To(BeFalse(), "not approved")
		})
	}
}

// TestRefusedBindingIsReverted: the installation starts between the read and the write of this provider.
func TestRefusedBindingIsReverted(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.setState(read(w, "cp", lab()["install"]), "preparing-for-installation")
	agent := w.agent("a")
	w.change(agent, func() {
		agent.Status.Conditions[0] = conditionsv1.Condition{
			Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionFalse,
			Reason: "InputError",
		}
	})
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "no longer bound")
}

// TestFormerApprovalIsRemovedBeforeBinding: an Agent that was unbound keeps its approval, with which its host
// would be installed as soon as it is bound.
func TestFormerApprovalIsRemovedBeforeBinding(t *testing.T) {
	w := booted(t)
	agent := discovered("a", "m", bootMAC)
	agent.Spec.Approved = true
	w.create(agent)
	w.reconcile()
	bound := w.agent("a")
	w.Expect(bound.Spec.ClusterDeploymentName).NotTo(BeNil(), "bound")
	w.Expect(bound.Spec.Approved).To(BeFalse(), "not approved before assisted-service has applied the spec of the Agent")
}

// TestOutdatedProcessDoesNotApproveRefusedAgent: a process was suspended between proof and approval. It must
// not bind and approve an Agent that another process has refused and unbound meanwhile.
func TestOutdatedProcessDoesNotApproveRefusedAgent(t *testing.T) {
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

// TestApprovalIsNotReverted: the cache does not contain the approval yet, and shows an Agent whose spec is to
// be applied completely.
func TestApprovalIsNotReverted(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	before := w.agent("a")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "approved")
	w.outdated = before
	w.outdated.ResourceVersion = "1"
	w.outdated.Status.DebugInfo.State = "preparing-for-installation"
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "m"}})
	w.Expect(err).To(MatchError(apierrors.IsConflict, "a conflict"))
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "the approval is not reverted")
}
