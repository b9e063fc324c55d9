package desired

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

// passedOnDomains are those of labels and annotations that are read on ClusterDeployments and AgentClusterInstalls. Of
// others nobody knows what they are for: a tool that prunes what it does not find in Git knows its objects by a label
// of any name.
var passedOnDomains = []string{"hive.openshift.io", "agent-install.openshift.io", "siteconfig.open-cluster-management.io", "cluster.open-cluster-management.io"}

// fromFields are those that follow from the spec.
var fromFields = []string{assisted.InstallConfigOverridesAnnotation, hiveext.ClusterConsumerLabel}

// PassedOn states, of an object that stands for the control plane in assisted-service, the labels and annotations that
// it gets from the control plane.
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

// PassOnAtOnce adds them to an object that is about to be made, so that nobody sees it without. Afterwards they are
// another field manager's, and what this one said is withdrawn with its next request, when they have that other owner.
func PassOnAtOnce(from, made metav1.Object) {
	labels, annotations := passedOn(from)
	made.SetLabels(k8slabels.Merge(labels, made.GetLabels()))
	made.SetAnnotations(k8slabels.Merge(annotations, made.GetAnnotations()))
}

// passedOn are the labels and annotations of the control plane that are read on what stands for it, and those that it names.
func passedOn(from metav1.Object) (labels, annotations map[string]string) {
	named := strings.Split(strings.ReplaceAll(from.GetAnnotations()[controlplanev1.PassOnAnnotation], " ", ""), ",")
	return among(from.GetLabels(), named), among(from.GetAnnotations(), named)
}

func among(all map[string]string, named []string) map[string]string {
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
