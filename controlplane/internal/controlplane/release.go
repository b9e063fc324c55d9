package controlplane

import (
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

func (s *scope) ownImageSet() string {
	return assisted.ClusterImageSetName(s.controlPlane.Namespace, s.controlPlane.Name)
}

// ownsImageSet tells whether the ClusterImageSet was made for this control plane.
func (s *scope) ownsImageSet() bool {
	return s.imageSet != nil && s.imageSet.Annotations[ownerAnnotation] == client.ObjectKeyFromObject(s.controlPlane).String()
}

// releaseImage finds the release image and names it in a ClusterImageSet.
func (r *Reconciler) releaseImage(ctx context.Context, s *scope) (bool, error) {
	if s.imageSet != nil {
		s.releaseImage, s.imageSetName = s.imageSet.Spec.ReleaseImage, s.imageSet.Name
	}
	if s.begun() {
		return true, nil
	}
	config := &s.controlPlane.Spec.Config
	switch {
	case config.ClusterImageSetRef != nil:
		return s.useImageSet(config.ClusterImageSetRef.Name), nil
	case config.ReleaseImage != "":
		s.releaseImage = config.ReleaseImage
		return true, r.applyImageSet(ctx, s, "")
	}
	tagged := release.Image(s.version, s.controlPlane.Spec.OpenshiftAssistedConfigSpec.CPUArchitecture,
		s.controlPlane.Annotations[controlplanev1.ReleaseImageRepositoryOverrideAnnotation], r.Repositories)
	if s.ownsImageSet() && s.imageSet.Annotations[resolvedFromAnnotation] == tagged {
		return true, r.applyImageSet(ctx, s, tagged) // looked up before, perhaps before a restart
	}
	s.releaseImage = ""
	image, retryAfter, err := r.Releases.Resolve(tagged, s.credentials, r.waker(s))
	if err != nil {
		s.blockRelease(tagged, retryAfter, err)
		return false, nil
	}
	s.releaseImage = image
	return true, r.applyImageSet(ctx, s, tagged)
}

// useImageSet takes the user's ClusterImageSet.
func (s *scope) useImageSet(name string) bool {
	if s.imageSet != nil {
		return true
	}
	message := fmt.Sprintf("ClusterImageSet %s does not exist: create it, or name another in config.clusterImageSetRef", name)
	s.releaseBlocked = &outcome{controlplanev1.ClusterImageSetMissingReason, message}
	s.block(controlplanev1.ClusterImageSetMissingReason, message)
	return false
}

// applyImageSet writes our ClusterImageSet. It has no owner reference (it is cluster-scoped); the finalizer deletes it.
func (r *Reconciler) applyImageSet(ctx context.Context, s *scope, resolvedFrom string) error {
	s.imageSetName = s.ownImageSet()
	annotations := map[string]string{ownerAnnotation: client.ObjectKeyFromObject(s.controlPlane).String()}
	if resolvedFrom != "" {
		annotations[resolvedFromAnnotation] = resolvedFrom
	}
	var observed *hivev1.ClusterImageSet
	if s.imageSet != nil && s.imageSet.Name == s.imageSetName {
		observed = s.imageSet
	}
	desired := assisted.ClusterImageSet(s.imageSetName, s.releaseImage, s.labels(), annotations)
	if err := r.apply(ctx, s, desired, observed); err != nil {
		return fmt.Errorf("cannot write ClusterImageSet %s: %w", s.imageSetName, err)
	}
	return nil
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
		s.requeue(retryAfter)
	}
	s.releaseBlocked = &o
	s.block(o.reason, o.message)
}

// waker returns a function that reconciles the control plane again.
func (r *Reconciler) waker(s *scope) func() {
	wanted := event.GenericEvent{Object: s.before}
	return func() { r.wake <- wanted }
}
