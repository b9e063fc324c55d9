package config_test

import "strings"

const minimalConfig = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfig
metadata: {name: worker-1}
`

// Conditions of a config before and after assisted-service starts the installation of its host.
const (
	approved    = `{type: HostApproved, status: "True", reason: HostApproved, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`
	notApproved = `{type: HostApproved, status: "False", reason: HostBinding, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`
)

func openshiftAssistedConfigAdmissions() admissions {
	return admissions{minimalConfig, map[string]admission{
		"no spec": {},
		"unknown boot mode": {
			change:  `spec: {bootMode: PXE}`,
			refused: `supported values: "LiveISO", "DiskImage"`,
		},
		"boot mode chosen before the bootstrap data exists": {
			before: `{spec: {bootMode: LiveISO}, status: {initialization: {dataSecretCreated: false}}}`,
			change: `{spec: {bootMode: DiskImage}, status: {initialization: {dataSecretCreated: false}}}`,
		},
		"boot mode changed after the bootstrap data exists": {
			before:  `{spec: {bootMode: LiveISO}, status: {initialization: {dataSecretCreated: true}}}`,
			change:  `{spec: {bootMode: DiskImage}, status: {initialization: {dataSecretCreated: true}}}`,
			refused: "spec.bootMode is immutable once the bootstrap data exists: to use another boot mode, delete the Machine, which wipes its host",
		},
		"boot mode removed after the bootstrap data exists": {
			before:  `{spec: {bootMode: LiveISO}, status: {initialization: {dataSecretCreated: true}}}`,
			change:  `{status: {initialization: {dataSecretCreated: true}}}`,
			refused: "spec.bootMode is immutable",
		},
		"no spec, neither before nor after the bootstrap data exists": {
			before: `{status: {initialization: {dataSecretCreated: true}}}`,
			change: `{metadata: {labels: {a: b}}, status: {initialization: {dataSecretCreated: true}}}`,
		},
		"boot mode chosen after the bootstrap data exists": {
			before:  `{status: {initialization: {dataSecretCreated: true}}}`,
			change:  `{spec: {bootMode: LiveISO}, status: {initialization: {dataSecretCreated: true}}}`,
			refused: "spec.bootMode is immutable",
		},
		"other fields changed after the bootstrap data exists": {
			before: `{spec: {bootMode: LiveISO}, status: {initialization: {dataSecretCreated: true}}}`,
			change: `{spec: {bootMode: LiveISO, additionalNTPSources: [ntp]}, status: {initialization: {dataSecretCreated: true}}}`,
		},
		"role":           {change: `spec: {role: Arbiter}`},
		"role unchanged": {before: `spec: {role: Arbiter}`, change: `spec: {role: Arbiter, additionalNTPSources: [ntp]}`},
		"unknown role":   {change: `spec: {role: Master}`, refused: `supported values: "Arbiter"`},
		"role set later": {
			before: `{}`, change: `spec: {role: Arbiter}`,
			refused: "spec.role is immutable: the control plane provider sets it",
		},
		"role removed": {
			before: `spec: {role: Arbiter}`, change: `spec: {additionalNTPSources: [ntp]}`,
			refused: "spec.role is immutable",
		},
		"role removed with the spec": {before: `spec: {role: Arbiter}`, change: `{}`, refused: "spec.role is immutable"},
		"pool":                       {change: `spec: {machineConfigPool: infra}`},
		"invalid pool name": {
			change: `spec: {machineConfigPool: Infra_1}`, refused: "machineConfigPool must be the name of a MachineConfigPool",
		},
		"pool of control-plane hosts": {change: `spec: {machineConfigPool: master}`, refused: "machineConfigPool is for workers"},
		"pool of arbiters":            {change: `spec: {machineConfigPool: arbiter}`, refused: "machineConfigPool is for workers"},
		"pool changed before the host was approved": {
			before: `{spec: {machineConfigPool: infra}, status: {conditions: [` + notApproved + `]}}`,
			change: `{spec: {machineConfigPool: storage}, status: {conditions: [` + notApproved + `]}}`,
		},
		"pool changed after the host was approved": {
			before:  `{spec: {machineConfigPool: infra}, status: {conditions: [` + approved + `]}}`,
			change:  `{spec: {machineConfigPool: storage}, status: {conditions: [` + approved + `]}}`,
			refused: "spec.machineConfigPool is immutable once the host is approved: change the pool of its Node in the cluster",
		},
		"pool set after the host was approved": {
			before:  `{status: {conditions: [` + approved + `]}}`,
			change:  `{spec: {machineConfigPool: storage}, status: {conditions: [` + approved + `]}}`,
			refused: "spec.machineConfigPool is immutable",
		},
		"pool removed after the host was approved": {
			before:  `{spec: {machineConfigPool: infra}, status: {conditions: [` + approved + `]}}`,
			change:  `{status: {conditions: [` + approved + `]}}`,
			refused: "spec.machineConfigPool is immutable",
		},
		"other fields changed after the host was approved": {
			before: `{spec: {machineConfigPool: infra}, status: {conditions: [` + approved + `]}}`,
			change: `{spec: {machineConfigPool: infra, additionalNTPSources: [ntp]}, status: {conditions: [` + approved + `]}}`,
		},
		"hostname of 63 characters": {change: `spec: {nodeRegistration: {name: ` + strings.Repeat("a", 63) + `}}`},
		"hostname of 64 characters": {
			change:  `spec: {nodeRegistration: {name: ` + strings.Repeat("a", 64) + `}}`,
			refused: "name must be at most 63 characters: assisted-service rejects longer hostnames",
		},
		"hostname of 64 characters before variables replaced": {change: `spec: {nodeRegistration: {name: "$METADATA_` +
			strings.Repeat("A", 54) + `"}}`},
		"root device hints": {
			change: `spec: {rootDeviceHints: {deviceName: /dev/disk/by-path/pci-0, hctl: "0:0:0:0", model: PERC, vendor: DELL, ` +
				`serialNumber: S1, minSizeGigabytes: 120, wwn: "0x1", wwnWithExtension: "0x12", wwnVendorExtension: "0x2", rotational: false}}`,
		},
		"root device hints for the live ISO": {change: `spec: {bootMode: LiveISO, rootDeviceHints: {deviceName: /dev/sda}}`},
		"root device hints in boot mode DiskImage": {
			change:  `spec: {bootMode: DiskImage, rootDeviceHints: {deviceName: /dev/sda}}`,
			refused: "rootDeviceHints have no effect in boot mode DiskImage, which writes the disk before the host boots",
		},
		"no root device hint": {change: `spec: {rootDeviceHints: {}}`, refused: "spec.rootDeviceHints"},
		"root device hint without device path": {
			change:  `spec: {rootDeviceHints: {deviceName: sda}}`,
			refused: "deviceName must be a path in /dev",
		},
		"root device hint with invalid SCSI address": {
			change: `spec: {rootDeviceHints: {hctl: "0:0"}}`, refused: "hctl must be host, channel, target and LUN",
		},
		"disks of size 0": {
			change:  `spec: {rootDeviceHints: {minSizeGigabytes: 0}}`,
			refused: "spec.rootDeviceHints.minSizeGigabytes",
		},
		"NTP sources": {change: `spec: {ntpSources: [ntp.example.com, 192.0.2.1]}`},
		"NTP sources and an empty additional list": {change: `spec: {ntpSources: [ntp.example.com], additionalNTPSources: []}`},
		"NTP sources and additional ones": {
			change:  `spec: {ntpSources: [ntp.example.com], additionalNTPSources: [ntp]}`,
			refused: "ntpSources replace the NTP servers of the image: remove additionalNTPSources",
		},
		"empty NTP sources":           {change: `spec: {ntpSources: []}`, refused: "spec.ntpSources"},
		"time for network interfaces": {change: `spec: {imageType: minimal-iso, networkDiscoveryDelaySeconds: 30}`},
		"negative time for network interfaces": {
			change:  `spec: {networkDiscoveryDelaySeconds: -1}`,
			refused: "spec.networkDiscoveryDelaySeconds",
		},
		"kernel arguments appended and deleted": {
			change: `spec: {kernelArguments: [{operation: append, value: "rd.break=cmdline"}, {operation: delete, value: quiet}]}`,
		},
		"kernel argument replaced": {
			change:  `spec: {kernelArguments: [{operation: replace, value: "a=b"}]}`,
			refused: `spec.kernelArguments[0].operation: Unsupported value: "replace": supported values: "append", "delete"`,
		},
		"kernel arguments of the live ISO": {
			change: `spec: {bootMode: LiveISO, discoveryKernelArguments: [{operation: append, value: ` +
				`"rd.net.timeout.carrier=60"}, {operation: replace, value: "console=ttyS0=ttyS1"}, {operation: delete, value: quiet}]}`,
		},
		"kernel arguments of the live ISO in boot mode DiskImage": {
			change: `spec: {bootMode: DiskImage, discoveryKernelArguments: [{operation: append, value: quiet}]}`,
			refused: "discoveryKernelArguments apply to the live ISO, which boot mode DiskImage does not have: remove them, or " +
				"set bootMode to LiveISO",
		},
		"kernel argument of the live ISO inserted": {
			change:  `spec: {discoveryKernelArguments: [{operation: insert, value: quiet}]}`,
			refused: `spec.discoveryKernelArguments[0].operation: Unsupported value: "insert"`,
		},
		"an architecture in Go's notation": {
			change:  `spec: {cpuArchitecture: amd64}`,
			refused: `spec.cpuArchitecture: Unsupported value: "amd64"`,
		},
		"kernel argument of the live ISO with a blank": {
			change:  `spec: {discoveryKernelArguments: [{operation: append, value: "a b"}]}`,
			refused: "value must be one kernel argument without spaces and quotation marks",
		},
		"arguments of the installer": {
			change: `spec: {installerArguments: ["--save-partlabel", "data*", "--copy-network"]}`,
		},
		"partitions saved from the live ISO": {
			change: `spec: {bootMode: LiveISO, installerArguments: ["--save-partindex", "5-"]}`,
		},
		"partitions saved by label in boot mode DiskImage": {
			change:  `spec: {bootMode: DiskImage, installerArguments: ["--copy-network", "--save-partlabel", "data*"]}`,
			refused: "installerArguments: in boot mode DiskImage only --append-karg",
		},
		"partitions saved by index in boot mode DiskImage": {
			change:  `spec: {bootMode: DiskImage, installerArguments: ["--save-partindex", "5-"]}`,
			refused: "installerArguments: in boot mode DiskImage",
		},
		"other arguments of the installer in boot mode DiskImage": {
			change: `spec: {bootMode: DiskImage, installerArguments: ["--copy-network", "--append-karg", "nosmt", "--delete-karg", "quiet"]}`,
		},
		"argument of the installer that assisted-service does not allow": {
			change:  `spec: {installerArguments: ["--insecure"]}`,
			refused: "installerArguments: assisted-service allows --append-karg,",
		},
		"two arguments of the installer in one item": {
			change:  `spec: {installerArguments: ["--copy-network", "data part"]}`,
			refused: "installerArguments must not contain whitespace: write the value of an argument as the next item",
		},
		"minimal live ISO": {change: `spec: {imageType: minimal-iso}`},
		"live ISO of another kind": {
			change:  `spec: {imageType: disk}`,
			refused: `spec.imageType: Unsupported value: "disk": supported values: "full-iso", "minimal-iso"`,
		},
		"labels of the Agent": {change: `spec: {agentLabels: {example.com/rack: "7", empty: ""}}`},
		"label of the Agent with an invalid key": {
			change:  `spec: {agentLabels: {"a b": c}}`,
			refused: "the keys of agentLabels must be label keys, such as example.com/rack",
		},
		"label of the Agent with an invalid value": {
			change:  `spec: {agentLabels: {a: "b c"}}`,
			refused: "the values of agentLabels must be label values",
		},
		"label of the Agent that assisted-service reserves": {
			change:  `spec: {agentLabels: {infraenvs.agent-install.openshift.io/x: y}}`,
			refused: "agentLabels of agent-install.openshift.io are reserved for assisted-service: remove them",
		},
		"the label of the Agent that names its InfraEnv": {
			change:  `spec: {agentLabels: {infraenvs.agent-install.openshift.io: y}}`,
			refused: "agentLabels of agent-install.openshift.io are reserved for assisted-service: remove them",
		},
		"kernel argument with a blank": {
			change:  `spec: {kernelArguments: [{operation: append, value: "a b"}]}`,
			refused: "value must be one kernel argument without spaces: key or key=value",
		},
		"trust bundle without certificate": {
			change:  `spec: {additionalTrustBundle: hello}`,
			refused: "additionalTrustBundle must contain PEM certificates (-----BEGIN CERTIFICATE-----)",
		},
		"trust bundle": {
			change: `spec: {additionalTrustBundle: "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"}`,
		},
		"proxy": {
			change: `spec: {proxy: {httpProxy: "http://proxy:3128", httpsProxy: "http://proxy:3128", noProxy: ".lab,10.0.0.0/8"}}`,
		},
		"proxy without scheme": {
			change:  `spec: {proxy: {httpProxy: "proxy:3128"}}`,
			refused: "httpProxy must be a URL with http:// or https://",
		},
		"proxy of HTTPS without scheme": {
			change:  `spec: {proxy: {httpsProxy: "proxy:3128"}}`,
			refused: "httpsProxy must be a URL with http:// or https://",
		},
		"OS image version by minor": {change: `spec: {osImageVersion: "4.19"}`},
		"OS image version with v": {
			change:  `spec: {osImageVersion: "v4.19"}`,
			refused: "osImageVersion must be an OpenShift version without leading v",
		},
		"relative sentinel directory": {
			change:  `spec: {bootstrapCommandSentinelDir: var/lib}`,
			refused: "bootstrapCommandSentinelDir must be an absolute path",
		},
		"relative path of the kubeconfig": {
			change:  `spec: {postBootstrapKubeconfigPath: kubeconfig}`,
			refused: "postBootstrapKubeconfigPath must be an absolute path",
		},
		"CA in a kind other than ConfigMap and Secret": {
			change:  `spec: {assistedServiceCA: {kind: Pod, name: ca}}`,
			refused: `supported values: "ConfigMap", "Secret"`,
		},
		"field that does not exist": {
			change:  `spec: {bootmode: LiveISO}`,
			refused: "unknown fields: spec.bootmode",
		},
	}}
}

func nodeRegistrationAdmissions() admissions {
	const (
		badName  = "name must be a hostname of lowercase letters, digits, '-', '.' and variables ($NAME)"
		badLabel = "kubeletExtraLabels must have the form key=value; the value may contain letters, digits, '-', '_', '.' and variables ($NAME)"
		badID    = "providerID must have the form scheme://path; variables ($NAME) are allowed"
	)
	return admissions{minimalConfig, map[string]admission{
		"name":                {change: `spec: {nodeRegistration: {name: node-1.lab}}`},
		"name by variable":    {change: `spec: {nodeRegistration: {name: $METADATA_NAME}}`},
		"name with variable":  {change: `spec: {nodeRegistration: {name: "node-${METADATA_NAME}.lab"}}`},
		"name in upper case":  {change: `spec: {nodeRegistration: {name: Node1}}`, refused: badName},
		"name with a command": {change: `spec: {nodeRegistration: {name: "$(reboot)"}}`, refused: badName},
		"labels": {change: `spec: {nodeRegistration: {kubeletExtraLabels: ["example.com/rack=r1", ` +
			`"zone=", "metal3.io/uuid=$METADATA_UUID"]}}`},
		"label with quoted variable": {change: `spec: {nodeRegistration: {kubeletExtraLabels: ['metal3.io/uuid="${METADATA_UUID}"']}}`},
		"label without value":        {change: `spec: {nodeRegistration: {kubeletExtraLabels: [rack]}}`, refused: badLabel},
		"label with a blank":         {change: `spec: {nodeRegistration: {kubeletExtraLabels: ["rack=r 1"]}}`, refused: badLabel},
		"label with a command":       {change: `spec: {nodeRegistration: {kubeletExtraLabels: ["rack=$(reboot)"]}}`, refused: badLabel},
		"second label is wrong":      {change: `spec: {nodeRegistration: {kubeletExtraLabels: ["rack=r1", "=x"]}}`, refused: badLabel},
		"providerID":                 {change: `spec: {nodeRegistration: {providerID: "metal3://lab/host/machine"}}`},
		"providerID with variable":   {change: `spec: {nodeRegistration: {providerID: "metal3://${METADATA_UUID}"}}`},
		"providerID without scheme":  {change: `spec: {nodeRegistration: {providerID: lab/host}}`, refused: badID},
		"providerID with a blank":    {change: `spec: {nodeRegistration: {providerID: "metal3://a b"}}`, refused: badID},
		"providerID with a backtick": {change: "spec: {nodeRegistration: {providerID: 'metal3://`reboot`'}}", refused: badID},
		"providerID with backslash":  {change: `spec: {nodeRegistration: {providerID: 'metal3://a\b'}}`, refused: badID},
		"providerID with a quote":    {change: `spec: {nodeRegistration: {providerID: "metal3://a'b"}}`, refused: badID},
	}}
}

// A template is rejected for the same values as its OpenshiftAssistedConfigs.
func openshiftAssistedConfigTemplateAdmissions() admissions {
	const base = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfigTemplate
metadata: {name: worker}
`
	return admissions{base, map[string]admission{
		"settings": {change: `spec: {template: {metadata: {labels: {a: b}}, spec: {bootMode: DiskImage, hostRequirements: ` +
			`{minCPUCores: 8, minMemory: 32Gi, minDiskSize: 120Gi}}}}`},
		"no content": {refused: "spec: Required value"},
		"kernel argument replaced": {
			change:  `spec: {template: {spec: {kernelArguments: [{operation: replace, value: "a=b"}]}}}`,
			refused: `supported values: "append", "delete"`,
		},
		"role of a control-plane host": {
			change:  `spec: {template: {spec: {role: Arbiter}}}`,
			refused: "role is for control-plane Machines: remove it, and set spec.arbiter of the OpenshiftAssistedControlPlane",
		},
		"GPUs": {change: `spec: {template: {spec: {hostRequirements: {gpus: [{minCount: 2, vendorID: 10de, deviceID: "2330"}]}}}}`},
		"GPU of no vendor": {
			change:  `spec: {template: {spec: {hostRequirements: {gpus: [{minCount: 1}]}}}}`,
			refused: "gpus[0].vendorID: Required value",
		},
		"no number of GPUs": {
			change:  `spec: {template: {spec: {hostRequirements: {gpus: [{vendorID: 10de}]}}}}`,
			refused: "gpus[0].minCount: Required value",
		},
		"GPU of a vendor by name": {
			change:  `spec: {template: {spec: {hostRequirements: {gpus: [{minCount: 1, vendorID: amd1}]}}}}`,
			refused: "vendorID must be four hexadecimal digits",
		},
		"GPU of a model by name": {
			change:  `spec: {template: {spec: {hostRequirements: {gpus: [{minCount: 1, vendorID: 10de, deviceID: H100}]}}}}`,
			refused: "deviceID must be four hexadecimal digits",
		},
		"memory in bytes": {change: `spec: {template: {spec: {hostRequirements: {minMemory: 34359738368, minDiskSize: "1.5Ti"}}}}`},
		"memory with a blank": {
			change:  `spec: {template: {spec: {hostRequirements: {minMemory: 32 GB}}}}`,
			refused: "minMemory must be a number of bytes or a quantity such as 32Gi",
		},
		"size of a disk in another unit": {
			change:  `spec: {template: {spec: {hostRequirements: {minDiskSize: 120GB}}}}`,
			refused: "minDiskSize must be a number of bytes or a quantity such as 120Gi",
		},
		"zero CPU cores": {
			change:  `spec: {template: {spec: {hostRequirements: {minCPUCores: 0}}}}`,
			refused: "minCPUCores",
		},
	}}
}
