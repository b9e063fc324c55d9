package facts

import (
	hivev1 "github.com/openshift/hive/apis/hive/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// ReleaseLookup is a look-up of the digest of a release image.
type ReleaseLookup struct {
	// Tagged is the image by tag.
	Tagged string
	// Through is the version of the mirrors, authorities and pull secret, or ResolvedDirectly.
	Through string
	// Mirrors is the digest of the ConfigMap with the mirrors; "" without mirrors.
	Mirrors string
}

// ResolvedBefore returns the image that a tag was resolved to through the same sources, possibly before a
// restart; "" if there is none. If there are several images it returns the registered one. An image from
// other mirrors does not count, because those mirrors may have been wrong.
func (f *Facts) ResolvedBefore(lookup ReleaseLookup) string {
	registered := f.registeredFrom(lookup)
	if registered != nil && registered.Annotations[ResolvedThroughAnnotation] == "" {
		return registered.Spec.ReleaseImage
	}
	found := ""
	for i := range f.OwnSets {
		set := &f.OwnSets[i]
		if set.Annotations[ResolvedFromAnnotation] == lookup.Tagged && set.Annotations[ResolvedThroughAnnotation] == lookup.Through &&
			(found == "" || set.Name == RegisteredSetOf(f.Install)) {
			found = set.Spec.ReleaseImage
		}
	}
	return found
}

// RegisteredImage returns the image that the cluster is registered with, and the sources that resolved it.
// The image is valid while no registry answers, for example after a change of the pull secret. It is "" if
// the cluster is not registered with an image of that tag, or is registered with other mirrors.
func (f *Facts) RegisteredImage(lookup ReleaseLookup) (image, through string) {
	set := f.registeredFrom(lookup)
	if set == nil {
		return "", ""
	}
	return set.Spec.ReleaseImage, set.Annotations[ResolvedThroughAnnotation]
}

// registeredFrom returns our ClusterImageSet that the cluster is registered with. It returns nil if the image
// was not resolved from the tag, or if the cluster is registered with other mirrors.
func (f *Facts) registeredFrom(lookup ReleaseLookup) *hivev1.ClusterImageSet {
	set := f.OwnSet(RegisteredSetOf(f.Install))
	if set == nil || !f.OwnsInstall() || set.Annotations[ResolvedFromAnnotation] != lookup.Tagged {
		return nil
	}
	hasMirrors := f.Install.Spec.MirrorRegistryRef != nil
	if hasMirrors != (lookup.Mirrors != "") ||
		assisted.OtherMirrors(f.Install.Annotations[bootstrapv1.MirrorsDigestAnnotation], lookup.Mirrors) {
		return nil
	}
	return set
}
