package upgrade

import (
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// offersOf returns the offers of a release. An offer without an image is ignored, because the version alone
// does not determine the image that the cluster uses.
func offersOf(seen *workload.ClusterVersion, version string) []workload.Offer {
	var offers []workload.Offer
	for _, o := range seen.Offers {
		if o.Version == version && o.Image != "" {
			offers = append(offers, o)
		}
	}
	return offers
}

// updateTo returns the update to request: always the version together with its image. The cluster ignores a
// version without image in three cases. The release is not recommended, the update graph offers it with
// several images, or the graph is not reachable (lib/validation of the cluster version operator).
func updateTo(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) (*workload.Update, *decision.Blocker) {
	offers := offersOf(seen, wanted.String())
	image, blocker := imageOf(f, wanted, seen)
	if image == "" && len(offers) > 0 {
		image, blocker = offeredImage(f, wanted, offers)
	}
	switch {
	case blocker != nil:
		return nil, blocker
	case image == "":
		return nil, notOffered(f, wanted, seen, "")
	}
	if blocker := risky(f, wanted, risksOf(offers, image)); blocker != nil {
		return nil, blocker
	}
	return &workload.Update{Version: wanted.String(), Image: image, Force: waived(f, wanted)}, nil
}

// offeredImage returns the image of an offered release. A recommended offer takes precedence.
func offeredImage(f *facts.Facts, wanted semver.Version, offers []workload.Offer) (string, *decision.Blocker) {
	recommended := slices.DeleteFunc(slices.Clone(offers), func(o workload.Offer) bool { return len(o.Risks) > 0 })
	if len(recommended) > 0 {
		offers = recommended
	}
	var images []string
	for _, o := range offers {
		if !slices.Contains(images, o.Image) {
			images = append(images, o.Image)
		}
	}
	if len(images) > 1 {
		return "", watched(controlplanev1.InvalidConfigurationReason,
			"v%s is offered with %d images (%s). Set %s to one of them", wanted, len(images), bound.List(images), f.Settings().Image)
	}
	return images[0], nil
}

// waived reports whether the checks of preconditions and signature are waived for a release.
func waived(f *facts.Facts, wanted semver.Version) bool {
	version, err := versions.ParseRelease(f.ControlPlane.Spec.Upgrade.WaivePreconditionsAndSignaturesFor)
	return err == nil && version.String() == wanted.String()
}

// imageOf returns the release image in the spec, or "" if the spec has none. If the image cannot be that of
// the release, the blocker states why. An offered release does not need the image. ClusterImageSets of ACM
// name their images by tag, and often still belong to the installation.
func imageOf(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) (string, *decision.Blocker) {
	config := &f.ControlPlane.Spec.Config
	image, field := config.ReleaseImage, f.Settings().Image
	if config.ClusterImageSetRef != nil {
		if f.ImageSet == nil {
			return "", watched(controlplanev1.ClusterImageSetMissingReason,
				"ClusterImageSet %s does not exist. Create it, or set config.clusterImageSetRef to another",
				config.ClusterImageSetRef.Name)
		}
		image, field = f.ImageSet.Spec.ReleaseImage, "config.clusterImageSetRef"
	}
	hasDigest := func(other string) bool { return digestOf(other) == digestOf(image) }
	switch {
	case image == "":
		return "", nil
	case digestOf(image) == "":
		return "", watched(controlplanev1.InvalidConfigurationReason,
			"v%s is not offered to this cluster, and the image of %s is named by tag. Name it by digest (registry/path@sha256:...), "+
				"or set %s to a channel with the release", wanted, field, f.Settings().Channel)
	case hasDigest(f.Workload.ReleaseImage):
		return "", watched(controlplanev1.InvalidConfigurationReason,
			"%s is still the image of v%s, which runs. Set it to the image of v%s, or remove it to use the image in the update graph",
			field, f.Workload.OpenShiftVersion, wanted)
	case slices.ContainsFunc(seen.Images, hasDigest):
		return "", watched(controlplanev1.InvalidConfigurationReason,
			"%s is the image of an older release, which the cluster ran before. Set it to the image of v%s, or remove it to use the image in "+
				"the update graph",
			field, wanted)
	}
	return image, nil
}

// digestOf returns the digest of an image, or "" if it is named by tag.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// notOffered reports that the update graph does not offer a release. advice replaces the advice to name the
// image by digest.
func notOffered(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion, advice string) *decision.Blocker {
	graph := "the channel " + bound.Value(seen.Channel)
	if seen.Channel == "" {
		graph = "the update graph, because the cluster has no channel"
	}
	cause := ""
	if seen.NoOffers != "" {
		cause = ": " + strings.TrimSuffix(bound.Cause(seen.NoOffers), ".")
	}
	if advice == "" {
		advice = ", or, without an update graph, set " + f.Settings().Image + " to its image by digest"
	} else {
		advice = ": " + advice
	}
	return watched(controlplanev1.UpgradeNotOfferedReason,
		"v%s is not offered to this cluster, which runs v%s, by %s%s. Set %s to a channel with this release%s",
		wanted, f.Workload.OpenShiftVersion, graph, cause, f.Settings().Channel, advice)
}
