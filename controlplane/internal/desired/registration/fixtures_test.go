package registration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

func factsOf(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *facts.Facts {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1", UID: "cp-uid"}}
	cp.Spec.Replicas, cp.Spec.Version = ptr.To[int32](3), "v4.19.3"
	if change != nil {
		change(cp)
	}
	return &facts.Facts{ControlPlane: cp, Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "cluster1"}}}
}
