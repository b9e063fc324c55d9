package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// minRenewal is how long a token is used at least.
const minRenewal = time.Minute

// renewKubeconfig gives the published kubeconfig of an installed cluster a token of its own, and a new one when it was
// revoked or half of its time has passed. The client certificate that assisted-service gives is valid for ten years and
// is never renewed, which the contract of Cluster API does not allow.
func (r *Reconciler) renewKubeconfig(ctx context.Context, s *scope) (bool, error) {
	if !s.Installed() || !s.OwnsKubeconfig(s.found.Kubeconfig) {
		return true, nil
	}
	if !s.Workload.Connected {
		return true, r.fallBack(ctx, s)
	}
	if left := renewalOf(s.found.Kubeconfig).Sub(r.now()); left > 0 && !s.missesToken() {
		s.again.In(left)
		return true, nil
	}
	current := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.found.Kubeconfig), current); err != nil {
		return true, fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	switch valid, err := r.tokenValid(ctx, s, current); {
	case err != nil:
		return true, err
	case valid: // one of the caches is behind
		s.again.In(renewalOf(current).Sub(r.now()))
		return true, nil
	}
	told, err := r.renewToken(ctx, s, current)
	if err != nil {
		s.found.Block(status.KubeconfigRenewal, controlplanev1.KubeconfigAvailableReason, "its credentials could not be renewed, which is tried again: "+told)
	}
	return true, err
}

// missesToken reports whether the cluster seems to have revoked the token in the published kubeconfig: the Secret is
// gone that it was bound to.
func (s *scope) missesToken() bool {
	boundTo, bound := s.found.Kubeconfig.Annotations[facts.KubeconfigTokenAnnotation]
	return bound && s.Workload.Tokens != nil && !s.Workload.Tokens.Has(types.UID(boundTo))
}

// tokenValid reports whether the token in the published kubeconfig, as the hub has it now, is to stay: its time has not
// come, and the cluster has not revoked it.
func (r *Reconciler) tokenValid(ctx context.Context, s *scope, current *corev1.Secret) (bool, error) {
	inTime := renewalOf(current).After(r.now())
	if !inTime || !s.missesToken() {
		return inTime, nil
	}
	valid, err := r.Workloads.HasToken(ctx, s.ClusterKey(), types.UID(current.Annotations[facts.KubeconfigTokenAnnotation]))
	if apierrors.IsUnauthorized(err) || errors.Is(err, cluster.ErrNotConnected) {
		return true, nil // the connection was made with it, and is about to be made anew, if need be with assisted-service's kubeconfig
	}
	return valid, err
}

// fallBack publishes assisted-service's kubeconfig in the place of a token that the cluster accepts no more: it was
// revoked, has expired, or came from a backup. When that brings a connection, it gets a token again.
func (r *Reconciler) fallBack(ctx context.Context, s *scope) error {
	problem := s.found.KubeconfigProblem(s.Facts)
	if problem == nil || problem.Reason != controlplanev1.KubeconfigUnauthorizedReason || !facts.HasToken(s.found.Kubeconfig) {
		return nil
	}
	admin, err := r.readFallback(ctx, s)
	if err != nil || admin == nil {
		return err
	}
	if _, err := r.publish(ctx, s, admin); err != nil || s.found.Blocked(status.KubeconfigCopy) != nil {
		return err
	}
	r.warn(s.stored, "KubeconfigReplaced", "The cluster does not accept the token in Secret %s any more; published assisted-service's kubeconfig in its place", s.found.Kubeconfig.Name)
	return nil
}

// renewToken gives the published kubeconfig a new token, and what can be told of why it could not: nothing of what the
// workload cluster answers but the kind of its answer. A token that nobody gets ends at once. After a write of which it
// is not known whether it was made it stays, for somebody may have it.
func (r *Reconciler) renewToken(ctx context.Context, s *scope, current *corev1.Secret) (told string, err error) {
	token, err := r.Workloads.IssueToken(ctx, s.ClusterKey())
	if err != nil {
		return cluster.Cause(err), err
	}
	if err = r.publishToken(ctx, s, current, token); err == nil {
		return "", nil
	}
	told = assisted.RedactURLs(err.Error())
	if notWritten(err) {
		err = errors.Join(err, r.Workloads.RevokeToken(ctx, s.ClusterKey(), token))
	}
	return told, err
}

// notWritten reports whether a kubeconfig was refused: by us, or by the API server, which answers so only to what it did not do.
func notWritten(err error) bool {
	var refused cluster.RefusedError
	var answer apierrors.APIStatus
	return errors.As(err, &refused) || errors.As(err, &answer) && answer.Status().Code >= http.StatusBadRequest && answer.Status().Code < http.StatusInternalServerError
}

// publishToken puts a token into the published kubeconfig.
func (r *Reconciler) publishToken(ctx context.Context, s *scope, current *corev1.Secret, token cluster.Token) error {
	content, err := cluster.WithToken(current.Data[secret.KubeconfigDataName], token.Value)
	authorities := facts.AuthoritiesOf(current)
	if err == nil {
		content, authorities, err = r.withAuthorities(ctx, s, content, authorities)
	}
	if err != nil {
		return fmt.Errorf("cannot renew the kubeconfig in Secret %s: %w", current.Name, err)
	}
	// The clocks of hub and cluster may differ by more than a short token lives.
	renewal := r.now().Add(max(token.Expires.Sub(r.now())/2, minRenewal))
	published := desired.Kubeconfig(s.Facts, content, map[string]string{
		facts.KubeconfigSourceAnnotation:     current.Annotations[facts.KubeconfigSourceAnnotation],
		facts.KubeconfigRenewalAnnotation:    renewal.UTC().Format(time.RFC3339),
		facts.KubeconfigTokenAnnotation:      string(token.BoundToUID),
		facts.KubeconfigExpirationAnnotation: token.Expires.UTC().Format(time.RFC3339),
	})
	recordAuthorities(published, authorities)
	if err := r.applyOwnedAtOnce(ctx, s, published, current); err != nil {
		return fmt.Errorf("cannot publish the renewed kubeconfig: %w", err)
	}
	s.again.In(renewal.Sub(r.now()))
	r.event(s.stored, "KubeconfigRenewed", "Gave Secret %s a new token, which is valid until %s, and as long as Secret kube-system/%s of the cluster exists",
		published.Name, token.Expires.UTC().Format(time.RFC3339), token.BoundTo)
	return nil
}

// renewalOf is when a published kubeconfig is to be renewed: at once as long as there is no token in it.
func renewalOf(published client.Object) time.Time {
	at, err := time.Parse(time.RFC3339, published.GetAnnotations()[facts.KubeconfigRenewalAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}
