// Package sample holds the facts of one cluster, and objects as other components create them, for tests.
package sample

import (
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// Namespace is the namespace of all objects.
const Namespace = "lab"

// Noon is the time of the observations.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Facts returns the facts about the control plane of a cluster of three hosts before anything exists for it. A change of
// nil changes nothing.
func Facts(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *facts.Facts {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "c1", UID: "cp-uid"}}
	cp.Spec.Replicas, cp.Spec.DistributionVersion = ptr.To[int32](3), "v4.19.3"
	if change != nil {
		change(cp)
	}
	return &facts.Facts{ControlPlane: cp, Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "cluster1"}}}
}

// RunningEtcd returns the facts about an installed cluster with healthy etcd, and with the Machine m0 on the Node n0.
func RunningEtcd() *facts.Facts {
	f := Facts(nil)
	f.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}}
	f.Machines[0].Status.NodeRef.Name, f.Machines[0].Spec.ProviderID = "n0", "metal3://n0"
	f.Workload = workload.State{
		Connected:   true,
		LastSuccess: Noon,
		Etcd:        workload.EtcdOperator{Known: true, Available: true},
		Nodes:       []workload.Node{{Name: "n0", ControlPlane: true}},
	}
	return f
}

// Install returns an AgentClusterInstall in a state, at 42 percent, whose URL of events has an API key.
func Install(state string, conditions ...hivev1.ClusterInstallCondition) *hiveext.AgentClusterInstall {
	aci := &hiveext.AgentClusterInstall{}
	aci.Status.DebugInfo = hiveext.DebugInfo{
		State: state, StateInfo: "info of " + state, EventsURL: "https://svc/events?cluster_id=1&api_key=hush",
	}
	aci.Status.Progress.TotalPercentage = 42
	aci.Status.Conditions = conditions
	return aci
}

// Agent returns the Agent of a host with this hostname in a state.
func Agent(hostname, state, info string) aiv1beta1.Agent {
	a := aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Name: hostname + "-uuid"}, Spec: aiv1beta1.AgentSpec{Hostname: hostname}}
	a.Status.DebugInfo.State, a.Status.DebugInfo.StateInfo = state, info
	return a
}

// InfraTemplate returns the template of the infra machines.
func InfraTemplate() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
		"kind":       "Metal3MachineTemplate",
		"metadata":   map[string]any{"namespace": Namespace, "name": "hosts"},
		"spec": map[string]any{"template": map[string]any{
			"spec": map[string]any{"image": map[string]any{"url": "http://placeholder"}},
		}},
	}}
}
