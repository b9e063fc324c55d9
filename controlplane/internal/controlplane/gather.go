package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// gather reads, from the caches, what a reconcile decides upon.
func (r *Reconciler) gather(ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane) (*scope, error) {
	s := &scope{before: cp, controlPlane: cp.DeepCopy()}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, cp.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil {
		s.cluster = cluster
	}
	if name := cp.Labels[clusterv1.ClusterNameLabel]; s.cluster == nil && name != "" {
		if s.named, err = kube.Read(ctx, r.Client, client.ObjectKey{Namespace: cp.Namespace, Name: name}, &clusterv1.Cluster{}); err != nil {
			return nil, err
		}
	}
	if s.clusterName() == "" {
		return s, nil
	}
	for _, read := range []func(context.Context, *scope) error{
		r.gatherMachines, r.gatherInstallation, r.gatherReferences,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *Reconciler) gatherMachines(ctx context.Context, s *scope) error {
	inCluster := client.MatchingFields{clusterNameField: s.clusterName()}
	inNamespace := client.InNamespace(s.controlPlane.Namespace)
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, inNamespace, inCluster); err != nil {
		return fmt.Errorf("cannot list Machines: %w", err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if s.controls(m) {
			s.machines = append(s.machines, m)
		} else {
			s.workers = append(s.workers, m)
		}
	}
	byName := func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(s.machines, byName)
	slices.SortFunc(s.workers, byName)

	deployments := &clusterv1.MachineDeploymentList{}
	if err := r.Client.List(ctx, deployments, inNamespace, inCluster); err != nil {
		return fmt.Errorf("cannot list MachineDeployments: %w", err)
	}
	sets := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, sets, inNamespace, inCluster); err != nil {
		return fmt.Errorf("cannot list MachineSets: %w", err)
	}
	s.dayOneWorkers = countWorkers(s.cluster, deployments.Items, sets.Items, s.workers)
	return nil
}

// controls tells whether a Machine is one of the control plane, also when it lost its owner reference. A control plane that is deleted takes along only what it
// owns: somebody may have taken a Machine out.
func (s *scope) controls(m *clusterv1.Machine) bool {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return owner.UID == s.controlPlane.UID
	}
	return !s.deleting() && util.IsControlPlaneMachine(m) && s.ours(m)
}

func (r *Reconciler) gatherInstallation(ctx context.Context, s *scope) error {
	key := client.ObjectKeyFromObject(s.controlPlane)
	var err error
	if s.deployment, err = kube.Read(ctx, r.Client, key, &hivev1.ClusterDeployment{}); err != nil {
		return err
	}
	if s.install, err = kube.Read(ctx, r.Client, key, &hiveext.AgentClusterInstall{}); err != nil {
		return err
	}
	if err := r.gatherImageSets(ctx, s); err != nil {
		return err
	}
	if s.owns(s.install) {
		s.progress = assisted.Observe(s.install)
	} else {
		s.progress = assisted.Observe(nil) // the installation of somebody else says nothing of ours
	}
	agents := &aiv1beta1.AgentList{}
	if err := r.Client.List(ctx, agents, client.MatchingFields{agentClusterField: key.String()}); err != nil {
		return fmt.Errorf("cannot list Agents: %w", err)
	}
	s.agents = agents.Items
	return nil
}

func (r *Reconciler) gatherImageSets(ctx context.Context, s *scope) error {
	own := &hivev1.ClusterImageSetList{}
	if err := r.Client.List(ctx, own, client.MatchingFields{imageSetOwnerField: client.ObjectKeyFromObject(s.controlPlane).String()}); err != nil {
		return fmt.Errorf("cannot list ClusterImageSets: %w", err)
	}
	s.ownSets = own.Items
	var err error
	if ref := s.controlPlane.Spec.Config.ClusterImageSetRef; ref != nil {
		if s.imageSet, err = kube.Read(ctx, r.Client, client.ObjectKey{Name: ref.Name}, &hivev1.ClusterImageSet{}); err != nil {
			return err
		}
	}
	if name := registeredSetOf(s.install); name != "" {
		s.registeredSet, err = kube.Read(ctx, r.Client, client.ObjectKey{Name: name}, &hivev1.ClusterImageSet{})
	}
	return err
}

// registeredSetOf names the ClusterImageSet with which a cluster is registered; empty before it is.
func registeredSetOf(install *hiveext.AgentClusterInstall) string {
	if install == nil || install.Spec.ImageSetRef == nil {
		return ""
	}
	return install.Spec.ImageSetRef.Name
}

func (r *Reconciler) gatherReferences(ctx context.Context, s *scope) error {
	var err error
	namespace, config := s.controlPlane.Namespace, &s.controlPlane.Spec.Config
	for _, name := range configMapsOf(s.controlPlane) {
		found, err := kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: namespace, Name: name}, kube.MetadataOf(kube.ConfigMap))
		if err != nil {
			return err
		}
		if found == nil {
			s.missingConfigMaps = append(s.missingConfigMaps, name)
		}
	}
	s.pullSecretName = s.controlPlane.Name + placeholderSuffix
	if config.PullSecretRef != nil {
		s.pullSecretName = config.PullSecretRef.Name
	}
	secrets := map[string]**metav1.PartialObjectMetadata{
		s.pullSecretName: &s.userPullSecret,
		secret.Name(s.clusterName(), secret.Kubeconfig): &s.kubeconfigSecret,
	}
	if name := adminSecretOf(s.install); name != "" {
		secrets[name] = &s.adminSecret
	}
	for name, into := range secrets {
		if *into, err = kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: namespace, Name: name}, kube.MetadataOf(kube.Secret)); err != nil {
			return err
		}
	}
	return nil
}

// configMapsOf names the ConfigMaps that the configuration refers to.
func configMapsOf(cp *controlplanev1.OpenshiftAssistedControlPlane) []string {
	var names []string
	for _, ref := range cp.Spec.Config.ManifestsConfigMapRefs {
		names = append(names, ref.Name)
	}
	if ref := cp.Spec.Config.ImageRegistryRef; ref != nil {
		names = append(names, ref.Name)
	}
	return names
}

// adminSecretOf names the Secret in which assisted-service keeps the kubeconfig; empty before it does.
func adminSecretOf(install *hiveext.AgentClusterInstall) string {
	if install == nil || install.Spec.ClusterMetadata == nil {
		return ""
	}
	return install.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name
}
