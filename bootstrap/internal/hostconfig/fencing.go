package hostconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// gatherFencing looks for the Secret that is made of the BMC's credentials.
func (r *Reconciler) gatherFencing(ctx context.Context, f *facts.Facts) (err error) {
	if !f.Fenced() {
		return nil
	}
	f.FencingSecret, err = kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: f.Config.Namespace, Name: f.FencingSecretName()}, kube.MetadataOf(kube.Secret))
	return err
}

// fenceHost makes the Secret by which assisted-service learns how the host is fenced, before the Agent is told of it:
// one that it misses keeps it from reading anything else of the Agent. Of a host that is approved nothing is changed
// any more, but the Secret stays: before assisted-service takes note of the approval it reads the Secret once more.
func (r *Reconciler) fenceHost(ctx context.Context, s *scope) (bool, error) {
	if !s.Fenced() {
		r.secretWaiters.ended(keyOf(s.Config))
		return true, nil
	}
	if facts.Bound(s.agent) && s.agent.Spec.Approved {
		return true, r.keepFencing(ctx, s)
	}
	name, users, err := desired.FencingSecretRef(s.Facts)
	if err != nil {
		return s.fencingUnusable(err)
	}
	r.secretWaiters.begun(keyOf(s.Config), name, s.FencingSecretName())
	credentials, err := kube.Read(ctx, r.Live, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, &corev1.Secret{})
	switch {
	case err != nil:
		return false, err
	case credentials == nil:
		return s.wait(bootstrapv1.HostBoundCondition, bootstrapv1.FencingCredentialsUnusableReason, "Secret %s with the credentials of the BMC of BareMetalHost %s does not exist: create it", name, s.Host.Name)
	case users:
		s.fencing, err = desired.UserFencing(s.Facts, credentials)
		if err == nil && !s.namesFencing() { // the credentials were the BMC's before
			err = r.retireFencing(ctx, s)
		}
	default:
		err = r.applyFencingSecret(ctx, s, credentials)
	}
	if err != nil {
		return s.fencingUnusable(err)
	}
	return true, nil
}

// keepFencing keeps the Secret of a host that is approved. One that is gone is made again, if it still can be.
func (r *Reconciler) keepFencing(ctx context.Context, s *scope) error {
	r.secretWaiters.begun(keyOf(s.Config), s.FencingSecretName())
	switch {
	case s.ownsFencing():
		return r.keepOwner(ctx, s, s.FencingSecret)
	case s.FencingSecret != nil:
		return nil
	}
	err := r.makeFencingAgain(ctx, s)
	var p *desired.UserError
	if errors.As(err, &p) {
		return nil // it was told before the host was approved, and now nothing can be done about it
	}
	return err
}

// ownsFencing reports whether the Secret that has the name of the host's credentials is that of the config. One that
// has lost its owner is when an Agent of the Machine names it.
func (s *scope) ownsFencing() bool {
	if s.FencingSecret == nil {
		return false
	}
	return desired.Owns(s.Config, s.FencingSecret, desired.FencingAnnotation, s.namesFencing())
}

// namesFencing reports whether an Agent of the Machine names the Secret that is made of the BMC's credentials.
func (s *scope) namesFencing() bool {
	return slices.ContainsFunc(s.Agents, func(a *aiv1beta1.Agent) bool { return a.Spec.FencingCredentialsSecretRef == s.FencingSecretName() })
}

// retiredFencing is what FencingAnnotation says of a Secret whose credentials were taken out.
const retiredFencing = "retired"

// retireFencing takes the credentials out of a Secret that is not needed any more: the host is installed, and
// assisted-service takes in none, or the user named a Secret of their own. The Secret itself stays until the config is
// deleted: of an Agent that names one that is missing assisted-service reads nothing else (updateHostFencingCredentials
// in its agent_controller.go, August 2026).
func (r *Reconciler) retireFencing(ctx context.Context, s *scope) error {
	if !s.ownsFencing() {
		return nil
	}
	if err := r.keepOwner(ctx, s, s.FencingSecret); err != nil || s.FencingSecret.Annotations[desired.FencingAnnotation] == retiredFencing {
		return err
	}
	// With the uid the API server refuses it for another Secret of this name.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}},"data":null}`, s.FencingSecret.UID, desired.FencingAnnotation, retiredFencing)
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, s.FencingSecret.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))); err != nil {
		return fmt.Errorf("cannot take the credentials out of Secret %s: %w", s.FencingSecret.Name, err)
	}
	return nil
}

// makeFencingAgain makes the Secret again of what the credentials are now; nothing where the BMC has none any more.
func (r *Reconciler) makeFencingAgain(ctx context.Context, s *scope) error {
	name, users, err := desired.FencingSecretRef(s.Facts)
	if err != nil || users {
		return err
	}
	credentials, err := kube.Read(ctx, r.Live, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, &corev1.Secret{})
	if err != nil || credentials == nil {
		return err
	}
	return r.applyFencingSecret(ctx, s, credentials)
}

// fencingUnusable tells what the user has to change about the credentials.
func (s *scope) fencingUnusable(err error) (bool, error) {
	var p *desired.UserError
	if errors.As(err, &p) {
		return s.wait(bootstrapv1.HostBoundCondition, p.Reason, "%s", p.Message)
	}
	return false, err
}

// applyFencingSecret makes the Secret, and makes it again when what it is made of changes, or its owner was lost.
func (r *Reconciler) applyFencingSecret(ctx context.Context, s *scope, credentials *corev1.Secret) error {
	wanted, err := desired.FencingSecret(s.Facts, credentials)
	if err != nil {
		return err
	}
	s.fencing = desired.Fencing{Secret: wanted.Name, Source: wanted.Annotations[desired.FencingAnnotation]}
	if s.FencingSecret, err = r.existing(ctx, s.FencingSecret, wanted); err != nil {
		return err
	}
	made := s.FencingSecret
	switch {
	case made != nil && !s.ownsFencing():
		return &desired.UserError{
			Reason:  bootstrapv1.FencingCredentialsUnusableReason,
			Message: fmt.Sprintf("Secret %s exists and was not created by this provider, which copies the credentials of the BMC to this name. If nothing uses it, delete it: its content is lost", made.Name),
		}
	case made != nil && containsAll(made.Annotations, wanted.Annotations) && metav1.IsControlledBy(made, s.Config) && containsAll(made.Labels, wanted.Labels):
		return nil
	}
	if err := r.applySecret(ctx, s, wanted, made); err != nil {
		return fmt.Errorf("cannot write the credentials with which the host is fenced: %w", err)
	}
	return nil
}

// withoutFencing is how an assisted-service says that it was started without TNF_CLUSTERS_SUPPORT (updateHostFencing in
// its inventory.go, August 2026).
const withoutFencing = "TNF clusters support is disabled"

// explained adds to what assisted-service says of an Agent how it is started with fencing.
func explained(message string) string {
	if !strings.Contains(message, withoutFencing) {
		return message
	}
	return message + "; two nodes with fencing need an assisted-service that is started with TNF_CLUSTERS_SUPPORT=true"
}
