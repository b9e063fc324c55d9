package controlplane

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// parts reads what stands for the control plane in assisted-service, with all that is on it.
func (h *hub) parts() []client.Object {
	deployment, install := &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}
	h.get("c1", deployment)
	h.get("c1", install)
	return []client.Object{deployment, install}
}

// say sets one label and one annotation of the control plane; empty: none.
func (h *hub) say(value string) {
	h.t.Helper()
	cp := h.controlPlane()
	if cp.Labels == nil {
		cp.Labels = map[string]string{}
	}
	if cp.Annotations == nil {
		cp.Annotations = map[string]string{}
	}
	cp.Labels["cluster.open-cluster-management.io/backup"], cp.Annotations["agent-install.openshift.io/any"] = value, value
	if value == "" {
		delete(cp.Labels, "cluster.open-cluster-management.io/backup")
		delete(cp.Annotations, "agent-install.openshift.io/any")
	}
	cp.Annotations[assisted.InstallConfigOverridesAnnotation] = `{"fips":"of the annotation"}`
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

func TestLabelsAndAnnotationsArePassedOn(t *testing.T) {
	for name, prepare := range map[string]func(h *hub){
		"before the installation":   func(*hub) {},
		"when it is long installed": func(h *hub) { h.install(); h.reconcile() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			prepare(h)
			before := h.parts()
			for _, value := range []string{"north", "south"} {
				h.say(value)
				h.reconcile()
				for _, part := range h.parts() {
					h.Expect(part.GetLabels()).To(HaveKeyWithValue("cluster.open-cluster-management.io/backup", value), "%T", part)
					h.Expect(part.GetAnnotations()).To(HaveKeyWithValue("agent-install.openshift.io/any", value), "%T", part)
				}
			}
			h.reconcile()
			h.Expect(h.writes).NotTo(BeEmpty())
			h.writes = nil
			h.reconcile()
			h.Expect(h.writes).To(BeEmpty(), "nothing is written twice")
			h.r = New(h.r.Options)
			h.reconcile()
			h.Expect(h.writes).To(BeEmpty(), "not by another process either")

			h.say("")
			h.reconcile()
			for i, part := range h.parts() {
				h.Expect(part.GetLabels()).To(Equal(before[i].GetLabels()), "%T", part)
				h.Expect(part.GetAnnotations()).To(Equal(before[i].GetAnnotations()), "the annotation with the install-config is that of the fields: %T", part)
			}
		})
	}
}

func TestNothingIsPassedOnToWhatIsNotOurs(t *testing.T) {
	theirs := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1"}}
	h := newHub(t, append(world(nil), theirs)...).withTime()
	h.say("north")
	h.reconcile()
	h.reconcile()
	h.get("c1", theirs)
	h.Expect(theirs.Labels).To(BeEmpty())
	h.Expect(theirs.Annotations).To(BeEmpty())
}

// What is cached of what is passed on is what it is compared with: else it would be written with each look.
func TestWhatWasPassedOnIsCached(t *testing.T) {
	g := NewWithT(t)
	record := metav1.ManagedFieldsEntry{
		Manager: string(metadataOwner), Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:site":{},"f:gone":{}},"f:annotations":{"f:why":{}}}}`)},
	}
	burden := func(obj client.Object) {
		labels, annotations := maps.Clone(obj.GetLabels()), map[string]string{"why": "because", "other": "x"}
		labels["site"], labels["other"] = "north", "x"
		obj.SetLabels(labels)
		obj.SetAnnotations(annotations)
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{others, applied, record})
	}
	expect := func(kept client.Object, managed ...metav1.ManagedFieldsEntry) {
		g.Expect(kept.GetLabels()).To(And(HaveKeyWithValue("site", "north"), HaveLen(3)), "and ours")
		g.Expect(kept.GetAnnotations()).To(Equal(map[string]string{"why": "because"}))
		g.Expect(kept.GetManagedFields()).To(Equal(managed))
	}
	deployment := &hivev1.ClusterDeployment{ObjectMeta: identity()}
	burden(deployment)
	expect(trimDeployment(deployment.DeepCopy()), applied, record)
	deployment.Spec.Installed = true
	expect(trimDeployment(deployment.DeepCopy()), record)
	install := &hiveext.AgentClusterInstall{ObjectMeta: identity()}
	burden(install)
	expect(trimInstall(install.DeepCopy()), applied, record)
	install.Spec.ClusterMetadata = &hivev1.ClusterMetadata{}
	expect(trimInstall(install.DeepCopy()), record)
	install.ManagedFields[2].FieldsV1 = &metav1.FieldsV1{Raw: []byte("no record")}
	g.Expect(trimInstall(install).ManagedFields).To(BeEmpty())
}
