package facts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// controlPlane returns a control plane of three Machines.
func controlPlane(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *controlplanev1.OpenshiftAssistedControlPlane {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1", UID: "cp-uid"}}
	cp.Spec.Replicas = ptr.To[int32](3)
	if change != nil {
		change(cp)
	}
	return cp
}

func factsOf(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *Facts {
	return &Facts{
		ControlPlane: controlPlane(change), Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "cluster1"}},
	}
}
