package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// withdrawal counts the connections to the API servers of a cluster since its spec has withdrawn authorities.
type withdrawal struct {
	// bundle is the record of the authorities in the spec since the withdrawal. since is the time at which the record
	// of connections began: a record that began later lacks the counted connections.
	bundle string
	since  time.Time
	checks int
	next   time.Time
}

// counts reports whether the connections are counted for the authorities of a spec.
func (w withdrawal) counts(bundle string) bool {
	return w.bundle == facts.RecordAuthorities(bundle, nil, false).String()
}

// countCheck counts a connection to the API servers, and reports whether the connections since the withdrawal suffice.
// Only connections that are authorities.WithdrawalInterval apart count.
func (p *Publisher) countCheck(s *scope.Scope, bundle string, since time.Time) bool {
	last, _ := p.withdrawals.Get(s.Stored.UID)
	if !last.counts(bundle) || !last.since.Equal(since) {
		last = withdrawal{bundle: facts.RecordAuthorities(bundle, nil, false).String(), since: since}
	}
	if !p.clock.Now().Before(last.next) {
		last.checks++
		last.next = p.clock.Now().Add(authorities.WithdrawalInterval)
	}
	p.withdrawals.Add(s.Stored.UID, last)
	return last.checks >= authorities.WithdrawalChecks
}

// endCount forgets the counted connections when the stored kubeconfig has no withdrawn authority. A failed write does
// not end the count: otherwise the authority would stay trusted for as many connections again.
func (p *Publisher) endCount(s *scope.Scope, stored facts.KubeconfigAuthorities) {
	if !stored.Pending() {
		p.withdrawals.Remove(s.Stored.UID)
	}
}

// untilNextCheck returns the time until the next connection counts for a withdrawal. It returns zero if a connection
// counts now, or if nothing was withdrawn.
func (p *Publisher) untilNextCheck(s *scope.Scope, bundle string) time.Duration {
	last, counting := p.withdrawals.Get(s.Stored.UID)
	if !counting || !last.counts(bundle) {
		return 0
	}
	return max(0, last.next.Sub(p.clock.Now()))
}

// TrustAuthorities writes the authorities of the spec into the published kubeconfig, and removes authorities that the
// spec has withdrawn. It does not wait for the next renewal: no renewal succeeds if the kubeconfig lacks the authority of
// the API server's certificate.
func (p *Publisher) TrustAuthorities(ctx context.Context, s *scope.Scope) (bool, error) {
	bundle := s.ControlPlane.Spec.Kubeconfig.AdditionalTrustBundle
	if err := authorities.Check(bundle); err != nil {
		s.Found.Block(tasks.KubeconfigAuthorities, controlplanev1.InvalidConfigurationReason,
			fmt.Sprintf("%s. Correct the field: none of its certificates is used", err))
		return true, nil
	}
	if !ownership.OwnsKubeconfig(s.Facts, s.Found.Kubeconfig) {
		return true, nil
	}
	return true, errors.Join(p.updateAuthorities(ctx, s, bundle), p.reportWithdrawn(ctx, s, bundle))
}

// updateAuthorities publishes the kubeconfig with the authorities of the spec, unless it has them already.
func (p *Publisher) updateAuthorities(ctx context.Context, s *scope.Scope, bundle string) error {
	if facts.AuthoritiesOf(s.Found.Kubeconfig).TookOver(bundle) {
		return nil
	}
	if left := p.untilNextCheck(s, bundle); left > 0 && facts.AuthoritiesOf(s.Found.Kubeconfig).Pending() {
		s.Again.In(left)
		return nil
	}
	current := &corev1.Secret{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(s.Found.Kubeconfig), current); err != nil {
		return fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	recorded := facts.AuthoritiesOf(current)
	if recorded.TookOver(bundle) {
		return nil // the cache is behind
	}
	return p.publishAuthorities(ctx, s, current, recorded)
}

func (p *Publisher) publishAuthorities(
	ctx context.Context, s *scope.Scope, current *corev1.Secret, recorded facts.KubeconfigAuthorities,
) error {
	before := current.Data[secret.KubeconfigDataName]
	content, authorities, err := p.withAuthorities(ctx, s, before, recorded)
	if err != nil {
		return fmt.Errorf("cannot change the authorities in Secret %s: %w", current.Name, err)
	}
	s.Again.In(p.untilNextCheck(s, s.ControlPlane.Spec.Kubeconfig.AdditionalTrustBundle))
	if bytes.Equal(content, before) && authorities.String() == recorded.String() {
		p.endCount(s, authorities)
		return nil
	}
	published := desired.Kubeconfig(s.Facts, content, kube.SelectKeys(current.Annotations, facts.KubeconfigAnnotations()...))
	recordAuthorities(published, authorities)
	published.ResourceVersion = current.ResourceVersion
	if err := p.writer.ApplyOwnedAtOnce(ctx, s, published, current); err != nil {
		return fmt.Errorf("cannot publish the kubeconfig with other authorities: %w", err)
	}
	p.endCount(s, authorities)
	if !bytes.Equal(content, before) {
		s.Found.Event(corev1.EventTypeNormal, "KubeconfigAuthoritiesChanged", "Secret %s trusts the authorities that spec.kubeconfig states",
			published.Name)
	}
	setPublished(s, published)
	return nil
}

// withAuthorities returns a kubeconfig with the authorities of the spec, and with the current authorities of the API
// server. One of the latter may sign later certificates of the API server. If the authorities of the API server cannot
// be read, the kubeconfig is returned without them.
func (p *Publisher) withAuthorities(
	ctx context.Context, s *scope.Scope, content []byte, recorded facts.KubeconfigAuthorities,
) ([]byte, facts.KubeconfigAuthorities, error) {
	bundle := s.ControlPlane.Spec.Kubeconfig.AdditionalTrustBundle
	trust := authorities.Trust{}
	if s.Installed() && s.Workload.Connected {
		observed, err := p.workloads.Authorities(ctx, s.ClusterKey())
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("Cannot read the certificate authorities of the API server of the cluster", "reason", err.Error())
		} else {
			trust.Cluster, trust.Settled = &observed, p.countCheck(s, bundle, observed.Since)
		}
	}
	valid := authorities.Check(bundle) == nil
	if valid {
		trust.Stated, trust.Added = []byte(bundle), recorded.Added
	}
	result, err := authorities.Update(content, p.clock.Now(), trust)
	if err != nil || !valid {
		return result.Kubeconfig, recorded, err
	}
	return result.Kubeconfig, facts.RecordAuthorities(bundle, result.Added, result.Pending), nil
}

// recordAuthorities records, in an annotation of a published kubeconfig, the authorities that come only from the spec.
func recordAuthorities(published *corev1.Secret, authorities facts.KubeconfigAuthorities) {
	value := authorities.String()
	if value == "" {
		delete(published.Annotations, facts.KubeconfigAuthoritiesAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&published.ObjectMeta, facts.KubeconfigAuthoritiesAnnotation, value)
}
