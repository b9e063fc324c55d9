package registration

import (
	"cmp"
	"fmt"

	"github.com/blang/semver/v4"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/annotations"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// ClusterDeployment returns the desired ClusterDeployment for a release. Its installation is the
// AgentClusterInstall of the same name.
func ClusterDeployment(f *facts.Facts, version semver.Version) *unstructured.Unstructured {
	u := clusterDeployment(f, &hivev1.ClusterDeploymentSpec{
		ClusterName:   ClusterName(f),
		BaseDomain:    f.ControlPlane.Spec.Config.BaseDomain,
		PullSecretRef: &corev1.LocalObjectReference{Name: f.PullSecretName()},
	})
	annotations.AddAnnotations(u, map[string]string{assisted.OpenShiftVersionAnnotation: version.String()})
	return u
}

// ClusterName returns the first part of the DNS name of the cluster.
func ClusterName(f *facts.Facts) string {
	return cmp.Or(f.ControlPlane.Spec.Config.ClusterName, f.Cluster.Name)
}

// InstalledClusterDeployment returns the ClusterDeployment to apply for an installed cluster: all fields that
// were applied before, unchanged, and that the cluster is installed. Without that field an assisted-service
// that lost its database would register the cluster for an installation. Hive, if it runs, requires the
// metadata with it.
func InstalledClusterDeployment(f *facts.Facts, observed *hivev1.ClusterDeployment) (*unstructured.Unstructured, error) {
	u := clusterDeployment(f, &observed.Spec)
	if version := observed.Annotations[assisted.OpenShiftVersionAnnotation]; version != "" {
		annotations.AddAnnotations(u, map[string]string{assisted.OpenShiftVersionAnnotation: version})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.Install.Spec.ClusterMetadata)
	if err != nil {
		return nil, fmt.Errorf("cannot convert the metadata of the cluster: %w", err)
	}
	spec := u.Object["spec"].(map[string]any) //nolint:forcetypeassert // set above
	spec["installed"], spec["clusterMetadata"] = true, content
	return u, nil
}

// clusterDeployment returns the fields of a ClusterDeployment that this provider owns. It is unstructured
// because the Go type always sets fields that belong to Hive (spec.installed, status).
func clusterDeployment(f *facts.Facts, of *hivev1.ClusterDeploymentSpec) *unstructured.Unstructured {
	name := f.ControlPlane.Name
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"clusterName":   of.ClusterName,
			"baseDomain":    of.BaseDomain,
			"pullSecretRef": map[string]any{"name": ptr.Deref(of.PullSecretRef, corev1.LocalObjectReference{}).Name},
			"clusterInstallRef": map[string]any{
				"group":   hiveext.Group,
				"version": hiveext.Version,
				"kind":    "AgentClusterInstall",
				"name":    name,
			},
			"platform": map[string]any{
				// Hosts are bound one by one; the selector is mandatory and selects nothing that matters here.
				"agentBareMetal": map[string]any{"agentSelector": map[string]any{}},
			},
		},
	}}
	u.SetGroupVersionKind(hivev1.SchemeGroupVersion.WithKind("ClusterDeployment"))
	u.SetNamespace(f.ControlPlane.Namespace)
	u.SetName(name)
	f.Owner().Mark(u)
	return u
}
