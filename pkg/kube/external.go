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

// contractLabels say which versions of a kind serve a version of the Cluster API contract, newest contract first.
var contractLabels = []string{clusterv1.GroupVersion.Group + "/v1beta2", clusterv1.GroupVersion.Group + "/v1beta1"}

// Readable reports whether the managers may read the kind that a reference names: an infrastructure provider's. A cache
// waits without end for what it has no rights on, and with it whoever asked.
func Readable(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.APIGroup == clusterv1.GroupVersionInfrastructure.Group
}

// External returns an object with the kind, namespace and name of a reference and nothing else, in the version that the
// labels of its CRD name; nil when there is no such kind, or none that is [Readable]. Cluster API's own look-up
// (controllers/external) reads the object as well: it knows no kind of which there is no object yet, which is to be
// watched.
func External(ctx context.Context, c client.Reader, ref clusterv1.ContractVersionedObjectReference, namespace string) (*unstructured.Unstructured, error) {
	if !Readable(ref) {
		return nil, nil //nolint:nilnil // there is none for us
	}
	crd := MetadataOf(CustomResourceDefinition)
	name := contract.CalculateCRDName(ref.APIGroup, ref.Kind)
	if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // there is none
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
	return nil, fmt.Errorf("CustomResourceDefinition %s has no label %s: it does not fulfil the Cluster API contract", name, contractLabels[0])
}
