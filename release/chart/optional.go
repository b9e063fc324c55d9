package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// addOptional adds the templates of the objects of config/monitoring and config/egress for a provider.
func (c *Chart) addOptional(p Provider) error {
	for _, folder := range []string{"monitoring", "egress"} {
		manifests, err := os.ReadFile(filepath.Join(c.root, "config", folder, p.Folder+".yaml"))
		if err != nil {
			return fmt.Errorf("cannot read optional objects of the chart: %w", err)
		}
		objects, err := objectsOf(manifests)
		if err != nil {
			return err
		}
		for _, o := range objects {
			condition := ".Values.podMonitor.enabled"
			switch {
			case folder == "egress":
				condition = ".Values.networkPolicy.egress.enabled"
			case o.GetKind() == "NetworkPolicy":
				condition = ".Values.networkPolicy.enabled"
			}
			if err := c.addObject(p, o, condition); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSpread adds the topology spread constraints to the Pods of a Deployment.
func addSpread(p Provider, spec, pod map[string]any) error {
	selector, err := json.Marshal(spec["selector"])
	if err != nil {
		return fmt.Errorf("cannot write the selector of the Deployment: %w", err)
	}
	pod["topologySpreadConstraints"] = expression(optional, `include "openshift-agent.spread" (dict "constraints" .Values.`+p.Values+
		`.topologySpreadConstraints "selector" (fromJson `+strconv.Quote(string(selector))+`)) | fromYamlArray`)
	return nil
}

// budgetOf returns the PodDisruptionBudget for the Pods of a Deployment.
func budgetOf(p Provider, deployment unstructured.Unstructured) unstructured.Unstructured {
	spec := map[string]any{"selector": deployment.Object["spec"].(map[string]any)["selector"]}
	for _, field := range []string{"minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy"} {
		spec[field] = expression(given, ".Values."+p.Values+".podDisruptionBudget."+field)
	}
	budget := unstructured.Unstructured{Object: map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}}
	budget.SetNamespace(deployment.GetNamespace())
	budget.SetName(deployment.GetName())
	budget.SetLabels(deployment.GetLabels())
	return *budget.DeepCopy()
}

// parameterizeEgress adds the rules of the user to a NetworkPolicy for connections of a manager.
func parameterizeEgress(p Provider, spec map[string]any) {
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		spec["egress"] = append(egress, expression(further, ".Values."+p.Values+".additionalEgress"))
	}
}
