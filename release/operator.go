package main

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

const (
	operatorFile = "cluster-api-operator.yaml"
	// componentsLabel is the label by which the operator selects the ConfigMaps with our components.
	componentsLabel = "provider-components"
)

// operatorManifests returns the manifests for users of the Cluster API operator: a ConfigMap with the
// components, and the provider object. The operator installs the ConfigMap whose name is the version of the
// provider object.
func (r *release) operatorManifests(p provider, components, metadata []byte) ([]byte, error) {
	namespaced := func(name string) map[string]any { return map[string]any{"name": name, "namespace": p.namespace} }
	labels := map[string]any{componentsLabel: p.label}
	source := namespaced(r.version)
	source["labels"] = labels
	var out bytes.Buffer
	out.WriteString("# On a hub that is OpenShift, apply openshift-hub.yaml of this release in addition: " +
		"it gives the manager the right that such a hub requires of clients that change owner references.\n")
	for _, object := range []map[string]any{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.namespace}},
		{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": source,
			"data": map[string]any{"components": string(components), "metadata": string(metadata)},
		},
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
