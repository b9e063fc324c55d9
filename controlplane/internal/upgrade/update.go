package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// offersOf are the offers of a release. An offer without an image is none: the version alone does not say which image the cluster takes.
func offersOf(seen *facts.ClusterVersion, wanted semver.Version) []facts.Offer {
	var offers []facts.Offer
	for _, o := range seen.Offers {
		if o.Version == wanted.String() && o.Image != "" {
			offers = append(offers, o)
		}
	}
	return offers
}

// updateTo is what to request of the cluster: always the version together with its image. The cluster ignores a version alone where the release is not recommended, where the
// update graph offers it with several images, and as soon as the graph cannot be reached (lib/validation of the cluster version operator).
func updateTo(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) (*facts.Update, *decision.Blocker) {
	offers := offersOf(seen, wanted)
	image, blocker := imageOf(f, wanted, seen)
	if image == "" && len(offers) > 0 {
		image, blocker = offeredImage(wanted, offers)
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
	return &facts.Update{Version: wanted.String(), Image: image, Force: waived(f, wanted)}, nil
}

// offeredImage is the image with which a release is offered: the recommended one, where it is offered with others, too.
func offeredImage(wanted semver.Version, offers []facts.Offer) (string, *decision.Blocker) {
	recommended := slices.DeleteFunc(slices.Clone(offers), func(o facts.Offer) bool { return len(o.Risks) > 0 })
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
		return "", watched(controlplanev1.InvalidConfigurationReason, "v%s is offered with %d images (%s). Set config.releaseImage to one of them", wanted, len(images), bound.List(images))
	}
	return images[0], nil
}

// risksOf are the risks of an image: those of the offer that has it, else, for one that the update graph does not know, those of the first offer of the release. Available
// updates come before conditional ones.
func risksOf(offers []facts.Offer, image string) []facts.Risk {
	if len(offers) == 0 {
		return nil
	}
	at := slices.IndexFunc(offers, func(o facts.Offer) bool { return digestOf(o.Image) == digestOf(image) })
	return offers[max(0, at)].Risks
}

// waived reports whether neither preconditions nor signature are to be checked for a release.
func waived(f *facts.Facts, wanted semver.Version) bool {
	version, err := openshift.ParseVersion(f.ControlPlane.Spec.Upgrade.WaivePreconditionsAndSignaturesFor)
	return err == nil && version.String() == wanted.String()
}

// risky is about risks that nobody accepted.
func risky(f *facts.Facts, wanted semver.Version, risks []facts.Risk) *decision.Blocker {
	var left []string
	for _, risk := range risks {
		if !slices.Contains(f.ControlPlane.Spec.Upgrade.AcceptedRisks, risk.Name) {
			left = append(left, fmt.Sprintf("%s (%s)", risk.Name, bound.Cause(risk.Message)))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return watched(controlplanev1.UpgradeRiskNotAcceptedReason, "v%s is not recommended to this cluster; set spec.version to another release, or name in spec.upgrade.acceptedRisks what you accept: %s",
		wanted, bound.Join(left, ""))
}

// imageOf is the image of the release that the spec names. It is empty where the spec names none; where the image cannot be that of the release, the blocker states why. An offered
// release does not need it: ClusterImageSets of ACM name their images by tag, and often still belong to the installation.
func imageOf(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) (string, *decision.Blocker) {
	config := &f.ControlPlane.Spec.Config
	image, field := config.ReleaseImage, "config.releaseImage"
	if config.ClusterImageSetRef != nil {
		if f.ImageSet == nil {
			return "", watched(controlplanev1.ClusterImageSetMissingReason, "ClusterImageSet %s does not exist: create it, or name another in config.clusterImageSetRef", config.ClusterImageSetRef.Name)
		}
		image, field = f.ImageSet.Spec.ReleaseImage, "config.clusterImageSetRef"
	}
	hasDigest := func(other string) bool { return digestOf(other) == digestOf(image) }
	switch {
	case image == "":
		return "", nil
	case digestOf(image) == "":
		return "", watched(controlplanev1.InvalidConfigurationReason, "v%s is not offered to this cluster, and the image of %s is named by tag: name it by digest (registry/path@sha256:...), "+
			"or set spec.upgrade.channel to one that has the release", wanted, field)
	case hasDigest(f.Workload.ReleaseImage):
		return "", watched(controlplanev1.InvalidConfigurationReason, "%s is still the image of v%s, which runs: set it to that of v%s, or remove it, so that the cluster takes the one of its update graph",
			field, f.Workload.OpenShiftVersion, wanted)
	case slices.ContainsFunc(seen.Images, hasDigest):
		return "", watched(controlplanev1.InvalidConfigurationReason, "%s is the image of an older release, which the cluster ran before: set it to that of v%s, or remove it, so that the cluster takes the one of its update graph",
			field, wanted)
	}
	return image, nil
}

// digestOf is the digest of an image; empty where it is named by tag.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// notOffered reports that the update graph does not offer a release. advice, where it is not empty, takes the place of the one to name the image by digest.
func notOffered(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion, advice string) *decision.Blocker {
	graph := "the channel " + bound.Value(seen.Channel)
	if seen.Channel == "" {
		graph = "the update graph, of which the cluster has no channel"
	}
	because := ""
	if seen.NoOffers != "" {
		because = ": " + strings.TrimSuffix(bound.Cause(seen.NoOffers), ".")
	}
	if advice == "" {
		advice = ", or, where there is no update graph, config.releaseImage to its image by digest"
	} else {
		advice = ": " + advice
	}
	return watched(controlplanev1.UpgradeNotOfferedReason, "v%s is not offered to this cluster, which runs v%s, by %s%s. Set spec.upgrade.channel to one that has it%s",
		wanted, f.Workload.OpenShiftVersion, graph, because, advice)
}
