package assistedsim

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// spokeTimeout bounds one call to a workload cluster.
const spokeTimeout = 5 * time.Second

// spoke is a client of a workload cluster with the kubeconfig of the client.
type spoke struct {
	kubeconfig []byte
	client     client.Client
}

// spokeClient returns a client of an installed cluster with the kubeconfig that the service published.
func (s *Simulator) spokeClient(ctx context.Context, cluster types.NamespacedName) (client.Client, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: s.kubeconfigSecretName(cluster)}
	if err := s.live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig of cluster %s: %w", cluster, err)
	}
	kubeconfig := secret.Data["kubeconfig"]
	s.mu.Lock()
	known := s.spokes[cluster]
	s.mu.Unlock()
	if known.client != nil && bytes.Equal(known.kubeconfig, kubeconfig) {
		return known.client, nil
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot use kubeconfig of cluster %s: %w", cluster, err)
	}
	config.Timeout, config.QPS, config.UserAgent = spokeTimeout, -1, FieldManager
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot reach cluster %s: %w", cluster, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.spokes, func(key types.NamespacedName, _ spoke) bool { return s.clusters[key] == nil }) // deleted clusters
	s.spokes[cluster] = spoke{kubeconfig, c}
	return c, nil
}

// removeNode deletes a Node of an installed cluster.
func (s *Simulator) removeNode(ctx context.Context, cluster types.NamespacedName, name string) error {
	c, err := s.spokeClient(ctx, cluster)
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
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
