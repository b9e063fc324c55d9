package kubeconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// KeepCredentials copies assisted-service's kubeconfig of an installed cluster into a Secret of the control plane.
// clusterctl moves that Secret, and leaves assisted-service's behind: a hub that reaches the cluster only after the
// token in the published kubeconfig has expired has no other credentials. The copy follows assisted-service's
// kubeconfig where that exists, and is left alone elsewhere.
func (p *Publisher) KeepCredentials(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || !s.OwnsKubeconfig(s.Found.Kubeconfig) || p.keepsCredentials(s) {
		return true, nil
	}
	if p.isForeignRecovery(s) {
		blockRecovery(s)
		return true, nil
	}
	kept, err := p.readRecovery(ctx, s)
	switch {
	case err != nil:
		return false, err
	case kept != nil && !s.OwnsRecovery(kept):
		p.foreignRecoveries.Add(recoveryKey(s, kept), struct{}{})
		blockRecovery(s)
		return true, nil
	}
	from, source := kept, ""
	if kept != nil {
		source = kept.Annotations[facts.KubeconfigSourceAnnotation]
	}
	if s.HasAdminKubeconfig() {
		if from, err = p.readAdmin(ctx, s); err != nil {
			return false, err
		}
		if now := sourceOf(from); parseSource(source).digest != now.digest {
			source = now.String()
		}
	}
	usable := from != nil && cluster.CheckKubeconfig(from.Data[desired.AdminKubeconfigKey]) == nil
	if !usable { // the condition KubeconfigAvailable reports it
		return true, nil
	}
	if err := p.writer.ApplyOwnedAtOnce(ctx, s, desired.RecoveryCredentials(s.Facts, from.Data[desired.AdminKubeconfigKey], source), kept); err != nil {
		return false, fmt.Errorf("cannot keep a copy of assisted-service's kubeconfig in Secret %s: %w", s.RecoverySecretName(), err)
	}
	return true, nil
}

// keepsCredentials reports whether the copy is as it should be, as far as its metadata says.
func (p *Publisher) keepsCredentials(s *scope.Scope) bool {
	if s.Recovery == nil {
		return !s.HasAdminKubeconfig()
	}
	if !metav1.IsControlledBy(s.Recovery, s.ControlPlane) && !p.writer.LeavesOwners(s, s.Recovery) {
		return false
	}
	return !s.HasAdminKubeconfig() || p.isCopied(s.AdminKubeconfig, s.Recovery)
}

// isForeignRecovery reports whether the Secret that has the name of the copy was foreign in this version when it was
// read: its labels are not cached.
func (p *Publisher) isForeignRecovery(s *scope.Scope) bool {
	if s.Recovery == nil {
		return false
	}
	return p.foreignRecoveries.Contains(recoveryKey(s, s.Recovery))
}

// recoveryKey identifies a version of the Secret, and all that decides whether it is foreign.
func recoveryKey(s *scope.Scope, recovery client.Object) string {
	return fmt.Sprintf("%s %s %v", secretVersion(recovery), s.ControlPlane.UID, s.Owner())
}

// blockRecovery reports that a foreign Secret has the name of the copy. A move would leave the cluster without
// credentials once its token has ended.
func blockRecovery(s *scope.Scope) {
	s.Found.Block(status.KubeconfigRenewal, controlplanev1.KubeconfigAvailableReason, fmt.Sprintf("Secret %s is not of this cluster: assisted-service's credentials are not kept for a move of the cluster. "+
		"Give the Secret another name", s.RecoverySecretName()))
}

// readFallback reads the kubeconfig that takes the place of a token: assisted-service's, or the copy where the cluster
// was moved to; nil when there is neither.
func (p *Publisher) readFallback(ctx context.Context, s *scope.Scope) (*corev1.Secret, error) {
	if s.HasAdminKubeconfig() {
		return p.readAdmin(ctx, s)
	}
	if s.Recovery == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	kept, err := p.readRecovery(ctx, s)
	if err != nil || kept == nil || !s.OwnsRecovery(kept) {
		return nil, err
	}
	return kept, nil
}

// readRecovery reads the copy of assisted-service's kubeconfig; nil when it does not exist.
func (p *Publisher) readRecovery(ctx context.Context, s *scope.Scope) (*corev1.Secret, error) {
	return kube.Read(ctx, p.live, client.ObjectKey{Namespace: s.ControlPlane.Namespace, Name: s.RecoverySecretName()}, &corev1.Secret{})
}
