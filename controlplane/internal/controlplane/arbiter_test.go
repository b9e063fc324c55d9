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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// worldWithArbiter returns a hub in which a control plane of two masters and an arbiter can be installed. The
// template of the arbiter's infra machine does not exist yet.
func worldWithArbiter() []client.Object {
	return world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.DistributionVersion = "v4.20.1"
		cp.Spec.Arbiter = &controlplanev1.ArbiterSpec{}
		cp.Spec.Arbiter.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: infraGV.Group, Kind: "Metal3MachineTemplate", Name: "small",
		}
	})
}

func smallTemplate() *unstructured.Unstructured {
	template := infraTemplate()
	template.SetName("small")
	template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"size": "small"}}}
	return template
}

// arbiter returns the one Machine that its config and its label mark as arbiter.
func (h *hub) arbiter() *clusterv1.Machine {
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
	h.Expect(h.condition(controlplanev1.InstalledCondition)).To(And(HaveField("Reason", controlplanev1.InfraTemplateMissingReason),
		HaveField(
			"Message",
			ContainSubstring(
				"Metal3MachineTemplate small does not exist: create it, or name another in arbiter.machineTemplate.spec.infrastructureRef",
			),
		)))

	h.Expect(h.Create(t.Context(), smallTemplate())).To(Succeed())
	h.Expect(h.r.ofTemplate(t.Context(), smallTemplate())).To(ConsistOf(h.request()), "the control plane waits for the template")
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	arbiter := h.arbiter()
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
		h.Expect(template.GetOwnerReferences()).To(
			HaveExactElements(HaveField("Kind", "Cluster")), "clusterctl move moves the objects that a Cluster owns",
		)
	}
	install := &hiveext.AgentClusterInstall{}
	h.get("c1", install)
	h.Expect(install.Spec.ProvisionRequirements).To(Equal(hiveext.ProvisionRequirements{ControlPlaneAgents: 2, ArbiterAgents: 1}))
}

// The bootstrap provider takes two masters without an arbiter for two nodes with fencing. If the hub drops
// the number of arbiters, only the annotation shows the difference.
func TestArbiterIsMarkedOnTheAgentClusterInstall(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	h.Expect(h.aci().Annotations).To(HaveKey(bootstrapv1.ClusterWithArbiterAnnotation), "from the creation on")
	h.install()
	install := h.aci()
	delete(install.Annotations, bootstrapv1.ClusterWithArbiterAnnotation) // as if an earlier version had created it
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
	h.Expect(h.aci().Annotations).NotTo(HaveKey(bootstrapv1.ClusterWithArbiterAnnotation), "that AgentClusterInstall is foreign")
}

func TestArbiterOfAnImportedClusterIsMarked(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.install()
	h.workloads.facts.ReleaseImage = digest
	h.forget()
	h.reconcile()
	h.Expect(h.aci().Annotations).To(And(HaveKey(facts.ImportedAnnotation), HaveKey(bootstrapv1.ClusterWithArbiterAnnotation)))
}

func TestClusterWithoutArbiterIsNotMarked(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.reconcile()
	h.Expect(h.aci().Annotations).NotTo(HaveKey(bootstrapv1.ClusterWithArbiterAnnotation))
}

func TestDeletedArbiterIsReplacedByAnArbiter(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...)
	h.reconcile()
	deleted := h.arbiter()
	h.Expect(h.Delete(t.Context(), deleted)).To(Succeed())
	infra := smallTemplate()
	infra.SetKind("Metal3Machine")
	infra.SetName(deleted.Name)
	h.Expect(h.Delete(t.Context(), infra)).To(Succeed())
	h.withTime().reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.arbiter().Name).To(Equal(deleted.Name), "two Machines of one name never exist")
}

func TestNoSecondArbiterIsCreatedFromALaggingCache(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...)
	h.reconcile()
	name := h.arbiter().Name
	h.cached.Client = forgetful{h.Client}
	h.withTime().reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.arbiter().Name).To(Equal(name))
}

// forgetful lists no Machines, like a cache that lags behind the creation of all of them.
type forgetful struct{ client.Client }

func (f forgetful) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, machines := list.(*clusterv1.MachineList); machines {
		return nil
	}
	return f.Client.List(ctx, list, options...)
}

// A user adopts a fourth Machine. Then a master is deleted, because three masters and one arbiter exist, even
// if the arbiter has the mark for deletion.
func TestArbiterIsNeverSurplus(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...)
	h.reconcile()
	arbiter := h.arbiter()
	arbiter.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
	h.Expect(h.Update(t.Context(), arbiter)).To(Succeed())
	adopted := h.machines()[0].DeepCopy()
	adopted.Name, adopted.UID, adopted.ResourceVersion, adopted.CreationTimestamp = "adopted", "adopted-uid", "", metav1.Now()
	delete(adopted.Labels, bootstrapv1.ArbiterLabel)
	delete(adopted.Annotations, clusterv1.DeleteMachineAnnotation)
	h.Expect(h.Create(t.Context(), adopted)).To(Succeed())
	h.withTime().reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.Expect(h.arbiter().Name).To(Equal(arbiter.Name))
}

// move gives the control plane another UID, as clusterctl move does.
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

// The arbiter is recognized without its name, which depends on the former UID, and without the label that a
// client removed.
func TestNoSecondArbiterIsCreatedAfterAMove(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	arbiter := h.arbiter()
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
	h.Expect(h.arbiter().Name).To(Equal(arbiter.Name), "and it has its label again")
}

func TestMasterWithTheLabelOfAnArbiterStaysAMaster(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	arbiter := h.arbiter()
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
	h.Expect(h.arbiter().Name).To(Equal(arbiter.Name))
}

// undeclared returns the error of the API server if the CustomResourceDefinition of a kind does not have a
// field.
func undeclared(kind, field string) error {
	return errors.New(
		"failed to create typed patch object (lab/m; some.group/v1, Kind=" + kind + "): ." + field + ": field not declared in schema",
	)
}

// No host is changed before a bootstrap provider exists that supports arbiters. An older one would install a
// master.
func TestNoMachineIsCreatedWithABootstrapProviderWithoutArbiters(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.applyFails, h.failing = undeclared("OpenshiftAssistedConfig", "spec.role"), `"role":"Arbiter"`
	h.Expect(h.reconcile().RequeueAfter).To(
		And(BeNumerically(">", reconcile.RefusedDelay/2), BeNumerically("<=", reconcile.RefusedDelay)), "the creation is retried later",
	)
	h.Expect(h.machines()).To(BeEmpty(), "no masters either, which would wait for the arbiter")
	infra := smallTemplate()
	infra.SetKind("Metal3MachineList")
	list := &unstructured.UnstructuredList{Object: infra.Object}
	h.Expect(h.List(t.Context(), list)).To(Succeed())
	h.Expect(list.Items).To(BeEmpty(), "Metal3 gets no object either")
	h.Expect(h.condition(controlplanev1.InstalledCondition)).To(And(HaveField("Reason", controlplanev1.BootstrapProviderOutdatedReason),
		HaveField(
			"Message",
			ContainSubstring(
				"the bootstrap provider is older than the control plane provider: its OpenshiftAssistedConfigs have no spec.role. Upgrade it",
			),
		)))

	h.applyFails = nil
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.arbiter()

	h.applyFails, h.failing = undeclared("Machine", "spec.taints"), `"kind":"Machine"`
	h.Expect(h.Delete(t.Context(), h.arbiter())).To(Succeed())
	h.reconcile()
	h.Expect(h.condition(controlplanev1.MachinesCreatedCondition)).To(
		HaveField("Reason", controlplanev1.InvalidConfigurationReason), "the kind Machine belongs to Cluster API",
	)
}

func TestConfigOfAnotherRoleIsNotUsed(t *testing.T) {
	h := newHub(t, append(worldWithArbiter(), smallTemplate())...).withTime()
	h.reconcile()
	deleted := h.arbiter()
	h.Expect(h.Delete(t.Context(), deleted)).To(Succeed())
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	h.get(deleted.Name, config)
	config.Spec.Role = "" // as if it had been created before the field existed
	h.Expect(h.Update(t.Context(), config)).To(Succeed())
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(2))
	h.Expect(h.condition(controlplanev1.InstalledCondition)).To(
		And(HaveField("Reason", controlplanev1.MachineCreationFailedReason), HaveField("Message", ContainSubstring("no host is wiped"))),
	)
	h.Expect(h.Delete(t.Context(), config)).To(Succeed())
	h.reconcile()
	h.Expect(h.arbiter().Name).To(Equal(deleted.Name))
}
