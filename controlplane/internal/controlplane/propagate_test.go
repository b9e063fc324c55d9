package controlplane

import (
	"context"
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

// registeredObjects reads the objects of the registration in assisted-service with all their metadata.
func (h *hub) registeredObjects() []client.Object {
	deployment, install := &hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}
	h.get("c1", deployment)
	h.get("c1", install)
	return []client.Object{deployment, install}
}

// setPropagated sets one label and one annotation of the control plane; "" removes them.
func (h *hub) setPropagated(value string) {
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

func TestLabelsAndAnnotationsArePropagated(t *testing.T) {
	for name, prepare := range map[string]func(h *hub){
		"before the installation": func(*hub) {},
		"after the installation":  func(h *hub) { h.install(); h.reconcile() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			prepare(h)
			before := h.registeredObjects()
			for _, value := range []string{"north", "south"} {
				h.setPropagated(value)
				h.reconcile()
				for _, part := range h.registeredObjects() {
					h.Expect(part.GetLabels()).To(HaveKeyWithValue("cluster.open-cluster-management.io/backup", value), "%T", part)
					h.Expect(part.GetAnnotations()).To(HaveKeyWithValue("agent-install.openshift.io/any", value), "%T", part)
				}
			}
			h.reconcile()
			h.Expect(h.writes).NotTo(BeEmpty())
			h.writes = nil
			h.reconcile()
			h.Expect(h.writes).To(BeEmpty(), "no write is repeated")
			h.r = New(h.r.Options)
			h.reconcile()
			h.Expect(h.writes).To(BeEmpty(), "another process does not repeat it either")

			h.setPropagated("")
			h.reconcile()
			for i, part := range h.registeredObjects() {
				h.Expect(part.GetLabels()).To(Equal(before[i].GetLabels()), "%T", part)
				h.Expect(part.GetAnnotations()).To(
					Equal(before[i].GetAnnotations()), "the annotation with the install-config comes from the fields: %T", part,
				)
			}
		})
	}
}

func TestPropagatedMetadataIsNotFoughtOver(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.reconcile()
	h.setPropagated("north")
	h.reconcile()
	h.reconcile()
	overwrite := func() {
		for _, part := range h.registeredObjects() {
			part.GetLabels()["cluster.open-cluster-management.io/backup"] = "theirs"
			h.Expect(h.Update(t.Context(), part)).To(Succeed())
		}
	}
	expectValue := func(value string) {
		t.Helper()
		for _, part := range h.registeredObjects() {
			h.Expect(part.GetLabels()).To(HaveKeyWithValue("cluster.open-cluster-management.io/backup", value), "%T", part)
		}
	}
	const first = 10 * time.Second
	for _, wait := range []time.Duration{first, 2 * first, 4 * first} {
		overwrite()
		result := h.reconcile()
		expectValue("theirs")
		h.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", wait)), "no event reports when the next write is allowed")
		now = now.Add(wait - time.Second)
		s := h.gather()
		_, err := h.r.metadata.Propagate(t.Context(), s)
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(s.Again.Delay()).To(BeNumerically("~", time.Second, time.Millisecond), "events do not postpone the write")
		expectValue("theirs")
		now = now.Add(2 * time.Second)
		h.reconcile()
		expectValue("north")
	}
	h.setPropagated("south")
	h.reconcile()
	expectValue("south")
}

// New objects have the labels from the beginning, because a controller may select them by label. Another
// writer propagates later changes, and removes what the control plane no longer states.
func TestNewObjectsHavePropagatedMetadataAtOnce(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.setPropagated("north")
	h.reconcile()
	expectValue := func(labels, annotations types.GomegaMatcher) {
		t.Helper()
		for _, part := range h.registeredObjects() {
			h.Expect(part.GetLabels()).To(labels, "%T", part)
			h.Expect(part.GetAnnotations()).To(annotations, "%T", part)
		}
	}
	first := func(value string) (types.GomegaMatcher, types.GomegaMatcher) {
		return HaveKeyWithValue("cluster.open-cluster-management.io/backup", value), HaveKeyWithValue("agent-install.openshift.io/any", value)
	}
	expectValue(first("north"))
	h.Expect(h.registeredObjects()[1].GetAnnotations()).NotTo(
		HaveKeyWithValue(assisted.InstallConfigOverridesAnnotation, ContainSubstring("of the annotation")),
	)
	for range 3 {
		h.reconcile()
		expectValue(first("north"))
	}
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(BeEmpty())
	h.install() // from now on the registration is not applied any more
	h.setPropagated("")
	h.reconcile()
	expectValue(Not(HaveKey("cluster.open-cluster-management.io/backup")), Not(HaveKey("agent-install.openshift.io/any")))
}

// As long as propagation fails, no writer owns the metadata that an object got at its creation: it stays.
func TestNewObjectsKeepMetadataWhilePropagationFails(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	metadata := h.r.writer.Metadata
	//nolint:forcetypeassert // the fake client
	h.r.writer.Metadata = apply.New(interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewTooManyRequests("busy", 1)
		},
	}), writer.MetadataOwner)
	h.setPropagated("north")
	h.reconcile()
	for range 2 {
		_, err := h.r.Reconcile(t.Context(), h.request())
		h.Expect(err).To(MatchError(ContainSubstring("cannot propagate labels and annotations")))
		for _, part := range h.registeredObjects() {
			h.Expect(part.GetLabels()).To(HaveKeyWithValue("cluster.open-cluster-management.io/backup", "north"), "%T", part)
		}
	}
	h.r.writer.Metadata = metadata
	h.reconcile()
	h.setPropagated("")
	h.reconcile()
	for _, part := range h.registeredObjects() {
		h.Expect(part.GetLabels()).NotTo(HaveKey("cluster.open-cluster-management.io/backup"), "%T", part)
	}
}

func TestDeletedObjectsGetNoPropagatedMetadata(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	for _, part := range h.registeredObjects() {
		part.SetFinalizers([]string{"lab/held"})
		h.Expect(h.Update(t.Context(), part)).To(Succeed())
		h.Expect(h.Delete(t.Context(), part)).To(Succeed())
	}
	h.setPropagated("north")
	h.reconcile()
	for _, part := range h.registeredObjects() {
		h.Expect(part.GetDeletionTimestamp()).NotTo(BeNil())
		h.Expect(part.GetLabels()).NotTo(HaveKey("cluster.open-cluster-management.io/backup"), "%T", part)
	}
}

func TestForeignObjectsGetNoPropagatedMetadata(t *testing.T) {
	theirs := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1"}}
	h := newHub(t, append(world(nil), theirs)...).withTime()
	h.setPropagated("north")
	h.reconcile()
	h.reconcile()
	h.get("c1", theirs)
	h.Expect(theirs.Labels).To(BeEmpty())
	h.Expect(theirs.Annotations).To(BeEmpty())
}
