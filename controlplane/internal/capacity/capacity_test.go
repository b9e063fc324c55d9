package capacity

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func template(matchLabels map[string]any) *unstructured.Unstructured {
	spec := map[string]any{}
	if matchLabels != nil {
		spec["hostSelector"] = map[string]any{"matchLabels": matchLabels}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "Metal3MachineTemplate", "metadata": map[string]any{"namespace": "lab", "name": "workers"},
		"spec": map[string]any{"template": map[string]any{"spec": spec}},
	}}
}

// host returns an inspected, free host of the pool, and its HardwareData.
func host(name string, cpus, gibibytes int) (*metal3.Host, *metal3.HardwareData) {
	h := &metal3.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, Labels: map[string]string{"pool": "gpu"}}}
	h.Status.Provisioning.State = "available"
	data := &metal3.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	data.Spec.Hardware = &metal3.Hardware{CPU: metal3.CPU{Count: cpus}, RAMMebibytes: gibibytes << 10}
	return h, data
}

// decide decides for a large host (64 CPUs, 256 GiB) that fits, and another host that fits and is changed.
func decide(cpus, gibibytes int, change func(*metal3.Host, *metal3.HardwareData)) Decision {
	large, largeData := host("large", 64, 256)
	other, otherData := host("other", cpus, gibibytes)
	if change != nil {
		change(other, otherData)
	}
	return Of(template(map[string]any{"pool": "gpu"}), []*metal3.Host{large, other},
		map[string]*metal3.HardwareData{"large": largeData, "other": otherData})
}

func TestSmallestHostIsStated(t *testing.T) {
	const ofLarge, ofSmall = "63180m", "7500m"
	for situation, tc := range map[string]struct {
		cpus, gibibytes int
		change          func(*metal3.Host, *metal3.HardwareData)
		cpu             string
	}{
		"a smaller host":        {cpus: 8, gibibytes: 32, cpu: ofSmall},
		"a larger host":         {cpus: 128, gibibytes: 512, cpu: ofLarge},
		"the smaller is in use": {8, 32, func(h *metal3.Host, _ *metal3.HardwareData) { h.Status.Provisioning.State = "provisioned" }, ofSmall},
		"the smaller is deprovisioned": {
			8, 32, func(h *metal3.Host, _ *metal3.HardwareData) { h.Status.Provisioning.State = "deprovisioning" }, ofSmall,
		},
		"the smaller is not selected": {8, 32, func(h *metal3.Host, _ *metal3.HardwareData) { h.Labels["pool"] = "web" }, ofLarge},
		"the smaller is being deleted": {
			8, 32, func(h *metal3.Host, _ *metal3.HardwareData) { h.DeletionTimestamp = ptr.To(metav1.Now()) }, ofLarge,
		},
		"the smaller is unhealthy": {
			8, 32, func(h *metal3.Host, _ *metal3.HardwareData) {
				h.Annotations = map[string]string{"capm3.metal3.io/unhealthy": ""}
			}, ofLarge,
		},
		"the smaller is provisioned by another tool": {
			8, 32, func(h *metal3.Host, _ *metal3.HardwareData) { h.Spec.ExternallyProvisioned = true }, ofLarge,
		},
		"the smaller is not inspected yet": {8, 32, func(h *metal3.Host, d *metal3.HardwareData) {
			h.Status.Provisioning.State, d.Spec.Hardware = "inspecting", nil
		}, ofLarge},
		"a restored host without state": {8, 32, func(h *metal3.Host, _ *metal3.HardwareData) { h.Status.Provisioning.State = "" }, ofSmall},
		"hardware that a user declared": {8, 32, func(h *metal3.Host, d *metal3.HardwareData) {
			h.Status.HardwareDetails, d.Spec.Hardware = d.Spec.Hardware, nil
		}, ofSmall},
		"HardwareData wins over the deprecated field": {8, 32, func(h *metal3.Host, _ *metal3.HardwareData) {
			h.Status.HardwareDetails = &metal3.Hardware{CPU: metal3.CPU{Count: 4}, RAMMebibytes: 1 << 10}
		}, ofSmall},
	} {
		NewWithT(t).Expect(decide(tc.cpus, tc.gibibytes, tc.change).Capacity).To(HaveKeyWithValue(CPUAnnotation, tc.cpu), situation)
	}
}

// The host with the fewest CPUs may not be the one with the least memory.
func TestEachResourceIsTheSmallest(t *testing.T) {
	g := NewWithT(t)
	decision := decide(128, 16, nil)
	g.Expect(decision.Capacity).To(Equal(map[string]string{CPUAnnotation: "63180m", MemoryAnnotation: "12444Mi"}))
	g.Expect(decision.Message).To(Equal("Stated 63180m CPUs and 12444Mi of memory to the cluster autoscaler. The smallest of 2 selected " +
		"BareMetalHosts: lab/large has 64 CPUs, lab/other has 16Gi of memory"))
}

// Overstated capacity installs a server in vain.
func TestNothingIsStatedWhileTheCapacityIsUnknown(t *testing.T) {
	small, data := host("a", 8, 32)
	known := map[string]*metal3.HardwareData{"a": data}
	for want, decision := range map[string]Decision{
		"no BareMetalHost of namespace lab matches": Of(template(map[string]any{"pool": "web"}), []*metal3.Host{small}, known),
		"a BareMetalHost without inspected CPUs and memory: lab/other": decide(8, 32, func(_ *metal3.Host, d *metal3.HardwareData) {
			d.Spec.Hardware = nil
		}),
		"a BareMetalHost without inspected CPUs and memory: lab/a": Of(template(nil), []*metal3.Host{small}, nil),
		"no selected BareMetalHost is inspected yet: lab/a": func() Decision {
			early, _ := host("a", 8, 32)
			early.Status.Provisioning.State = "registering"
			return Of(template(nil), []*metal3.Host{early}, nil)
		}(),
		"spec.template.spec.hostSelector":             Of(template(map[string]any{"pool": "a b"}), []*metal3.Host{small}, known),
		`has the value "yes". Set from-hardware-data`: UnknownValue("yes"),
		"is a OtherTemplate":                          OtherInfrastructure("OtherTemplate"),
		"Metal3MachineTemplate w does not exist":      NoTemplate("w"),
		"hardwaredata.metal3.io":                      NoOperator(),
	} {
		g := NewWithT(t)
		g.Expect(decision.Capacity).To(BeNil(), want)
		g.Expect(decision.Message).To(And(HavePrefix("Capacity unknown: "), ContainSubstring(want)))
	}
}

func TestMemoryOrCPUsAloneAreUnknown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(decide(0, 32, nil).Capacity).To(BeNil())
	g.Expect(decide(8, 0, nil).Capacity).To(BeNil())
}

func TestMessageOfManyHostsIsBounded(t *testing.T) {
	var hosts []*metal3.Host
	for i := range 500 {
		h, _ := host(fmt.Sprintf("%s-%d", strings.Repeat("a", 50), i), 8, 32)
		hosts = append(hosts, h)
	}
	NewWithT(t).Expect(len(Of(template(nil), hosts, nil).Message)).To(BeNumerically("<", 1024))
}

// The capacity that kubelets report for Pods is never below the stated one. This holds for the defaults of OpenShift, and
// for the automatic sizing of any version.
func TestReservedPartIsNotStated(t *testing.T) {
	g := NewWithT(t)
	for cpus, want := range map[int]string{
		1: "500m", 2: "1500m", 8: "7500m", 37: "36500m", 39: "38480m", 64: "63180m", 65: "64170m", 256: "252880m",
	} {
		g.Expect(allocatableCPU(cpus)).To(Equal(want), "%d CPUs", cpus)
	}
	for gibibytes, want := range map[int64]string{
		4: "2396Mi", 8: "5404Mi", 15: "11436Mi", 16: "12444Mi", 32: "27548Mi", 64: "58780Mi", 256: "245148Mi", 1024: "1003932Mi",
	} {
		g.Expect(allocatableMemory(gibibytes<<10)).To(Equal(want), "%d GiB", gibibytes)
	}
	g.Expect(allocatableMemory(50)).To(Equal("1Mi"))
}

// reserved are the systemReserved memories in GiB that dynamic-system-reserved-calc.sh of machine-config-operator
// computes for a total in GiB: before and since its change 3a1921c2 (February 2026).
var reserved = map[int64][]int64{
	8: {2, 1}, 16: {3, 1}, 32: {4, 2}, 64: {5, 4}, 128: {9, 8}, 256: {12, 10}, 512: {17, 16}, 1024: {27, 26}, 2048: {48, 46},
}

func TestReservedMemoryIsThatOfOpenShift(t *testing.T) {
	for total, versions := range reserved {
		NewWithT(t).Expect(reservedGibibytes(total)).To(Equal(max(versions[0], versions[1])), "%d GiB", total)
	}
	NewWithT(t).Expect(reservedGibibytes(1)).To(BeEquivalentTo(1), "the default without automatic sizing")
}
