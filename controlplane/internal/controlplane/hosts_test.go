package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// The reports of hosts and the planned workers are read from the trimmed objects in the caches.
func TestPlannedWorkersAndStuckHostsAreReadFromTheCaches(t *testing.T) {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w"},
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "cluster1", Replicas: ptr.To[int32](2)},
	}
	deployment.Labels = map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "w"}
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w"},
		Spec:       clusterv1.MachineSetSpec{ClusterName: "cluster1", Replicas: ptr.To[int32](2)},
	}
	alone := set.DeepCopy()
	alone.Name = "alone"
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "MachineDeployment", Name: "w", UID: "2"}}
	for _, template := range []*clusterv1.MachineTemplateSpec{&deployment.Spec.Template, &set.Spec.Template, &alone.Spec.Template} {
		template.Spec.Bootstrap.ConfigRef.Kind = "OpenshiftAssistedConfigTemplate"
	}
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "w1", OwnerReferences: clusterOwner()},
		Spec:       clusterv1.MachineSpec{ClusterName: "cluster1"},
	}
	worker.Spec.Bootstrap.ConfigRef.Kind = workers.ConfigKind
	conditions.Set(worker, metav1.Condition{
		Type:    clusterv1.MachineBootstrapConfigReadyCondition,
		Status:  metav1.ConditionFalse,
		Reason:  bootstrapv1.HostRefusedReason,
		Message: "another host",
	})
	agent := &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "a"},
		Spec:       aiv1beta1.AgentSpec{Hostname: "rack1-u7", ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"}},
	}
	agent.Status.DebugInfo.State = aiv1beta1.HostStatusError
	agent.Status.Conditions = []conditionsv1.Condition{{Type: aiv1beta1.ValidatedCondition, Status: corev1.ConditionFalse, Message: "no disk"}}
	nameless := agent.DeepCopy()
	nameless.Name, nameless.Spec.Hostname, nameless.Status.Inventory.Hostname = "b", "", "localhost"
	nameless.Status.Conditions, nameless.Status.DebugInfo.StateInfo = nil, "it burns"

	objects := world(nil)
	planned := objects[0].(*clusterv1.Cluster) //nolint:forcetypeassert // the first of the world
	planned.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{
		{Name: "w"}, {Name: "later", Replicas: ptr.To[int32](4)},
	}
	h := newHub(t, append(objects, []client.Object{deployment, set, alone, worker, agent, nameless}...)...)
	h.reconcile()
	install := &hiveext.AgentClusterInstall{}
	h.get("c1", install)
	h.Expect(install.Spec.ProvisionRequirements.WorkerAgents).To(Equal(2 + 2 + 1 + 4))
	h.Expect(install.Spec.Networking.ServiceNetwork).To(Equal([]string{"10.96.0.0/12"}))
	h.Expect(install.Spec.Networking.ClusterNetwork).To(HaveExactElements(HaveField("CIDR", "172.18.0.0/20")))

	h.setState("insufficient", "", 0)
	h.endDeferral()
	h.reconcile()
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.InstalledCondition)).To(Equal(
		"hosts bound to the cluster: 2 of 12; Machine w1: HostRefused: another host; host rack1-u7: no disk; host localhost: it burns"))
}
