package desired

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// withArbiter returns a control plane of two masters and an arbiter.
func withArbiter() *facts.Facts {
	return factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Arbiter = &controlplanev1.ArbiterSpec{}
		cp.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "large"
	})
}

func arbiters(slots []Slot) (names []string) {
	for _, slot := range slots {
		if slot.Arbiter {
			names = append(names, slot.Name)
		}
	}
	return names
}

// Each slot keeps its role, for each set of Machines that a stale cache may show. There are never two
// arbiters, and each host is installed with the role of its template.
func TestSlotOfAnArbiterKeepsItsRole(t *testing.T) {
	g := NewWithT(t)
	f := withArbiter()
	all, err := FreeSlots(f, 3)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(3))
	g.Expect(arbiters(all)).To(HaveLen(1))
	for seen := range 1 << len(all) { // each set of Machines that a stale cache may show
		f.Machines = nil
		for i, slot := range all {
			if seen&(1<<i) != 0 {
				f.Machines = append(f.Machines, Machine(f, slot, &unstructured.Unstructured{Object: map[string]any{}}, "v4.20.1"))
			}
		}
		free, err := FreeSlots(f, 3-len(f.Machines))
		g.Expect(err).NotTo(HaveOccurred())
		for _, slot := range free {
			g.Expect(all).To(ContainElement(slot), "%b", seen)
		}
	}
}

func TestReplacementKeepsTheRole(t *testing.T) {
	f := withArbiter()
	all, err := FreeSlots(f, 3)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	arbiter := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "from-another-hub"}}
	going := arbiter.DeepCopy()
	going.DeletionTimestamp = ptr.To(metav1.Now())
	master := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "master-from-another-hub"}}
	moved := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "arbiter-without-role"}}
	withoutRole := configOf("")
	withoutRole.Labels = map[string]string{bootstrapv1.ArbiterLabel: ""}
	unseen := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: arbiters(all)[0]}}
	lost := unseen.DeepCopy()
	for situation, tc := range map[string]struct {
		machines []*clusterv1.Machine
		arbiter  bool
	}{
		"a master is missing":                                              {machines: []*clusterv1.Machine{arbiter, master}},
		"the arbiter is missing":                                           {machines: []*clusterv1.Machine{master, master}, arbiter: true},
		"a master is missing while the arbiter is being deleted":           {machines: []*clusterv1.Machine{going, master}},
		"a master is missing, and the config of the arbiter is not cached": {machines: []*clusterv1.Machine{unseen, master}},
		"a master is missing, and the config of the arbiter lost its role": {machines: []*clusterv1.Machine{lost, master}},
		"the same, for a moved Machine":                                    {machines: []*clusterv1.Machine{moved, master}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := withArbiter()
			f.Machines = tc.machines
			f.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{
				arbiter.Name: configOf(bootstrapv1.HostRoleArbiter),
				master.Name:  configOf(""),
				moved.Name:   withoutRole,
			}
			if tc.machines[0] == lost {
				f.Configs[lost.Name] = configOf("")
			}
			slots, err := FreeSlots(f, 1)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(slots).To(HaveExactElements(HaveField("Arbiter", tc.arbiter)))
		})
	}
}

func configOf(role bootstrapv1.HostRole) *bootstrapv1.OpenshiftAssistedConfig {
	return &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "m"},
		Spec:       bootstrapv1.OpenshiftAssistedConfigSpec{Role: role},
	}
}

func TestIsArbiter(t *testing.T) {
	all, err := FreeSlots(withArbiter(), 3)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	ofArbiter, ofMaster := all[0].Name, all[1].Name
	for situation, tc := range map[string]struct {
		name    string
		config  *bootstrapv1.OpenshiftAssistedConfig
		labeled bool
		without bool
		arbiter bool
	}{
		"the config has the role": {
			name: ofArbiter, config: configOf(bootstrapv1.HostRoleArbiter), labeled: true, arbiter: true,
		},
		"the config has the role, the label was removed": {
			name: ofArbiter, config: configOf(bootstrapv1.HostRoleArbiter), arbiter: true,
		},
		"the config has the role, after a move": {
			name: "moved", config: configOf(bootstrapv1.HostRoleArbiter), arbiter: true,
		},
		"the config has the role, the control plane has no arbiter": {
			name: "moved", config: configOf(bootstrapv1.HostRoleArbiter), without: true, arbiter: true,
		},
		"the config has another role than the label":           {name: ofMaster, config: configOf(""), labeled: true},
		"the config has another role, after a move":            {name: "moved", config: configOf(""), labeled: true},
		"the config has another role than the name":            {name: ofArbiter, config: configOf("")},
		"the config is not cached":                             {name: ofArbiter, arbiter: true},
		"the config of a master is not cached, with the label": {name: ofMaster, labeled: true},
		"the config is deleted, after a move":                  {name: "moved", labeled: true, arbiter: true},
		"nothing is known":                                     {name: "moved"},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), withArbiter()
			if tc.without {
				f.ControlPlane.Spec.Arbiter = nil
			}
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: tc.name}}
			if tc.labeled {
				m.Labels = map[string]string{bootstrapv1.ArbiterLabel: ""}
			}
			f.Machines, f.Configs = []*clusterv1.Machine{m}, map[string]*bootstrapv1.OpenshiftAssistedConfig{}
			if tc.config != nil {
				f.Configs[m.Name] = tc.config
			}
			g.Expect(IsArbiter(f, m)).To(Equal(tc.arbiter))
			if tc.arbiter { // the label is restored for users
				g.Expect(SyncedMachine(f, m, "").Labels).To(HaveKey(bootstrapv1.ArbiterLabel))
			} else {
				g.Expect(SyncedMachine(f, m, "").Labels).NotTo(HaveKey(bootstrapv1.ArbiterLabel))
			}
		})
	}
}

// The role never changes. A user has to resolve a contradicting label.
func TestRoleOfAConfigNeverChanges(t *testing.T) {
	g, f := NewWithT(t), withArbiter()
	g.Expect(Config(f, "m", true, nil).Spec.Role).To(Equal(bootstrapv1.HostRoleArbiter))
	g.Expect(Config(f, "m", false, nil).Spec.Role).To(BeEmpty())
	for _, role := range []bootstrapv1.HostRole{"", bootstrapv1.HostRoleArbiter} {
		for _, arbiter := range []bool{false, true} {
			g.Expect(Config(f, "m", arbiter, configOf(role)).Spec.Role).To(Equal(role))
		}
	}
	labeled := configOf("")
	labeled.Labels = map[string]string{bootstrapv1.ArbiterLabel: ""}
	g.Expect(Config(f, "m", false, labeled).Labels).To(HaveKey(bootstrapv1.ArbiterLabel))
	g.Expect(Config(f, "m", false, configOf("")).Labels).NotTo(HaveKey(bootstrapv1.ArbiterLabel), "a removed label is not restored")
}

func TestArbiterTemplates(t *testing.T) {
	g := NewWithT(t)
	f := withArbiter()
	cp := f.ControlPlane
	cp.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"of": "all", bootstrapv1.ArbiterLabel: "a user's own"}
	cp.Spec.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](600)
	cp.Spec.OpenshiftAssistedConfigSpec.SSHAuthorizedKey = "of all"
	g.Expect(facts.MachineTemplate(cp, true)).To(Equal(facts.MachineTemplate(cp, false)), "omitted fields are those of the masters")
	g.Expect(facts.ConfigSpec(cp, true)).To(Equal(facts.ConfigSpec(cp, false)))
	g.Expect(facts.InfraTemplatesOf(cp)).To(HaveExactElements(HaveField("Name", "large")))

	own := cp.Spec.Arbiter
	own.MachineTemplate.ObjectMeta.Annotations = map[string]string{"of": "the arbiter"}
	own.MachineTemplate.Spec.InfrastructureRef.Name = "small"
	own.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "a"}}
	own.OpenshiftAssistedConfigSpec = &bootstrapv1.OpenshiftAssistedConfigSpec{}
	g.Expect(facts.InfraTemplatesOf(cp)).To(HaveExactElements(HaveField("Name", "large"), HaveField("Name", "small")))
	slots, err := FreeSlots(f, 3)
	g.Expect(err).NotTo(HaveOccurred())
	infra := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	infra.SetKind("Metal3MachineTemplate")
	for _, slot := range slots {
		m := Machine(f, slot, infra, "v4.20.1")
		config := Config(f, slot.Name, slot.Arbiter, nil)
		cloned, err := InfraMachine(f, infra, slot)
		g.Expect(err).NotTo(HaveOccurred())
		for _, labels := range []map[string]string{
			m.Labels, config.Labels, cloned.GetLabels(), InfraMetadata(f, slot.Arbiter, infra).GetLabels(),
		} {
			_, marked := labels[bootstrapv1.ArbiterLabel]
			g.Expect(marked).To(Equal(slot.Arbiter))
			g.Expect(labels).To(HaveKeyWithValue(clusterv1.MachineControlPlaneLabel, ""), "an arbiter belongs to the control plane")
		}
		g.Expect(m.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(600)))
		if slot.Arbiter {
			g.Expect(m.Labels).NotTo(HaveKey("of"), "metadata is replaced as a whole")
			g.Expect(m.Annotations).To(HaveKeyWithValue("of", "the arbiter"))
			g.Expect(m.Spec.Taints).To(HaveLen(1))
			g.Expect(config.Spec.SSHAuthorizedKey).To(BeEmpty(), "an empty spec is used as well")
		} else {
			g.Expect(m.Labels).To(HaveKeyWithValue("of", "all"))
			g.Expect(m.Spec.Taints).To(BeEmpty())
			g.Expect(config.Spec.SSHAuthorizedKey).To(Equal("of all"))
		}
	}
}
