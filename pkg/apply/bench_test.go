package apply

import (
	"slices"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
)

// machine returns the desired state of a control-plane Machine.
func machine() *clusterv1.Machine {
	ref := func(group, kind string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: "m"}
	}
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab",
			Name:      "m",
			Labels: map[string]string{
				clusterv1.ClusterNameLabel:             "c",
				clusterv1.MachineControlPlaneLabel:     "",
				clusterv1.MachineControlPlaneNameLabel: "c",
			},
			OwnerReferences: []metav1.OwnerReference{
				{
					APIVersion: "controlplane.cluster.x-k8s.io/v1beta1",
					Kind:       "OpenshiftAssistedControlPlane",
					Name:       "c",
					UID:        "cp",
					Controller: ptr.To(true),
				},
			},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "v4.20.1", MinReadySeconds: ptr.To[int32](0), FailureDomain: "rack",
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: ref("bootstrap.cluster.x-k8s.io", "OpenshiftAssistedConfig")},
			InfrastructureRef: ref("infrastructure.cluster.x-k8s.io", "Metal3Machine"),
		},
	}
}

// BenchmarkKeepOwn measures the usual object: not applied by this manager, with the managed fields of four
// others.
func BenchmarkKeepOwn(b *testing.B) {
	entry := metav1.ManagedFieldsEntry{
		Manager:    string(them),
		Operation:  metav1.ManagedFieldsOperationUpdate,
		APIVersion: "v1",
		FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{
			Raw: []byte(`{"f:metadata":{"f:labels":{"f:a":{},"f:b":{}}},"f:spec":{"f:image":{"f:url":{}}},"f:status":{"f:ready":{}}}`),
		},
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{entry, entry, entry, entry})
	fields := u.Object["metadata"].(map[string]any)["managedFields"].([]any)
	b.ReportAllocs()
	for b.Loop() {
		u.Object["metadata"] = map[string]any{"managedFields": slices.Clone(fields)}
		if _, err := KeepOwn(us)(u); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply measures a Machine without changes, with 15 foreign conditions.
func BenchmarkApply(b *testing.B) {
	for situation, c := range map[string]struct{ newVersion, forgotten bool }{
		"same version":    {},
		"another version": {newVersion: true},
		"after a restart": {forgotten: true},
	} {
		b.Run(situation, func(b *testing.B) {
			g := NewWithT(b)
			scheme := runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			a := New(kubetest.BuildClient(fake.NewClientBuilder().WithReturnManagedFields(), scheme, interceptor.Funcs{}), us)
			observed := machine()
			_, err := a.Apply(b.Context(), observed, nil)
			g.Expect(err).NotTo(HaveOccurred())
			observed.ResourceVersion, observed.Status.Conditions = "1", make([]metav1.Condition, 15)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if c.newVersion {
					observed.ResourceVersion = strconv.Itoa(i)
				}
				if c.forgotten {
					a.applied.Purge()
				}
				if changed, err := a.Apply(b.Context(), machine(), observed); changed || err != nil {
					b.Fatal(changed, err)
				}
			}
		})
	}
}
