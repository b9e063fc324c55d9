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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// minRenewal is the shortest time between two renewals of a token.
const minRenewal = time.Minute

// Renew publishes a token in the kubeconfig of an installed cluster. It renews the token when half of its lifetime has
// passed, or when the cluster has revoked it. The client certificate of assisted-service is valid for ten years and is
// never renewed, but the contract of Cluster API requires a renewal.
func (p *Publisher) Renew(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || !ownership.OwnsKubeconfig(s.Facts, s.Found.Kubeconfig) {
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
	case valid: // the cache of the hub or of the cluster is behind
		s.Again.In(renewalOf(current).Sub(p.clock.Now()))
		return true, nil
	}
	cause, err := p.renewToken(ctx, s, current)
	if err != nil {
		s.Found.Block(tasks.KubeconfigRenewal, controlplanev1.KubeconfigAvailableReason,
			"its credentials could not be renewed: "+cause+". The provider retries")
	}
	return true, err
}

// missesToken reports whether the cluster seems to have revoked the published token. The Secret to which the token is
// bound then no longer exists.
func missesToken(s *scope.Scope) bool {
	boundTo, bound := s.Found.Kubeconfig.Annotations[facts.KubeconfigTokenAnnotation]
	return bound && s.Workload.Tokens != nil && !s.Workload.Tokens.Has(types.UID(boundTo))
}

// tokenValid reports whether the token in the current published kubeconfig needs no renewal: it is not due, and the
// cluster has not revoked it.
func (p *Publisher) tokenValid(ctx context.Context, s *scope.Scope, current *corev1.Secret) (bool, error) {
	inTime := renewalOf(current).After(p.clock.Now())
	if !inTime || !missesToken(s) {
		return inTime, nil
	}
	valid, err := p.workloads.HasToken(ctx, s.ClusterKey(), types.UID(current.Annotations[facts.KubeconfigTokenAnnotation]))
	if apierrors.IsUnauthorized(err) || errors.Is(err, cluster.ErrNotConnected) {
		// The connection uses this token and will be replaced. If the cluster refuses the token, fallBack publishes
		// assisted-service's kubeconfig.
		return true, nil
	}
	return valid, err
}

// fallBack publishes assisted-service's kubeconfig when the cluster does not accept the published token any more. The
// token was revoked, has expired, or was restored from a backup. After the next connection Renew publishes a token again.
func (p *Publisher) fallBack(ctx context.Context, s *scope.Scope) error {
	problem := s.Found.KubeconfigProblem(s.Facts)
	if problem == nil || problem.Reason != controlplanev1.KubeconfigUnauthorizedReason || !facts.HasToken(s.Found.Kubeconfig) {
		return nil
	}
	admin, err := p.readFallback(ctx, s)
	if err != nil || admin == nil {
		return err
	}
	if _, err := p.publish(ctx, s, admin); err != nil || s.Found.Blocked(tasks.KubeconfigCopy) != nil {
		return err
	}
	s.Found.Event(corev1.EventTypeWarning, "KubeconfigReplaced", "The cluster does not accept the token in Secret %s any more. "+
		"Published assisted-service's kubeconfig in its place", s.Found.Kubeconfig.Name)
	return nil
}

// renewToken publishes a new token. On failure it also returns a cause for the condition. The cause contains the kind of
// the answer of the workload cluster, and never its text. A token that was certainly not published is revoked at once. If
// the result of the write is unknown, the token stays valid: a client may have read it.
func (p *Publisher) renewToken(ctx context.Context, s *scope.Scope, current *corev1.Secret) (cause string, err error) {
	token, err := p.workloads.IssueToken(ctx, s.ClusterKey())
	if err != nil {
		return conn.Cause(err), err
	}
	if err = p.publishToken(ctx, s, current, token); err == nil {
		return "", nil
	}
	cause = assisted.RedactURLs(err.Error())
	if notWritten(err) {
		err = errors.Join(err, p.workloads.RevokeToken(ctx, s.ClusterKey(), token))
	}
	return cause, err
}

// notWritten reports whether a kubeconfig was certainly not written: this provider refused it, or the API server
// answered with a client error (4xx).
func notWritten(err error) bool {
	var refused conn.RefusedError
	if errors.As(err, &refused) {
		return true
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// publishToken writes a token into the published kubeconfig, and schedules its renewal.
func (p *Publisher) publishToken(ctx context.Context, s *scope.Scope, current *corev1.Secret, token tokens.Token) error {
	content, err := conn.WithToken(current.Data[secret.KubeconfigDataName], token.Value)
	authorities := facts.AuthoritiesOf(current)
	if err == nil {
		content, authorities, err = p.withAuthorities(ctx, s, content, authorities)
	}
	if err != nil {
		return fmt.Errorf("cannot renew the kubeconfig in Secret %s: %w", current.Name, err)
	}
	// The clocks of hub and cluster may differ by more than the lifetime of a short token.
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
	setPublished(s, published)
	p.endCount(s, authorities)
	s.Again.In(renewal.Sub(p.clock.Now()))
	s.Found.Event(corev1.EventTypeNormal, "KubeconfigRenewed",
		"Wrote a new token into Secret %s. The token is valid until %s, and only while Secret kube-system/%s exists in the cluster",
		published.Name, token.Expires.UTC().Format(time.RFC3339), token.BoundTo)
	return nil
}

// renewalOf returns the time at which a published kubeconfig is to be renewed. It returns the zero time if the
// kubeconfig has no token: the renewal is due at once.
func renewalOf(published client.Object) time.Time {
	at, err := time.Parse(time.RFC3339, published.GetAnnotations()[facts.KubeconfigRenewalAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}
