package desired

import (
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// notPassedOn are domains of labels and annotations that are about the one object that carries them: what manages it, what it was made of, how it is treated. Ours are among those of
// Cluster API.
var notPassedOn = []string{"kubernetes.io", "k8s.io", "x-k8s.io", "argoproj.io", "fluxcd.io", "helm.sh"}

// fromFields are those that follow from the spec.
var fromFields = []string{assisted.InstallConfigOverridesAnnotation, hiveext.ClusterConsumerLabel}

// PassedOn states, of an object that stands for the control plane in assisted-service, the labels and annotations that it gets from the control plane.
func PassedOn(from metav1.Object, kind schema.GroupVersionKind, to metav1.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(to.GetNamespace())
	u.SetName(to.GetName())
	if labels := passedOn(from.GetLabels()); len(labels) > 0 {
		u.SetLabels(labels)
	}
	if annotations := passedOn(from.GetAnnotations()); len(annotations) > 0 {
		u.SetAnnotations(annotations)
	}
	return u
}

func passedOn(all map[string]string) map[string]string {
	passed := map[string]string{}
	for key, value := range all {
		domain, _, prefixed := strings.Cut(key, "/")
		about := prefixed && slices.ContainsFunc(notPassedOn, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
		if !about && !slices.Contains(fromFields, key) {
			passed[key] = value
		}
	}
	return passed
}
