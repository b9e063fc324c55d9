package assistedsim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// spokeTimeout bounds one call to a workload cluster.
const spokeTimeout = 5 * time.Second

// removeNode deletes a Node of an installed cluster, reached through the kubeconfig that the service itself published.
func (s *Simulator) removeNode(ctx context.Context, cluster types.NamespacedName, name string) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: s.kubeconfigSecretName(cluster)}
	if err := s.live.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("cannot read kubeconfig of cluster %s: %w", cluster, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return fmt.Errorf("cannot use kubeconfig of cluster %s: %w", cluster, err)
	}
	config.Timeout = spokeTimeout
	spoke, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot reach cluster %s: %w", cluster, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := spoke.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove node %s from cluster %s: %w", name, cluster, err)
	}
	return nil
}

func (s *Simulator) kubeconfigSecretName(cluster types.NamespacedName) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[cluster]; c != nil && c.kubeconfigSecret != "" {
		return c.kubeconfigSecret
	}
	return cluster.Name + "-admin-kubeconfig"
}
