package releaseimage

import (
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// releaseLookup is a look-up of the digest of a release image.
type releaseLookup struct {
	// Tagged is the image by tag.
	Tagged string
	// Through is the version of the mirrors, authorities and pull secret, or ResolvedDirectly.
	Through string
	// Mirrors is the digest of the ConfigMap with the mirrors; "" without mirrors.
	Mirrors string
}

// resolvedBefore returns the image that a tag was resolved to through the same sources, possibly before a
// restart; "" if there is none. If there are several images it returns the registered one. An image from
// other mirrors does not count, because those mirrors may have been wrong.
func resolvedBefore(f *facts.Facts, lookup releaseLookup) string {
	registered := registeredFrom(f, lookup)
	if registered != nil && registered.Annotations[facts.ResolvedThroughAnnotation] == "" {
		return registered.Spec.ReleaseImage
	}
	found := ""
	for i := range f.OwnSets {
		set := &f.OwnSets[i]
		if set.Annotations[facts.ResolvedFromAnnotation] == lookup.Tagged && set.Annotations[facts.ResolvedThroughAnnotation] == lookup.Through &&
			(found == "" || set.Name == facts.RegisteredSetOf(f.Install)) {
			found = set.Spec.ReleaseImage
		}
	}
	return found
}

// registeredImage returns the image that the cluster is registered with, and the sources that resolved it.
// The image is valid while no registry answers, for example after a change of the pull secret. It is "" if
// the cluster is not registered with an image of that tag, or is registered with other mirrors.
func registeredImage(f *facts.Facts, lookup releaseLookup) (image, through string) {
	set := registeredFrom(f, lookup)
	if set == nil {
		return "", ""
	}
	return set.Spec.ReleaseImage, set.Annotations[facts.ResolvedThroughAnnotation]
}

// registeredFrom returns our ClusterImageSet that the cluster is registered with. It returns nil if the image
// was not resolved from the tag, or if the cluster is registered with other mirrors.
func registeredFrom(f *facts.Facts, lookup releaseLookup) *hivev1.ClusterImageSet {
	set := f.OwnSet(facts.RegisteredSetOf(f.Install))
	if set == nil || !ownership.OwnsInstall(f) || set.Annotations[facts.ResolvedFromAnnotation] != lookup.Tagged {
		return nil
	}
	hasMirrors := f.Install.Spec.MirrorRegistryRef != nil
	if hasMirrors != (lookup.Mirrors != "") ||
		assisted.OtherMirrors(f.Install.Annotations[bootstrapv1.MirrorsDigestAnnotation], lookup.Mirrors) {
		return nil
	}
	return set
}
