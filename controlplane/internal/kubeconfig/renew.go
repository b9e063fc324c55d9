package kubeconfig

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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// minRenewal is how long a token is used at least.
const minRenewal = time.Minute

// Renew gives the published kubeconfig of an installed cluster a token of its own, and a new one when it was revoked or
// half of its time has passed. The client certificate that assisted-service gives is valid for ten years and is never
// renewed, which the contract of Cluster API does not allow.
func (p *Publisher) Renew(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || !s.OwnsKubeconfig(s.Found.Kubeconfig) {
		return true, nil
	}
	if !s.Workload.Connected {
		return true, p.fallBack(ctx, s)
	}
	if left := renewalOf(s.Found.Kubeconfig).Sub(p.clock.Now()); left > 0 && !missesToken(s) {
		s.Again.In(left)
		return true, nil
	}
	current := &corev1.Secret{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(s.Found.Kubeconfig), current); err != nil {
		return true, fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	switch valid, err := p.tokenValid(ctx, s, current); {
	case err != nil:
		return true, err
	case valid: // one of the caches is behind
		s.Again.In(renewalOf(current).Sub(p.clock.Now()))
		return true, nil
	}
	told, err := p.renewToken(ctx, s, current)
	if err != nil {
		s.Found.Block(status.KubeconfigRenewal, controlplanev1.KubeconfigAvailableReason, "its credentials could not be renewed, which is tried again: "+told)
	}
	return true, err
}

// missesToken reports whether the cluster seems to have revoked the token in the published kubeconfig: the Secret is
// gone that it was bound to.
func missesToken(s *scope.Scope) bool {
	boundTo, bound := s.Found.Kubeconfig.Annotations[facts.KubeconfigTokenAnnotation]
	return bound && s.Workload.Tokens != nil && !s.Workload.Tokens.Has(types.UID(boundTo))
}

// tokenValid reports whether the token in the published kubeconfig, as the hub has it now, is to stay: its time has not
// come, and the cluster has not revoked it.
func (p *Publisher) tokenValid(ctx context.Context, s *scope.Scope, current *corev1.Secret) (bool, error) {
	inTime := renewalOf(current).After(p.clock.Now())
	if !inTime || !missesToken(s) {
		return inTime, nil
	}
	valid, err := p.workloads.HasToken(ctx, s.ClusterKey(), types.UID(current.Annotations[facts.KubeconfigTokenAnnotation]))
	if apierrors.IsUnauthorized(err) || errors.Is(err, cluster.ErrNotConnected) {
		return true, nil // the connection was made with it, and is about to be made anew, if need be with assisted-service's kubeconfig
	}
	return valid, err
}

// fallBack publishes assisted-service's kubeconfig in the place of a token that the cluster accepts no more: it was
// revoked, has expired, or came from a backup. When that brings a connection, it gets a token again.
func (p *Publisher) fallBack(ctx context.Context, s *scope.Scope) error {
	problem := s.Found.KubeconfigProblem(s.Facts)
	if problem == nil || problem.Reason != controlplanev1.KubeconfigUnauthorizedReason || !facts.HasToken(s.Found.Kubeconfig) {
		return nil
	}
	admin, err := p.readFallback(ctx, s)
	if err != nil || admin == nil {
		return err
	}
	if _, err := p.publish(ctx, s, admin); err != nil || s.Found.Blocked(status.KubeconfigCopy) != nil {
		return err
	}
	p.writer.Warn(s.Stored, "KubeconfigReplaced", "The cluster does not accept the token in Secret %s any more; published assisted-service's kubeconfig in its place", s.Found.Kubeconfig.Name)
	return nil
}

// renewToken gives the published kubeconfig a new token, and what can be told of why it could not: nothing of what the
// workload cluster answers but the kind of its answer. A token that nobody gets ends at once. After a write of which it
// is not known whether it was made it stays, for somebody may have it.
func (p *Publisher) renewToken(ctx context.Context, s *scope.Scope, current *corev1.Secret) (told string, err error) {
	token, err := p.workloads.IssueToken(ctx, s.ClusterKey())
	if err != nil {
		return cluster.Cause(err), err
	}
	if err = p.publishToken(ctx, s, current, token); err == nil {
		return "", nil
	}
	told = assisted.RedactURLs(err.Error())
	if notWritten(err) {
		err = errors.Join(err, p.workloads.RevokeToken(ctx, s.ClusterKey(), token))
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
func (p *Publisher) publishToken(ctx context.Context, s *scope.Scope, current *corev1.Secret, token cluster.Token) error {
	content, err := cluster.WithToken(current.Data[secret.KubeconfigDataName], token.Value)
	authorities := facts.AuthoritiesOf(current)
	if err == nil {
		content, authorities, err = p.withAuthorities(ctx, s, content, authorities)
	}
	if err != nil {
		return fmt.Errorf("cannot renew the kubeconfig in Secret %s: %w", current.Name, err)
	}
	// The clocks of hub and cluster may differ by more than a short token lives.
	renewal := p.clock.Now().Add(max(token.Expires.Sub(p.clock.Now())/2, minRenewal))
	published := desired.Kubeconfig(s.Facts, content, map[string]string{
		facts.KubeconfigSourceAnnotation:     current.Annotations[facts.KubeconfigSourceAnnotation],
		facts.KubeconfigRenewalAnnotation:    renewal.UTC().Format(time.RFC3339),
		facts.KubeconfigTokenAnnotation:      string(token.BoundToUID),
		facts.KubeconfigExpirationAnnotation: token.Expires.UTC().Format(time.RFC3339),
	})
	recordAuthorities(published, authorities)
	if err := p.writer.ApplyOwnedAtOnce(ctx, s, published, current); err != nil {
		return fmt.Errorf("cannot publish the renewed kubeconfig: %w", err)
	}
	p.endCount(s, authorities)
	s.Again.In(renewal.Sub(p.clock.Now()))
	p.writer.Event(s.Stored, "KubeconfigRenewed", "Gave Secret %s a new token, which is valid until %s, and as long as Secret kube-system/%s of the cluster exists",
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
