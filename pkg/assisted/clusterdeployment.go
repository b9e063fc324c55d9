package assisted

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ClusterDeploymentInput is what a ClusterDeployment is made from.
type ClusterDeploymentInput struct {
	Namespace, Name string
	Labels          map[string]string
	// ClusterName and BaseDomain make the cluster's DNS name <ClusterName>.<BaseDomain>.
	ClusterName, BaseDomain string
	// PullSecret names a Secret in the same namespace.
	PullSecret string
	// OpenShiftVersion is the release without leading v.
	OpenShiftVersion string
}

// ClusterDeployment returns the wanted ClusterDeployment, whose installation is the AgentClusterInstall of the same name. It is unstructured
// because the Go type always states fields that belong to Hive (spec.installed, status).
func ClusterDeployment(in ClusterDeploymentInput) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"clusterName":   in.ClusterName,
			"baseDomain":    in.BaseDomain,
			"pullSecretRef": map[string]any{"name": in.PullSecret},
			"clusterInstallRef": map[string]any{
				"group":   hiveext.Group,
				"version": hiveext.Version,
				"kind":    "AgentClusterInstall",
				"name":    in.Name,
			},
			"platform": map[string]any{
				// Hosts are bound one by one; the selector is mandatory and selects nothing that matters here.
				"agentBareMetal": map[string]any{"agentSelector": map[string]any{}},
			},
		},
	}}
	u.SetGroupVersionKind(hivev1.SchemeGroupVersion.WithKind("ClusterDeployment"))
	u.SetNamespace(in.Namespace)
	u.SetName(in.Name)
	u.SetLabels(in.Labels)
	u.SetAnnotations(map[string]string{OpenShiftVersionAnnotation: in.OpenShiftVersion})
	return u
}
