package status

import (
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// noon is the time of the observations.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func factsOf(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *facts.Facts {
	return &facts.Facts{
		ControlPlane: controlPlane(change), Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "cluster1"}},
	}
}

// viewOf returns the input of the conditions before any phase has found anything.
func viewOf(f *facts.Facts) *View {
	f.Decide()
	return &View{Facts: f, Found: FindingsOf(f)}
}

// installOf returns an AgentClusterInstall in a state, with conditions as type=status/reason/message.
func installOf(state string, conditions ...hivev1.ClusterInstallCondition) *hiveext.AgentClusterInstall {
	aci := &hiveext.AgentClusterInstall{}
	aci.Status.DebugInfo = hiveext.DebugInfo{
		State: state, StateInfo: "info of " + state, EventsURL: "https://svc/events?cluster_id=1&api_key=hush",
	}
	aci.Status.Progress.TotalPercentage = 42
	aci.Status.Conditions = conditions
	return aci
}

func agentIn(name, state, info string) aiv1beta1.Agent {
	a := aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name + "-uuid"}, Spec: aiv1beta1.AgentSpec{Hostname: name}}
	a.Status.DebugInfo.State, a.Status.DebugInfo.StateInfo = state, info
	return a
}

// controlPlane returns the control plane of a cluster of three hosts.
func controlPlane(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *controlplanev1.OpenshiftAssistedControlPlane {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1", UID: "cp-uid"}}
	cp.Spec.Replicas, cp.Spec.Version = ptr.To[int32](3), "v4.19.3"
	if change != nil {
		change(cp)
	}
	return cp
}
