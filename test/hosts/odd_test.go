package hosts

import (
	"encoding/json"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
)

func TestLateHardwareDetails(t *testing.T) {
	l := newLab(t)
	l.hosts(1, WithoutMAC())
	l.Expect(l.get("host-0").Status.HardwareDetails).To(BeNil())
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	details, err := json.Marshal(NewHardware("lab/host-0").Details())
	l.Expect(err).NotTo(HaveOccurred())
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Annotations = map[string]string{metal3api.HardwareDetailsAnnotation: string(details)}
	})
	l.Eventually(func() *metal3api.HardwareDetails { return l.get("host-0").Status.HardwareDetails }).
		Should(HaveValue(Equal(*NewHardware("lab/host-0").Details())))
	l.Eventually(func() map[string]string { return l.get("host-0").Annotations }).Should(BeEmpty(), "the annotation is removed")
	l.Expect(l.state("host-0")()).To(Equal(metal3api.StateProvisioned))
}

func TestHardwareDetailsOfAnInspectedHostAreIgnored(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	found := l.get("host-0").Status.HardwareDetails
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Annotations = map[string]string{metal3api.HardwareDetailsAnnotation: `{"hostname":"other"}`}
	})
	l.Eventually(func() map[string]string { return l.get("host-0").Annotations }).Should(BeEmpty())
	l.Expect(l.get("host-0").Status.HardwareDetails).To(Equal(found))
}

func TestBootNICIsNotTheFirst(t *testing.T) {
	l := newLab(t)
	l.hosts(1, WithBootNIC(1))
	bmh, hardware := l.get("host-0"), NewHardware("lab/host-0")
	l.Expect(bmh.Spec.BootMACAddress).To(Equal(hardware.NICs[1].MAC))
	reported := l.rack.Host("host-0").Hardware().Inventory().Interfaces
	l.Expect(reported[0].MacAddress).To(Equal(hardware.NICs[0].MAC))
	l.Expect(reported[1].MacAddress).To(Equal(bmh.Spec.BootMACAddress))
}

func TestBondedMachine(t *testing.T) {
	l := newLab(t)
	hardware := NewHardware("lab/host-0")
	l.rack.SwapHardware("lab/host-0", hardware.Bonded("bond0", 1))
	l.hosts(1)
	l.Expect(l.get("host-0").Status.HardwareDetails.NIC).To(HaveLen(2), "the inspection finds the NICs")
	reported := l.rack.Host("host-0").Hardware().Inventory().Interfaces
	l.Expect(reported).To(HaveExactElements(
		And(HaveField("Name", "bond0"), HaveField("Type", "bond"), HaveField("IPV4Addresses", HaveLen(1))),
		And(HaveField("Name", "eth0"), HaveField("Type", "physical"), HaveField("IPV4Addresses", BeEmpty())),
		And(HaveField("Name", "eth1"), HaveField("Type", "physical"), HaveField("IPV4Addresses", BeEmpty()))))
	l.Expect(reported).To(HaveEach(HaveField("MacAddress", hardware.NICs[1].MAC)))
}

func TestMediumIsTheFirstBootDevice(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	h.BootMediumFirst(true)
	order := installOrder(h, models.HostRoleMaster)
	order.Bootstrap, order.SingleNode = true, true
	l.service.order(h.Hardware().UUID, order)
	l.Eventually(h.Registrations).Should(Equal(2), "after its installation")
	h.Reboot()
	l.Eventually(h.Registrations).Should(Equal(3), "and again")
	h.BootMediumFirst(false)
	h.Reboot()
	l.Eventually(h.Stage).Should(Equal(models.HostStageDone))
	l.Expect(h.Losses()).To(BeEmpty())
}

func TestSlowTask(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	h := l.rack.Host("host-0")
	h.SlowTask(Provisioning, time.Hour)
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioning))
	l.Consistently(h.Boots, 100*time.Millisecond).Should(BeEmpty())
	h.SlowTask(Provisioning, 0)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
}
