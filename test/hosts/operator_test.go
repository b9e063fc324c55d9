package hosts

import (
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNewHostIsInspectedAndAvailable(t *testing.T) {
	l := newLab(t)
	l.hosts(2, WithName("rack1"), WithRootDeviceHints(metal3api.RootDeviceHints{DeviceName: "/dev/sdb"}))

	bmh := l.get("rack1-1")
	hardware := NewHardware("lab/rack1-1")
	l.Expect(bmh.Finalizers).To(ConsistOf(metal3api.BareMetalHostFinalizer))
	l.Expect(bmh.Status.OperationalStatus).To(Equal(metal3api.OperationalStatusOK))
	l.Expect(bmh.Status.Provisioning.ID).To(Equal(hardware.UUID))
	l.Expect(bmh.Status.Provisioning.RootDeviceHints.DeviceName).To(Equal("/dev/sdb"))
	details := bmh.Status.HardwareDetails
	l.Expect(details.SystemVendor.SerialNumber).To(Equal(hardware.Serial))
	l.Expect(details.NIC[0].MAC).To(Equal(bmh.Spec.BootMACAddress))
	l.Expect(details.NIC[1].MAC).To(Equal(hardware.NICs[1].MAC))
	l.Expect(details.CPU.Count).To(Equal(16))
	l.Expect(details.RAMMebibytes).To(Equal(64 * 1024))
	l.Expect(details.Storage[0].AlternateNames).To(ContainElement(hardware.Disks[0].ByID))
	l.Eventually(func() bool { return l.get("rack1-1").Status.PoweredOn }).Should(BeTrue())
	l.Expect(l.get("rack1-0").Spec.BootMACAddress).NotTo(Equal(bmh.Spec.BootMACAddress))
}

func TestHostWithoutAnyMAC(t *testing.T) {
	l := newLab(t)
	l.hosts(1, WithoutMAC())
	l.Expect(l.get("host-0").Spec.BootMACAddress).To(BeEmpty())
	l.Expect(l.get("host-0").Status.HardwareDetails).To(BeNil())
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(func() int { return l.rack.Host("host-0").Registrations() }).Should(Equal(1))
}

func TestAnnotatedDetailsReplaceTheInspection(t *testing.T) {
	l := newLab(t)
	l.hosts(1, func(_ int, host *metal3api.BareMetalHost) {
		host.Annotations = map[string]string{
			metal3api.InspectAnnotationPrefix: "disabled",
			metal3api.HardwareDetailsAnnotation: `{"hostname":"u7","systemVendor":{"serialNumber":"S7"},` +
				`"nics":[{"name":"eno1","mac":"AA:BB:CC:00:00:07"}]}`,
		}
	})
	l.Expect(l.get("host-0").Status.HardwareDetails.NIC).To(HaveLen(1))
	hardware := l.rack.Host("host-0").Hardware()
	l.Expect(hardware.Serial).To(Equal("S7"))
	l.Expect(hardware.NICs[0].MAC).To(Equal("AA:BB:CC:00:00:07"))
}

func TestMissingSecretIsAnErrorUntilItExists(t *testing.T) {
	l := newLab(t)
	bmh := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: labNamespace, Name: "h"}}
	bmh.Spec.BMC = metal3api.BMCDetails{Address: "redfish://bmc", CredentialsName: "h-bmc"}
	l.Expect(l.hub.Create(l.ctx, bmh)).To(Succeed())
	l.Eventually(func() metal3api.ErrorType { return l.get("h").Status.ErrorType }).Should(Equal(metal3api.RegistrationError))
	l.Expect(l.get("h").Status.ErrorMessage).To(ContainSubstring("lab/h-bmc"))

	l.Expect(l.hub.Create(l.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: labNamespace, Name: "h-bmc"},
		Data:       map[string][]byte{"username": []byte("u"), "password": []byte("p")},
	})).To(Succeed())
	l.Eventually(l.state("h")).Should(Equal(metal3api.StateAvailable))
	l.Expect(l.get("h").Status.ErrorType).To(BeEmpty())
	l.Expect(l.get("h").Status.PoweredOn).To(BeFalse(), "online is false")
}

func TestHostWithoutBMCIsUnmanaged(t *testing.T) {
	l := newLab(t)
	bmh := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: labNamespace, Name: "h"}}
	l.Expect(l.hub.Create(l.ctx, bmh)).To(Succeed())
	l.Eventually(l.state("h")).Should(Equal(metal3api.StateUnmanaged))
}

func TestProvisionAndDeprovision(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	host := l.rack.Host("host-0")
	l.Expect(l.get("host-0").Status.Provisioning.Image.URL).To(Equal(isoImage(testInfraEnv).URL))
	l.Expect(host.PoweredOn()).To(BeTrue())

	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Spec.Online = false })
	l.Eventually(func() bool { return l.get("host-0").Status.PoweredOn }).Should(BeFalse())
	l.Expect(host.PoweredOn()).To(BeFalse())
	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Spec.Online = true })
	l.Eventually(func() []Boot { return host.Boots() }).Should(HaveLen(2))

	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Spec.Image, bmh.Spec.Online = nil, false })
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateAvailable))
	l.Expect(l.get("host-0").Status.Provisioning.Image.URL).To(BeEmpty())
	l.Expect(host.PoweredOn()).To(BeFalse())
}

func TestAnotherImageProvisionsAgain(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	l.bootISO("host-0", "another")
	l.Eventually(func() string { return l.service.state(l.rack.Host("host-0").Hardware().UUID).infraEnv }).Should(Equal("another"))
}

func TestPausedHostIsNotChanged(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Annotations = map[string]string{metal3api.PausedAnnotation: "capm3"}
		bmh.Spec.Image = isoImage(testInfraEnv)
	})
	before := l.get("host-0").ResourceVersion
	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Labels = map[string]string{"touched": "1"} })
	l.Consistently(l.state("host-0"), 100*time.Millisecond).Should(Equal(metal3api.StateAvailable))
	l.Expect(l.get("host-0").ResourceVersion).NotTo(Equal(before))
	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Annotations = nil })
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
}

func TestDetachedHostKeepsRunningWhenItIsDeleted(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Annotations = map[string]string{metal3api.DetachedAnnotation: "by-test"}
		bmh.Spec.Online = false
	})
	l.Eventually(func() metal3api.OperationalStatus { return l.get("host-0").Status.OperationalStatus }).
		Should(Equal(metal3api.OperationalStatusDetached))
	l.Expect(l.hub.Delete(l.ctx, l.get("host-0"))).To(Succeed())
	l.Eventually(func() string { return l.get("host-0").Name }).Should(BeEmpty())
	l.Expect(l.rack.Host("host-0").PoweredOn()).To(BeTrue())
}

func TestDeletedHostIsDeprovisionedFirst(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	l.Expect(l.hub.Delete(l.ctx, l.get("host-0"))).To(Succeed())
	l.Eventually(func() string { return l.get("host-0").Name }).Should(BeEmpty())
	l.Expect(l.rack.Host("host-0").PoweredOn()).To(BeFalse())
}

func TestRebootAnnotations(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.bootISO("host-0", testInfraEnv)
	host := func() *Host { return l.rack.Host("host-0") }
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	// The state is Provisioned once the host was switched on, which may be before its first boot. A host that is
	// switched off before its boot has none.
	l.Eventually(func() []Boot { return host().Boots() }).Should(HaveLen(1))
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Annotations = map[string]string{metal3api.RebootAnnotationPrefix: ""}
	})
	l.Eventually(func() []Boot { return host().Boots() }).Should(HaveLen(2))
	l.Eventually(func() map[string]string { return l.get("host-0").Annotations }).Should(BeEmpty())
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Annotations = map[string]string{metal3api.RebootAnnotationPrefix + "/remediation": ""}
	})
	l.Eventually(func() bool { return l.get("host-0").Status.PoweredOn }).Should(BeFalse())
	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Annotations = nil })
	l.Eventually(func() []Boot { return host().Boots() }).Should(HaveLen(3))
}

func TestDiskImageWaitsForItsUserData(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Spec.Image = &metal3api.Image{URL: "http://mirror/scos.qcow2", Checksum: "x", DiskFormat: ptr.To("qcow2")}
		bmh.Spec.UserData = &corev1.SecretReference{Name: "m0"}
	})
	l.Eventually(func() string { return l.get("host-0").Status.ErrorMessage }).Should(ContainSubstring("lab/m0"))
	l.Expect(l.hub.Create(l.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: labNamespace, Name: "m0"},
		Data:       map[string][]byte{"value": discoveryIgnition("/agent --infra-env-id " + testInfraEnv)},
	})).To(Succeed())
	host := func() *Host { return l.rack.Host("host-0") }
	l.Eventually(func() int { return host().Registrations() }).Should(Equal(1))
	l.Expect(host().UserData().Units).To(HaveKey("agent.service"))
	l.Expect(l.service.state(host().Hardware().UUID).infraEnv).To(Equal(testInfraEnv))
	l.Expect(l.rack.Escaped()).To(BeEmpty())
}

func TestEscapedHostIsReported(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Spec.Image = &metal3api.Image{URL: "http://mirror/placeholder.qcow2", Checksum: "x"}
	})
	l.Eventually(l.rack.Escaped).Should(ConsistOf("lab/host-0 booted disk image http://mirror/placeholder.qcow2"))
	l.Expect(l.rack.Host("host-0").Registrations()).To(BeZero())
}

func TestStatesLastAsLongAsTheDelay(t *testing.T) {
	delay := 30 * time.Millisecond
	l := newLab(t, func(o *Options) { o.StateDelay = delay })
	begin := time.Now()
	l.hosts(1)
	l.Expect(time.Since(begin)).To(BeNumerically(">=", 2*delay), "inspecting and preparing")
}

func TestFailedTasksAreReportedAndRepeated(t *testing.T) {
	l := newLab(t)
	host, err := l.rack.hostOf(&metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: labNamespace, Name: "host-0"}})
	l.Expect(err).NotTo(HaveOccurred())
	fails := func(task Task, state metal3api.ProvisioningState, kind metal3api.ErrorType) {
		t.Helper()
		l.Eventually(func() metal3api.BareMetalHostStatus { return l.get("host-0").Status }).Should(And(
			HaveField("ErrorType", kind), HaveField("ErrorMessage", "no answer: "+string(task)),
			HaveField("OperationalStatus", metal3api.OperationalStatusError)))
		l.Eventually(func() int { return l.get("host-0").Status.ErrorCount }).Should(BeNumerically(">", 1), "the task is repeated")
		l.Expect(l.state("host-0")()).To(Equal(state))
		host.FailTask(task, "")
		l.Eventually(func() string { return l.get("host-0").Status.ErrorMessage }).ShouldNot(ContainSubstring(string(task)))
	}
	// Before the tasks start, because they take no time.
	for _, task := range []Task{Registering, Inspecting, Preparing, Provisioning, Deprovisioning} {
		host.FailTask(task, "no answer: "+string(task))
	}
	_, err = NewBareMetalHosts(l.ctx, l.hub, labNamespace, 1)
	l.Expect(err).NotTo(HaveOccurred())
	fails(Registering, metal3api.StateRegistering, metal3api.RegistrationError)
	fails(Inspecting, metal3api.StateInspecting, metal3api.InspectionError)
	fails(Preparing, metal3api.StatePreparing, metal3api.PreparationError)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateAvailable))
	l.bootISO("host-0", testInfraEnv)
	fails(Provisioning, metal3api.StateProvisioning, metal3api.ProvisioningError)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Spec.Image = nil })
	fails(Deprovisioning, metal3api.StateDeprovisioning, metal3api.ProvisioningError)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateAvailable))
	l.Expect(l.get("host-0").Status).To(And(HaveField("ErrorMessage", ""), HaveField("ErrorCount", 0)))
}

func TestHostWhosePowerCannotBeSwitched(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	host := l.rack.Host("host-0")
	host.FailTask(Powering, "no answer")
	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Spec.Online = false })
	l.Eventually(func() metal3api.ErrorType { return l.get("host-0").Status.ErrorType }).Should(Equal(metal3api.PowerManagementError))
	l.Expect(host.PoweredOn()).To(BeTrue())
	l.Expect(l.get("host-0").Status.PoweredOn).To(BeTrue())

	host.FailTask(Powering, "")
	l.Eventually(host.PoweredOn).Should(BeFalse())
	l.Eventually(func() metal3api.ErrorType { return l.get("host-0").Status.ErrorType }).Should(BeEmpty())
}

func TestHostThatCannotBeSwitchedOnIsNotProvisioned(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	host := l.rack.Host("host-0")
	host.FailTask(Powering, "no power supply")
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(func() string { return l.get("host-0").Status.ErrorMessage }).Should(ContainSubstring("no power supply"))
	l.Consistently(host.Boots, "1s").Should(BeEmpty())

	host.FailTask(Powering, "")
	l.Eventually(host.Boots).ShouldNot(BeEmpty())
}

// A host that cannot be provisioned is released without a repair.
func TestHostThatCannotBeProvisionedIsReleased(t *testing.T) {
	l := newLab(t)
	l.hosts(1)
	host := l.rack.Host("host-0")
	host.FailTask(Provisioning, "no such image")
	l.bootISO("host-0", testInfraEnv)
	l.Eventually(func() string { return l.get("host-0").Status.ErrorMessage }).Should(Equal("no such image"))
	l.Expect(host.Boots()).To(BeEmpty())
	l.change("host-0", func(bmh *metal3api.BareMetalHost) { bmh.Spec.Image = nil })
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateAvailable))
}

func TestTimesOfHostsFollowFromTheSeed(t *testing.T) {
	g := NewWithT(t)
	rack := func(seed uint64) *Rack {
		return &Rack{options: Options{StateDelay: time.Second, StateJitter: time.Minute, Seed: seed}}
	}
	times := map[time.Duration]bool{}
	for _, host := range []string{"lab/a", "lab/b"} {
		for _, task := range []Task{Registering, Inspecting, Preparing, Provisioning, Deprovisioning} {
			for round := range 3 {
				lasts := rack(7).duration(host, task, round)
				g.Expect(lasts).To(And(BeNumerically(">=", time.Second), BeNumerically("<", time.Minute+time.Second)))
				g.Expect(rack(7).duration(host, task, round)).To(Equal(lasts))
				times[lasts] = true
			}
		}
	}
	g.Expect(times).To(HaveLen(2*5*3), "all times differ")
	g.Expect(rack(8).duration("lab/a", Inspecting, 0)).NotTo(Equal(rack(7).duration("lab/a", Inspecting, 0)))
	g.Expect(rack(7).duration("lab/a", Powering, 0)).To(BeZero())
}
