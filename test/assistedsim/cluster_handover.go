package assistedsim

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/google/uuid"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// noIngressContext is the context of the kubeconfig during the installation, which does not trust the
// certificate of the ingress yet. The final kubeconfig has the context from the test.
const noIngressContext = "admin-noingress"

// handOver writes the kubeconfig at the start of the installation, and kubeconfig, password and metadata at its
// end.
func (s *Simulator) handOver(
	ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall, c *cluster, done bool,
) error {
	if s.opts.WorkloadKubeconfig == nil {
		return errors.New("cannot install a cluster without Options.WorkloadKubeconfig")
	}
	kubeconfig, err := s.opts.WorkloadKubeconfig(ctx, cd.Namespace, cd.Name)
	if err != nil {
		return fmt.Errorf("cannot get kubeconfig of workload cluster %s: %w", c.key, err)
	}
	if !done {
		if kubeconfig, err = withoutIngress(kubeconfig); err != nil {
			return fmt.Errorf("cannot use kubeconfig of workload cluster %s: %w", c.key, err)
		}
	}
	name := s.kubeconfigSecretName(c.key)
	if err := s.writeSecret(ctx, cd, name, "kubeconfig", map[string][]byte{"kubeconfig": kubeconfig}, done); err != nil {
		return err
	}
	metadata := &hivev1.ClusterMetadata{
		ClusterID: c.openshiftID, InfraID: c.id, AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: name},
	}
	if done {
		password := map[string][]byte{"username": []byte("kubeadmin"), "password": []byte(uuid.NewString())}
		if err := s.writeSecret(ctx, cd, cd.Name+"-admin-password", "kubeadmincreds", password, false); err != nil {
			return err
		}
		metadata.AdminPasswordSecretRef = &corev1.LocalObjectReference{Name: cd.Name + "-admin-password"}
	}
	return s.writeMetadata(ctx, aci, metadata)
}

// withoutIngress renames the context. The server stays the same, so that the kubeconfig works immediately.
func withoutIngress(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, errors.New("it has no current context")
	}
	delete(config.Contexts, config.CurrentContext)
	config.Contexts[noIngressContext], config.CurrentContext = current, noIngressContext
	return clientcmd.Write(*config)
}

// writeSecret creates a Secret of the cluster. An existing Secret is kept unless it must be rewritten.
func (s *Simulator) writeSecret(
	ctx context.Context, cd *hivev1.ClusterDeployment, name, kind string, data map[string][]byte, rewrite bool,
) error {
	secret := &corev1.Secret{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: cd.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cd.Namespace, Name: name}}
	case err != nil:
		return fmt.Errorf("cannot read secret %s: %w", name, err)
	case !rewrite:
		return nil
	}
	base := secret.DeepCopy()
	labels := maps.Clone(usedLabels)
	labels["hive.openshift.io/cluster-deployment-name"] = cd.Name
	labels["hive.openshift.io/secret-type"] = kind
	merge(&secret.Labels, labels)
	secret.Data = data
	if err := controllerutil.SetOwnerReference(cd, secret, s.client.Scheme()); err != nil {
		return fmt.Errorf("cannot own secret %s: %w", name, err)
	}
	if base.UID == "" {
		err = s.client.Create(ctx, secret)
	} else {
		err = s.client.Patch(ctx, secret, client.MergeFrom(base))
	}
	if err != nil {
		return fmt.Errorf("cannot write secret %s: %w", name, err)
	}
	return nil
}
