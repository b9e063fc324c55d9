package metal3

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestHadNode(t *testing.T) {
	machine := func(kind, providerID, node string) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.Spec.InfrastructureRef.Kind, m.Spec.ProviderID, m.Status.NodeRef.Name = kind, providerID, node
		return m
	}
	for situation, tc := range map[string]struct {
		machine *clusterv1.Machine
		had     bool
	}{
		"it has one":                                   {machine(MachineKind, "", "n"), true},
		"it was moved here":                            {machine(MachineKind, "metal3://x", ""), true},
		"its host is being installed":                  {machine(MachineKind, "", ""), false},
		"other providers may set the providerID early": {machine("OtherMachine", "other://x", ""), false},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(HadNode(tc.machine)).To(Equal(tc.had)) })
	}
}

func TestNeedsNode(t *testing.T) {
	infra := func(kind string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetKind(kind)
		u.SetAnnotations(map[string]string{HostAnnotation: "lab/host-1"})
		change(u)
		return u
	}
	for situation, tc := range map[string]struct {
		infra *unstructured.Unstructured
		needs bool
	}{
		"its host is known":                      {infra(MachineKind, func(*unstructured.Unstructured) {}), true},
		"it has no host yet":                     {infra(MachineKind, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }), false},
		"another kind is assumed to have a host": {infra("OtherMachine", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }), true},
		"its Node is linked": {
			infra(MachineKind, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"providerID": "metal3://x"} }), false,
		},
		"it is being deleted": {
			infra(MachineKind, func(u *unstructured.Unstructured) { now := metav1.Now(); u.SetDeletionTimestamp(&now) }), false,
		},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(NeedsNode(tc.infra)).To(Equal(tc.needs)) })
	}
}

func TestConsumerOf(t *testing.T) {
	for situation, tc := range map[string]struct {
		ref      *Consumer
		consumer types.NamespacedName
	}{
		"no consumer": {nil, types.NamespacedName{}},
		"a Metal3Machine": {
			&Consumer{Kind: MachineKind, Namespace: "other", Name: "m"}, types.NamespacedName{Namespace: "other", Name: "m"},
		},
		"in the namespace of the host": {&Consumer{Kind: MachineKind, Name: "m"}, types.NamespacedName{Namespace: "lab", Name: "m"}},
		"another kind":                 {&Consumer{Kind: "HostClaim", Namespace: "lab", Name: "m"}, types.NamespacedName{}},
	} {
		t.Run(situation, func(t *testing.T) {
			host := &Host{ObjectMeta: metav1.ObjectMeta{Namespace: "lab"}, Spec: HostSpec{ConsumerRef: tc.ref}}
			NewWithT(t).Expect(ConsumerOf(host)).To(Equal(tc.consumer))
		})
	}
}
