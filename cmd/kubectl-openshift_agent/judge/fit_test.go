package judge

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// host returns an available BareMetalHost.
func host(name string) metal3.Host {
	h := metal3.Host{ObjectMeta: named(name)}
	h.Status.Provisioning.State = "available"
	return h
}

// inventory returns a namespace with Machine m0, which waits for a host and needs 32Gi of memory.
func inventory(hosts ...metal3.Host) *snapshot.Inventory {
	infra := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	infra.SetNamespace("lab")
	infra.SetName("m0-infra")
	m := clusterv1.Machine{ObjectMeta: named("m0")}
	m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name = metal3.MachineKind, "m0-infra"
	m.Spec.Bootstrap.ConfigRef.Name = "m0-config"
	config := bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: named("m0-config")}
	config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinMemory: ptr.To(resource.MustParse("32Gi"))}
	return &snapshot.Inventory{
		Namespace: "lab", Hosts: hosts, InfraMachines: []unstructured.Unstructured{infra}, Machines: []clusterv1.Machine{m},
		Configs: []bootstrapv1.OpenshiftAssistedConfig{config},
	}
}

func TestHostsThatFit(t *testing.T) {
	g := NewWithT(t)
	used, small, same, broken := host("used"), host("small"), host("same"), host("broken")
	used.Spec.ConsumerRef = &metal3.Consumer{Kind: metal3.MachineKind, Namespace: "lab", Name: "other"}
	used.Spec.BootMACAddress, same.Spec.BootMACAddress = "52:54:00:00:00:01", "52:54:00:00:00:01"
	small.Status.HardwareDetails = &metal3.Hardware{RAMMebibytes: 16 << 10}
	broken.Status.ErrorMessage = "cannot reach https://admin:secret@192.0.2.7/redfish"
	fits := Fits(inventory(used, small, same, broken, host("b"), host("a")))
	g.Expect(fits).To(HaveLen(1))
	g.Expect(fits[0].Machine.String()).To(Equal("Machine lab/m0"))
	g.Expect(fits[0].Fitting).To(Equal([]string{"a", "b"}))
	g.Expect(fits[0].Others).To(Equal([]Mismatch{
		{"broken", "error: cannot reach https://192.0.2.7/..."},
		{"same", "BareMetalHost lab/used, which is used by a Metal3Machine, has the same boot MAC address"},
		{"small", "below spec.hostRequirements: 16Gi memory (needs 32Gi)"},
		{"used", "in use"},
	}))
	g.Expect(fits[0].HasHost()).To(BeTrue())
}

func TestHostNeedsTheConsentOfTheProvider(t *testing.T) {
	g := NewWithT(t)
	i := inventory(host("a"))
	i.Configs[0].Status.Conditions = withCondition(nil, cond(bootstrapv1.HostAvailableCondition, yes, bootstrapv1.HostsFitReason))
	g.Expect(Fits(i)[0].HasHost()).To(BeTrue())
	i.Configs[0].Status.Conditions = withCondition(nil, cond(bootstrapv1.HostAvailableCondition, no, bootstrapv1.TooFewHostsReason))
	fit := Fits(i)[0]
	g.Expect(fit.HasHost()).To(BeFalse(), "the provider knows of older Machines")
	g.Expect(fit.Reported).To(Equal(&Reported{Reason: bootstrapv1.TooFewHostsReason, Message: "message of " + bootstrapv1.TooFewHostsReason}))
}

func TestNoHostFits(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Fits(inventory())[0].HasHost()).To(BeFalse())

	i := inventory(host("a"))
	i.InfraMachines[0].Object["spec"] = map[string]any{"hostSelector": map[string]any{"matchLabels": map[string]any{"a b": "c"}}}
	g.Expect(Fits(i)[0].Problem).To(HavePrefix("Metal3 chooses no host until spec.hostSelector: "))
	g.Expect(Fits(i)[0].HasHost()).To(BeFalse())

	reserved := host("reserved")
	reserved.Status.Provisioning.State = "deprovisioning"
	reserved.Labels = map[string]string{metal3.NodeReuseLabel: "cp-ha"}
	i = inventory(host("a"), reserved)
	i.InfraMachines[0].SetLabels(map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "ha"})
	g.Expect(Fits(i)[0].Problem).To(HavePrefix("Metal3 waits for BareMetalHost reserved (deprovisioning)"))
	g.Expect(Fits(i)[0].HasHost()).To(BeFalse(), "Metal3 takes no other host meanwhile")
}

func TestOnlyMachinesThatWaitGetHosts(t *testing.T) {
	for situation, change := range map[string]func(*snapshot.Inventory){
		"Metal3 has chosen a host": func(i *snapshot.Inventory) {
			i.InfraMachines[0].SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/a"})
		},
		"a BareMetalHost names its Metal3Machine": func(i *snapshot.Inventory) {
			i.Hosts[0].Spec.ConsumerRef = &metal3.Consumer{Kind: metal3.MachineKind, Namespace: "lab", Name: "m0-infra"}
		},
		"its host is installed":            func(i *snapshot.Inventory) { i.Machines[0].Status.NodeRef.Name = "n0" },
		"the Machine is being deleted":     func(i *snapshot.Inventory) { i.Machines[0].DeletionTimestamp = ptr.To(now) },
		"its Metal3Machine does not exist": func(i *snapshot.Inventory) { i.InfraMachines = nil },
		"another infrastructure": func(i *snapshot.Inventory) {
			i.Machines[0].Spec.InfrastructureRef.Kind = "DockerMachine"
		},
		"its Metal3Machine is being deleted": func(i *snapshot.Inventory) { i.InfraMachines[0].SetDeletionTimestamp(ptr.To(now)) },
	} {
		i := inventory(host("a"))
		change(i)
		NewWithT(t).Expect(Fits(i)).To(BeEmpty(), situation)
	}
}

func TestOldestMachineIsFirst(t *testing.T) {
	g := NewWithT(t)
	i := inventory(host("a"))
	older := inventory()
	i.InfraMachines[0].SetCreationTimestamp(now)
	older.InfraMachines[0].SetName("m1-infra")
	older.InfraMachines[0].SetCreationTimestamp(created)
	older.Machines[0].Name, older.Machines[0].Spec.InfrastructureRef.Name = "m1", "m1-infra"
	i.InfraMachines, i.Machines = append(i.InfraMachines, older.InfraMachines...), append(i.Machines, older.Machines...)
	fits := Fits(i)
	g.Expect(fits).To(HaveLen(2))
	g.Expect([]string{fits[0].Machine.Name, fits[1].Machine.Name}).To(Equal([]string{"m1", "m0"}))
}
