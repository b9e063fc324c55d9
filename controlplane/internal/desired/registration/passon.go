package registration

import (
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// propagatedDomains are the domains of labels and annotations that are read on ClusterDeployments and
// AgentClusterInstalls. Others may have any purpose: a tool that prunes objects that are not in Git
// identifies its objects by a label of any name.
var propagatedDomains = []string{
	"hive.openshift.io",
	"agent-install.openshift.io",
	"siteconfig.open-cluster-management.io",
	"cluster.open-cluster-management.io",
}

// derivedKeys are the labels and annotations that follow from the spec.
var derivedKeys = []string{
	assisted.InstallConfigOverridesAnnotation, hiveext.ClusterConsumerLabel,
	assisted.IgnoredClusterValidationsAnnotation, assisted.IgnoredHostValidationsAnnotation,
}

// PassedOn returns the labels and annotations that an object of the control plane in assisted-service gets
// from the control plane.
func PassedOn(from metav1.Object, kind schema.GroupVersionKind, to metav1.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(to.GetNamespace())
	u.SetName(to.GetName())
	labels, annotations := passedOn(from)
	if len(labels) > 0 {
		u.SetLabels(labels)
	}
	if len(annotations) > 0 {
		u.SetAnnotations(annotations)
	}
	return u
}

// PassOnAtOnce adds them to an object before its creation, so that no client sees the object without them.
// Afterwards another field manager owns them. The first field manager withdraws its ownership with its next
// request.
func PassOnAtOnce(from, made metav1.Object) {
	labels, annotations := passedOn(from)
	made.SetLabels(k8slabels.Merge(labels, made.GetLabels()))
	made.SetAnnotations(k8slabels.Merge(annotations, made.GetAnnotations()))
}

// passedOn returns the labels and annotations of the control plane that are read on its objects, and those
// that it names.
func passedOn(from metav1.Object) (labels, annotations map[string]string) {
	named := strings.Split(strings.ReplaceAll(from.GetAnnotations()[controlplanev1.PassOnAnnotation], " ", ""), ",")
	return among(from.GetLabels(), named), among(from.GetAnnotations(), named)
}

func among(all map[string]string, named []string) map[string]string {
	passed := map[string]string{}
	for key, value := range all {
		domain, _, _ := strings.Cut(key, "/")
		read := slices.ContainsFunc(propagatedDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
		if (read || slices.Contains(named, key)) && !slices.Contains(derivedKeys, key) {
			passed[key] = value
		}
	}
	return passed
}
