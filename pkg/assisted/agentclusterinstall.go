package assisted

import (
	"fmt"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// InstallConfigOverridesAnnotation holds, on an AgentClusterInstall, a JSON object that is merged into the install-config.
	InstallConfigOverridesAnnotation = "agent-install.openshift.io/install-config-overrides"

	// IgnoredClusterValidationsAnnotation lists, on an AgentClusterInstall, validations of the cluster that do not block
	// its installation, separated by commas. assisted-service reads it since April 2026
	// (clusterdeployments_controller.go). An empty list has a meaning of its own: it enforces validations that the service
	// ignores for all clusters.
	IgnoredClusterValidationsAnnotation = "agent-install.openshift.io/ignored-cluster-validations"
	// IgnoredHostValidationsAnnotation is the same for validations of all hosts of the cluster.
	IgnoredHostValidationsAnnotation = "agent-install.openshift.io/ignored-host-validations"

	// NTPSourcesAnnotation lists, on an AgentClusterInstall, the NTP servers in its field spec.ntpSources, separated by
	// commas. The control plane provider sets it together with the field.
	NTPSourcesAnnotation = "controlplane.cluster.x-k8s.io/ntp-sources"

	// Consumer is the value of the label with which assisted-service tags the cluster in its statistics.
	Consumer = "OpenshiftAssistedControlPlane"
)

// IgnoredValidations returns the annotations of an AgentClusterInstall with ignored validations.
func IgnoredValidations() []string {
	return []string{IgnoredClusterValidationsAnnotation, IgnoredHostValidationsAnnotation}
}

// WithNTPSources returns an AgentClusterInstall with the field spec.ntpSources as its annotation lists it; nil without the
// annotation. The Go type lacks the field, which assisted-service has since August 2026. The API server of an older one
// refuses the field.
func WithNTPSources(install *hiveext.AgentClusterInstall) (*unstructured.Unstructured, error) {
	if install == nil || install.Annotations[NTPSourcesAnnotation] == "" {
		return nil, nil //nolint:nilnil // the typed object is complete
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(install)
	if err != nil {
		return nil, fmt.Errorf("cannot convert AgentClusterInstall %s: %w", install.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(hiveext.GroupVersion.WithKind("AgentClusterInstall"))
	sources := strings.Split(install.Annotations[NTPSourcesAnnotation], ",")
	if err := unstructured.SetNestedStringSlice(u.Object, sources, "spec", "ntpSources"); err != nil {
		return nil, fmt.Errorf("cannot set the NTP servers of AgentClusterInstall %s: %w", install.Name, err)
	}
	return u, nil
}
