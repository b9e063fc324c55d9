package registration

import (
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// ClusterImageSet returns the ClusterImageSet of a release image. resolvedFrom is the image by tag from which
// the digest was resolved, or "". through is the version of the mirrors and credentials of the look-up. A
// ClusterImageSet is cluster-scoped and has no owner reference: an annotation records its owner.
func ClusterImageSet(f *facts.Facts, name, image, resolvedFrom, through string) *hivev1.ClusterImageSet {
	annotations := map[string]string{facts.OwnerAnnotation: f.ControlPlane.Namespace + "/" + f.ControlPlane.Name}
	if resolvedFrom != "" {
		annotations[facts.ResolvedFromAnnotation] = resolvedFrom
	}
	if through != "" {
		annotations[facts.ResolvedThroughAnnotation] = through
	}
	return assisted.ClusterImageSet(name, image, f.Labels(), annotations)
}
