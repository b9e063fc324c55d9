package main

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

const (
	operatorFile = "cluster-api-operator.yaml"
	// componentsLabel is by what the operator finds the ConfigMaps with our components.
	componentsLabel = "provider-components"
)

// operatorManifests are what a user of the Cluster API operator applies in place of what clusterctl does: a ConfigMap
// with the very components, out of which the operator takes the release whose version is the name of the ConfigMap, and
// the provider that asks for it.
func (r *release) operatorManifests(p provider, components, metadata []byte) ([]byte, error) {
	namespaced := func(name string) map[string]any { return map[string]any{"name": name, "namespace": p.namespace} }
	labels := map[string]any{componentsLabel: p.label}
	source := namespaced(r.version)
	source["labels"] = labels
	var out bytes.Buffer
	out.WriteString("# On a hub that is OpenShift, apply openshift-hub.yaml of this release in addition: it gives the manager the right that such a hub requires of clients that change owner references.\n")
	for _, object := range []map[string]any{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.namespace}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": source, "data": map[string]any{"components": string(components), "metadata": string(metadata)}},
		{
			"apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": p.operatorKind, "metadata": namespaced(providerName),
			"spec": map[string]any{"version": r.version, "fetchConfig": map[string]any{"selector": map[string]any{"matchLabels": labels}}},
		},
	} {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("cannot write the manifests for the operator: %w", err)
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}
