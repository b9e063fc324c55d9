package hostconfig

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func installOf(w *world, obj client.Object) *hiveext.AgentClusterInstall {
	w.t.Helper()
	return read(w, obj.GetName(), &hiveext.AgentClusterInstall{})
}

// joined returns a world whose host is part of the cluster; Agent and InfraEnv have the finalizers of
// assisted-service.
func joined(t *testing.T) *world {
	t.Helper()
	w := booted(t)
	agent := discovered("a", "m", bootMAC)
	agent.Finalizers = []string{"agent.agent-install.openshift.io/ai-deprovision"}
	w.create(agent)
	w.reconcile()
	w.registerWithCluster("a", "installed")
	w.takeInfraEnvIn()
	return w
}

func (w *world) gone(name string, obj client.Object) bool {
	w.t.Helper()
	err := w.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, obj)
	return apierrors.IsNotFound(err)
}

func (w *world) removeFinalizers(name string, obj client.Object) {
	w.t.Helper()
	read(w, name, obj)
	w.change(obj, func() { obj.SetFinalizers(nil) })
}

func TestDeletionInOrder(t *testing.T) {
	w := joined(t)
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())

	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingAgentReason)
	w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.DeletingCondition).Message).To(
		Equal("waiting for assisted-service to remove the host from the cluster and to delete Agent a of host rack1-u7"))
	w.Expect(w.agent("a").DeletionTimestamp).NotTo(BeNil(), "the Agent is deleted first: without its InfraEnv the Node would stay")
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil(),
		"the Agent is deleted first: without its InfraEnv the Node would stay")
	w.removeFinalizers("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingInfraEnvReason)
	w.removeFinalizers("m", &aiv1beta1.InfraEnv{})
	w.reconcile()
	w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue(), "the finalizer is removed")
}

func TestDeletionOfTheWholeCluster(t *testing.T) {
	w := joined(t)
	stranger := discovered("stranger", "m", "02:00:00:00:00:99")
	stranger.Finalizers = []string{"agent.agent-install.openshift.io/ai-deprovision"}
	w.create(stranger)
	cluster := read(w, "c", &clusterv1.Cluster{})
	w.change(cluster, func() { cluster.Finalizers = []string{"cluster.cluster.x-k8s.io"} })
	w.remove(cluster)
	w.remove(w.config())

	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingAgentReason)
	agent := w.agent("a")
	w.Expect(agent.DeletionTimestamp).NotTo(BeNil(), "the Agent is deleted first")
	w.Expect(agent.Annotations).To(HaveKey(assisted.SkipSpokeCleanupAnnotation),
		"nothing has to be removed from a cluster that is being deleted")
	w.removeFinalizers("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingInfraEnvReason)
	w.Expect(w.agent("stranger").DeletionTimestamp).To(BeNil(), "the Agent stays while its host could register again")
	w.removeFinalizers("m", &aiv1beta1.InfraEnv{})
	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingAgentReason)
	w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.DeletingCondition).Message).To(
		Equal("waiting for assisted-service to delete Agent stranger"), "the Agent of another server")
	w.removeFinalizers("stranger", &aiv1beta1.Agent{})
	w.reconcile()
	w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue(), "the finalizer is removed")
}

func TestDeletionWithoutOtherObjects(t *testing.T) {
	w := joined(t)
	w.removeFinalizers("m", &aiv1beta1.InfraEnv{})
	w.removeFinalizers("a", &aiv1beta1.Agent{})
	for _, obj := range []client.Object{
		read(w, "m", &clusterv1.Machine{}), read(w, "c", &clusterv1.Cluster{}),
		read(w, "m", &aiv1beta1.InfraEnv{}), w.agent("a"), w.config(),
	} {
		w.remove(obj)
	}
	w.reconcile()
	w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue(), "the finalizer is removed")
}

func TestDeletionForMoveDeletesNothing(t *testing.T) {
	w := joined(t)
	config := w.config()
	w.change(config, func() { config.Annotations = map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""} })
	w.remove(config)
	w.reconcile()
	w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue(), "the finalizer is removed")
	w.Expect(w.agent("a").DeletionTimestamp).To(BeNil(), "nothing is deleted")
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil(), "nothing is deleted")
}

func TestHostOfLiveMachineIsKept(t *testing.T) {
	w := joined(t)
	w.remove(w.config())
	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.WaitingForMachineReason)
	w.Expect(w.agent("a").DeletionTimestamp).To(BeNil(), "the host is not removed from the cluster")
}

// TestHostOfBlockedMachineIsKept: the control plane provider blocks the deletion of the Machine until its
// host has left etcd. Other hooks may have other reasons.
func TestHostOfBlockedMachineIsKept(t *testing.T) {
	const hook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/openshift-etcd-member"
	for situation, tc := range map[string]struct {
		before func(w *world)
		kept   bool
	}{
		"the Machine waits": {func(*world) {}, true},
		"the annotation is removed": {
			func(w *world) { m := read(w, "m", &clusterv1.Machine{}); w.change(m, func() { m.Annotations = nil }) },
			false,
		},
		"the whole Cluster is being deleted": {func(w *world) {
			cluster := read(w, "c", &clusterv1.Cluster{})
			w.change(cluster, func() { cluster.Finalizers = []string{clusterv1.ClusterFinalizer} })
			w.remove(cluster)
		}, false},
		"the finalizers of the Machine were removed": {func(w *world) { w.removeFinalizers("m", &clusterv1.Machine{}) }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			w := joined(t)
			m := read(w, "m", &clusterv1.Machine{})
			w.change(m, func() {
				m.Annotations, m.Finalizers = map[string]string{hook: ""}, []string{clusterv1.MachineFinalizer}
			})
			w.remove(m)
			w.remove(w.config())
			tc.before(w)
			w.reconcile()
			w.Expect(w.agent("a").DeletionTimestamp == nil).To(Equal(tc.kept))
			if !tc.kept {
				return
			}
			w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.WaitingForMachineReason)
			w.Expect(w.message(bootstrapv1.DeletingCondition)).To(And(ContainSubstring("Machine m is being deleted"), ContainSubstring(hook)))
		})
	}
}

func TestAgentOfAnotherClusterStays(t *testing.T) {
	w := joined(t)
	other := discovered("other", "m", "02:00:00:00:00:99")
	other.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "another"}
	w.create(other)
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	w.removeFinalizers("m", &aiv1beta1.InfraEnv{})
	w.remove(read(w, "m", &aiv1beta1.InfraEnv{}))
	w.reconcile()
	w.removeFinalizers("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue(), "the finalizer is removed")
	w.Expect(w.agent("other").DeletionTimestamp).To(BeNil(), "a host of another cluster is not deleted for the label of a deleted InfraEnv")
}

// TestAgentThatIsBoundToAnotherCluster: the deletion of the Agent or of its InfraEnv would remove its Node
// from that cluster.
func TestAgentThatIsBoundToAnotherCluster(t *testing.T) {
	for situation, tc := range map[string]struct {
		ref    aiv1beta1.ClusterReference
		remove func(w *world)
	}{
		"a Machine is deleted": {aiv1beta1.ClusterReference{Namespace: namespace, Name: "another"}, func(*world) {}},
		"a Machine is deleted, the cluster is in another namespace": {
			aiv1beta1.ClusterReference{Namespace: "tenant", Name: "cp"},
			func(*world) {},
		},
		"the whole Cluster is deleted": {aiv1beta1.ClusterReference{Namespace: namespace, Name: "another"}, func(w *world) {
			w.remove(read(w, "c", &clusterv1.Cluster{}))
		}},
	} {
		t.Run(situation, func(t *testing.T) {
			w := joined(t)
			agent := w.agent("a")
			w.change(agent, func() { agent.Spec.ClusterDeploymentName = &tc.ref })
			w.create(&hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "another",
				Labels: map[string]string{clusterv1.ClusterNameLabel: "another"},
			}})
			w.remove(read(w, "m", &clusterv1.Machine{}))
			w.remove(w.config())
			tc.remove(w)
			w.reconcile()
			w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.HostInAnotherClusterReason)
			w.Expect(w.agent("a").DeletionTimestamp).To(BeNil(), "the host of another cluster is not deleted")
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil(), "the host of another cluster is not deleted")
			w.Expect(w.message(bootstrapv1.DeletingCondition)).NotTo(ContainSubstring("tenant"), "the message names no object of another namespace")
			agent = w.agent("a")
			w.change(agent, func() { agent.Spec.ClusterDeploymentName = nil })
			w.reconcile()
			w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingInfraEnvReason)
		})
	}
}

// TestAgentOfAnotherInstalledMachineIsKept: assisted-service moved it to the InfraEnv of the Machine that is deleted,
// whose image the server booted.
func TestAgentOfAnotherInstalledMachineIsKept(t *testing.T) {
	w := booted(t)
	machine, config := otherMachine("a")
	machine.Status.NodeRef.Name = "node"
	w.create(machine, config)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	for range 2 {
		w.reconcile()
		w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.ServerInUseReason)
		w.Expect(w.message(bootstrapv1.DeletingCondition)).To(And(ContainSubstring("OpenshiftAssistedConfig other, which has a Node, recorded "+
			"Agent a"), ContainSubstring("wipes its host")))
		w.Expect(w.agent("a").DeletionTimestamp).To(BeNil())
		w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
		w.restart()
	}
	w.reconcile()
	w.Expect(w.reconciler.ofOtherConfig(t.Context(), config)).To(HaveLen(1), "its changes are reconciled")
	w.remove(config)
	w.reconcile()
	w.Expect(w.message(bootstrapv1.DeletingCondition)).NotTo(ContainSubstring("other"), "the deletion proceeds")
}

// TestBoundAgentOfAnotherInstalledMachineIsKept: another client bound the Agent that assisted-service moved. Its
// deletion would remove the Node of the other Machine from the cluster.
func TestBoundAgentOfAnotherInstalledMachineIsKept(t *testing.T) {
	w := booted(t)
	machine, config := otherMachine("a")
	machine.Status.NodeRef.Name = "node"
	w.create(machine, config)
	moved := discovered("a", "m", bootMAC)
	moved.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "cp"}
	own := discovered("b", "m", "52:54:00:00:00:99")
	own.Spec.ClusterDeploymentName = moved.Spec.ClusterDeploymentName
	w.create(moved, own)
	w.reconcile()
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	w.takeInfraEnvIn()
	w.reconcile()
	w.Expect(w.gone("b", &aiv1beta1.Agent{})).To(BeTrue(), "the Agent that no config recorded is deleted")
	for range 2 {
		w.reconcile()
		w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.ServerInUseReason)
		w.Expect(w.message(bootstrapv1.DeletingCondition)).To(And(ContainSubstring("OpenshiftAssistedConfig other, which has a Node, recorded "+
			"Agent a"),
			ContainSubstring("Annotate Agent a, which is bound to ClusterDeployment cp, with "+
				"agent.agent-install.openshift.io/skip-spoke-cleanup=true, then delete the Agent"),
			ContainSubstring("Without the annotation assisted-service removes the Node of the server from the cluster")))
		w.Expect(w.agent("a").DeletionTimestamp).To(BeNil())
		w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
		w.restart()
	}
	w.remove(config)
	w.reconcile()
	w.Expect(w.gone("a", &aiv1beta1.Agent{})).To(BeTrue(), "the claim has ended")
}

// TestWholeClusterIsDeletedThoughAnotherConfigRecordedTheAgent: Cluster API deletes the control plane after the
// workers, so that a worker must not wait for a control-plane Machine of the same Cluster.
func TestWholeClusterIsDeletedThoughAnotherConfigRecordedTheAgent(t *testing.T) {
	deleteCluster := func(w *world) {
		cluster := read(w, "c", &clusterv1.Cluster{})
		w.change(cluster, func() { cluster.Finalizers = []string{clusterv1.ClusterFinalizer} })
		w.remove(cluster)
	}
	for situation, tc := range map[string]struct {
		recording string
		remove    func(w *world)
		kept      bool
	}{
		"the Cluster of both is being deleted":            {"c", deleteCluster, false},
		"the recording config belongs to another Cluster": {"another", deleteCluster, true},
		"only the Machine is deleted":                     {"c", func(*world) {}, true},
		"the Cluster is absent, which deletes no other Machine": {
			"c", func(w *world) { w.remove(read(w, "c", &clusterv1.Cluster{})) },
			true,
		},
		"the Cluster of the recording config is not known": {"", deleteCluster, true},
		"the Cluster is absent, that of the recording config not known": {
			"", func(w *world) { w.remove(read(w, "c", &clusterv1.Cluster{})) },
			true,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			machine, config := otherMachine("a")
			machine.Status.NodeRef.Name, machine.Spec.ClusterName = "node", tc.recording
			w.create(machine, config)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			tc.remove(w)
			w.remove(read(w, "m", &clusterv1.Machine{}))
			w.remove(w.config())
			w.takeInfraEnvIn()
			w.reconcile()
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp == nil).To(Equal(tc.kept), w.message(bootstrapv1.DeletingCondition))
			if tc.kept {
				w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.ServerInUseReason)
				w.Expect(w.message(bootstrapv1.DeletingCondition)).To(And(ContainSubstring("Start the server from its disk. Then delete the Agent, "+
					"which wipes nothing."), Not(ContainSubstring("skip-spoke-cleanup")),
					ContainSubstring("Do not delete the Machine of that config to end the wait: that wipes its host")))
				return
			}
			w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingInfraEnvReason)
			w.removeFinalizers("m", &aiv1beta1.InfraEnv{})
			w.reconcile()
			w.reconcile()
			w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue(), "the finalizer is removed")
		})
	}
}

// TestDeletedAgentOfHostThatWasNeverInstalled: assisted-service would search its Node in a cluster that does
// not exist yet, and wait forever.
func TestDeletedAgentOfHostThatWasNeverInstalled(t *testing.T) {
	finalizer := []string{"agent.agent-install.openshift.io/ai-deprovision"}
	for situation, remove := range map[string]func(w *world){
		"by a user": func(w *world) { w.remove(w.agent("a")) },
		"with its Machine": func(w *world) {
			w.remove(read(w, "m", &clusterv1.Machine{}))
			w.remove(w.config())
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			agent := discovered("a", "m", bootMAC)
			agent.Finalizers = finalizer
			w.create(agent)
			w.reconcile()
			w.registerWithCluster("a", "known")
			w.reconcile()
			remove(w)
			w.reconcile()
			agent = w.agent("a")
			w.Expect(agent.DeletionTimestamp).NotTo(BeNil(), "the Agent is deleted")
			w.Expect(agent.Annotations).To(HaveKey(assisted.SkipSpokeCleanupAnnotation), "the Agent does not wait for a Node that never existed")
		})
	}
}

// TestFailedDeletionIsReported also before the first report, and keeps an earlier report.
func TestFailedDeletionIsReported(t *testing.T) {
	w := joined(t)
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	failed := status.Summarize(&facts.Facts{Config: w.config()}, &status.Findings{}, errors.New("no"))
	for _, name := range []string{bootstrapv1.DeletingCondition, bootstrapv1.ReadyCondition} {
		w.Expect(failed).To(ContainElement(And(HaveField("Type", name), HaveField("Reason", bootstrapv1.InternalErrorReason),
			HaveField("Message", ContainSubstring("The provider retries")))))
	}
	w.reconcile()
	message := w.message(bootstrapv1.DeletingCondition)
	w.Expect(message).NotTo(BeEmpty())
	w.Expect(status.Summarize(&facts.Facts{Config: w.config()}, &status.Findings{},
		errors.New("no"))).To(ContainElement(And(HaveField("Type", bootstrapv1.DeletingCondition), HaveField("Message", message))))
}
