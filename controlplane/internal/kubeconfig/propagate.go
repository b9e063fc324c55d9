package kubeconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Propagate updates assisted-service's kubeconfig of an imported cluster whenever the published kubeconfig changes. The
// token in the published kubeconfig expires.
func (p *Publisher) Propagate(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || !ownership.Imported(s.Facts) || s.Deployment == nil || s.Found.Kubeconfig == nil || !s.Workload.Connected {
		return true, nil
	}
	if copied := s.AdminKubeconfig; copied != nil && isPropagated(copied, secretVersion(s.Found.Kubeconfig)) {
		return true, nil
	}
	return true, p.PropagateTo(ctx, s, s.Deployment)
}

// isPropagated reports whether a kubeconfig of assisted-service needs no change: another client wrote it, or it is a
// copy of the published version.
func isPropagated(copied client.Object, published string) bool {
	return !facts.IsCopy(copied) || copied.GetAnnotations()[facts.KubeconfigSourceAnnotation] == published
}

// PropagateTo copies the published kubeconfig for assisted-service, unless another client has written a kubeconfig
// there. A kubeconfig that this provider refuses to use is not copied: the condition KubeconfigAvailable reports it.
func (p *Publisher) PropagateTo(ctx context.Context, s *scope.Scope, deployment client.Object) error {
	published := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.ControlPlane.Namespace, Name: secret.Name(s.Cluster.Name, secret.Kubeconfig)}
	if err := p.live.Get(ctx, key, published); err != nil {
		return fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	key.Name = s.AdminKubeconfigName()
	copied, err := kube.Read(ctx, p.live, key, &corev1.Secret{})
	if err != nil {
		return err
	}
	version := secretVersion(published)
	if copied != nil && isPropagated(copied, version) {
		return nil
	}
	content := published.Data[secret.KubeconfigDataName]
	if conn.CheckKubeconfig(content) != nil {
		return nil //nolint:nilerr // the condition KubeconfigAvailable reports it
	}
	wanted := registration.AdminKubeconfig(s.Facts, deployment, content, map[string]string{facts.KubeconfigSourceAnnotation: version})
	if err := p.writer.ApplyOwnedAtOnce(ctx, s, wanted, copied); err != nil {
		return fmt.Errorf("cannot copy the kubeconfig for assisted-service: %w", err)
	}
	return nil
}
