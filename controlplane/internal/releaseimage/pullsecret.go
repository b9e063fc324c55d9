package releaseimage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

// EnsurePullSecret ensures that the pull secret exists and can be read.
func (r *Resolver) EnsurePullSecret(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Begun {
		return true, nil // assisted-service has read the pull secret
	}
	if s.ControlPlane.Spec.Config.PullSecretRef == nil {
		return r.EnsurePlaceholder(ctx, s)
	}
	if s.PullSecret == nil {
		s.Block(controlplanev1.PullSecretMissingReason,
			fmt.Sprintf("Secret %s does not exist: create it (type %s), or remove config.pullSecretRef if the release needs none",
				s.PullSecretName(), corev1.SecretTypeDockerConfigJson))
		return false, nil
	}
	_, problem, err := r.readPullSecret(ctx, s.PullSecret)
	if err != nil {
		return false, err
	}
	if problem != "" {
		s.Block(controlplanev1.PullSecretMissingReason, problem)
		return false, nil
	}
	return true, nil
}

// EnsurePlaceholder creates the pull secret of a cluster whose release needs none. It does not change an existing Secret.
func (r *Resolver) EnsurePlaceholder(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.PullSecret != nil {
		return true, nil
	}
	wanted := desired.PlaceholderPullSecret(s.Facts)
	found, err := r.writer.Existing(ctx, wanted)
	if err != nil || found != nil {
		return err == nil, err
	}
	return true, r.writer.ApplyChecked(ctx, s, wanted, nil)
}

// credentials returns the registry credentials of the user's pull secret. They are empty without a readable pull secret.
func (r *Resolver) credentials(ctx context.Context, s *scope.Scope) (release.Credentials, error) {
	secret := userPullSecret(s)
	if secret == nil {
		return release.Credentials{}, nil
	}
	found, _, err := r.readPullSecret(ctx, secret)
	return found, err
}

// userPullSecret returns the pull secret that the user names; nil if none is named, or the Secret does not exist.
func userPullSecret(s *scope.Scope) *metav1.PartialObjectMetadata {
	if s.ControlPlane.Spec.Config.PullSecretRef == nil {
		return nil
	}
	return s.PullSecret
}

// Covered returns a function that reports whether the user's pull secret has credentials for a registry; nil without a
// readable pull secret. It also reads the pull secret of an installation that has begun.
func (r *Resolver) Covered(ctx context.Context, s *scope.Scope) (func(string) bool, error) {
	secret := userPullSecret(s)
	if secret == nil {
		return nil, nil //nolint:nilnil // a pull secret is optional
	}
	credentials, problem, err := r.readPullSecret(ctx, secret)
	if err != nil || problem != "" {
		return nil, err
	}
	return credentials.Cover, nil
}

type pullSecretContents struct {
	credentials release.Credentials
	problem     string
}

// readPullSecret reads the contents of a Secret, once for each version of it. problem states what the user has to correct.
func (r *Resolver) readPullSecret(ctx context.Context, metadata *metav1.PartialObjectMetadata) (release.Credentials, string, error) {
	found, err := r.pullSecrets.Of(metadata, func(key client.ObjectKey) (pullSecretContents, error) {
		secret := &corev1.Secret{}
		if err := r.live.Get(ctx, key, secret); err != nil {
			return pullSecretContents{}, fmt.Errorf("cannot read the pull secret %s: %w", key, err)
		}
		return parsePullSecret(secret), nil
	})
	return found.credentials, found.problem, err
}

func parsePullSecret(secret *corev1.Secret) pullSecretContents {
	value, ok := secret.Data[corev1.DockerConfigJsonKey]
	if !ok {
		return pullSecretContents{problem: fmt.Sprintf("Secret %s has no key %s: create it with type %s",
			secret.Name, corev1.DockerConfigJsonKey, corev1.SecretTypeDockerConfigJson)}
	}
	credentials, err := release.ParseCredentials(value)
	if err != nil {
		return pullSecretContents{problem: fmt.Sprintf("Secret %s, key %s: %v", secret.Name, corev1.DockerConfigJsonKey, err)}
	}
	return pullSecretContents{credentials: credentials}
}
