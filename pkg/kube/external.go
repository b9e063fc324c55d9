package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contractLabels are the labels that list the versions of a kind for each version of the Cluster API
// contract, newest contract first.
var contractLabels = []string{clusterv1.GroupVersion.Group + "/v1beta2", clusterv1.GroupVersion.Group + "/v1beta1"}

// Readable reports whether the managers may read the kind of a reference: only kinds of infrastructure
// providers. A read through the cache blocks without end if the manager has no rights on the kind.
func Readable(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.APIGroup == clusterv1.GroupVersionInfrastructure.Group
}

// External returns an object with only the kind, namespace and name of a reference, in the version that the
// labels of its CRD name. It returns nil if the kind does not exist or is not [Readable]. Cluster API's own
// function (controllers/external) also reads the object. It therefore cannot be used to watch a kind that has
// no object yet.
func External(
	ctx context.Context,
	c client.Reader,
	ref clusterv1.ContractVersionedObjectReference,
	namespace string,
) (*unstructured.Unstructured, error) {
	if !Readable(ref) {
		return nil, nil //nolint:nilnil // the kind is not readable
	}
	crd := MetadataOf(CustomResourceDefinition)
	name := contract.CalculateCRDName(ref.APIGroup, ref.Kind)
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // the kind does not exist
		}
		return nil, fmt.Errorf("cannot read CustomResourceDefinition %s: %w", name, err)
	}
	for _, label := range contractLabels {
		if served := crd.Labels[label]; served != "" {
			versions := strings.Split(served, "_")
			slices.SortFunc(versions, version.CompareKubeAwareVersionStrings)
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.APIGroup, Version: versions[len(versions)-1], Kind: ref.Kind})
			u.SetNamespace(namespace)
			u.SetName(ref.Name)
			return u, nil
		}
	}
	return nil, fmt.Errorf("CustomResourceDefinition %s has no label %s: it does not meet the Cluster API contract", name, contractLabels[0])
}

// InfraMachine reads the infrastructure machine of a Machine. It returns nil if none exists.
func InfraMachine(ctx context.Context, c client.Reader, m *clusterv1.Machine) (*unstructured.Unstructured, error) {
	if !m.Spec.InfrastructureRef.IsDefined() {
		return nil, nil //nolint:nilnil // the Machine has none yet
	}
	infra, err := External(ctx, c, m.Spec.InfrastructureRef, m.Namespace)
	if err != nil || infra == nil {
		return nil, err
	}
	return Read(ctx, c, client.ObjectKeyFromObject(infra), infra)
}
