package reader

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// API reads objects, and knows which versions of a kind the API server serves.
type API interface {
	client.Reader
	RESTMapper() meta.RESTMapper
}

var infraMachine = schema.GroupKind{Group: clusterv1.GroupVersionInfrastructure.Group, Kind: snapshot.KindInfraMachine}

// ReadInventory reads the BareMetalHosts of a namespace and the Machines that may get them. With a name it reads only the
// Machines of that Cluster. It returns an error if the BareMetalHosts, Metal3Machines or Machines cannot be read: without
// one of them nothing is known.
func ReadInventory(ctx context.Context, api API, namespace, cluster string) (*snapshot.Inventory, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the management cluster did not answer within %s", timeout))
	defer cancel()
	r := reading{api: api, scope: Scope{Namespace: namespace, Cluster: cluster}, snapshot: &snapshot.Snapshot{}}
	i := &snapshot.Inventory{Namespace: namespace}
	if cluster != "" {
		if err := r.readClusters(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if i.Hosts, err = list(ctx, &r, func(l *metal3.HostList) []metal3.Host { return l.Items }, all); err != nil {
		return nil, fmt.Errorf("cannot list the BareMetalHosts: %w", err)
	}
	if i.InfraMachines, err = r.readInfraMachines(ctx, api.RESTMapper()); err != nil {
		return nil, fmt.Errorf("cannot list the Metal3Machines: %w", err)
	}
	if err := r.readMachines(ctx); err != nil {
		return nil, fmt.Errorf("cannot list the Machines: %w", err)
	}
	r.note(snapshot.KindConfig, r.readConfigs(ctx))
	i.Machines, i.Configs, i.NotReadable = r.snapshot.Machines, r.snapshot.Configs, r.snapshot.NotReadable
	return i, nil
}

// readInfraMachines reads the Metal3Machines of a namespace in the version that the API server prefers.
func (r *reading) readInfraMachines(ctx context.Context, mapper meta.RESTMapper) ([]unstructured.Unstructured, error) {
	mapping, err := mapper.RESTMapping(infraMachine)
	if err != nil {
		return nil, err
	}
	kind := mapping.GroupVersionKind
	kind.Kind += "List"
	empty := func() *unstructured.UnstructuredList {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind)
		return page
	}
	return pages(ctx, r, empty, func(l *unstructured.UnstructuredList) []unstructured.Unstructured { return l.Items }, all)
}
