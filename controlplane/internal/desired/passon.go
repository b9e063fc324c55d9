package desired

import (
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// passedOnDomains are those of labels and annotations that are read on ClusterDeployments and AgentClusterInstalls. Of others nobody knows what they are for: a tool that prunes
// what it does not find in Git knows its objects by a label of any name.
var passedOnDomains = []string{"hive.openshift.io", "agent-install.openshift.io", "siteconfig.open-cluster-management.io", "cluster.open-cluster-management.io"}

// fromFields are those that follow from the spec.
var fromFields = []string{assisted.InstallConfigOverridesAnnotation, hiveext.ClusterConsumerLabel}

// PassedOn states, of an object that stands for the control plane in assisted-service, the labels and annotations that it gets from the control plane.
func PassedOn(from metav1.Object, kind schema.GroupVersionKind, to metav1.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(to.GetNamespace())
	u.SetName(to.GetName())
	named := strings.Split(strings.ReplaceAll(from.GetAnnotations()[controlplanev1.PassOnAnnotation], " ", ""), ",")
	if labels := passedOn(from.GetLabels(), named); len(labels) > 0 {
		u.SetLabels(labels)
	}
	if annotations := passedOn(from.GetAnnotations(), named); len(annotations) > 0 {
		u.SetAnnotations(annotations)
	}
	return u
}

func passedOn(all map[string]string, named []string) map[string]string {
	passed := map[string]string{}
	for key, value := range all {
		domain, _, _ := strings.Cut(key, "/")
		read := slices.ContainsFunc(passedOnDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
		if (read || slices.Contains(named, key)) && !slices.Contains(fromFields, key) {
			passed[key] = value
		}
	}
	return passed
}
