package controlplane

import (
	"context"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
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

func TestWhatIsPassedOnIsNotFoughtOver(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.reconcile()
	h.say("north")
	h.reconcile()
	h.reconcile()
	takeBack := func() {
		for _, part := range h.parts() {
			part.GetLabels()["cluster.open-cluster-management.io/backup"] = "theirs"
			h.Expect(h.Update(t.Context(), part)).To(Succeed())
		}
	}
	told := func(value string) {
		t.Helper()
		for _, part := range h.parts() {
			h.Expect(part.GetLabels()).To(HaveKeyWithValue("cluster.open-cluster-management.io/backup", value), "%T", part)
		}
	}
	for _, wait := range []time.Duration{initialRequestDelay, 2 * initialRequestDelay, 4 * initialRequestDelay} {
		takeBack()
		result := h.reconcile()
		told("theirs")
		h.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", wait)), "nobody tells when it may be written again")
		now = now.Add(wait - time.Second)
		s := h.gather()
		_, err := h.r.passOn(t.Context(), s)
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(s.Again.Delay()).To(BeNumerically("~", time.Second, time.Millisecond), "what happens meanwhile does not put it off")
		told("theirs")
		now = now.Add(2 * time.Second)
		h.reconcile()
		told("north")
	}
	h.say("south")
	h.reconcile()
	told("south")
}

// What is made while labels are there has them at once: who watches it may decide by them what it sees first. What is
// passed on later is another writer's, which takes back what is said no more.
func TestWhatIsMadeHasWhatIsPassedOnAtOnce(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.say("north")
	h.reconcile()
	told := func(labels, annotations types.GomegaMatcher) {
		t.Helper()
		for _, part := range h.parts() {
			h.Expect(part.GetLabels()).To(labels, "%T", part)
			h.Expect(part.GetAnnotations()).To(annotations, "%T", part)
		}
	}
	first := func(value string) (types.GomegaMatcher, types.GomegaMatcher) {
		return HaveKeyWithValue("cluster.open-cluster-management.io/backup", value), HaveKeyWithValue("agent-install.openshift.io/any", value)
	}
	told(first("north"))
	h.Expect(h.parts()[1].GetAnnotations()).NotTo(HaveKeyWithValue(assisted.InstallConfigOverridesAnnotation, ContainSubstring("of the annotation")))
	for range 3 {
		h.reconcile()
		told(first("north"))
	}
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(BeEmpty())
	h.install() // from now on the registration is stated no more
	h.say("")
	h.reconcile()
	told(Not(HaveKey("cluster.open-cluster-management.io/backup")), Not(HaveKey("agent-install.openshift.io/any")))
}

// Nobody states yet what an object had from the first as long as it cannot be passed on: it stays.
func TestWhatIsMadeKeepsWhatCannotBePassedOnYet(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	metadata := h.r.writer.Metadata
	h.r.writer.Metadata = apply.New(interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewTooManyRequests("busy", 1)
		},
	}), writer.MetadataOwner)
	h.say("north")
	h.reconcile()
	for range 2 {
		_, err := h.r.Reconcile(t.Context(), h.request())
		h.Expect(err).To(MatchError(ContainSubstring("cannot pass labels and annotations on")))
		for _, part := range h.parts() {
			h.Expect(part.GetLabels()).To(HaveKeyWithValue("cluster.open-cluster-management.io/backup", "north"), "%T", part)
		}
	}
	h.r.writer.Metadata = metadata
	h.reconcile()
	h.say("")
	h.reconcile()
	for _, part := range h.parts() {
		h.Expect(part.GetLabels()).NotTo(HaveKey("cluster.open-cluster-management.io/backup"), "%T", part)
	}
}

func TestNothingIsPassedOnToWhatIsBeingDeleted(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	for _, part := range h.parts() {
		part.SetFinalizers([]string{"lab/held"})
		h.Expect(h.Update(t.Context(), part)).To(Succeed())
		h.Expect(h.Delete(t.Context(), part)).To(Succeed())
	}
	h.say("north")
	h.reconcile()
	for _, part := range h.parts() {
		h.Expect(part.GetDeletionTimestamp()).NotTo(BeNil())
		h.Expect(part.GetLabels()).NotTo(HaveKey("cluster.open-cluster-management.io/backup"), "%T", part)
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
		Manager: string(writer.MetadataOwner), Operation: metav1.ManagedFieldsOperationApply,
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
