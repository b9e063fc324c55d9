package desired

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// identified is an identified host: its facts and its Agent.
type identified struct {
	*facts.Facts
	agent *aiv1beta1.Agent
}

func newIdentified() *identified {
	return &identified{&facts.Facts{
		Config: &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "m"}},
		Machine: &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "m", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}},
		},
		Deployment:   &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "cp"}},
		InfraMachine: sample.Metal3Machine("live-iso"),
		Host:         sample.BareMetalHost(),
	}, sample.Agent("a", "m", sample.BootMAC)}
}

// asArbiter turns the host into an arbiter, in a cluster that counts one.
func asArbiter(h *identified) {
	h.Config.Spec.Role, h.Config.Labels = bootstrapv1.HostRoleArbiter, map[string]string{bootstrapv1.ArbiterLabel: ""}
	h.Install = &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Name: "cp"}}
	h.Install.Spec.ProvisionRequirements.ArbiterAgents = 1
}

func withoutHost(h *identified) {
	h.Host = nil
	h.InfraMachine = &unstructured.Unstructured{
		Object: map[string]any{"kind": "MetalStackMachine", "spec": map[string]any{"providerID": "metalstack://p/1"}},
	}
}

// withServerCA returns an AgentClusterInstall with the certificates of the machine config server.
func withServerCA(state string) *hiveext.AgentClusterInstall {
	install := &hiveext.AgentClusterInstall{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{bootstrapv1.MachineConfigServerCAAnnotation: "PEM"}},
	}
	install.Status.DebugInfo.State = state
	return install
}

// secondDisk adds a disk to the host, and returns hints that match only this disk.
func secondDisk(h *identified) *bootstrapv1.RootDeviceHints {
	disks := &h.agent.Status.Inventory.Disks
	*disks = append(*disks, aiv1beta1.HostDisk{
		ID:                      "second",
		Path:                    "/dev/sdb",
		DriveType:               "HDD",
		Hctl:                    "0:0:1:0",
		Model:                   "PERC H730",
		Vendor:                  "DELL",
		Serial:                  "S1",
		Wwn:                     "0x6141877069FEE3002AB7",
		SizeBytes:               400 << 30,
		InstallationEligibility: aiv1beta1.HostInstallationEligibility{Eligible: true},
	})
	return &bootstrapv1.RootDeviceHints{
		DeviceName: "/dev/sdb", HCTL: "0:0:1:0", Model: "perc", Vendor: "dell", SerialNumber: "S1", MinSizeGigabytes: 400,
		WWN: "0x6141877069fee300", WWNWithExtension: "0x6141877069fee3002ab7", WWNVendorExtension: "0x2ab7", Rotational: ptr.To(true),
	}
}

// Each hint of the config is used in the choice of the disk: a single wrong hint matches no disk.
func TestEveryRootDeviceHintCounts(t *testing.T) {
	for name, wrong := range map[string]bootstrapv1.RootDeviceHints{
		"deviceName":         {DeviceName: "/dev/sdz"},
		"hctl":               {HCTL: "9:0:0:0"},
		"model":              {Model: "x"},
		"vendor":             {Vendor: "x"},
		"serialNumber":       {SerialNumber: "x"},
		"minSizeGigabytes":   {MinSizeGigabytes: 1000},
		"wwn":                {WWN: "0x9"},
		"wwnWithExtension":   {WWNWithExtension: "0x9"},
		"wwnVendorExtension": {WWNVendorExtension: "0x9"},
		"rotational":         {Rotational: ptr.To(false), Vendor: "dell"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newIdentified()
			secondDisk(h)
			h.Config.Spec.RootDeviceHints = &wrong
			_, err := AgentSpec(h.Facts, h.agent, nil)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no disk of the host matches all root device hints: ")))
		})
	}
	NewWithT(
		t,
	).Expect(reflect.TypeFor[bootstrapv1.RootDeviceHints]().NumField()).
		To(Equal(reflect.TypeFor[metal3api.RootDeviceHints]().NumField()), "all hints of a BareMetalHost")
}

// hasFile matches an ignition with a text in one of its files.
func hasFile(text string) OmegaMatcher {
	return WithTransform(func(raw string) ([]string, error) {
		config, err := ignition.Parse([]byte(raw))
		var files []string
		for _, file := range config.Storage.Files {
			_, encoded, _ := strings.Cut(ptr.Deref(file.Contents.Source, ""), "base64,")
			decoded, problem := base64.StdEncoding.DecodeString(encoded)
			files, err = append(files, string(decoded)), errors.Join(err, problem)
		}
		return files, err
	}, ContainElement(ContainSubstring(text)))
}

func TestAgentSpec(t *testing.T) {
	metadata := func() ([]byte, error) { return []byte("name: node-7\nrack: r1\n"), nil }
	for name, tc := range map[string]struct {
		change func(h *identified)
		wanted OmegaMatcher
	}{
		"Metal3": {func(*identified) {}, And(
			HaveField("Hostname", "rack1-u7"),
			HaveField("Role", BeEquivalentTo("master")),
			HaveField("NodeLabels", HaveKeyWithValue("metal3.io/uuid", "bmh-uid")),
			HaveField("InstallationDiskID", BeEmpty()), HaveField("ClusterDeploymentName.Name", "cp"),
		)},
		"an arbiter, on a host with the role arbiter": {func(h *identified) {
			asArbiter(h)
			h.Host.Annotations = map[string]string{metal3.RoleAnnotation: "arbiter"}
		}, And(HaveField("Role", BeEquivalentTo("arbiter")), HaveField("NodeLabels", HaveLen(1)))},
		"an arbiter whose labels were stripped": {func(h *identified) {
			asArbiter(h)
			delete(h.Config.Labels, bootstrapv1.ArbiterLabel)
		}, HaveField("Role", BeEquivalentTo("arbiter"))},
		"a master whose Machine has the label of an arbiter": {
			func(h *identified) { h.Machine.Labels[bootstrapv1.ArbiterLabel] = "" }, HaveField("Role", BeEquivalentTo("master")),
		},
		"a worker with the label of an arbiter": {func(h *identified) {
			h.Machine.Labels = map[string]string{bootstrapv1.ArbiterLabel: ""}
			h.Config.Labels = h.Machine.Labels
		}, HaveField("Role", BeEquivalentTo("worker"))},
		"a worker": {func(h *identified) { h.Machine.Labels = nil }, HaveField("Role", BeEquivalentTo("worker"))},
		"variables are resolved": {func(h *identified) {
			h.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{
				Name: "$METADATA_NAME", KubeletExtraLabels: []string{`metal3.io/uuid="${METADATA_UUID}"`, "rack=$METADATA_RACK"},
			}
		}, And(
			HaveField("Hostname", "node-7"),
			HaveField("NodeLabels", And(HaveKeyWithValue("rack", "r1"), HaveKeyWithValue("metal3.io/uuid", "bmh-uid"))),
			HaveField("IgnitionConfigOverrides", Not(ContainSubstring("METADATA"))),
		)},
		"no BareMetalHost: the name that the host reports": {withoutHost, And(HaveField("Hostname", "m2"), HaveField("NodeLabels", BeEmpty()))},
		"no BareMetalHost, localhost: the Machine's name": {func(h *identified) {
			withoutHost(h)
			h.agent.Status.Inventory.Hostname = "localhost.localdomain"
		}, HaveField("Hostname", "m")},
		"no BareMetalHost: the kubelet gets the providerID of the infrastructure machine": {
			withoutHost, HaveField("IgnitionConfigOverrides", hasFile(`KUBELET_PROVIDERID="metalstack://p/1"`)),
		},
		"no BareMetalHost: a providerID of the config has precedence": {func(h *identified) {
			withoutHost(h)
			h.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{ProviderID: "own://1"}
		}, HaveField("IgnitionConfigOverrides", And(hasFile(`KUBELET_PROVIDERID="own://1"`), Not(hasFile("metalstack"))))},
		"Metal3 writes the providerID into the Node itself": {
			func(*identified) {}, HaveField("IgnitionConfigOverrides", Not(hasFile("PROVIDERID"))),
		},
		"root device hints": {func(h *identified) {
			h.Host.Spec.RootDeviceHints = &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}
		}, HaveField("InstallationDiskID", "/dev/disk/by-id/wwn-0x525400000002")},
		"root device hints of the config": {func(h *identified) {
			h.Config.Spec.RootDeviceHints = secondDisk(h)
		}, HaveField("InstallationDiskID", "second")},
		"root device hints of the config, without a BareMetalHost": {func(h *identified) {
			withoutHost(h)
			h.Config.Spec.RootDeviceHints = secondDisk(h)
		}, HaveField("InstallationDiskID", "second")},
		"root device hints of the BareMetalHost replace those of the config": {func(h *identified) {
			h.Config.Spec.RootDeviceHints = secondDisk(h)
			h.Host.Spec.RootDeviceHints = &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}
		}, HaveField("InstallationDiskID", "/dev/disk/by-id/wwn-0x525400000002")},
		"empty root device hints of the BareMetalHost are ignored": {func(h *identified) {
			h.Config.Spec.RootDeviceHints = secondDisk(h)
			h.Host.Spec.RootDeviceHints = &metal3api.RootDeviceHints{}
		}, HaveField("InstallationDiskID", "second")},
		"root device hints of the BareMetalHost, by which its disk was written": {func(h *identified) {
			h.BootMode = bootstrapv1.BootModeDiskImage
			h.Config.Spec.RootDeviceHints = secondDisk(h)
			h.Host.Spec.RootDeviceHints = &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}
		}, HaveField("InstallationDiskID", "/dev/disk/by-id/wwn-0x525400000002")},
		"kernel arguments": {func(h *identified) {
			h.Config.Spec.KernelArguments = []bootstrapv1.KernelArgument{{Operation: "append", Value: "a=b"}, {Operation: "delete", Value: "quiet"}}
		}, HaveField("InstallerArgs", `["--append-karg","a=b","--delete-karg","quiet"]`)},
		"arguments of the installer follow them": {func(h *identified) {
			h.Config.Spec.KernelArguments = []bootstrapv1.KernelArgument{{Operation: "append", Value: "a=b"}}
			h.Config.Spec.InstallerArguments = []string{"--save-partlabel", "data*"}
		}, HaveField("InstallerArgs", `["--append-karg","a=b","--save-partlabel","data*"]`)},
		"settings of the BareMetalHost precede those of the config": {func(h *identified) {
			h.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{Name: "$METADATA_NAME", KubeletExtraLabels: []string{"rack=r1", "row=7"}}
			h.Config.Spec.InstallerArguments = []string{"--copy-network"}
			h.Config.Annotations = map[string]string{
				bootstrapv1.IgnitionOverrideAnnotation: `{"ignition":{"version":"3.1.0"},` +
					`"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,config"}}]}}`,
			}
			h.Host.Annotations = map[string]string{
				metal3.HostnameAnnotation: "edge-1", metal3.RoleAnnotation: "master", metal3.InstallerArgsAnnotation: `["--save-partlabel","data"]`,
				metal3.NodeLabelAnnotationPrefix + "rack": "r9", metal3.NodeLabelAnnotationPrefix + "example.com/site": "",
				metal3.IgnitionAnnotation: `{"ignition":{"version":"3.2.0"},` +
					`"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,host"}}]}}`,
			}
		}, And(
			HaveField("Hostname", "edge-1"), HaveField("InstallerArgs", `["--copy-network","--save-partlabel","data"]`),
			HaveField("NodeLabels", And(HaveKeyWithValue("rack", "r9"), HaveKeyWithValue("row", "7"), HaveKeyWithValue("example.com/site", ""))),
			HaveField(
				"IgnitionConfigOverrides",
				And(ContainSubstring("data:,host"), Not(ContainSubstring("data:,config")), ContainSubstring(`"version":"3.2.0"`)),
			),
		)},
		"enough GPUs": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{GPUs: []bootstrapv1.GPURequirement{
				{MinCount: 2, VendorID: "10de"}, {MinCount: 1, VendorID: "10de", DeviceID: "20b5"},
			}}
			h.agent.Status.Inventory.Gpus = []aiv1beta1.HostGPU{{VendorID: "10DE", DeviceID: "2330"}, {VendorID: "10DE", DeviceID: "20B5"}}
		}, HaveField("Role", BeEquivalentTo("master"))},
		"a host of any role": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.RoleAnnotation: "auto-assign"}
		}, HaveField("Role", BeEquivalentTo("master"))},
		"a pool of workers": {func(h *identified) {
			h.Machine.Labels = nil
			h.Config.Spec.MachineConfigPool = "infra"
		}, And(
			HaveField("MachineConfigPool", "infra"),
			HaveField("Role", BeEquivalentTo("worker")),
			HaveField("NodeLabels", HaveKeyWithValue("node-role.kubernetes.io/infra", "")),
			HaveField("IgnitionConfigOverrides", Not(ContainSubstring("node-role"))), // a kubelet with this label does not start
		)},
		"the pool of all workers": {func(h *identified) { h.Machine.Labels, h.Config.Spec.MachineConfigPool = nil, "worker" }, And(
			HaveField("MachineConfigPool", BeEmpty()), HaveField("NodeLabels", HaveLen(1)),
		)},
		"a pool that was withdrawn": {func(h *identified) { h.Machine.Labels, h.agent.Spec.MachineConfigPool = nil, "infra" }, And(
			HaveField("MachineConfigPool", "worker"), HaveField("NodeLabels", HaveLen(1)),
		)},
		"a host that joins gets the certificates of the machine config server": {func(h *identified) {
			h.Install = withServerCA("adding-hosts")
		}, HaveField("IgnitionConfigOverrides",
			ContainSubstring(
				`"certificateAuthorities":[{"source":"data:text/plain;charset=utf-8;base64,`+base64.StdEncoding.EncodeToString([]byte("PEM"))+`"`,
			))},
		"a day-1 host ignores old certificates": {
			func(h *identified) { h.Install = withServerCA("ready") },
			HaveField("IgnitionConfigOverrides", Not(ContainSubstring("certificateAuthorities"))),
		},
		"no pool": {
			func(h *identified) { h.Machine.Labels = nil }, And(HaveField("MachineConfigPool", BeEmpty()), HaveField("NodeLabels", HaveLen(1))),
		},
		"requirements that are met": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{
				MinCPUCores: 16, MinMemory: ptr.To(resource.MustParse("32Gi")), MinDiskSize: ptr.To(resource.MustParse("120Gi")),
			}
		}, HaveField("InstallationDiskID", Not(BeEmpty()))},
		"requirements that grew after the host was bound: it keeps its disk and stays": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 32, MinDiskSize: ptr.To(resource.MustParse("1Ti"))}
			h.agent.Spec = aiv1beta1.AgentSpec{
				ClusterDeploymentName:   &aiv1beta1.ClusterReference{Namespace: sample.Namespace, Name: "cp"},
				IgnitionConfigOverrides: "{}",
				InstallationDiskID:      "chosen",
			}
		}, HaveField("InstallationDiskID", "chosen")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newIdentified()
			tc.change(h)
			g := NewWithT(t)
			w, err := AgentSpec(h.Facts, h.agent, metadata)
			g.Expect(err).NotTo(HaveOccurred())
			again, err := AgentSpec(h.Facts, h.agent, metadata)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(w).To(tc.wanted)
			g.Expect(again.IgnitionConfigOverrides).To(Equal(w.IgnitionConfigOverrides), "the same facts give the same bytes")
		})
	}
}

func TestInvalidAgentSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		change          func(h *identified)
		reason, message string
	}{
		"unknown variable": {func(h *identified) {
			h.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{Name: "$METADATA_RACK"}
		}, bootstrapv1.InvalidConfigurationReason, "$METADATA_RACK"},
		"variable that is not a label value": {func(h *identified) {
			h.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{KubeletExtraLabels: []string{"a=$METADATA_SPACE"}}
		}, bootstrapv1.InvalidConfigurationReason, "cannot be the value of a label"},
		"invalid hostname": {
			func(h *identified) { h.Host.Name = "Rack_1" }, bootstrapv1.InvalidConfigurationReason, "spec.nodeRegistration.name",
		},
		"hostname that is too long": {
			func(h *identified) { h.Host.Name = strings.Repeat("r", 64) }, bootstrapv1.InvalidConfigurationReason,
			`cannot be the name of a Node: it has 64 characters, and a hostname has at most 63: set spec.nodeRegistration.name`,
		},
		"no disk fits": {
			func(h *identified) { h.Host.Spec.RootDeviceHints = &metal3api.RootDeviceHints{SerialNumber: "x"} },
			bootstrapv1.InstallationDiskNotFoundReason,
			"no disk of the host matches all root device hints: /dev/sda (128.8 GB): serialNumber is empty, not x; the hints are those of " +
				"BareMetalHost rack1-u7",
		},
		"no disk fits the hints of the config": {
			func(h *identified) { h.Config.Spec.RootDeviceHints = &bootstrapv1.RootDeviceHints{SerialNumber: "x"} },
			bootstrapv1.InstallationDiskNotFoundReason,
			"no disk of the host matches all root device hints: /dev/sda (128.8 GB): serialNumber is empty, not x; the hints are those of " +
				"spec.rootDeviceHints",
		},
		"broken override of the host": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.IgnitionAnnotation: "{"}
		}, bootstrapv1.InvalidConfigurationReason, metal3.IgnitionAnnotation + " of the BareMetalHost"},
		"host of another role": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.RoleAnnotation: "worker"}
		}, bootstrapv1.InvalidConfigurationReason, "is for the role worker"},
		"arguments of the host that are not a list": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.InstallerArgsAnnotation: "--copy-network"}
		}, bootstrapv1.InvalidConfigurationReason, "must be a JSON array"},
		"argument that is not allowed": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.InstallerArgsAnnotation: `["--insecure"]`}
		}, bootstrapv1.InvalidConfigurationReason, `"--insecure" is neither an argument that assisted-service allows`},
		"value without an argument": {func(h *identified) {
			h.Config.Spec.InstallerArguments = []string{"--copy-network", "data*"}
		}, bootstrapv1.InvalidConfigurationReason, `"data*" is neither`},
		"argument without a value at the end": {func(h *identified) {
			h.Config.Spec.InstallerArguments = []string{"--save-partlabel"}
		}, bootstrapv1.InvalidConfigurationReason, "--save-partlabel has no value"},
		"argument in place of a value": {func(h *identified) {
			h.Config.Spec.InstallerArguments = []string{"--save-partlabel", "--copy-network"}
		}, bootstrapv1.InvalidConfigurationReason, "--save-partlabel has no value"},
		"partitions of the host that are already overwritten": {func(h *identified) {
			h.BootMode = bootstrapv1.BootModeDiskImage
			h.Host.Annotations = map[string]string{metal3.InstallerArgsAnnotation: `["--save-partlabel", "data*"]`}
		}, bootstrapv1.InvalidConfigurationReason, "has no effect in boot mode DiskImage"},
		"root device hints of the config, after the disk was written": {func(h *identified) {
			h.BootMode = bootstrapv1.BootModeDiskImage
			h.Config.Spec.RootDeviceHints = secondDisk(h)
		}, bootstrapv1.InvalidConfigurationReason, "spec.rootDeviceHints have no effect in boot mode DiskImage"},
		"root device hints of the config, with a minimum size of the disk": {func(h *identified) {
			withoutHost(h)
			h.BootMode = bootstrapv1.BootModeDiskImage
			h.Config.Spec.RootDeviceHints = secondDisk(h)
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinDiskSize: ptr.To(resource.MustParse("300Gi"))}
		}, bootstrapv1.InvalidConfigurationReason, "spec.rootDeviceHints have no effect in boot mode DiskImage"},
		"argument of both the config and the host": {func(h *identified) {
			h.Config.Spec.InstallerArguments = []string{"--copy-network"}
			h.Host.Annotations = map[string]string{metal3.InstallerArgsAnnotation: `["-n"]`}
		}, bootstrapv1.InvalidConfigurationReason, "--copy-network is set twice"},
		"several invalid labels of the host: always the first is reported": {func(h *identified) {
			h.Host.Annotations = map[string]string{}
			for _, key := range strings.Split("a b c d e f g h", " ") {
				h.Host.Annotations[metal3.NodeLabelAnnotationPrefix+key] = "no value"
			}
		}, bootstrapv1.InvalidConfigurationReason, metal3.NodeLabelAnnotationPrefix + "a of BareMetalHost"},
		"invalid label of the host": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.NodeLabelAnnotationPrefix + "a": "b c"}
		}, bootstrapv1.InvalidConfigurationReason, `"b c" cannot be the value of a label`},
		"invalid label of the Agent": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.AgentLabelAnnotationPrefix + "a": "b c"}
		}, bootstrapv1.InvalidConfigurationReason, `"b c" cannot be the value of a label`},
		"label of the Agent by which its InfraEnv is found": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.AgentLabelAnnotationPrefix + aiv1beta1.InfraEnvNameLabel: "other"}
		}, bootstrapv1.InvalidConfigurationReason, "the label infraenvs.agent-install.openshift.io is reserved for assisted-service"},
		"invalid hostname of the host": {func(h *identified) {
			h.Host.Annotations = map[string]string{metal3.HostnameAnnotation: "Rack_1"}
		}, bootstrapv1.InvalidConfigurationReason, "set the annotation bmac.agent-install.openshift.io/hostname of BareMetalHost"},
		"broken override": {func(h *identified) {
			h.Config.Annotations = map[string]string{bootstrapv1.IgnitionOverrideAnnotation: "{"}
		}, bootstrapv1.InvalidConfigurationReason, bootstrapv1.IgnitionOverrideAnnotation},
		"arbiter of a cluster that counts none": {func(h *identified) {
			asArbiter(h)
			h.Install.Spec.ProvisionRequirements.ArbiterAgents = 0
		}, bootstrapv1.RoleConflictReason, "AgentClusterInstall cp counts no arbiters"},
		"arbiter of a hub that cannot count it": {func(h *identified) {
			asArbiter(h)
			h.Install.Spec.ProvisionRequirements.ArbiterAgents = 0
			h.Install.Annotations = map[string]string{bootstrapv1.ClusterWithArbiterAnnotation: ""}
		}, bootstrapv1.RoleConflictReason, "is from before arbiters: upgrade it"},
		"arbiter whose Machine is not of a control plane": {func(h *identified) {
			asArbiter(h)
			h.Machine.Labels = nil
		}, bootstrapv1.RoleConflictReason, "it lacks the label cluster.x-k8s.io/control-plane"},
		"arbiter only by the label of its config": {func(h *identified) {
			asArbiter(h)
			h.Config.Spec.Role = ""
		}, bootstrapv1.RoleConflictReason, "remove the label, and it becomes a master"},
		"control-plane host in another pool": {
			func(h *identified) { h.Config.Spec.MachineConfigPool = "infra" }, bootstrapv1.InvalidConfigurationReason, "spec.machineConfigPool",
		},
		"everything too small": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{
				MinCPUCores: 32, MinMemory: ptr.To(resource.MustParse("64Gi")), MinDiskSize: ptr.To(resource.MustParse("1Ti")),
			}
		}, bootstrapv1.HostBelowRequirementsReason, "16 CPU cores (needs 32); 32Gi usable memory (needs 64Gi); no disk"},
		"no GPU, in an inventory that lists the graphics of the BMC": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{GPUs: []bootstrapv1.GPURequirement{{MinCount: 1, VendorID: "10de"}}}
			h.agent.Status.Inventory.Gpus = []aiv1beta1.HostGPU{{VendorID: "1a03", DeviceID: "2000"}}
		}, bootstrapv1.HostBelowRequirementsReason, "0 GPUs of PCI vendor 10de (needs 1)"},
		"no GPU is reported, as by an older assisted-service": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{GPUs: []bootstrapv1.GPURequirement{{MinCount: 1, VendorID: "10de"}}}
		}, bootstrapv1.HostBelowRequirementsReason, "reports no GPU of the host (needs 1 of PCI vendor 10de): the host has none, or"},
		"a GPU of another model": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{GPUs: []bootstrapv1.GPURequirement{
				{MinCount: 1, VendorID: "10de"}, {MinCount: 2, VendorID: "10de", DeviceID: "2330"},
			}}
			h.agent.Status.Inventory.Gpus = []aiv1beta1.HostGPU{{VendorID: "10de", DeviceID: "2330"}, {VendorID: "10de", DeviceID: "20b5"}}
		}, bootstrapv1.HostBelowRequirementsReason, "spec.hostRequirements: 1 GPU of PCI vendor 10de and device 2330 (needs 2)"},
		"too small, and bound by another client": {func(h *identified) {
			h.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 32}
			h.agent.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: sample.Namespace, Name: "cp"}
		}, bootstrapv1.HostBelowRequirementsReason, "16 CPU cores"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newIdentified()
			tc.change(h)
			_, err := AgentSpec(h.Facts, h.agent, func() ([]byte, error) { return []byte("space: a b"), nil })
			var p *UserError
			g := NewWithT(t)
			g.Expect(errors.As(err, &p)).To(BeTrue(), "%v is a problem for the user", err)
			g.Expect(p.Reason).To(Equal(tc.reason))
			g.Expect(p.Message).To(ContainSubstring(tc.message))
		})
	}
}

// An alias repeats a long text, so that a Secret of 1 MiB would become JSON of many GiB.
func TestMetadataIsBounded(t *testing.T) {
	for situation, raw := range map[string]string{
		"alias":     "a: &x text\nb: [*x, *x]\n",
		"merge key": "a: &x {b: c}\nd:\n  <<: *x\n",
		"too long":  "a: " + strings.Repeat("x", 65<<10),
	} {
		_, err := variables(hostWith(nil), []string{"METADATA_A"}, func() ([]byte, error) { return []byte(raw), nil })
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("Metal3 metadata of the host")), situation)
	}
	values, err := variables(hostWith(nil), []string{"METADATA_A"}, func() ([]byte, error) { return []byte("a: \"R&D *x\"\nb: '*b'\n"), nil })
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(values).To(HaveKeyWithValue("METADATA_A", "R&D *x"))
}
