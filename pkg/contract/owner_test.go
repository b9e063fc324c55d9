package contract

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func owner() Owner {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c", UID: "uid-of-now"}}
	cluster.Spec.ControlPlaneRef.Name = "cp"
	return OwnerOf(cluster)
}

func TestClaimOf(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(o *Owner, obj *metav1.ObjectMeta)
		claim  Claim
		whose  string
	}{
		"ours": {func(*Owner, *metav1.ObjectMeta) {}, Ours, ""},
		"an object of an earlier release, which records no UID": {func(_ *Owner, obj *metav1.ObjectMeta) { obj.Annotations = nil }, Ours, ""},
		"the labels were removed":                               {func(_ *Owner, obj *metav1.ObjectMeta) { obj.Labels = nil }, Unclaimed, ""},
		"one label was removed": {
			func(_ *Owner, obj *metav1.ObjectMeta) { delete(obj.Labels, clusterv1.ClusterNameLabel) }, Unclaimed, "",
		},
		"of another Cluster": {
			func(_ *Owner, obj *metav1.ObjectMeta) { obj.Labels[clusterv1.ClusterNameLabel] = "other" }, Foreign, "Cluster other",
		},
		"of another control plane": {
			func(_ *Owner, obj *metav1.ObjectMeta) { obj.Labels[clusterv1.MachineControlPlaneNameLabel] = "other" }, Foreign, "control plane other",
		},
		"of another namespace": {
			func(_ *Owner, obj *metav1.ObjectMeta) { obj.Namespace = "tenant" }, Foreign, "another namespace",
		},
		"of a former Cluster of the same name": {
			func(_ *Owner, obj *metav1.ObjectMeta) { obj.Annotations[ClusterUIDAnnotation] = "former" }, Foreign, "a former Cluster c (UID former)",
		},
		"of a former Cluster, without labels": {func(_ *Owner, obj *metav1.ObjectMeta) {
			obj.Labels, obj.Annotations[ClusterUIDAnnotation] = nil, "former"
		}, Foreign, "a former Cluster c (UID former)"},
		"of the same Cluster before it was moved": {func(o *Owner, obj *metav1.ObjectMeta) {
			o.Former, obj.Annotations[ClusterUIDAnnotation] = []types.UID{"before"}, "before"
		}, Ours, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			g, o := NewWithT(t), owner()
			obj := &metav1.ObjectMeta{
				Namespace:   "lab",
				Name:        "cp",
				Labels:      o.Labels(),
				Annotations: map[string]string{ClusterUIDAnnotation: "uid-of-now"},
			}
			g.Expect(o.Marked(obj)).To(BeTrue())
			tc.change(&o, obj)
			g.Expect(o.ClaimOf(obj)).To(Equal(tc.claim))
			g.Expect(o.Marked(obj)).To(Equal(situation == "ours"))
			if tc.claim == Foreign {
				g.Expect(o.OwnerName(obj)).To(Equal(tc.whose))
				g.Expect(o.Blocker("ClusterDeployment", obj)).
					To(ContainSubstring("ClusterDeployment cp does not belong to Cluster c but to " + tc.whose))
			}
			if tc.claim == Ours {
				g.Expect(o.Blocker("ClusterDeployment", obj)).To(BeEmpty())
			} else {
				g.Expect(o.Blocker("ClusterDeployment", obj)).NotTo(BeEmpty())
			}
		})
	}
}

func TestObjectBeingDeletedBlocksBinding(t *testing.T) {
	g, o := NewWithT(t), owner()
	now := metav1.Now()
	obj := &metav1.ObjectMeta{Namespace: "lab", Name: "cp", Labels: o.Labels(), DeletionTimestamp: &now}
	g.Expect(o.Blocker("AgentClusterInstall", obj)).To(ContainSubstring("AgentClusterInstall cp of Cluster c is being deleted"))
}

func TestRecordClusterUID(t *testing.T) {
	g, cp := NewWithT(t), &metav1.ObjectMeta{}
	RecordClusterUID(cp, "")
	g.Expect(cp.Annotations).To(BeNil())
	for _, uid := range []types.UID{"a", "b", "a"} {
		RecordClusterUID(cp, uid)
	}
	g.Expect(cp.Annotations).To(HaveKeyWithValue(ClusterUIDsAnnotation, "a,b"))
	cp.Annotations[ClusterUIDsAnnotation] = " a, ,b "
	g.Expect(ClusterUIDs(cp)).To(Equal([]types.UID{"a", "b"}), "a user can edit the annotation")
	cp.Annotations[ClusterUIDsAnnotation] = strings.Repeat("x,", 100)
	RecordClusterUID(cp, "now")
	g.Expect(ClusterUIDs(cp)).To(HaveLen(maxClusterUIDs))
	g.Expect(ClusterUIDs(cp)).To(ContainElement(types.UID("now")))
}
