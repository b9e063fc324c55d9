package kubeconfig

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// withdrawnKey identifies the contents of a published kubeconfig and of the authorities in a spec.
type withdrawnKey struct {
	secret  types.UID
	version string
	bundle  string
}

// reportWithdrawn reports the authorities that the spec has withdrawn and that the published kubeconfig still trusts.
// A user withdraws an authority whose key is leaked, and has to know that it still counts.
func (p *Publisher) reportWithdrawn(ctx context.Context, s *scope.Scope, bundle string) error {
	recorded := facts.AuthoritiesOf(s.Found.Kubeconfig)
	names, err := p.stillTrusted(ctx, s, bundle, recorded.Added)
	if err != nil || len(names) == 0 {
		return err
	}
	s.Found.Block(tasks.KubeconfigWithdrawal, controlplanev1.KubeconfigAvailableReason, fmt.Sprintf(
		"Secret %[1]s still trusts certificate authorities that spec.kubeconfig.additionalTrustBundle does not contain any more: %[2]s. "+
			"%[3]s. To remove them at once, delete them from certificate-authority-data in Secret %[1]s, which wipes nothing. Connections "+
			"then fail while an API server has a certificate of them",
		s.Found.Kubeconfig.Name, bound.List(names), p.untilRemoval(s, bundle, recorded)))
	return nil
}

// untilRemoval returns when the manager removes withdrawn authorities.
func (p *Publisher) untilRemoval(s *scope.Scope, bundle string, recorded facts.KubeconfigAuthorities) string {
	if !recorded.Pending() {
		return "An API server used them. They stay until the next renewal of the token, which checks again"
	}
	text := fmt.Sprintf("The manager removes them after %d connections, %d minutes apart, in which no API server used them",
		authorities.WithdrawalChecks, int(authorities.WithdrawalInterval.Minutes()))
	last, counting := p.withdrawals.Get(s.Stored.UID)
	if !counting || !last.counts(bundle) || last.checks == 0 {
		return text + ": 0 completed"
	}
	if last.checks >= authorities.WithdrawalChecks {
		return text + ": all completed"
	}
	at := last.next.Add(time.Duration(authorities.WithdrawalChecks-last.checks-1) * authorities.WithdrawalInterval)
	return fmt.Sprintf("%s: %d completed, the last follows at %s at the earliest", text, last.checks, at.UTC().Format(time.RFC3339))
}

// stillTrusted returns the names of the withdrawn authorities in the published kubeconfig. added are the fingerprints
// of the authorities that come from the present or a former spec. The user may have removed them from the Secret.
func (p *Publisher) stillTrusted(ctx context.Context, s *scope.Scope, bundle string, added sets.Set[string]) ([]string, error) {
	withdrawn := added.Difference(authorities.Fingerprints(bundle))
	if withdrawn.Len() == 0 {
		return nil, nil
	}
	published := s.Found.Kubeconfig
	key := withdrawnKey{published.UID, published.ResourceVersion, facts.RecordAuthorities(bundle, nil, false).String()}
	if names, known := p.withdrawn.Get(key); known {
		return names, nil
	}
	current := &corev1.Secret{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(published), current); err != nil {
		return nil, fmt.Errorf("cannot read the authorities of the published kubeconfig: %w", err)
	}
	names := authorities.Names(current.Data[secret.KubeconfigDataName], withdrawn)
	p.withdrawn.Add(key, names)
	return names, nil
}
