// Package releaseimage resolves the release image of a cluster and writes its ClusterImageSet. It also ensures the pull
// secret of the cluster.
package releaseimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// Resolver resolves release images, with the mirrors and the pull secret of a control plane.
type Resolver struct {
	live         client.Reader
	writer       *writer.Writer
	releases     *release.Resolver
	repositories versions.Repositories
	// waker returns the function that reconciles a control plane whose release image was resolved.
	waker func(*scope.Scope) func()
	// pullSecrets holds the contents of pull secrets by version.
	pullSecrets kube.Contents[pullSecretContents]
	// registries holds the mirrors in ConfigMaps, by version.
	registries kube.Contents[*preflight.Registries]
}

// NewResolver returns a Resolver. After a lookup it calls the function that waker returned for the control plane.
func NewResolver(
	live client.Reader, w *writer.Writer, releases *release.Resolver, repositories versions.Repositories, waker func(*scope.Scope) func(),
) *Resolver {
	return &Resolver{
		live: live, writer: w, releases: releases, repositories: repositories, waker: waker,
		pullSecrets: kube.NewContents[pullSecretContents](), registries: kube.NewContents[*preflight.Registries](),
	}
}

// Resolve resolves the release image and writes its ClusterImageSet.
func (r *Resolver) Resolve(ctx context.Context, s *scope.Scope) (bool, error) {
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
	tagged := r.taggedImage(s, s.Found.Version)
	if withoutRegistries(s) {
		return false, nil
	}
	registries, err := r.Registries(ctx, s)
	if err != nil {
		return false, err
	}
	return r.resolveTag(ctx, s, tagged, registries)
}

// taggedImage returns the image of a release by tag.
func (r *Resolver) taggedImage(s *scope.Scope, version semver.Version) string {
	return versions.Image(version, s.ControlPlane.Spec.OpenshiftAssistedConfigSpec.CPUArchitecture,
		s.ControlPlane.Annotations[controlplanev1.ReleaseImageRepositoryOverrideAnnotation], r.repositories)
}

// resolveTag resolves the digest of an image with a tag. A registered cluster keeps its image while the registries do not
// answer. Then neither a new pull secret nor a restart of the manager delays its installation.
func (r *Resolver) resolveTag(ctx context.Context, s *scope.Scope, tagged string, registries *preflight.Registries) (bool, error) {
	sources := r.sourcesOf(registries, tagged)
	lookup := releaseLookup{Tagged: tagged, Through: cmp.Or(sources.Version(pullSecretVersion(s)), facts.ResolvedDirectly)}
	if registries != nil {
		lookup.Mirrors = registries.Digest
	}
	if s.Found.ReleaseImage = resolvedBefore(s.Facts, lookup); s.Found.ReleaseImage != "" {
		return r.nameImage(ctx, s, tagged, lookup.Through)
	}
	credentials, err := r.credentials(ctx, s) // EnsurePullSecret has reported a problem of the contents
	if err != nil {
		return false, err
	}
	image, retryAfter, err := r.releases.Resolve(tagged, sources, credentials, r.waker(s))
	through := lookup.Through
	if err != nil {
		// The image keeps the record of its own sources, so that the lookup continues.
		if image, through = registeredImage(s.Facts, lookup); image == "" || errors.Is(err, release.ErrNotFound) {
			blockRelease(s, tagged, retryAfter, err)
			return false, nil
		}
		s.Again.In(retryAfter)
	}
	s.Found.ReleaseImage = image
	return r.nameImage(ctx, s, tagged, through)
}

// sourcesOf returns the registries of an image, and how to reach them.
func (r *Resolver) sourcesOf(registries *preflight.Registries, image string) release.Sources {
	sources := release.Sources{
		Mirrors: registries.MirrorsOf(image), Insecure: registries.InsecureOf(image), Blocked: registries.Blocks(image),
		Authorities: registries.Authorities(),
	}
	if r.repositories.OnLoopback(image) {
		sources.Insecure = append(sources.Insecure, image)
	}
	return sources
}

// pullSecretVersion changes with the user's pull secret. It replaces a hash of the contents, which clients that may read
// ClusterImageSets must not see.
func pullSecretVersion(s *scope.Scope) string {
	secret := userPullSecret(s)
	if secret == nil {
		return ""
	}
	return secret.ResourceVersion
}

// missingRegistries returns the name of the ConfigMap with the mirrors, if it does not exist. A disconnected hub would query
// a registry that it never reaches.
func missingRegistries(s *scope.Scope) string {
	ref := s.ControlPlane.Spec.Config.ImageRegistryRef
	if ref == nil || s.RegistryConfig != nil {
		return ""
	}
	return ref.Name
}

// withoutRegistries blocks while the named ConfigMap with the mirrors does not exist.
func withoutRegistries(s *scope.Scope) bool {
	missing := missingRegistries(s)
	if missing == "" {
		return false
	}
	message := fmt.Sprintf("ConfigMap %s does not exist: create it, or remove it from config.imageRegistryRef", missing)
	s.Found.Block(tasks.ReleaseLookup, controlplanev1.ManifestsMissingReason, message)
	s.Block(controlplanev1.ManifestsMissingReason, message)
	return true
}

// useImageSet selects the ClusterImageSet of the user.
func useImageSet(s *scope.Scope, name string) bool {
	if s.ImageSet != nil {
		s.Found.ReleaseImage, s.ImageSetName = s.ImageSet.Spec.ReleaseImage, s.ImageSet.Name
		return registrable(s)
	}
	message := fmt.Sprintf("ClusterImageSet %s does not exist: create it, or name another in config.clusterImageSetRef", name)
	s.Found.Block(tasks.ReleaseLookup, controlplanev1.ClusterImageSetMissingReason, message)
	s.Block(controlplanev1.ClusterImageSetMissingReason, message)
	return false
}

// nameImage writes our ClusterImageSet of the image, unless the cluster is registered with another. The ClusterImageSet is
// cluster-scoped, and has no owner reference. The finalizer deletes it.
func (r *Resolver) nameImage(ctx context.Context, s *scope.Scope, resolvedFrom, through string) (bool, error) {
	s.ImageSetName = assisted.ClusterImageSetName(s.ControlPlane.Namespace, s.ControlPlane.Name, s.Found.ReleaseImage)
	if wanted := s.ImageSetName; !registrable(s) || s.ImageSetName != wanted {
		return s.Found.Blocked(tasks.Installation) == nil, nil
	}
	return r.WriteImageSet(ctx, s, registration.ClusterImageSet(s.Facts, s.ImageSetName, s.Found.ReleaseImage, resolvedFrom, through))
}

// WriteImageSet writes a ClusterImageSet of ours. It returns false, and blocks, if another client has taken the name.
func (r *Resolver) WriteImageSet(ctx context.Context, s *scope.Scope, wanted *hivev1.ClusterImageSet) (written bool, err error) {
	if foreign, err := r.foreignImageSet(ctx, s, wanted.Name); err != nil || foreign {
		return false, err
	}
	if err := r.writer.ApplyChecked(ctx, s, wanted, s.OwnSet(wanted.Name)); err != nil {
		return false, fmt.Errorf("cannot write ClusterImageSet %s: %w", wanted.Name, err)
	}
	return true, nil
}

// foreignImageSet reports whether the API server has a foreign ClusterImageSet of our name, and blocks in this case. Another
// cluster of the hub may be registered with it. The name contains 32 bits of a hash. A tenant with a namespace of a similar
// name could create the same name on purpose.
func (r *Resolver) foreignImageSet(ctx context.Context, s *scope.Scope, name string) (bool, error) {
	if s.OwnSet(name) != nil {
		return false, nil
	}
	set, err := kube.Read(ctx, r.live, client.ObjectKey{Name: name}, &hivev1.ClusterImageSet{})
	if err != nil || set == nil || set.Annotations[facts.OwnerAnnotation] == client.ObjectKeyFromObject(s.ControlPlane).String() {
		return false, err
	}
	s.Block(controlplanev1.InstallationNotOursReason, fmt.Sprintf("ClusterImageSet %s exists and was not created for this control plane. It "+
		"is not changed. Give the control plane another name. If it names the wanted release, set config.clusterImageSetRef to it", set.Name))
	return true, nil
}

// registrable reports whether the cluster can be registered with the image. It is not registered yet, or registered with
// this image, or with another image of the same version, as of another architecture. In the last case it is registered
// again. If the registered ClusterImageSet names this image, registrable selects it.
func registrable(s *scope.Scope) bool {
	registered := facts.RegisteredSetOf(s.Install)
	switch {
	case registered == "", registered == s.ImageSetName, !ownership.OwnsInstall(s.Facts):
		return true
	case s.RegisteredSet != nil && s.RegisteredSet.Spec.ReleaseImage == s.Found.ReleaseImage:
		s.ImageSetName = registered
		return true
	}
	version := ownership.RegisteredVersion(s.Facts)
	if version == "" || version == "v"+s.Found.Version.String() {
		return true
	}
	s.Block(controlplanev1.VersionChangeNotSupportedReason, fmt.Sprintf("the cluster is registered with release %s (ClusterImageSet %s), and "+
		"assisted-service accepts no other: set %s back to it, or delete the Cluster, which wipes no host, because nothing is installed yet, "+
		"and create it again", version, registered, s.Settings().Release))
	return false
}

// failedLookup returns the recorded condition if the last query for an image failed, or nil.
func failedLookup(s *scope.Scope, image string) *metav1.Condition {
	recorded := conditions.Get(s.Stored, controlplanev1.InstalledCondition)
	failures := []string{controlplanev1.ReleaseImageNotFoundReason, controlplanev1.RegistryUnavailableReason}
	if recorded == nil || !slices.Contains(failures, recorded.Reason) || !strings.Contains(recorded.Message, image) {
		return nil
	}
	return recorded
}

// blockRelease reports why the digest is not known, and requeues the control plane. A registry cannot be watched.
func blockRelease(s *scope.Scope, image string, retryAfter time.Duration, err error) {
	settings := s.Settings()
	reason, message := controlplanev1.WaitingForReleaseImageReason, fmt.Sprintf("looking up the release image %s", image)
	switch recorded := failedLookup(s, image); {
	case errors.Is(err, release.ErrPending) && recorded != nil: // the query is repeated, or the manager was restarted
		reason, message = recorded.Reason, recorded.Message
	case errors.Is(err, release.ErrNotFound):
		reason = controlplanev1.ReleaseImageNotFoundReason
		message = fmt.Sprintf("release image %s does not exist: set %s to an existing release, or set %s by digest, or "+
			"config.clusterImageSetRef", image, settings.Release, settings.Image)
	case errors.Is(err, release.ErrUnavailable):
		reason = controlplanev1.RegistryUnavailableReason
		message = fmt.Sprintf("cannot look up release image %s: %v. The provider retries. An image by digest in %s, or a set in "+
			"config.clusterImageSetRef, needs no look-up", image, err, settings.Image)
	}
	if retryAfter > 0 {
		s.Again.In(retryAfter)
	}
	s.Found.Block(tasks.ReleaseLookup, reason, message)
	s.Block(reason, message)
}
