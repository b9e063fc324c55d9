package assisted

import (
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
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

// InstalledClusterDeployment returns what we state of a ClusterDeployment whose cluster is installed: all that we stated before, as it stands, and that it is
// installed. Without that a service that lost its database would register the cluster as one to be installed. Hive, where it runs, wants the metadata along.
func InstalledClusterDeployment(observed *hivev1.ClusterDeployment, labels map[string]string, metadata *hivev1.ClusterMetadata) (*unstructured.Unstructured, error) {
	u := ClusterDeployment(ClusterDeploymentInput{
		Namespace: observed.Namespace, Name: observed.Name, Labels: labels,
		ClusterName: observed.Spec.ClusterName, BaseDomain: observed.Spec.BaseDomain,
		PullSecret:       ptr.Deref(observed.Spec.PullSecretRef, corev1.LocalObjectReference{}).Name,
		OpenShiftVersion: observed.Annotations[OpenShiftVersionAnnotation],
	})
	if observed.Annotations[OpenShiftVersionAnnotation] == "" {
		u.SetAnnotations(nil)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(metadata)
	if err != nil {
		return nil, fmt.Errorf("cannot convert the metadata of the cluster: %w", err)
	}
	spec := u.Object["spec"].(map[string]any) //nolint:forcetypeassert // made above
	spec["installed"], spec["clusterMetadata"] = true, content
	return u, nil
}
