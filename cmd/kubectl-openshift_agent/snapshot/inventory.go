package snapshot

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// KindInfraMachine is the kind of the Metal3Machines.
const KindInfraMachine = metal3.MachineKind

// Inventory contains the BareMetalHosts of a namespace and the Machines that may get them.
type Inventory struct {
	Namespace     string
	Hosts         []metal3.Host
	InfraMachines []unstructured.Unstructured
	Machines      []clusterv1.Machine
	Configs       []bootstrapv1.OpenshiftAssistedConfig
	// NotReadable are the kinds that could not be read, with the cause.
	NotReadable map[string]string
}

// Waiting is a Machine that waits for a BareMetalHost.
type Waiting struct {
	*clusterv1.Machine
	InfraMachine *unstructured.Unstructured
	// Config is nil if the Machine has none that is readable.
	Config *bootstrapv1.OpenshiftAssistedConfig
}

// Waiting returns the Machines whose Metal3Machines wait for a BareMetalHost, in the order in which CAPM3 chooses: the
// oldest first.
func (i *Inventory) Waiting() []Waiting {
	given := map[types.NamespacedName]bool{}
	for n := range i.Hosts {
		given[metal3.ConsumerOf(&i.Hosts[n])] = true
	}
	infra := map[string]*unstructured.Unstructured{}
	for n := range i.InfraMachines {
		m := &i.InfraMachines[n]
		if m.GetDeletionTimestamp() == nil && m.GetAnnotations()[metal3.HostAnnotation] == "" &&
			!given[types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}] {
			infra[m.GetName()] = m
		}
	}
	configs := byName(i.Configs)
	var waiting []Waiting
	for n := range i.Machines {
		m := &i.Machines[n]
		w := Waiting{Machine: m, InfraMachine: infra[m.Spec.InfrastructureRef.Name]}
		if w.InfraMachine == nil || m.Spec.InfrastructureRef.Kind != KindInfraMachine || !m.DeletionTimestamp.IsZero() || metal3.HadNode(m) {
			continue
		}
		w.Config = configs[types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}]
		waiting = append(waiting, w)
	}
	slices.SortFunc(waiting, func(a, b Waiting) int {
		return cmp.Or(a.InfraMachine.GetCreationTimestamp().Compare(b.InfraMachine.GetCreationTimestamp().Time), cmp.Compare(a.Name, b.Name))
	})
	return waiting
}
