package kubeconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Propagate keeps assisted-service's kubeconfig of an imported cluster in step with the published one, whose token ends.
func (p *Publisher) Propagate(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || !s.Imported() || s.Deployment == nil || s.Found.Kubeconfig == nil || !s.Workload.Connected {
		return true, nil
	}
	if copied := s.AdminKubeconfig; copied != nil && isPropagated(copied, secretVersion(s.Found.Kubeconfig)) {
		return true, nil
	}
	return true, p.PropagateTo(ctx, s, s.Deployment)
}

// isPropagated reports whether a kubeconfig of assisted-service is left as it is: it is somebody else's, or the copy of
// what is published now.
func isPropagated(copied client.Object, published string) bool {
	return !facts.IsCopy(copied) || copied.GetAnnotations()[facts.KubeconfigSourceAnnotation] == published
}

// PropagateTo gives assisted-service a copy of the published kubeconfig, unless somebody gave it another. One that we
// refuse to use ourselves, which the condition KubeconfigAvailable tells, is none for assisted-service either.
func (p *Publisher) PropagateTo(ctx context.Context, s *scope.Scope, deployment client.Object) error {
	published := &corev1.Secret{}
	if err := p.live.Get(ctx, client.ObjectKey{Namespace: s.ControlPlane.Namespace, Name: secret.Name(s.Cluster.Name, secret.Kubeconfig)}, published); err != nil {
		return fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	copied, err := kube.Read(ctx, p.live, client.ObjectKey{Namespace: s.ControlPlane.Namespace, Name: s.AdminKubeconfigName()}, &corev1.Secret{})
	if err != nil {
		return err
	}
	version := secretVersion(published)
	if copied != nil && isPropagated(copied, version) {
		return nil
	}
	content := published.Data[secret.KubeconfigDataName]
	if cluster.CheckKubeconfig(content) != nil {
		return nil //nolint:nilerr // a condition tells it
	}
	wanted := desired.AdminKubeconfig(s.Facts, deployment, content, map[string]string{facts.KubeconfigSourceAnnotation: version})
	if err := p.writer.ApplyOwnedAtOnce(ctx, s, wanted, copied); err != nil {
		return fmt.Errorf("cannot give assisted-service the kubeconfig: %w", err)
	}
	return nil
}
