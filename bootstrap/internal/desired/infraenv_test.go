package desired

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestImageSettings(t *testing.T) {
	const live, disk = bootstrapv1.BootModeLiveISO, bootstrapv1.BootModeDiskImage
	arguments := []bootstrapv1.DiscoveryKernelArgument{
		{Operation: "append", Value: "rd.net.timeout.carrier=60"},
		{Operation: "replace", Value: "console=ttyS0=ttyS1"},
		{Operation: "delete", Value: "quiet"},
	}
	for name, tc := range map[string]struct {
		mode   bootstrapv1.BootMode
		change func(spec *bootstrapv1.OpenshiftAssistedConfigSpec)
		wanted OmegaMatcher
		failed string
	}{
		"defaults": {live, func(*bootstrapv1.OpenshiftAssistedConfigSpec) {}, And(
			HaveField("ImageType", BeEquivalentTo("full-iso")), HaveField("KernelArguments", BeEmpty()), HaveField("AgentLabels", BeEmpty()),
		), ""},
		"a small one": {
			live,
			func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) { spec.ImageType = "minimal-iso" },
			HaveField("ImageType", BeEquivalentTo("minimal-iso")),
			"",
		},
		"a disk image: the ignition has to hold static networks": {
			disk,
			func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) { spec.ImageType = "minimal-iso" },
			HaveField("ImageType", BeEquivalentTo("full-iso")),
			"",
		},
		"kernel arguments": {live, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
			spec.DiscoveryKernelArguments = arguments
		}, HaveField("KernelArguments", Equal([]aiv1beta1.KernelArgument{
			{Operation: "append", Value: "rd.net.timeout.carrier=60"},
			{Operation: "replace", Value: "console=ttyS0=ttyS1"},
			{Operation: "delete", Value: "quiet"},
		})), ""},
		"kernel arguments of a disk image": {
			disk,
			func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) { spec.DiscoveryKernelArguments = arguments },
			nil,
			"spec.discoveryKernelArguments apply to the live ISO, but the host boots in mode DiskImage",
		},
		"partitions saved, in a disk image": {disk, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
			spec.InstallerArguments = []string{"--save-partindex", "5-"}
		}, nil, "has no effect in boot mode DiskImage, in which OpenShift is installed to the disk that the host runs from"},
		"partitions saved": {live, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
			spec.InstallerArguments = []string{"--save-partindex", "5-"}
		}, HaveField("ImageType", BeEquivalentTo("full-iso")), ""},
		"root device hints of a disk image": {disk, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
			spec.RootDeviceHints = &bootstrapv1.RootDeviceHints{DeviceName: "/dev/sda"}
		}, nil, "spec.rootDeviceHints have no effect in boot mode DiskImage"},
		"root device hints": {live, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
			spec.RootDeviceHints = &bootstrapv1.RootDeviceHints{DeviceName: "/dev/sda"}
		}, HaveField("ImageType", BeEquivalentTo("full-iso")), ""},
		"invalid labels of the Agent": {live, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
			spec.AgentLabels = map[string]bootstrapv1.LabelValue{
				"a..b/c": "7", "b..b/c": "7", "c..b/c": "7", "d..b/c": "7", "e..b/c": "7", "f..b/c": "7", "g..b/c": "7",
			}
		}, nil, `spec.agentLabels: "a..b/c" cannot be the key of a label`},
		"the only NTP servers": {live, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) { spec.NTPSources = []string{"ntp"} }, And(
			HaveField("NTPSources", ConsistOf("ntp")), HaveField("AdditionalNTPSources", BeEmpty()),
		), ""},
		"slow network interfaces": {
			live, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
				spec.NetworkDiscoveryDelaySeconds = ptr.To[int32](30)
			},
			HaveField("NetworkDiscoveryDelaySeconds", HaveValue(BeEquivalentTo(30))), "",
		},
		"labels of the Agent": {live, func(spec *bootstrapv1.OpenshiftAssistedConfigSpec) {
			spec.AgentLabels = map[string]bootstrapv1.LabelValue{"rack": "7"}
		}, HaveField("AgentLabels", Equal(map[string]string{"rack": "7"})), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := newIdentified()
			h.Cluster = &clusterv1.Cluster{}
			tc.change(&h.Config.Spec)
			h.Facts.BootMode = tc.mode
			infraEnv, err := InfraEnv(h.Facts)
			if tc.failed != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.failed)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(infraEnv.Spec).To(tc.wanted)
		})
	}
}
