package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	controlPlaneKind = "OpenshiftAssistedControlPlane"
	templateKind     = "Metal3MachineTemplate"
	secretKind       = "Secret"
)

// edit sets a field of the objects of a kind; nil removes it.
func edit(kind string, value any, fields ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		GinkgoHelper()
		switch {
		case object.GetKind() != kind:
		case value == nil:
			unstructured.RemoveNestedField(object.Object, fields...)
		default:
			Expect(unstructured.SetNestedField(object.Object, value, fields...)).To(Succeed())
		}
	}
}

// edits runs several edits.
func edits(all ...func(*unstructured.Unstructured)) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		for _, one := range all {
			one(object)
		}
	}
}

// without selects the objects of a kind, which are left out.
func without(kind string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool { return object.GetKind() == kind }
}

// patch merges JSON into an object, as a user does.
func patch(ctx context.Context, object client.Object, json string) {
	GinkgoHelper()
	patchAt(ctx, laboratory.Client(), object, json)
}

// patchAt is patch with another client.
func patchAt(ctx context.Context, c client.Client, object client.Object, json string) {
	GinkgoHelper()
	Expect(c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(json)))).To(Succeed())
}

// controlPlaneOf returns an object with the name of the control plane of a cluster.
func controlPlaneOf(cluster *lab.Cluster) *controlplanev1.OpenshiftAssistedControlPlane {
	return &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
}

// waitReason waits until a condition of the control plane has the reason and returns its message.
func waitReason(ctx context.Context, cluster *lab.Cluster, condition, reason string) string {
	GinkgoHelper()
	has := func(s *lab.State) bool {
		return s.ControlPlane != nil && lab.Condition(s.ControlPlane.Status.Conditions, condition).Reason == reason
	}
	s := wait(ctx, cluster, condition+" "+reason, has)
	return lab.Condition(s.ControlPlane.Status.Conditions, condition).Message
}

// expectReported waits until the control plane has reported a condition, whether or not it has passed since.
func expectReported(ctx context.Context, cluster *lab.Cluster, condition string, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(ctx, cluster.HasReported).WithArguments(condition, string(status),
		reason).WithTimeout(installTimeout).Should(BeTrue(), "%s %s %s", condition, status, reason)
}

// oneWorker sets one worker, which most specs about workers need.
var oneWorker = edit("MachineDeployment", int64(1), "spec", "replicas")
