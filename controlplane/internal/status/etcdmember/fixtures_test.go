package etcdmember

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// noon is the time of the observations.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func factsOf(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *facts.Facts {
	return &facts.Facts{
		ControlPlane: controlPlane(change), Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "cluster1"}},
	}
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

// runningEtcd returns an installed cluster with healthy etcd, and with the Machine m0 on the Node n0.
func runningEtcd() *facts.Facts {
	f := factsOf(nil)
	f.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}}
	f.Machines[0].Status.NodeRef.Name, f.Machines[0].Spec.ProviderID = "n0", "metal3://n0"
	f.Workload = workload.State{
		Connected:   true,
		LastSuccess: noon,
		Etcd:        workload.EtcdOperator{Known: true, Available: true},
		Nodes:       []workload.Node{{Name: "n0", ControlPlane: true}},
	}
	return f
}
