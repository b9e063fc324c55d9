// Package fencing keeps the Secret with the credentials of the BMC, by which the two nodes of a cluster fence each other.
package fencing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Fencer keeps the Secret.
type Fencer struct {
	client client.Client
	live   client.Reader
	writer *writer.Writer
	// secrets records the Secrets with credentials that a config waits for.
	secrets *reconcile.Waiters
}

// New returns a Fencer.
func New(w *writer.Writer) *Fencer {
	return &Fencer{client: w.Client, live: w.Live, writer: w, secrets: reconcile.NewWaiters()}
}

// Forget drops the record of a deleted config.
func (k *Fencer) Forget(config types.NamespacedName) { k.secrets.End(config) }

// WaitingFor returns the configs that wait for a Secret.
func (k *Fencer) WaitingFor(namespace, name string) []types.NamespacedName {
	return k.secrets.Of(namespace, name)
}

// Fence creates the Secret from which assisted-service learns the fencing of the host, before the Agent names
// the Secret. If a named Secret is missing, assisted-service reads nothing else of the Agent. Nothing changes
// anymore for an approved host, but the Secret stays. assisted-service reads the Secret once more before it
// notices the approval.
func (k *Fencer) Fence(ctx context.Context, s *scope.Scope) (bool, error) {
	if !hostrole.Fenced(s.Facts) {
		k.secrets.End(s.Key())
		return true, nil
	}
	if facts.Bound(s.Agent) && s.Agent.Spec.Approved {
		return true, k.keepFencing(ctx, s)
	}
	name, users, err := desired.FencingSecretRef(s.Facts)
	if err != nil {
		return fencingUnusable(s, err)
	}
	k.secrets.Begin(s.Key(), name, hostrole.FencingSecretName(s.Facts))
	credentials, err := kube.Read(ctx, k.live, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, &corev1.Secret{})
	switch {
	case err != nil:
		return false, err
	case credentials == nil:
		return s.Blockf(bootstrapv1.HostBoundCondition, bootstrapv1.FencingCredentialsUnusableReason,
			"Secret %s with the credentials of the BMC of BareMetalHost %s does not exist: create it", name, s.Host.Name), nil
	case users:
		s.Fencing, err = desired.UserFencing(s.Facts, credentials)
		// The credentials may have been the BMC's before.
		if err == nil && !namesFencing(s) {
			err = k.Retire(ctx, s)
		}
	default:
		err = k.applyFencingSecret(ctx, s, credentials)
	}
	if err != nil {
		return fencingUnusable(s, err)
	}
	return true, nil
}

// keepFencing keeps the Secret of an approved host. It recreates a deleted Secret if that is still possible.
func (k *Fencer) keepFencing(ctx context.Context, s *scope.Scope) error {
	k.secrets.Begin(s.Key(), hostrole.FencingSecretName(s.Facts))
	switch {
	case ownsFencing(s):
		return k.writer.KeepOwner(ctx, s, s.FencingSecret)
	case s.FencingSecret != nil:
		return nil
	}
	err := k.makeFencingAgain(ctx, s)
	var p *desired.UserError
	if errors.As(err, &p) {
		// The problem was reported before the approval, and cannot be fixed anymore.
		return nil
	}
	return err
}

// ownsFencing reports whether the Secret with the name of the host's credentials belongs to the config. A Secret
// without owner belongs to the config if an Agent of the Machine names the Secret.
func ownsFencing(s *scope.Scope) bool {
	if s.FencingSecret == nil {
		return false
	}
	return desired.Owns(s.Config, s.FencingSecret, desired.FencingAnnotation, namesFencing(s))
}

// namesFencing reports whether an Agent of the Machine names the Secret with the copied credentials of the BMC.
func namesFencing(s *scope.Scope) bool {
	return slices.ContainsFunc(s.Agents, func(a *aiv1beta1.Agent) bool {
		return a.Spec.FencingCredentialsSecretRef == hostrole.FencingSecretName(s.Facts)
	})
}

// retiredFencing is the value of FencingAnnotation on a Secret whose credentials were removed.
const retiredFencing = "retired"

// Retire removes the credentials from a Secret that is not needed anymore. Either the host is installed,
// and assisted-service reads no credentials, or the user named a Secret of their own.
//
// The Secret itself stays until the config is deleted. If an Agent names a missing Secret, assisted-service reads
// nothing else of the Agent (updateHostFencingCredentials in its agent_controller.go, August 2026).
func (k *Fencer) Retire(ctx context.Context, s *scope.Scope) error {
	if !ownsFencing(s) {
		return nil
	}
	if err := k.writer.KeepOwner(ctx, s, s.FencingSecret); err != nil ||
		s.FencingSecret.Annotations[desired.FencingAnnotation] == retiredFencing {
		return err
	}
	// The uid makes the API server refuse the patch for another Secret of this name.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}},"data":null}`,
		s.FencingSecret.UID, desired.FencingAnnotation, retiredFencing)
	if err := client.IgnoreNotFound(k.client.Patch(ctx, s.FencingSecret.DeepCopy(), client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(writer.FieldOwner))); err != nil {
		return fmt.Errorf("cannot remove the credentials from Secret %s: %w", s.FencingSecret.Name, err)
	}
	return nil
}

// makeFencingAgain recreates the Secret from the current credentials. It does nothing if the BMC has no
// credentials anymore, or if the user names a Secret of their own.
func (k *Fencer) makeFencingAgain(ctx context.Context, s *scope.Scope) error {
	name, users, err := desired.FencingSecretRef(s.Facts)
	if err != nil || users {
		return err
	}
	credentials, err := kube.Read(ctx, k.live, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, &corev1.Secret{})
	if err != nil || credentials == nil {
		return err
	}
	return k.applyFencingSecret(ctx, s, credentials)
}

// fencingUnusable reports what the user has to change about the credentials. It returns all other errors.
func fencingUnusable(s *scope.Scope, err error) (bool, error) {
	var p *desired.UserError
	if errors.As(err, &p) {
		return s.Block(bootstrapv1.HostBoundCondition, p.Reason, p.Message), nil
	}
	return false, err
}

// applyFencingSecret creates the Secret. It writes the Secret again when the source changes or the owner was lost.
func (k *Fencer) applyFencingSecret(ctx context.Context, s *scope.Scope, credentials *corev1.Secret) error {
	wanted, err := desired.FencingSecret(s.Facts, credentials)
	if err != nil {
		return err
	}
	s.Fencing = desired.Fencing{Secret: wanted.Name, Source: wanted.Annotations[desired.FencingAnnotation]}
	if s.FencingSecret, err = k.writer.Existing(ctx, s.FencingSecret, wanted); err != nil {
		return err
	}
	made := s.FencingSecret
	switch {
	case made != nil && !ownsFencing(s):
		return &desired.UserError{
			Reason: bootstrapv1.FencingCredentialsUnusableReason,
			Message: fmt.Sprintf("Secret %s exists and was not created by this provider, which copies the credentials of the BMC to this name. "+
				"If nothing uses it, delete it: its content is lost", made.Name),
		}
	case made != nil && writer.ContainsAll(made.Annotations, wanted.Annotations) && metav1.IsControlledBy(made, s.Config) &&
		writer.ContainsAll(made.Labels, wanted.Labels):
		return nil
	}
	if err := k.writer.ApplySecret(ctx, s, wanted, made); err != nil {
		return fmt.Errorf("cannot write the fencing credentials of the host: %w", err)
	}
	return nil
}
