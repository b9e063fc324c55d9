package informer

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
)

// The propagated metadata is compared with the cache. If the cache trimmed it, each reconcile would write it
// again.
func TestPropagatedMetadataIsCached(t *testing.T) {
	g := NewWithT(t)
	record := metav1.ManagedFieldsEntry{
		Manager: string(writer.MetadataOwner), Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:site":{},"f:gone":{}},"f:annotations":{"f:why":{}}}}`),
	}
	burden := func(obj client.Object) {
		labels, annotations := maps.Clone(obj.GetLabels()), map[string]string{"why": "because", "other": "x"}
		labels["site"], labels["other"] = "north", "x"
		obj.SetLabels(labels)
		obj.SetAnnotations(annotations)
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{others, applied, record})
	}
	expect := func(kept client.Object, managed ...metav1.ManagedFieldsEntry) {
		g.Expect(kept.GetLabels()).To(And(HaveKeyWithValue("site", "north"), HaveLen(3)), "and ours")
		g.Expect(kept.GetAnnotations()).To(Equal(map[string]string{"why": "because"}))
		g.Expect(kept.GetManagedFields()).To(Equal(managed))
	}
	deployment := &hivev1.ClusterDeployment{ObjectMeta: identity()}
	burden(deployment)
	expect(trimDeployment(deployment.DeepCopy()), applied, record)
	deployment.Spec.Installed = true
	expect(trimDeployment(deployment.DeepCopy()), record)
	install := &hiveext.AgentClusterInstall{ObjectMeta: identity()}
	burden(install)
	expect(trimInstall(install.DeepCopy()), applied, record)
	install.Spec.ClusterMetadata = &hivev1.ClusterMetadata{}
	expect(trimInstall(install.DeepCopy()), record)
	install.ManagedFields[2].FieldsV1 = metav1.NewFieldsV1("no record")
	g.Expect(trimInstall(install).ManagedFields).To(BeEmpty())
}
