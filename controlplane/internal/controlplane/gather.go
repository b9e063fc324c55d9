package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// gather reads the facts of a reconcile from the caches.
func (r *Reconciler) gather(ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane) (*scope.Scope, error) {
	f := &facts.Facts{ControlPlane: cp}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, cp.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil {
		f.Cluster = cluster
	}
	if name := cp.Labels[clusterv1.ClusterNameLabel]; f.Cluster == nil && name != "" {
		if f.Named, err = kube.Read(ctx, r.Client, client.ObjectKey{Namespace: cp.Namespace, Name: name}, &clusterv1.Cluster{}); err != nil {
			return nil, err
		}
	}
	if f.ClusterName() != "" {
		reads := []func(context.Context, *facts.Facts) error{r.gatherMachines, r.gatherReboots, r.gatherInstallation, r.gatherReferences}
		for _, read := range reads {
			if err := read(ctx, f); err != nil {
				return nil, err
			}
		}
	}
	if f.Cluster != nil && !f.Paused() && !f.Deleting() {
		// Phases use the answer of the cluster as evidence. A cluster that does not answer blocks only the phases that need it.
		f.Workload = r.Workloads.Observe(f.ClusterKey())
	}
	installationstate.Decide(f)
	return scope.New(f), nil
}

func (r *Reconciler) gatherMachines(ctx context.Context, f *facts.Facts) error {
	inCluster := client.MatchingFields{informer.ClusterNameField: f.ClusterName()}
	inNamespace := client.InNamespace(f.ControlPlane.Namespace)
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, inNamespace, inCluster); err != nil {
		return fmt.Errorf("cannot list Machines: %w", err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if f.Controls(m) {
			f.Machines = append(f.Machines, m)
		} else {
			f.Workers = append(f.Workers, m)
		}
	}
	byName := func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(f.Machines, byName)
	slices.SortFunc(f.Workers, byName)

	if err := r.gatherConfigs(ctx, f); err != nil {
		return err
	}
	deployments := &clusterv1.MachineDeploymentList{}
	if err := r.Client.List(ctx, deployments, inNamespace, inCluster); err != nil {
		return fmt.Errorf("cannot list MachineDeployments: %w", err)
	}
	sets := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, sets, inNamespace, inCluster); err != nil {
		return fmt.Errorf("cannot list MachineSets: %w", err)
	}
	f.DayOneWorkers = workers.Count(f.Cluster, deployments.Items, sets.Items, f.Workers)
	f.MissingWorkers = workers.FindMissing(deployments.Items, sets.Items, f.Workers)
	r.recordMissing(f.MissingWorkers, deployments.Items, sets.Items)
	f.Sets = workers.MachineSets(deployments.Items, sets.Items)
	return nil
}

// recordMissing sets since when Machines of each owner have been missing. The age of the owner does not show it: an old
// MachineDeployment is scaled up.
func (r *Reconciler) recordMissing(missing []workers.Missing, deployments []clusterv1.MachineDeployment, sets []clusterv1.MachineSet) {
	complete := map[types.UID]bool{}
	for i := range deployments {
		complete[deployments[i].UID] = true
	}
	for i := range sets {
		complete[sets[i].UID] = true
	}
	for i := range missing {
		delete(complete, missing[i].UID)
		missing[i].Since = r.missing.Since(missing[i].UID)
	}
	for uid := range complete {
		r.missing.Clear(uid)
	}
}

func (r *Reconciler) gatherConfigs(ctx context.Context, f *facts.Facts) error {
	f.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	for _, m := range slices.Concat(f.Machines, f.Workers) {
		if m.Spec.Bootstrap.ConfigRef.Name == "" { // the cache drops the name of a worker that has a Node
			continue
		}
		key := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}
		config, err := kube.Read(ctx, r.Client, key, &bootstrapv1.OpenshiftAssistedConfig{})
		if err != nil {
			return err
		}
		if config != nil {
			f.Configs[m.Name] = config
		}
	}
	return nil
}

func (r *Reconciler) gatherInstallation(ctx context.Context, f *facts.Facts) error {
	key := client.ObjectKeyFromObject(f.ControlPlane)
	if err := gatherRegistration(ctx, r.Client, f); err != nil {
		return err
	}
	if err := r.gatherImageSets(ctx, f); err != nil {
		return err
	}
	if ownership.OwnsInstall(f) {
		f.Progress = assisted.Observe(f.Install)
	} else {
		f.Progress = assisted.Observe(nil) // a foreign installation is no evidence
	}
	agents := &aiv1beta1.AgentList{}
	bound := client.MatchingFields{informer.AgentClusterField: key.Name}
	if err := r.Client.List(ctx, agents, client.InNamespace(key.Namespace), bound); err != nil {
		return fmt.Errorf("cannot list Agents: %w", err)
	}
	f.Agents = agents.Items
	return r.gatherForeignAgents(ctx, f)
}

// gatherForeignAgents finds the Agents of other namespaces that are bound to our ClusterDeployment, as far as the
// manager may see these namespaces.
func (r *Reconciler) gatherForeignAgents(ctx context.Context, f *facts.Facts) error {
	agents := &aiv1beta1.AgentList{}
	bound := client.MatchingFields{informer.ForeignAgentField: client.ObjectKeyFromObject(f.ControlPlane).String()}
	if err := r.Client.List(ctx, agents, client.UnsafeDisableDeepCopy, bound); err != nil {
		return fmt.Errorf("cannot list Agents of other namespaces: %w", err)
	}
	for i := range agents.Items {
		f.ForeignAgents = append(f.ForeignAgents, client.ObjectKeyFromObject(&agents.Items[i]).String())
	}
	slices.Sort(f.ForeignAgents)
	return nil
}

// gatherRegistration reads the objects that may register the control plane with assisted-service.
func gatherRegistration(ctx context.Context, from client.Reader, f *facts.Facts) (err error) {
	key := client.ObjectKeyFromObject(f.ControlPlane)
	if f.Deployment, err = kube.Read(ctx, from, key, &hivev1.ClusterDeployment{}); err != nil {
		return err
	}
	f.Install, err = kube.Read(ctx, from, key, &hiveext.AgentClusterInstall{})
	return err
}

func (r *Reconciler) gatherImageSets(ctx context.Context, f *facts.Facts) error {
	own := &hivev1.ClusterImageSetList{}
	owned := client.MatchingFields{informer.ImageSetOwnerField: client.ObjectKeyFromObject(f.ControlPlane).String()}
	if err := r.Client.List(ctx, own, owned); err != nil {
		return fmt.Errorf("cannot list ClusterImageSets: %w", err)
	}
	f.OwnSets = own.Items
	var err error
	if ref := f.ControlPlane.Spec.Config.ClusterImageSetRef; ref != nil {
		if f.ImageSet, err = kube.Read(ctx, r.Client, client.ObjectKey{Name: ref.Name}, &hivev1.ClusterImageSet{}); err != nil {
			return err
		}
	}
	if name := facts.RegisteredSetOf(f.Install); name != "" {
		f.RegisteredSet, err = kube.Read(ctx, r.Client, client.ObjectKey{Name: name}, &hivev1.ClusterImageSet{})
	}
	return err
}

func (r *Reconciler) gatherReferences(ctx context.Context, f *facts.Facts) error {
	var err error
	namespace := f.ControlPlane.Namespace
	for _, name := range facts.ConfigMapsOf(f.ControlPlane) {
		found, err := kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: namespace, Name: name}, kube.MetadataOf(kube.ConfigMap))
		if err != nil {
			return err
		}
		if found == nil {
			f.MissingConfigMaps = append(f.MissingConfigMaps, name)
		}
		if ref := f.ControlPlane.Spec.Config.ImageRegistryRef; ref != nil && ref.Name == name {
			f.RegistryConfig = found
		}
	}
	secrets := map[string]**metav1.PartialObjectMetadata{
		f.PullSecretName(): &f.PullSecret,
		secret.Name(f.ClusterName(), secret.Kubeconfig): &f.Kubeconfig,
		f.RecoverySecretName():                          &f.Recovery,
	}
	if name := facts.AdminKubeconfigOf(f.Install); name != "" {
		secrets[name] = &f.AdminKubeconfig
	}
	for name, into := range secrets {
		if *into, err = kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: namespace, Name: name}, kube.MetadataOf(kube.Secret)); err != nil {
			return err
		}
	}
	return nil
}

// gatherReboots reads whether reboots of unhealthy hosts failed. It watches and reads nothing as long as all are healthy.
func (r *Reconciler) gatherReboots(ctx context.Context, f *facts.Facts) error {
	f.RebootFailed = sets.New[types.UID]()
	for _, m := range f.Machines {
		if !facts.Unhealthy(m) || m.Spec.InfrastructureRef.Kind != metal3.MachineKind {
			continue
		}
		ref := clusterv1.ContractVersionedObjectReference{APIGroup: m.Spec.InfrastructureRef.APIGroup, Kind: metal3.RebootKind, Name: m.Name}
		reboot, err := kube.External(ctx, r.Client, ref, m.Namespace)
		if err != nil || reboot == nil {
			return err
		}
		if err := r.trackReboots(reboot); err != nil {
			return err
		}
		if reboot, err = kube.Read(ctx, r.Client, client.ObjectKeyFromObject(reboot), reboot); err != nil {
			return err
		}
		if reboot != nil && metal3.RebootFailed(reboot, m.UID) {
			f.RebootFailed.Insert(m.UID)
		}
	}
	return nil
}
