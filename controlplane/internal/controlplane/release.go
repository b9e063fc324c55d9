package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

const (
	// ownerAnnotation holds, on a ClusterImageSet of ours, <namespace>/<name> of its control plane.
	ownerAnnotation = "controlplane.cluster.x-k8s.io/owner"
	// resolvedFromAnnotation holds, on a ClusterImageSet of ours, the image by tag that its digest was looked up from.
	resolvedFromAnnotation = "controlplane.cluster.x-k8s.io/resolved-from"
)

// ownSet returns our ClusterImageSet of a name; nil when there is none.
func (s *scope) ownSet(name string) *hivev1.ClusterImageSet {
	for i := range s.ownSets {
		if s.ownSets[i].Name == name {
			return &s.ownSets[i]
		}
	}
	return nil
}

// releaseImage finds the release image and names it in a ClusterImageSet.
func (r *Reconciler) releaseImage(ctx context.Context, s *scope) (bool, error) {
	if s.begun() {
		return true, nil
	}
	config := &s.controlPlane.Spec.Config
	switch {
	case config.ClusterImageSetRef != nil:
		return s.useImageSet(config.ClusterImageSetRef.Name), nil
	case config.ReleaseImage != "":
		s.releaseImage = config.ReleaseImage
		return r.nameImage(ctx, s, "")
	}
	tagged := release.Image(s.version, s.controlPlane.Spec.OpenshiftAssistedConfigSpec.CPUArchitecture,
		s.controlPlane.Annotations[controlplanev1.ReleaseImageRepositoryOverrideAnnotation], r.Repositories)
	if s.releaseImage = s.resolvedBefore(tagged); s.releaseImage != "" {
		return r.nameImage(ctx, s, tagged)
	}
	image, retryAfter, err := r.Releases.Resolve(tagged, s.credentials, r.waker(s))
	if err != nil {
		s.blockRelease(tagged, retryAfter, err)
		return false, nil
	}
	s.releaseImage = image
	return r.nameImage(ctx, s, tagged)
}

// resolvedBefore is the image that was found for a tag before, perhaps before a restart; that of the registered ClusterImageSet, should there be several.
func (s *scope) resolvedBefore(tagged string) string {
	found := ""
	for i := range s.ownSets {
		set := &s.ownSets[i]
		if set.Annotations[resolvedFromAnnotation] == tagged && (found == "" || set.Name == registeredSetOf(s.install)) {
			found = set.Spec.ReleaseImage
		}
	}
	return found
}

// useImageSet takes the user's ClusterImageSet.
func (s *scope) useImageSet(name string) bool {
	if s.imageSet != nil {
		s.releaseImage, s.imageSetName = s.imageSet.Spec.ReleaseImage, s.imageSet.Name
		return s.registrable()
	}
	message := fmt.Sprintf("ClusterImageSet %s does not exist: create it, or name another in config.clusterImageSetRef", name)
	s.releaseBlocked = &outcome{controlplanev1.ClusterImageSetMissingReason, message}
	s.block(controlplanev1.ClusterImageSetMissingReason, message)
	return false
}

// nameImage writes our ClusterImageSet of the image, unless the cluster is registered with another. It has no owner reference (it is cluster-scoped); the finalizer
// deletes it.
func (r *Reconciler) nameImage(ctx context.Context, s *scope, resolvedFrom string) (bool, error) {
	s.imageSetName = assisted.ClusterImageSetName(s.controlPlane.Namespace, s.controlPlane.Name, s.releaseImage)
	if wanted := s.imageSetName; !s.registrable() || s.imageSetName != wanted {
		return s.blocked == nil, nil
	}
	annotations := map[string]string{ownerAnnotation: client.ObjectKeyFromObject(s.controlPlane).String()}
	if resolvedFrom != "" {
		annotations[resolvedFromAnnotation] = resolvedFrom
	}
	desired := assisted.ClusterImageSet(s.imageSetName, s.releaseImage, s.labels(), annotations)
	if err := r.apply(ctx, s, desired, s.ownSet(s.imageSetName)); err != nil {
		return false, fmt.Errorf("cannot write ClusterImageSet %s: %w", s.imageSetName, err)
	}
	return true, nil
}

// registrable tells whether the cluster is not registered yet, or with this image; then it keeps the ClusterImageSet that it is registered with. assisted-service
// never takes another.
func (s *scope) registrable() bool {
	registered := registeredSetOf(s.install)
	switch {
	case registered == "", registered == s.imageSetName, !s.owns(s.install):
		return true
	case s.registeredSet != nil && s.registeredSet.Spec.ReleaseImage == s.releaseImage:
		s.imageSetName = registered
		return true
	}
	was := "ClusterImageSet " + registered
	if version := s.registeredVersion(); version != "" {
		was = fmt.Sprintf("release %s (%s)", version, was)
	}
	s.block(controlplanev1.VersionChangeNotSupportedReason, fmt.Sprintf("the cluster is registered with %s, and assisted-service takes no other: set spec.version, config.releaseImage and "+
		"config.clusterImageSetRef back to it, or delete the Cluster, of which nothing is installed yet, and create it anew", was))
	return false
}

// registeredVersion is the release with which the cluster is registered, with leading v; empty when it is not.
func (s *scope) registeredVersion() string {
	if s.owns(s.deployment) && s.deployment.Annotations[assisted.OpenShiftVersionAnnotation] != "" {
		return "v" + s.deployment.Annotations[assisted.OpenShiftVersionAnnotation]
	}
	return ""
}

// machineVersion is the version that the Machines are to have: the release that the cluster runs, else the one with which it is registered. Before that it is
// what the spec asks for; empty when nobody knows.
func (s *scope) machineVersion() string {
	switch {
	case s.installed() && s.workload.OpenShiftVersion != "":
		return "v" + s.workload.OpenShiftVersion
	case s.installed() && s.before.Status.Version != "":
		return s.before.Status.Version // the cluster cannot be asked now
	case s.registered:
		return "v" + s.version.String()
	case s.registeredVersion() != "":
		return s.registeredVersion()
	case s.version.Major > 0 && !s.begun():
		return "v" + s.version.String()
	}
	return ""
}

// reportedImage is the release image that is installed, or will be.
func (s *scope) reportedImage() string {
	recorded := s.before.Status.ReleaseImage
	switch {
	case s.installed() && s.workload.ReleaseImage != "":
		return s.workload.ReleaseImage
	case s.begun() && recorded != "":
		return recorded
	case s.owns(s.install) && s.registeredSet != nil:
		return s.registeredSet.Spec.ReleaseImage
	}
	return cmp.Or(s.releaseImage, recorded)
}

// supersededImageSets deletes those of our ClusterImageSets that were never, or are no longer, what the cluster is registered with.
func (r *Reconciler) supersededImageSets(ctx context.Context, s *scope) (bool, error) {
	if registered := registeredSetOf(s.install); registered != "" && s.owns(s.install) {
		return true, r.deleteImageSets(ctx, s, registered)
	}
	return true, nil
}

// blockRelease says why the digest is not known, and when it is asked for again. A registry cannot be watched.
func (s *scope) blockRelease(image string, retryAfter time.Duration, err error) {
	o := outcome{controlplanev1.WaitingForReleaseImageReason, fmt.Sprintf("looking up the release image %s", image)}
	switch {
	case errors.Is(err, release.ErrNotFound):
		o = outcome{
			controlplanev1.ReleaseImageNotFoundReason,
			fmt.Sprintf("release image %s does not exist: set spec.version to an existing release, or give config.releaseImage (by digest) or config.clusterImageSetRef", image),
		}
	case errors.Is(err, release.ErrUnavailable):
		o = outcome{
			controlplanev1.RegistryUnavailableReason,
			fmt.Sprintf("cannot look up release image %s: %v; it is tried again, or give config.releaseImage (by digest) or config.clusterImageSetRef", image, err),
		}
	}
	if retryAfter > 0 {
		s.again.In(retryAfter)
	}
	s.releaseBlocked = &o
	s.block(o.reason, o.message)
}

// waker returns a function that reconciles the control plane again.
func (r *Reconciler) waker(s *scope) func() {
	wanted := event.GenericEvent{Object: s.before}
	return func() { r.wake <- wanted }
}
