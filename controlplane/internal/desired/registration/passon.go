package registration

import (
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
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
var derivedKeys = []string{assisted.InstallConfigOverridesAnnotation, hiveext.ClusterConsumerLabel}

// ownDomains are the domains of labels and annotations with which the providers record facts about an object. A copy
// would be a false record: that of NTP servers would deregister the cluster.
var ownDomains = []string{controlplanev1.GroupVersion.Group, bootstrapv1.GroupVersion.Group}

// PassedOn returns the labels and annotations that an object of the control plane in assisted-service gets
// from the control plane.
func PassedOn(
	from *controlplanev1.OpenshiftAssistedControlPlane, kind schema.GroupVersionKind, to metav1.Object,
) *unstructured.Unstructured {
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
func PassOnAtOnce(from *controlplanev1.OpenshiftAssistedControlPlane, made metav1.Object) {
	labels, annotations := passedOn(from)
	made.SetLabels(k8slabels.Merge(labels, made.GetLabels()))
	made.SetAnnotations(k8slabels.Merge(annotations, made.GetAnnotations()))
}

// passedOn returns the labels and annotations of the control plane that are read on its objects, and those
// that it names. The field config.ignoredValidations replaces the annotations with ignored validations.
func passedOn(from *controlplanev1.OpenshiftAssistedControlPlane) (labels, annotations map[string]string) {
	named := strings.Split(strings.ReplaceAll(from.Annotations[controlplanev1.PassOnAnnotation], " ", ""), ",")
	labels, annotations = among(from.Labels, named), among(from.Annotations, named)
	if from.Spec.Config.IgnoredValidations != nil {
		for _, key := range assisted.IgnoredValidations() {
			delete(annotations, key)
		}
	}
	return labels, annotations
}

func among(all map[string]string, named []string) map[string]string {
	passed := map[string]string{}
	for key, value := range all {
		domain, _, _ := strings.Cut(key, "/")
		read := slices.ContainsFunc(propagatedDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
		if (read || slices.Contains(named, key)) && !slices.Contains(derivedKeys, key) && !slices.Contains(ownDomains, domain) {
			passed[key] = value
		}
	}
	return passed
}
