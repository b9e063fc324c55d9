// Package facts holds what was read in one reconcile of a control plane, and conclusions from that alone. It
// has no client.
package facts

import (
	"cmp"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

const (
	// ControlPlaneKind is the kind that is reconciled.
	ControlPlaneKind = "OpenshiftAssistedControlPlane"
	// placeholderSuffix is the suffix of the pull secret of a cluster that needs none.
	placeholderSuffix = "-placeholder-pull-secret"
)

// Facts are the objects that were read in one reconcile. They are not changed afterwards: the findings of a
// phase are kept separately.
type Facts struct {
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// Cluster is nil if the control plane has no owner, or the owner is deleted. Named is the Cluster that a
	// label of the control plane names, if it has no owner.
	Cluster, Named *clusterv1.Cluster

	// Machines are the Machines of the control plane, Workers all others of the Cluster, each sorted by name.
	Machines, Workers []*clusterv1.Machine
	// Configs are the OpenshiftAssistedConfigs of the control plane's Machines and of the workers without a
	// Node, by name of the Machine.
	Configs map[string]*bootstrapv1.OpenshiftAssistedConfig
	// DayOneWorkers is the number of workers that the objects of the Cluster request.
	DayOneWorkers int32
	// MissingWorkers are those of them whose Machines do not exist.
	MissingWorkers []workers.Missing
	// Sets are the desired Machines of the MachineSets, by UID of the set.
	Sets map[types.UID]workers.MachineSet

	// ImageSet is the ClusterImageSet that the configuration names, RegisteredSet the one that the
	// AgentClusterInstall names. OwnSets were created for this control plane.
	ImageSet, RegisteredSet *hivev1.ClusterImageSet
	OwnSets                 []hivev1.ClusterImageSet

	Deployment *hivev1.ClusterDeployment
	Install    *hiveext.AgentClusterInstall
	// Progress is the state of Install, if it is ours.
	Progress assisted.Installation
	// Agents are the Agents of the control plane's namespace that are bound to its ClusterDeployment.
	// assisted-service also binds Agents of other namespaces, which are never hosts of our Machines.
	Agents []aiv1beta1.Agent
	// ForeignAgents are these Agents of other namespaces, as <namespace>/<name>, in a stable order.
	// assisted-service counts them as hosts of the cluster and installs their servers with it.
	ForeignAgents []string

	// RebootFailed are the UIDs of unhealthy Machines for whose hosts all reboots failed.
	RebootFailed sets.Set[types.UID]

	// MissingConfigMaps are referenced but do not exist.
	MissingConfigMaps []string
	// RegistryConfig is the metadata of the ConfigMap with the registry mirrors; nil if none is named, or it
	// does not exist.
	RegistryConfig *metav1.PartialObjectMetadata
	// PullSecret, Kubeconfig and AdminKubeconfig are the metadata of Secrets: the pull secret of the
	// installation, the published kubeconfig, and that of assisted-service. They are nil if they do not
	// exist.
	PullSecret, Kubeconfig, AdminKubeconfig *metav1.PartialObjectMetadata
	// Recovery is the metadata of the Secret with the copy of assisted-service's kubeconfig; nil if it does
	// not exist.
	Recovery *metav1.PartialObjectMetadata

	// Workload is the state of the cluster itself.
	Workload workload.State

	// InstallationState is the state of the installation, concluded from all of the above by package installationstate.
	InstallationState
}

// Deleting reports whether the control plane is being deleted.
func (f *Facts) Deleting() bool { return !f.ControlPlane.DeletionTimestamp.IsZero() }

// ClusterDeleting reports whether the whole cluster is being deleted: its etcd is no longer needed.
func (f *Facts) ClusterDeleting() bool {
	return f.Deleting() || f.Cluster != nil && !f.Cluster.DeletionTimestamp.IsZero()
}

// Moved reports whether clusterctl move deletes the object here because it exists on another hub now.
func (f *Facts) Moved() bool {
	_, move := f.ControlPlane.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return f.Deleting() && move
}

// Paused reports whether reconciliation is paused.
func (f *Facts) Paused() bool { return f.PausedCondition().Status == metav1.ConditionTrue }

// PausedCondition returns the condition Paused. It also considers the Cluster if the owner reference is
// missing, because a user works on a paused cluster.
func (f *Facts) PausedCondition() metav1.Condition {
	return contract.PausedCondition(cmp.Or(f.Cluster, f.Named), f.ControlPlane)
}

// ClusterName returns the name of the Cluster, even if that is deleted.
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

// ClusterKey returns namespace and name of the Cluster.
func (f *Facts) ClusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: f.ControlPlane.Namespace, Name: f.ClusterName()}
}

// Replicas returns the desired number of Machines.
func (f *Facts) Replicas() int32 { return ptr.Deref(f.ControlPlane.Spec.Replicas, 1) }

// Owner returns the owner of the objects of this control plane. A Cluster that was moved or restored has had
// other UIDs.
func (f *Facts) Owner() contract.Owner {
	return contract.Owner{
		Namespace: f.ControlPlane.Namespace, Cluster: f.ClusterName(), ControlPlane: f.ControlPlane.Name,
		UID: f.clusterUID(), Former: contract.ClusterUIDs(f.ControlPlane),
	}
}

// clusterUID returns the UID of the Cluster, even if that is deleted.
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

// Labels returns the labels of the objects that are created for this control plane.
func (f *Facts) Labels() map[string]string { return f.Owner().Labels() }

// Ours reports whether an object was created for this control plane.
func (f *Facts) Ours(obj metav1.Object) bool { return f.Owner().ClaimOf(obj) == contract.Ours }

// OwnerOf reports whether the control plane is an owner of an object.
func (f *Facts) OwnerOf(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == f.ControlPlane.UID })
}

// Controls reports whether a Machine belongs to the control plane, even if it lost its owner reference. A
// control plane that is being deleted only deletes Machines that it owns, because a user may have removed a
// Machine from it.
func (f *Facts) Controls(m *clusterv1.Machine) bool {
	if owner := metav1.GetControllerOf(m); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	return !f.Deleting() && controlPlane && f.Ours(m)
}

// WithoutOwner returns the Machines of the Cluster that have no owner and do not count as ours. A restore
// drops all owner references, and then only the labels of a Machine identify its owner. Cluster API makes the
// Cluster the owner of each Machine that a user creates. Machines that are being deleted need no owner.
func (f *Facts) WithoutOwner() []*clusterv1.Machine {
	var found []*clusterv1.Machine
	for _, m := range f.Workers {
		if len(m.OwnerReferences) == 0 && m.DeletionTimestamp.IsZero() {
			found = append(found, m)
		}
	}
	return found
}

// WorkerReplicas returns the number of workers that are installed with the control plane: that of the
// AgentClusterInstall after the start of the installation.
func (f *Facts) WorkerReplicas() int32 {
	if f.Begun && f.Install != nil {
		return int32(f.Install.Spec.ProvisionRequirements.WorkerAgents) //nolint:gosec // a number of hosts
	}
	if f.Replicas() == 1 || f.Fenced() {
		// assisted-service installs a single-node cluster alone; its workers join afterwards. A two-node
		// cluster with fencing has no workers.
		return 0
	}
	return f.DayOneWorkers
}

// PullSecretName returns the name of the pull secret of the installation: the user's, or the placeholder of
// this provider.
func (f *Facts) PullSecretName() string {
	if ref := f.ControlPlane.Spec.Config.PullSecretRef; ref != nil {
		return ref.Name
	}
	return f.ControlPlane.Name + placeholderSuffix
}

// ConfigMapsOf returns the names of the ConfigMaps that the configuration references.
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
