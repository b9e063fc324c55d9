package informer

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestClusterChangesIncludeAnnotationsThatAreRead(t *testing.T) {
	for annotation, read := range map[string]bool{
		clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation: true,
		clusterv1.ClusterTopologyUpgradeStepAnnotation:        true,
		"other": false,
	} {
		before, after := newCluster(), newCluster()
		after.Annotations = map[string]string{annotation: "x"}
		NewWithT(t).Expect(ClusterChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(read), annotation)
	}
}
