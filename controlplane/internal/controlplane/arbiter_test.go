package controlplane

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
)

// worldWithArbiter is a hub in which a control plane of two masters and an arbiter can be installed; the template of
// the arbiter's infra machine is not there yet.
func worldWithArbiter() []client.Object {
	return world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Version = "v4.20.1"
		cp.Spec.Arbiter = &controlplanev1.ArbiterSpec{}
		cp.Spec.Arbiter.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGV.Group, Kind: "Metal3MachineTemplate", Name: "small"}
	})
}

func smallTemplate() *unstructured.Unstructured {
	template := infraTemplate()
	template.SetName("small")
	template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"size": "small"}}}
	return template
}

// theArbiter is the one Machine whose config says so, and which is marked as such.
func (h *hub) theArbiter() *clusterv1.Machine {
	h.t.Helper()
	var found []clusterv1.Machine
	for _, m := range h.machines() {
		config := &bootstrapv1.OpenshiftAssistedConfig{}
		h.get(m.Spec.Bootstrap.ConfigRef.Name, config)
		if config.Spec.Role == bootstrapv1.HostRoleArbiter {
			found = append(found, m)
		}
	}
	h.Expect(found).To(HaveLen(1))
	h.Expect(found[0].Labels).To(HaveKey(bootstrapv1.ArbiterLabel))
	return &found[0]
}

func TestTwoMastersAndAnArbiter(t *testing.T) {
	h := newHub(t, worldWithArbiter()...)
	h.reconcile()
	h.Expect(h.machines()).To(BeEmpty(), "assisted-service would not install the masters alone")
	h.Expect(h.condition(controlplanev1.MachinesCreatedCondition)).To(And(HaveField("Reason", controlplanev1.InfraTemplateMissingReason),
		HaveField("Message", ContainSubstring("Metal3MachineTemplate small does not exist: create it, or name another in arbiter.machineTemplate.spec.infrastructureRef"))))

	h.Expect(h.Create(t.Context(), smallTemplate())).To(Succeed())
	h.Expect(h.r.ofTemplate(t.Context(), smallTemplate())).To(ConsistOf(h.request()), "it is waited for")
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	arbiter := h.theArbiter()
	for _, m := range h.machines() {
		infra := smallTemplate()
		infra.SetKind("Metal3Machine")
		h.get(m.Name, infra)
		_, small, err := unstructured.NestedString(infra.Object, "spec", "size")
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(small).To(Equal(m.Name == arbiter.Name), "each from its own template")
	}
	for _, name := range []string{"hosts", "small"} {
		template := infraTemplate()
		h.get(name, template)
		h.Expect(template.GetOwnerReferences()).To(HaveExactElements(HaveField("Kind", "Cluster")), "clusterctl move takes along what a Cluster owns")
	}
	install := &hiveext.AgentClusterInstall{}
	h.get("c1", install)
	h.Expect(install.Spec.ProvisionRequirements).To(Equal(hiveext.ProvisionRequirements{ControlPlaneAgents: 2, ArbiterAgents: 1}))
}

// The bootstrap provider takes two masters without an arbiter for two nodes with fencing; where the hub drops the
// number of arbiters, nothing else tells.
func TestThatThereIsAnArbiterIsTold(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	h.Expect(h.aci().Annotations).To(HaveKey(bootstrapv1.ClusterWithArbiterAnnotation), "from the beginning")
	h.install()
	install := h.aci()
	delete(install.Annotations, bootstrapv1.ClusterWithArbiterAnnotation) // as one that an earlier version made
	h.Expect(h.Update(t.Context(), install)).To(Succeed())
	h.reconcile()
	h.Expect(h.aci().Annotations).To(HaveKey(bootstrapv1.ClusterWithArbiterAnnotation))
	h.reconcile()
	h.writes = nil
	h.reconcile()
	h.Expect(h.writes).To(BeEmpty())

	install = h.aci()
	delete(install.Annotations, bootstrapv1.ClusterWithArbiterAnnotation)
	install.Labels[clusterv1.ClusterNameLabel] = "another"
	h.Expect(h.Update(t.Context(), install)).To(Succeed())
	h.reconcile()
	h.Expect(h.aci().Annotations).NotTo(HaveKey(bootstrapv1.ClusterWithArbiterAnnotation), "that is none of ours")
}

func TestAnImportedClusterTellsOfItsArbiter(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.install()
	h.workloads.facts.ReleaseImage = digest
	h.forget()
	h.reconcile()
	h.Expect(h.aci().Annotations).To(And(HaveKey(facts.ImportedAnnotation), HaveKey(bootstrapv1.ClusterWithArbiterAnnotation)))
}

func TestOthersTellOfNoArbiter(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.reconcile()
	h.Expect(h.aci().Annotations).NotTo(HaveKey(bootstrapv1.ClusterWithArbiterAnnotation))
}

func TestADeletedArbiterIsReplacedByAnArbiter(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...)
	h.reconcile()
	gone := h.theArbiter()
	h.Expect(h.Delete(t.Context(), gone)).To(Succeed())
	infra := smallTemplate()
	infra.SetKind("Metal3Machine")
	infra.SetName(gone.Name)
	h.Expect(h.Delete(t.Context(), infra)).To(Succeed())
	h.withTime().reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.theArbiter().Name).To(Equal(gone.Name), "of one name there are never two")
}

func TestACacheThatLagsMakesNoSecondArbiter(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...)
	h.reconcile()
	name := h.theArbiter().Name
	h.cached.Client = forgetful{h.Client}
	h.withTime().reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.theArbiter().Name).To(Equal(name))
}

// forgetful lists no Machines, as a cache that is behind all of them.
type forgetful struct{ client.Client }

func (f forgetful) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, machines := list.(*clusterv1.MachineList); machines {
		return nil
	}
	return f.Client.List(ctx, list, options...)
}

// One that somebody adopted is too many: a master goes, for there are three, and one arbiter, even if it is marked.
func TestTheArbiterIsNeverTooMany(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...)
	h.reconcile()
	arbiter := h.theArbiter()
	arbiter.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
	h.Expect(h.Update(t.Context(), arbiter)).To(Succeed())
	adopted := h.machines()[0].DeepCopy()
	adopted.Name, adopted.UID, adopted.ResourceVersion, adopted.CreationTimestamp = "adopted", "adopted-uid", "", metav1.Now()
	delete(adopted.Labels, bootstrapv1.ArbiterLabel)
	delete(adopted.Annotations, clusterv1.DeleteMachineAnnotation)
	h.Expect(h.Create(t.Context(), adopted)).To(Succeed())
	h.withTime().reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.theArbiter().Name).To(Equal(arbiter.Name))
}

// move makes the control plane another one, with another UID, as clusterctl move does.
func (h *hub) move() {
	h.t.Helper()
	cp := h.controlPlane()
	cp.Finalizers = nil
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
	h.Expect(h.Delete(h.t.Context(), cp)).To(Succeed())
	cp.UID, cp.ResourceVersion = "uid-there", ""
	h.Expect(h.Create(h.t.Context(), cp)).To(Succeed())
	for _, m := range h.machines() {
		for i := range m.OwnerReferences {
			m.OwnerReferences[i].UID = cp.UID
		}
		h.Expect(h.Update(h.t.Context(), &m)).To(Succeed())
	}
}

// Neither the name, which follows from another UID, nor a label that somebody stripped is needed to know the arbiter.
func TestAfterAMoveNoSecondArbiterIsMade(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	arbiter := h.theArbiter()
	h.move()
	h.get(arbiter.Name, arbiter)
	delete(arbiter.Labels, bootstrapv1.ArbiterLabel)
	h.Expect(h.Update(t.Context(), arbiter)).To(Succeed())
	for _, m := range h.machines() {
		if m.Name != arbiter.Name {
			h.Expect(h.Delete(t.Context(), &m)).To(Succeed())
			break
		}
	}
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.theArbiter().Name).To(Equal(arbiter.Name), "and it has its label again")
}

func TestAMasterThatSomebodyLabelsStaysAMaster(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	arbiter := h.theArbiter()
	for _, m := range h.machines() {
		m.Labels[bootstrapv1.ArbiterLabel] = ""
		h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	}
	h.Expect(h.Delete(t.Context(), arbiter)).To(Succeed())
	infra := smallTemplate()
	infra.SetKind("Metal3Machine")
	infra.SetName(arbiter.Name)
	h.Expect(h.Delete(t.Context(), infra)).To(Succeed())
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.theArbiter().Name).To(Equal(arbiter.Name))
}

// undeclared is what the API server answers where the CustomResourceDefinition of the kind does not have a field.
func undeclared(kind, field string) error {
	return errors.New("failed to create typed patch object (lab/m; some.group/v1, Kind=" + kind + "): ." + field + ": field not declared in schema")
}

// No host is touched before a bootstrap provider is there that knows what an arbiter is; it would make a master of it.
func TestABootstrapProviderThatKnowsNoArbiters(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.applyFails, h.failing = undeclared("OpenshiftAssistedConfig", "spec.role"), `"role":"Arbiter"`
	h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", writer.RefusedRetry/2), BeNumerically("<=", writer.RefusedRetry)), "it is tried again, and not at once")
	h.Expect(h.machines()).To(BeEmpty(), "no masters either, which would wait for it")
	infra := smallTemplate()
	infra.SetKind("Metal3MachineList")
	list := &unstructured.UnstructuredList{Object: infra.Object}
	h.Expect(h.List(t.Context(), list)).To(Succeed())
	h.Expect(list.Items).To(BeEmpty(), "nor anything for Metal3 to take up")
	h.Expect(h.condition(controlplanev1.MachinesCreatedCondition)).To(And(HaveField("Reason", controlplanev1.BootstrapProviderOutdatedReason),
		HaveField("Message", ContainSubstring("the bootstrap provider is older than the control plane provider: its OpenshiftAssistedConfigs have no spec.role. Upgrade it"))))

	h.applyFails = nil
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.theArbiter()

	h.applyFails, h.failing = undeclared("Machine", "spec.taints"), `"kind":"Machine"`
	h.Expect(h.Delete(t.Context(), h.theArbiter())).To(Succeed())
	h.reconcile()
	h.Expect(h.condition(controlplanev1.MachinesCreatedCondition)).To(HaveField("Reason", controlplanev1.InvalidConfigurationReason), "Machines are Cluster API's")
}

func TestAConfigOfAnotherRoleIsNotTaken(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	gone := h.theArbiter()
	h.Expect(h.Delete(t.Context(), gone)).To(Succeed())
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	h.get(gone.Name, config)
	config.Spec.Role = "" // as one that was made before there was the field
	h.Expect(h.Update(t.Context(), config)).To(Succeed())
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(2))
	h.Expect(h.condition(controlplanev1.MachinesCreatedCondition)).To(And(HaveField("Reason", controlplanev1.MachineCreationFailedReason), HaveField("Message", ContainSubstring("no host is wiped"))))
	h.Expect(h.Delete(t.Context(), config)).To(Succeed())
	h.reconcile()
	h.Expect(h.theArbiter().Name).To(Equal(gone.Name))
}
