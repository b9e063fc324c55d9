package contract

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/labels/format"
)

const (
	// ClusterUIDAnnotation holds the UID of the Cluster of an object. The control plane provider writes it on
	// ClusterDeployments and AgentClusterInstalls, the bootstrap provider on InfraEnvs.
	ClusterUIDAnnotation = "controlplane.cluster.x-k8s.io/cluster-uid"
	// ClusterUIDsAnnotation holds, on a control plane, the UIDs that its Cluster has had, oldest first.
	// `clusterctl move` and a restore give a Cluster another UID, and keep the annotation.
	ClusterUIDsAnnotation = "controlplane.cluster.x-k8s.io/cluster-uids"
	// maxClusterUIDs bounds the number of recorded UIDs. Each move of a cluster adds one.
	maxClusterUIDs = 32
)

// Owner identifies the Cluster and the control plane that own objects of assisted-service.
type Owner struct {
	Namespace, Cluster, ControlPlane string
	// UID is the UID of the Cluster. Former are the UIDs that the same Cluster had before a move or a
	// restore. Only the control plane provider knows them.
	UID    types.UID
	Former []types.UID
}

// OwnerOf returns the owner of the objects of a Cluster in assisted-service.
func OwnerOf(cluster *clusterv1.Cluster) Owner {
	return Owner{Namespace: cluster.Namespace, Cluster: cluster.Name, ControlPlane: cluster.Spec.ControlPlaneRef.Name, UID: cluster.UID}
}

// Labels returns the labels of all objects of the owner.
func (o Owner) Labels() map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel:             o.Cluster,
		clusterv1.MachineControlPlaneNameLabel: format.MustFormatValue(o.ControlPlane),
	}
}

// Claim is whether an object belongs to an owner, judged by its metadata.
type Claim int

const (
	// Ours is an object of the owner.
	Ours Claim = iota
	// Unclaimed is an object that lacks a label of the owner and has none of another owner.
	Unclaimed
	// Foreign is an object of another owner, or of a former Cluster of the same name.
	Foreign
)

// ClaimOf returns whether an object belongs to the owner, by namespace, labels, and the recorded UID of the
// Cluster. Objects of earlier releases record no UID.
func (o Owner) ClaimOf(obj metav1.Object) Claim {
	claim := o.claimByLabels(obj)
	if o.FormerCluster(obj) != "" {
		return Foreign
	}
	return claim
}

func (o Owner) claimByLabels(obj metav1.Object) Claim {
	if obj.GetNamespace() != "" && obj.GetNamespace() != o.Namespace { // the namespace of cluster-scoped objects is empty
		return Foreign
	}
	claim := Ours
	for key, value := range o.Labels() {
		switch found, labeled := obj.GetLabels()[key]; {
		case labeled && found != value:
			return Foreign
		case !labeled:
			claim = Unclaimed
		}
	}
	return claim
}

// FormerCluster returns the UID that an object records of a former Cluster. A former Cluster has the name of
// the owner, and is not the same Cluster before a move or a restore. It returns "" for all other objects.
func (o Owner) FormerCluster(obj metav1.Object) types.UID {
	recorded := types.UID(obj.GetAnnotations()[ClusterUIDAnnotation])
	if recorded == o.UID || slices.Contains(o.Former, recorded) || o.claimByLabels(obj) == Foreign {
		return ""
	}
	return recorded
}

// OwnerName returns a description of the owner of a foreign object.
func (o Owner) OwnerName(obj metav1.Object) string {
	if cluster := obj.GetLabels()[clusterv1.ClusterNameLabel]; cluster != "" && cluster != o.Cluster {
		return "Cluster " + cluster
	}
	const key = clusterv1.MachineControlPlaneNameLabel
	if controlPlane := obj.GetLabels()[key]; controlPlane != "" && controlPlane != o.Labels()[key] {
		return "control plane " + controlPlane
	}
	if uid := o.FormerCluster(obj); uid != "" {
		return fmt.Sprintf("a former Cluster %s (UID %s)", o.Cluster, uid)
	}
	return "another namespace"
}

// Marked reports whether an object has all labels and annotations of the owner.
func (o Owner) Marked(obj metav1.Object) bool {
	return o.ClaimOf(obj) == Ours && (o.UID == "" || obj.GetAnnotations()[ClusterUIDAnnotation] == string(o.UID))
}

// Mark adds the labels of the owner to an object, and the UID of the Cluster if it is known.
func (o Owner) Mark(obj metav1.Object) {
	obj.SetLabels(labels.Merge(obj.GetLabels(), o.Labels()))
	if o.UID != "" {
		annotations.AddAnnotations(obj, map[string]string{ClusterUIDAnnotation: string(o.UID)})
	}
}

// Blocker returns why no host may be bound to the cluster of an object, or "". The object belongs to another
// owner, is being deleted, or lacks its labels.
func (o Owner) Blocker(kind string, obj metav1.Object) string {
	seeControlPlane := fmt.Sprintf("see condition Installed of OpenshiftAssistedControlPlane %s", o.ControlPlane)
	name := fmt.Sprintf("%s %s", kind, obj.GetName())
	switch claim := o.ClaimOf(obj); {
	case claim == Foreign:
		return fmt.Sprintf("%s does not belong to Cluster %s but to %s, and no host is bound to it. "+
			"Give the control plane of Cluster %s another name, or %s", name, o.Cluster, o.OwnerName(obj), o.Cluster, seeControlPlane)
	case !obj.GetDeletionTimestamp().IsZero():
		return fmt.Sprintf(
			"%s of Cluster %s is being deleted, and no host is bound to it. Waiting for the control plane provider to recreate it, %s",
			name,
			o.Cluster,
			seeControlPlane,
		)
	case claim == Unclaimed:
		return fmt.Sprintf(
			"%s lacks the labels of Cluster %s. Waiting for the control plane provider to restore them, %s",
			name,
			o.Cluster,
			seeControlPlane,
		)
	}
	return ""
}

// ClusterUIDs returns the UIDs of its Cluster that a control plane records.
func ClusterUIDs(controlPlane metav1.Object) []types.UID {
	var uids []types.UID
	for uid := range strings.SplitSeq(controlPlane.GetAnnotations()[ClusterUIDsAnnotation], ",") {
		if uid = strings.TrimSpace(uid); uid != "" {
			uids = append(uids, types.UID(uid))
		}
	}
	return uids
}

// RecordClusterUID adds the UID of a Cluster to those that its control plane records, and drops the oldest
// beyond the limit.
func RecordClusterUID(controlPlane metav1.Object, uid types.UID) {
	uids := ClusterUIDs(controlPlane)
	if uid == "" || slices.Contains(uids, uid) {
		return
	}
	uids = append(uids, uid)
	recorded := make([]string, 0, len(uids))
	for _, uid := range uids[max(0, len(uids)-maxClusterUIDs):] {
		recorded = append(recorded, string(uid))
	}
	annotations.AddAnnotations(controlPlane, map[string]string{ClusterUIDsAnnotation: strings.Join(recorded, ",")})
}
