package desired

import (
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// ClusterImageSet names a release image; resolvedFrom is the image by tag that it was looked up from, if it was, and
// through the version of the mirrors and credentials. It has no owner reference (it is cluster-scoped): an annotation
// tells whose it is.
func ClusterImageSet(f *facts.Facts, name, image, resolvedFrom, through string) *hivev1.ClusterImageSet {
	annotations := map[string]string{facts.OwnerAnnotation: f.ControlPlane.Namespace + "/" + f.ControlPlane.Name}
	if resolvedFrom != "" {
		annotations[facts.ResolvedFromAnnotation] = resolvedFrom
	}
	if through != "" {
		annotations[facts.LookedUpThroughAnnotation] = through
	}
	return assisted.ClusterImageSet(name, image, f.Labels(), annotations)
}
