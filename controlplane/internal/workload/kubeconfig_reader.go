package workload

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/provider"
)

const kubeconfigSuffix = "-kubeconfig"

// kubeconfigReader reads the Secrets <cluster>-kubeconfig of clusters whose control plane this manager reconciles. For other clusters of the hub it
// says that there is none, so that no connection to them is ever opened. A Secret is read once for each of its versions: attempts to connect
// are frequent while a cluster is being installed, and must not cost requests.
type kubeconfigReader struct {
	client.Reader // of the cache: Clusters, and Secrets as metadata

	live     client.Reader
	selected func(ctx context.Context, cluster *clusterv1.Cluster) (bool, error)

	mu   sync.Mutex
	read map[client.ObjectKey]*corev1.Secret
}

// Get reads a kubeconfig Secret.
func (r *kubeconfigReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return r.Reader.Get(ctx, key, obj, opts...)
	}
	version, err := r.version(ctx, key)
	if err != nil {
		r.forget(key)
		return err
	}
	if known := r.known(key, version); known != nil {
		known.DeepCopyInto(secret)
		return nil
	}
	if err := r.live.Get(ctx, key, secret); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[key] = secret.DeepCopy()
	return nil
}

// version returns the resource version of the Secret of one of our clusters.
func (r *kubeconfigReader) version(ctx context.Context, key client.ObjectKey) (string, error) {
	notFound := apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	clusterName, ok := strings.CutSuffix(key.Name, kubeconfigSuffix)
	if !ok {
		return "", notFound
	}
	cluster := &clusterv1.Cluster{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: clusterName}, cluster); err != nil {
		return "", err
	}
	selected, err := r.selected(ctx, cluster)
	if err != nil {
		return "", err
	}
	if !selected {
		return "", notFound
	}
	metadata := provider.MetadataOnly("Secret")
	if err := r.Reader.Get(ctx, key, metadata); err != nil {
		return "", err
	}
	return metadata.GetResourceVersion(), nil
}

func (r *kubeconfigReader) known(key client.ObjectKey, version string) *corev1.Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	if secret := r.read[key]; secret != nil && secret.ResourceVersion == version {
		return secret
	}
	return nil
}

func (r *kubeconfigReader) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.read, key)
}
