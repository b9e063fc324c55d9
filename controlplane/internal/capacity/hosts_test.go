package capacity

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestSizeOf(t *testing.T) {
	g := NewWithT(t)
	large := &metal3.Hardware{CPU: metal3.CPU{Count: 64}, RAMMebibytes: 4096}
	small := &metal3.Hardware{CPU: metal3.CPU{Count: 8}, RAMMebibytes: 2048}
	of := func(inHost, inData *metal3.Hardware) []any {
		host, data := &metal3.Host{}, (*metal3.HardwareData)(nil)
		host.Status.HardwareDetails = inHost
		if inData != nil {
			data = &metal3.HardwareData{Spec: metal3.HardwareDataSpec{Hardware: inData}}
		}
		cpus, mebibytes, known := sizeOf(host, data)
		return []any{cpus, mebibytes, known}
	}
	g.Expect(of(large, small)).To(Equal([]any{8, int64(2048), true}), "HardwareData wins")
	g.Expect(of(large, nil)).To(Equal([]any{64, int64(4096), true}), "hardware that a user declared")
	g.Expect(of(nil, nil)).To(Equal([]any{0, int64(0), false}))
	g.Expect(of(large, &metal3.Hardware{CPU: metal3.CPU{Count: 8}})).To(Equal([]any{0, int64(0), false}), "no memory")
	g.Expect(of(nil, &metal3.Hardware{RAMMebibytes: 1})).To(Equal([]any{0, int64(0), false}), "no CPUs")
	_, _, known := sizeOf(&metal3.Host{}, &metal3.HardwareData{})
	g.Expect(known).To(BeFalse(), "an empty HardwareData")
}

func TestNotInspected(t *testing.T) {
	for state, want := range map[string]bool{
		"": true, "unmanaged": true, "registering": true, "match profile": true, "inspecting": true,
		"preparing": false, "available": false, "ready": false, "provisioned": false, "deprovisioning": false, "externally provisioned": false,
	} {
		host := &metal3.Host{}
		host.Status.Provisioning.State = state
		NewWithT(t).Expect(NotInspected(host)).To(Equal(want), state)
	}
}
