package kubeconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// KeepCredentials copies assisted-service's kubeconfig of an installed cluster into a Secret of the control plane.
// clusterctl moves the copy, but not the Secret of assisted-service. Without the copy, a hub that first reaches the
// cluster after the published token has expired would have no credentials. On a hub with assisted-service's
// kubeconfig, the copy follows the contents of that kubeconfig. On other hubs the copy does not change.
func (p *Publisher) KeepCredentials(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || !ownership.OwnsKubeconfig(s.Facts, s.Found.Kubeconfig) || p.isRecoveryCurrent(s) {
		return true, nil
	}
	if p.isForeignRecovery(s) {
		blockRecovery(s)
		return true, nil
	}
	recovery, err := p.readRecovery(ctx, s)
	switch {
	case err != nil:
		return false, err
	case recovery != nil && !ownership.OwnsRecovery(s.Facts, recovery):
		p.foreignRecoveries.Add(recoveryKey(s, recovery), struct{}{})
		blockRecovery(s)
		return true, nil
	}
	from, source := recovery, ""
	if recovery != nil {
		source = recovery.Annotations[facts.KubeconfigSourceAnnotation]
	}
	if ownership.HasAdminKubeconfig(s.Facts) {
		if from, err = p.readAdmin(ctx, s); err != nil {
			return false, err
		}
		if current := sourceOf(from); parseSource(source).digest != current.digest {
			source = current.String()
		}
	}
	usable := from != nil && conn.CheckKubeconfig(from.Data[registration.AdminKubeconfigKey]) == nil
	if !usable { // the condition KubeconfigAvailable reports it
		return true, nil
	}
	wanted := desired.RecoveryCredentials(s.Facts, from.Data[registration.AdminKubeconfigKey], source)
	if err := p.writer.ApplyOwnedAtOnce(ctx, s, wanted, recovery); err != nil {
		return false, fmt.Errorf("cannot keep a copy of assisted-service's kubeconfig in Secret %s: %w", s.RecoverySecretName(), err)
	}
	return true, nil
}

// isRecoveryCurrent reports whether the metadata of the copy shows the current owner and the current source.
func (p *Publisher) isRecoveryCurrent(s *scope.Scope) bool {
	if s.Recovery == nil {
		return !ownership.HasAdminKubeconfig(s.Facts)
	}
	if !metav1.IsControlledBy(s.Recovery, s.ControlPlane) && !p.writer.LeavesOwners(s, s.Recovery) {
		return false
	}
	return !ownership.HasAdminKubeconfig(s.Facts) || p.isCopied(s.AdminKubeconfig, s.Recovery)
}

// isForeignRecovery reports whether an earlier read found this version of the Secret with the name of the copy to be
// foreign. The cache holds no labels, so the result of the read is remembered.
func (p *Publisher) isForeignRecovery(s *scope.Scope) bool {
	if s.Recovery == nil {
		return false
	}
	return p.foreignRecoveries.Contains(recoveryKey(s, s.Recovery))
}

// recoveryKey identifies a version of the Secret, together with the owner that decides whether the Secret is foreign.
func recoveryKey(s *scope.Scope, recovery client.Object) string {
	return fmt.Sprintf("%s %s %v", secretVersion(recovery), s.ControlPlane.UID, s.Owner())
}

// blockRecovery reports that a foreign Secret has the name of the copy. After a move, the cluster would have no
// credentials once its token has expired.
func blockRecovery(s *scope.Scope) {
	s.Found.Block(tasks.KubeconfigRenewal, controlplanev1.KubeconfigAvailableReason, fmt.Sprintf("Secret %s does not "+
		"belong to this cluster, so no copy of assisted-service's credentials exists for a move of the cluster. "+
		"Recreate the Secret with another name", s.RecoverySecretName()))
}

// readFallback reads the kubeconfig that replaces a token. It is assisted-service's kubeconfig, or the copy on a hub to
// which the cluster was moved. It is nil when neither exists.
func (p *Publisher) readFallback(ctx context.Context, s *scope.Scope) (*corev1.Secret, error) {
	if ownership.HasAdminKubeconfig(s.Facts) {
		return p.readAdmin(ctx, s)
	}
	if s.Recovery == nil {
		return nil, nil //nolint:nilnil // neither exists
	}
	recovery, err := p.readRecovery(ctx, s)
	if err != nil || recovery == nil || !ownership.OwnsRecovery(s.Facts, recovery) {
		return nil, err
	}
	return recovery, nil
}

// readRecovery reads the copy of assisted-service's kubeconfig; nil when it does not exist.
func (p *Publisher) readRecovery(ctx context.Context, s *scope.Scope) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: s.ControlPlane.Namespace, Name: s.RecoverySecretName()}
	return kube.Read(ctx, p.live, key, &corev1.Secret{})
}
