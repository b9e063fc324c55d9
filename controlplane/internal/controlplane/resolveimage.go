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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// resolveImage finds the release image and names it in a ClusterImageSet.
func (r *Reconciler) resolveImage(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Begun {
		return true, nil
	}
	config := &s.ControlPlane.Spec.Config
	switch {
	case config.ClusterImageSetRef != nil:
		return useImageSet(s, config.ClusterImageSetRef.Name), nil
	case config.ReleaseImage != "":
		s.Found.ReleaseImage = config.ReleaseImage
		return r.nameImage(ctx, s, "", "")
	}
	tagged := openshift.Image(s.Found.Version, s.ControlPlane.Spec.OpenshiftAssistedConfigSpec.CPUArchitecture,
		s.ControlPlane.Annotations[controlplanev1.ReleaseImageRepositoryOverrideAnnotation], r.Repositories)
	if withoutRegistries(s) {
		return false, nil
	}
	registries, err := r.readRegistries(ctx, s)
	if err != nil {
		return false, err
	}
	return r.resolveTag(ctx, s, tagged, registries)
}

// resolveTag finds the digest of an image by tag. A registered cluster keeps its image while the registries do not
// answer, so that a new pull secret or a restart of the manager delays no installation.
func (r *Reconciler) resolveTag(ctx context.Context, s *scope.Scope, tagged string, registries *preflight.Registries) (bool, error) {
	sources := r.sourcesOf(registries, tagged)
	lookup := facts.ReleaseLookup{Tagged: tagged, Through: cmp.Or(sources.Version(pullSecretVersion(s)), facts.LookedUpDirectly)}
	if registries != nil {
		lookup.Mirrors = registries.Digest
	}
	if s.Found.ReleaseImage = s.ResolvedBefore(lookup); s.Found.ReleaseImage != "" {
		return r.nameImage(ctx, s, tagged, lookup.Through)
	}
	image, retryAfter, err := r.Releases.Resolve(tagged, sources, s.Credentials, r.waker(s))
	through := lookup.Through
	if err != nil {
		// The image keeps the record of its own sources, so that the look-up goes on.
		if image, through = s.RegisteredImage(lookup); image == "" || errors.Is(err, release.ErrNotFound) {
			blockRelease(s, tagged, retryAfter, err)
			return false, nil
		}
		s.Again.In(retryAfter)
	}
	s.Found.ReleaseImage = image
	return r.nameImage(ctx, s, tagged, through)
}

// sourcesOf returns where an image is looked up.
func (r *Reconciler) sourcesOf(registries *preflight.Registries, image string) release.Sources {
	sources := release.Sources{
		Mirrors: registries.MirrorsOf(image), Insecure: registries.InsecureOf(image), Blocked: registries.Blocks(image), Authorities: registries.Authorities(),
	}
	if r.Repositories.OnLoopback(image) {
		sources.Insecure = append(sources.Insecure, image)
	}
	return sources
}

// pullSecretVersion changes with the user's pull secret. It stands for the contents, whose hash is no secret to be read
// by everyone who may read ClusterImageSets.
func pullSecretVersion(s *scope.Scope) string {
	if s.ControlPlane.Spec.Config.PullSecretRef == nil || s.PullSecret == nil {
		return ""
	}
	return s.PullSecret.ResourceVersion
}

// withoutRegistries blocks while the ConfigMap with the mirrors is named and does not exist: a disconnected hub would
// ask a registry that it never reaches.
func withoutRegistries(s *scope.Scope) bool {
	ref := s.ControlPlane.Spec.Config.ImageRegistryRef
	if ref == nil || ref.Name == "" || s.RegistryConfig != nil {
		return false
	}
	message := fmt.Sprintf("ConfigMap %s does not exist: create it, or remove it from config.imageRegistryRef", ref.Name)
	s.Found.Block(status.ReleaseLookup, controlplanev1.ManifestsMissingReason, message)
	s.Block(controlplanev1.ManifestsMissingReason, message)
	return true
}

// useImageSet takes the user's ClusterImageSet.
func useImageSet(s *scope.Scope, name string) bool {
	if s.ImageSet != nil {
		s.Found.ReleaseImage, s.ImageSetName = s.ImageSet.Spec.ReleaseImage, s.ImageSet.Name
		return registrable(s)
	}
	message := fmt.Sprintf("ClusterImageSet %s does not exist: create it, or name another in config.clusterImageSetRef", name)
	s.Found.Block(status.ReleaseLookup, controlplanev1.ClusterImageSetMissingReason, message)
	s.Block(controlplanev1.ClusterImageSetMissingReason, message)
	return false
}

// nameImage writes our ClusterImageSet of the image, unless the cluster is registered with another. It has no owner
// reference (it is cluster-scoped); the finalizer deletes it.
func (r *Reconciler) nameImage(ctx context.Context, s *scope.Scope, resolvedFrom, through string) (bool, error) {
	s.ImageSetName = assisted.ClusterImageSetName(s.ControlPlane.Namespace, s.ControlPlane.Name, s.Found.ReleaseImage)
	if wanted := s.ImageSetName; !registrable(s) || s.ImageSetName != wanted {
		return s.Found.Blocked(status.Installation) == nil, nil
	}
	if foreign, err := r.foreignImageSet(ctx, s, s.ImageSetName); err != nil || foreign {
		return false, err
	}
	if err := r.writer.ApplyChecked(ctx, s, registration.ClusterImageSet(s.Facts, s.ImageSetName, s.Found.ReleaseImage, resolvedFrom, through), s.OwnSet(s.ImageSetName)); err != nil {
		return false, fmt.Errorf("cannot write ClusterImageSet %s: %w", s.ImageSetName, err)
	}
	return true, nil
}

// foreignImageSet reports whether the API server has a ClusterImageSet of a name of ours that was not made for this control
// plane, and blocks then: another cluster of the hub may be registered with it. The name holds 32 bits of a hash, which
// a tenant with a namespace of a similar name could meet on purpose.
func (r *Reconciler) foreignImageSet(ctx context.Context, s *scope.Scope, name string) (bool, error) {
	if s.OwnSet(name) != nil {
		return false, nil
	}
	set, err := kube.Read(ctx, r.Live, client.ObjectKey{Name: name}, &hivev1.ClusterImageSet{})
	if err != nil || set == nil || set.Annotations[facts.OwnerAnnotation] == client.ObjectKeyFromObject(s.ControlPlane).String() {
		return false, err
	}
	s.Block(controlplanev1.InstallationNotOursReason, fmt.Sprintf("ClusterImageSet %s exists and was not made for this control plane; it is left alone. "+
		"Give the control plane another name, or, if it names the wanted release, set config.clusterImageSetRef to it", set.Name))
	return true, nil
}

// registrable reports whether the cluster is not registered yet, with this image, or with another image of the same
// version, such as that of another architecture: then it is registered again. It keeps the ClusterImageSet that it is
// registered with where that names this image.
func registrable(s *scope.Scope) bool {
	registered := facts.RegisteredSetOf(s.Install)
	switch {
	case registered == "", registered == s.ImageSetName, !s.OwnsInstall():
		return true
	case s.RegisteredSet != nil && s.RegisteredSet.Spec.ReleaseImage == s.Found.ReleaseImage:
		s.ImageSetName = registered
		return true
	}
	version := s.RegisteredVersion()
	if version == "" || version == "v"+s.Found.Version.String() {
		return true
	}
	s.Block(controlplanev1.VersionChangeNotSupportedReason, fmt.Sprintf("the cluster is registered with release %s (ClusterImageSet %s), and assisted-service takes no other: set spec.version back to it, "+
		"or delete the Cluster, of which nothing is installed yet that could be lost, and create it again", version, registered))
	return false
}

// blockRelease says why the digest is not known, and when it is asked for again. A registry cannot be watched.
func blockRelease(s *scope.Scope, image string, retryAfter time.Duration, err error) {
	reason, message := controlplanev1.WaitingForReleaseImageReason, fmt.Sprintf("looking up the release image %s", image)
	switch {
	case errors.Is(err, release.ErrNotFound):
		reason = controlplanev1.ReleaseImageNotFoundReason
		message = fmt.Sprintf("release image %s does not exist: set spec.version to an existing release, or give config.releaseImage (by digest) or config.clusterImageSetRef", image)
	case errors.Is(err, release.ErrUnavailable):
		reason = controlplanev1.RegistryUnavailableReason
		message = fmt.Sprintf("cannot look up release image %s: %v; it is tried again, or give config.releaseImage (by digest) or config.clusterImageSetRef", image, err)
	}
	if retryAfter > 0 {
		s.Again.In(retryAfter)
	}
	s.Found.Block(status.ReleaseLookup, reason, message)
	s.Block(reason, message)
}

// waker returns a function that reconciles the control plane again.
func (r *Reconciler) waker(s *scope.Scope) func() {
	wanted := event.GenericEvent{Object: s.ControlPlane}
	return func() { r.wake <- wanted }
}
