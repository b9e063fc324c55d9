// Package facts holds what was read in one reconcile of a control plane, and what follows from that alone. It computes; it has no client.
package facts

import (
	"cmp"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

const (
	// ControlPlaneKind is the kind that is reconciled.
	ControlPlaneKind = "OpenshiftAssistedControlPlane"
	// placeholderSuffix makes the name of the pull secret of a cluster that needs none.
	placeholderSuffix = "-placeholder-pull-secret"
)

// Facts are what was read in one reconcile. Nobody changes them afterwards: what a phase finds out or does is told beside them.
type Facts struct {
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// Cluster is nil when the control plane has no owner, or the owner is gone. Named is the Cluster whose name the
	// control plane bears in a label, where it has no owner.
	Cluster, Named *clusterv1.Cluster

	// Machines are those of the control plane, Workers all others of the Cluster, each sorted by name.
	Machines, Workers []*clusterv1.Machine
	// Configs are the OpenshiftAssistedConfigs of the control plane's Machines and of the workers that have no Node
	// yet, by name of the Machine; one that does not exist is missing.
	Configs map[string]*bootstrapv1.OpenshiftAssistedConfig
	// DayOneWorkers is the number of workers that the objects of the Cluster ask for.
	DayOneWorkers int32
	// MissingWorkers are those of them whose Machines do not exist.
	MissingWorkers []MissingWorkers
	// Sets are what the MachineSets want of their Machines, by UID of the set.
	Sets map[types.UID]MachineSet

	// ImageSet is the ClusterImageSet that the configuration names, RegisteredSet the one that the AgentClusterInstall
	// names. OwnSets were made for this control plane.
	ImageSet, RegisteredSet *hivev1.ClusterImageSet
	OwnSets                 []hivev1.ClusterImageSet

	Deployment *hivev1.ClusterDeployment
	Install    *hiveext.AgentClusterInstall
	// Progress is what Install says, as far as it is ours.
	Progress assisted.Installation
	// Agents are those of the control plane's namespace that are bound to its ClusterDeployment. assisted-service also
	// binds Agents of other namespaces, which are never hosts of our Machines.
	Agents []aiv1beta1.Agent
	// ForeignAgents are these, as <namespace>/<name>, in a stable order. assisted-service counts them as hosts of the
	// cluster and installs their servers with it.
	ForeignAgents []string

	// RebootFailed are the UIDs of unhealthy Machines whose hosts were rebooted as often as that is to be tried.
	RebootFailed sets.Set[types.UID]

	// MissingConfigMaps are referenced but do not exist.
	MissingConfigMaps []string
	// RegistryConfig is the metadata of the ConfigMap with the registry mirrors; nil when none is named, or it does not exist.
	RegistryConfig *metav1.PartialObjectMetadata
	// PullSecret, Kubeconfig and AdminKubeconfig are the metadata of Secrets: the one that the installation takes its
	// pull secret from, the published kubeconfig, and that of assisted-service; nil when they do not exist.
	PullSecret, Kubeconfig, AdminKubeconfig *metav1.PartialObjectMetadata
	// Recovery is the metadata of the Secret with the copy of assisted-service's kubeconfig; nil when it does not exist.
	Recovery *metav1.PartialObjectMetadata

	// Workload is what is known of the cluster itself.
	Workload Workload

	// InstallationState is where the installation stands by all of the above: see Decide.
	InstallationState
}

// Deleting reports whether the control plane is being deleted.
func (f *Facts) Deleting() bool { return !f.ControlPlane.DeletionTimestamp.IsZero() }

// ClusterDeleting reports whether the cluster is being deleted as a whole: nobody needs its etcd any more.
func (f *Facts) ClusterDeleting() bool {
	return f.Deleting() || f.Cluster != nil && !f.Cluster.DeletionTimestamp.IsZero()
}

// Moved reports whether clusterctl move deletes the object here because it lives elsewhere now.
func (f *Facts) Moved() bool {
	_, move := f.ControlPlane.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return f.Deleting() && move
}

// Paused reports whether nothing is to be changed.
func (f *Facts) Paused() bool { return f.PausedCondition().Status == metav1.ConditionTrue }

// PausedCondition considers the Cluster also where the owner reference is missing: a paused cluster is one that somebody works on.
func (f *Facts) PausedCondition() metav1.Condition {
	return contract.PausedCondition(cmp.Or(f.Cluster, f.Named), f.ControlPlane)
}

// ClusterName is the name of the Cluster, also when that is gone.
func (f *Facts) ClusterName() string {
	if f.Cluster != nil {
		return f.Cluster.Name
	}
	for _, ref := range f.ControlPlane.OwnerReferences {
		if ref.Kind == "Cluster" {
			return ref.Name
		}
	}
	return f.ControlPlane.Labels[clusterv1.ClusterNameLabel]
}

// ClusterKey is namespace and name of the Cluster.
func (f *Facts) ClusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: f.ControlPlane.Namespace, Name: f.ClusterName()}
}

// Replicas is the wanted number of Machines.
func (f *Facts) Replicas() int32 { return ptr.Deref(f.ControlPlane.Spec.Replicas, 1) }

// Owner is whom the objects of this control plane are made for. A Cluster that was moved or restored has had other UIDs.
func (f *Facts) Owner() contract.Owner {
	return contract.Owner{
		Namespace: f.ControlPlane.Namespace, Cluster: f.ClusterName(), ControlPlane: f.ControlPlane.Name,
		UID: f.clusterUID(), Former: contract.ClusterUIDs(f.ControlPlane),
	}
}

// clusterUID is the UID of the Cluster, also when that is gone.
func (f *Facts) clusterUID() types.UID {
	if f.Cluster != nil {
		return f.Cluster.UID
	}
	for _, ref := range f.ControlPlane.OwnerReferences {
		if ref.Kind == "Cluster" {
			return ref.UID
		}
	}
	return ""
}

// Labels are those of the objects that are made for this control plane.
func (f *Facts) Labels() map[string]string { return f.Owner().Labels() }

// Ours reports whether an object was made for this control plane.
func (f *Facts) Ours(obj metav1.Object) bool { return f.Owner().ClaimOf(obj) == contract.Ours }

// OwnerOf reports whether the control plane is an owner of an object.
func (f *Facts) OwnerOf(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == f.ControlPlane.UID })
}

// Controls reports whether a Machine is one of the control plane, also when it lost its owner reference. A control
// plane that is deleted takes along only what it owns: somebody may have taken a Machine out.
func (f *Facts) Controls(m *clusterv1.Machine) bool {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	return !f.Deleting() && controlPlane && f.Ours(m)
}

// WithoutOwner are the Machines of the Cluster that have no owner and are not taken for ours: a restore drops all owner
// references, and what a Machine is without its owner only its labels say. Cluster API makes the Cluster the owner of
// each Machine that a user creates by itself. One that is being deleted comes to its end without an owner.
func (f *Facts) WithoutOwner() []*clusterv1.Machine {
	var found []*clusterv1.Machine
	for _, m := range f.Workers {
		if len(m.OwnerReferences) == 0 && m.DeletionTimestamp.IsZero() {
			found = append(found, m)
		}
	}
	return found
}

// WorkerReplicas is the number of workers that are installed with the control plane: that of the AgentClusterInstall
// once the installation has begun.
func (f *Facts) WorkerReplicas() int32 {
	if f.Begun && f.Install != nil {
		return int32(f.Install.Spec.ProvisionRequirements.WorkerAgents) //nolint:gosec // a number of hosts
	}
	if f.Replicas() == 1 || f.Fenced() {
		// assisted-service installs a single-node cluster alone; its workers join afterwards. Two nodes with fencing have none.
		return 0
	}
	return f.DayOneWorkers
}

// PullSecretName names the Secret that the installation takes its pull secret from: the user's, or the placeholder that we make.
func (f *Facts) PullSecretName() string {
	if ref := f.ControlPlane.Spec.Config.PullSecretRef; ref != nil {
		return ref.Name
	}
	return f.ControlPlane.Name + placeholderSuffix
}

// ConfigMapsOf names the ConfigMaps that the configuration refers to.
func ConfigMapsOf(cp *controlplanev1.OpenshiftAssistedControlPlane) []string {
	var names []string
	for _, ref := range cp.Spec.Config.ManifestsConfigMapRefs {
		names = append(names, ref.Name)
	}
	if ref := cp.Spec.Config.ImageRegistryRef; ref != nil {
		names = append(names, ref.Name)
	}
	return names
}
