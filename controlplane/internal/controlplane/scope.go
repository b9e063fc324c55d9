package controlplane

import (
	"cmp"

	"github.com/blang/semver/v4"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/provider"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// scope holds the facts of one reconcile: what was read, and what the phases found.
type scope struct {
	// before is the control plane as it was read, controlPlane as it will be.
	before, controlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// cluster is nil when the control plane has no owner, or the owner is gone. named is the Cluster whose name the control plane bears in a label,
	// where it has no owner.
	cluster, named *clusterv1.Cluster

	// machines are those of the control plane, workers all others of the Cluster, each sorted by name.
	machines, workers []*clusterv1.Machine
	// dayOneWorkers is the number of workers that the objects of the Cluster ask for.
	dayOneWorkers int32

	// imageSet is the ClusterImageSet that the configuration names, registeredSet the one that the AgentClusterInstall names. ownSets were made for this control
	// plane.
	imageSet, registeredSet *hivev1.ClusterImageSet
	ownSets                 []hivev1.ClusterImageSet

	deployment *hivev1.ClusterDeployment
	install    *hiveext.AgentClusterInstall
	// progress is what install says.
	progress assisted.Installation
	agents   []aiv1beta1.Agent

	// missingConfigMaps are referenced but do not exist.
	missingConfigMaps []string
	// userPullSecret, kubeconfigSecret and adminSecret are metadata; nil when they do not exist.
	userPullSecret, kubeconfigSecret, adminSecret *metav1.PartialObjectMetadata

	// Set by the phases.
	version        semver.Version
	pullSecretName string
	credentials    release.Credentials
	imageSetName   string
	releaseImage   string
	template       *unstructured.Unstructured
	workload       workload.Facts

	// blocked says what the installation or the creation of Machines waits for.
	blocked *outcome
	// releaseBlocked, kubeconfigBlocked and deletionBlocked say it for one condition each; scaleDownBlocked is a message.
	releaseBlocked, kubeconfigBlocked, deletionBlocked *outcome
	scaleDownBlocked                                   string
	// registered is true when assisted-service was given what the spec asks for; it is not set any more once the installation has begun.
	registered bool
	// machineFailure is why a Machine could not be made, machinesBlocked why the existing ones do not follow their template.
	machineFailure  error
	machinesBlocked *outcome
	// renewalFailure is why the published kubeconfig could not be renewed.
	renewalFailure error

	again reconcile.Again
	// released is true once the finalizer is gone: there is no status to write any more.
	released bool
}

// outcome is why something is not done, as a condition reports it.
type outcome struct{ reason, message string }

func (s *scope) block(reason, message string) {
	s.blocked = &outcome{reason, message}
}

func (s *scope) deleting() bool { return !s.controlPlane.DeletionTimestamp.IsZero() }

// moved tells whether clusterctl move deletes the object here because it lives elsewhere now.
func (s *scope) moved() bool {
	_, move := s.controlPlane.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return s.deleting() && move
}

func (s *scope) paused() bool {
	return s.pausedCondition().Status == metav1.ConditionTrue
}

// pausedCondition considers the Cluster also where the owner reference is missing: a paused cluster is one that somebody works on.
func (s *scope) pausedCondition() metav1.Condition {
	return provider.PausedCondition(cmp.Or(s.cluster, s.named), s.controlPlane)
}

// clusterName is the name of the Cluster, also when that is gone.
func (s *scope) clusterName() string {
	if s.cluster != nil {
		return s.cluster.Name
	}
	for _, ref := range s.controlPlane.OwnerReferences {
		if ref.Kind == "Cluster" {
			return ref.Name
		}
	}
	return s.controlPlane.Labels[clusterv1.ClusterNameLabel]
}

func (s *scope) clusterKey() client.ObjectKey {
	return client.ObjectKey{Namespace: s.controlPlane.Namespace, Name: s.clusterName()}
}

// replicas is the wanted number of Machines.
func (s *scope) replicas() int32 { return ptr.Deref(s.controlPlane.Spec.Replicas, 1) }

// labels are those of the objects that are made for this control plane.
func (s *scope) labels() map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel:             s.clusterName(),
		clusterv1.MachineControlPlaneNameLabel: format.MustFormatValue(s.controlPlane.Name),
	}
}

// ours tells whether an object was made for this control plane.
func (s *scope) ours(obj client.Object) bool {
	for key, value := range s.labels() {
		if obj.GetLabels()[key] != value {
			return false
		}
	}
	return true
}

// workerReplicas is the number of workers that are installed with the control plane: that of the AgentClusterInstall once the installation has begun.
func (s *scope) workerReplicas() int32 {
	if s.begun() && s.install != nil {
		return int32(s.install.Spec.ProvisionRequirements.WorkerAgents) //nolint:gosec // a number of hosts
	}
	if s.replicas() == 1 {
		// assisted-service installs a single-node cluster alone; its workers join afterwards.
		return 0
	}
	return s.dayOneWorkers
}
