package workload

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// The Secret in which the contract of Cluster API wants the kubeconfig of a cluster, and its key there.
const (
	kubeconfigSuffix = "-kubeconfig"
	kubeconfigKey    = "value"
)

// kubeconfigReader reads the Secrets <cluster>-kubeconfig of clusters whose control plane this manager reconciles. For other clusters of the hub it
// says that there is none, so that no connection to them is ever opened. A Secret is read once for each of its versions: attempts to connect
// are frequent while a cluster is being installed, and must not cost requests; when there is a connection it is forgotten. What CheckKubeconfig refuses is not handed out.
type kubeconfigReader struct {
	client.Reader // of the cache: Clusters, and Secrets as metadata

	live     client.Reader
	selected func(ctx context.Context, cluster *clusterv1.Cluster) (bool, error)

	mu   sync.Mutex
	read map[client.ObjectKey]kubeconfig
}

// kubeconfig is one that was read, and why it is refused.
type kubeconfig struct {
	secret  *corev1.Secret
	refused error
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
	known := r.known(key)
	if known.secret == nil || known.secret.ResourceVersion != version {
		if known, err = r.readLive(ctx, key); err != nil {
			return err
		}
	}
	if known.refused != nil {
		return known.refused
	}
	known.secret.DeepCopyInto(secret)
	return nil
}

func (r *kubeconfigReader) readLive(ctx context.Context, key client.ObjectKey) (kubeconfig, error) {
	secret := &corev1.Secret{}
	if err := r.live.Get(ctx, key, secret); err != nil {
		return kubeconfig{}, err
	}
	found := kubeconfig{secret: secret, refused: CheckKubeconfig(secret.Data[kubeconfigKey])}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[key] = found
	return found, nil
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
	metadata := kube.MetadataOf(kube.Secret)
	if err := r.Reader.Get(ctx, key, metadata); err != nil {
		return "", err
	}
	return metadata.GetResourceVersion(), nil
}

func (r *kubeconfigReader) known(key client.ObjectKey) kubeconfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read[key]
}

// kubeconfigOf is the key of the Secret with the kubeconfig of a cluster.
func kubeconfigOf(cluster client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + kubeconfigSuffix}
}

// versionFor is the resource version of the kubeconfig that was handed out or refused last; empty: there is none.
func (r *kubeconfigReader) versionFor(cluster client.ObjectKey) string {
	if secret := r.known(kubeconfigOf(cluster)).secret; secret != nil {
		return secret.ResourceVersion
	}
	return ""
}

func (r *kubeconfigReader) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.read, key)
}
