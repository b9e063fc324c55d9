package config_test

import (
	"fmt"
	"strings"
)

const minimalControlPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlane
metadata: {name: lab}
spec:
  replicas: 3
  distributionVersion: 4.19.10
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: lab}
  config: {baseDomain: lab.example.com, apiVIPs: [192.168.111.5], ingressVIPs: [192.168.111.6]}
`

func controlPlaneShapeAdmissions() admissions {
	const badReplicas = "replicas must be 1 (single node), 2 (with fencing), 3, 4 or 5"
	return admissions{minimalControlPlane, map[string]admission{
		"three": {},
		"four":  {change: `spec: {replicas: 4}`},
		"five":  {change: `spec: {replicas: 5}`},
		"none":  {change: `spec: {replicas: 0}`, refused: badReplicas},
		"two": {
			change:  `spec: {replicas: 2}`,
			refused: "a cluster of two nodes has no etcd quorum without fencing: set fencing, or set replicas to 3 with an arbiter",
		},
		"six":                           {change: `spec: {replicas: 6}`, refused: badReplicas},
		"single node":                   {change: `spec: {replicas: 1, config: {apiVIPs: null, ingressVIPs: null}}`},
		"single node by default":        {change: `spec: {replicas: null, config: {apiVIPs: null, ingressVIPs: null}}`},
		"three without VIPs (platform)": {change: `spec: {config: {apiVIPs: null, ingressVIPs: null}}`},
		"single node with VIPs": {
			change:  `spec: {replicas: 1}`,
			refused: "a single-node cluster (replicas: 1) has no VIPs: remove config.apiVIPs and config.ingressVIPs, or set replicas to 3, 4 or 5",
		},
		"no infrastructure template": {
			change:  `spec: {machineTemplate: null}`,
			refused: "spec.machineTemplate: Required value",
		},
		"names with a random part": {change: `spec: {machineNaming: {template: "{{ .cluster.name }}-{{ .random }}"}}`},
		"names with variables of KubeadmControlPlane": {change: `spec: {machineNaming: {template: "{{- .kubeadmControlPlane.name }}-cp.{{ ` +
			`.random }}"}}`},
		"names that would collide": {
			change:  `spec: {machineNaming: {template: "{{ .cluster.name }}"}}`,
			refused: "template must contain {{ .random }}",
		},
		"names with a template action": {
			change:  `spec: {machineNaming: {template: "{{/* {{ .random }} */}}x"}}`,
			refused: "template may contain text and the variables {{ .cluster.name }}, {{ .controlPlane.name }} and {{ .random }}, and nothing else",
		},
		"a pool for control-plane hosts": {
			change:  `spec: {openshiftAssistedConfigSpec: {machineConfigPool: infra}}`,
			refused: "machineConfigPool is for workers: remove it, hosts of the control plane belong to the pool master",
		},
		"a tolerated operator": {change: `spec: {upgrade: {toleratedOperators: [insights, openshift-samples]}}`},
		"a tolerated operator that restarts the control plane": {
			change: `spec: {upgrade: {toleratedOperators: [insights, machine-config]}}`,
			refused: "etcd, kube-apiserver and machine-config cannot be tolerated, because they restart the control plane " +
				"during an upgrade: repair them first",
		},
		"an invalid name of a tolerated operator": {
			change:  `spec: {upgrade: {toleratedOperators: ["*"]}}`,
			refused: "toleratedOperators must contain names of ClusterOperators",
		},
		"pools that are paused during a chain": {change: `spec: {upgrade: {pauseWorkerPools: DuringChain}}`},
		"pools that are always paused": {
			change:  `spec: {upgrade: {pauseWorkerPools: Always}}`,
			refused: `spec.upgrade.pauseWorkerPools: Unsupported value: "Always": supported values: "Never", "DuringChain"`,
		},
		"bad host settings": {
			change:  `spec: {openshiftAssistedConfigSpec: {nodeRegistration: {name: Node1}}}`,
			refused: "name must be a hostname",
		},
	}}
}

func arbiterAdmissions() admissions {
	const (
		release  = "an arbiter needs distributionVersion 4.20 or newer"
		presence = "spec.arbiter can be set only at creation and cannot be removed"
	)
	of := func(version string) string { return `spec: {distributionVersion: ` + version + `, arbiter: {}}` }
	const small = `spec: {arbiter: {machineTemplate: {spec: {infrastructureRef: {apiGroup: ` +
		`infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: small}}}, openshiftAssistedConfigSpec: ` +
		`{hostRequirements: {minCPUCores: 2}}}}`
	return admissions{strings.Replace(minimalControlPlane, "4.19.10", "4.20.4", 1), map[string]admission{
		"with the template of the masters": {change: `spec: {arbiter: {}}`},
		"from a separate template":         {change: small},
		"without a master": {
			change:  `spec: {replicas: 4, arbiter: {}}`,
			refused: "with an arbiter replicas must be 3: two masters and the arbiter",
		},
		"of a single node": {
			change:  `spec: {replicas: null, arbiter: {}, config: {apiVIPs: null, ingressVIPs: null}}`,
			refused: "with an arbiter replicas must be 3",
		},
		"without VIPs": {
			change:  `spec: {arbiter: {}, config: {apiVIPs: null, ingressVIPs: null}}`,
			refused: "a cluster with an arbiter needs platform baremetal: set config.apiVIPs and config.ingressVIPs",
		},
		"in a pool of workers": {
			change:  `spec: {arbiter: {openshiftAssistedConfigSpec: {machineConfigPool: infra}}}`,
			refused: "machineConfigPool is for workers: remove it, the host of an arbiter belongs to the pool arbiter",
		},
		"with a role": {
			change:  `spec: {arbiter: {openshiftAssistedConfigSpec: {role: Arbiter}}}`,
			refused: "role of an arbiter is set by the control plane provider: remove it",
		},
		"by the role of all hosts": {
			change:  `spec: {openshiftAssistedConfigSpec: {role: Arbiter}}`,
			refused: "role is set by the control plane provider: remove it, and set spec.arbiter",
		},
		"from an empty template":    {change: `spec: {arbiter: {machineTemplate: {spec: {}}}}`, refused: "should have at least 1 properties"},
		"technology preview":        {change: of("4.19.10"), refused: release},
		"unsupported release":       {change: of("v4.9.0"), refused: release},
		"4.2":                       {change: of("4.2.20"), refused: release},
		"a candidate":               {change: of("4.20.0-rc.1")},
		"OKD":                       {change: of("v4.21.0-okd-scos.5")},
		"a release of three digits": {change: of("4.100.0")},
		"5.0":                       {change: of("5.0.1")},
		"10.0":                      {change: of("10.0.1")},
		"set later":                 {before: `{}`, change: `spec: {arbiter: {}}`, refused: presence},
		"removed":                   {before: `spec: {arbiter: {}}`, change: `{}`, refused: presence},
		"changed":                   {before: `spec: {arbiter: {}}`, change: small},
	}}
}

func fencingAdmissions() admissions {
	const (
		number   = "with fencing replicas must be 2"
		release  = "fencing needs distributionVersion 4.20 or newer"
		presence = "spec.fencing can be set only at creation and cannot be removed"
		fencing  = `fencing: {credentialsFrom: BareMetalHosts}`
	)
	two := `spec: {replicas: 2, ` + fencing + `}`
	of := func(version string) string {
		return `spec: {replicas: 2, distributionVersion: ` + version + `, ` + fencing + `}`
	}
	return admissions{strings.Replace(minimalControlPlane, "4.19.10", "4.22.4", 1), map[string]admission{
		"two nodes":                  {change: two},
		"two nodes of platform none": {change: `spec: {replicas: 2, ` + fencing + `, config: {apiVIPs: null, ingressVIPs: null}}`},
		"two nodes of another platform": {
			change:  `spec: {replicas: 2, ` + fencing + `, config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {name: other}}}`,
			refused: "a cluster with fencing needs platform baremetal or none: remove config.externalPlatform",
		},
		"three nodes": {change: `spec: {` + fencing + `}`, refused: number},
		"a single node": {
			change:  `spec: {replicas: null, ` + fencing + `, config: {apiVIPs: null, ingressVIPs: null}}`,
			refused: number,
		},
		"two nodes and an arbiter": {change: `spec: {arbiter: {}, ` + fencing + `}`, refused: number},
		"no source of credentials": {change: `spec: {replicas: 2, fencing: {}}`, refused: "spec.fencing.credentialsFrom: Required value"},
		"unknown source of credentials": {
			change:  `spec: {replicas: 2, fencing: {credentialsFrom: Vault}}`,
			refused: `Unsupported value: "Vault"`,
		},
		"unsupported release": {change: of("4.19.10"), refused: release},
		"4.2":                 {change: of("4.2.20"), refused: release},
		"technology preview":  {change: of("v4.20.0")},
		"OKD":                 {change: of("4.22.0-okd-scos.5")},
		"5.0":                 {change: of("5.0.1")},
		"set later":           {before: `{}`, change: two, refused: presence},
		"removed":             {before: two, change: `spec: {replicas: 3}`, refused: presence},
		"scaled":              {before: two, change: `spec: {replicas: 3, ` + fencing + `}`, refused: number},
		"upgraded":            {before: two, change: of("4.22.9")},
	}}
}

func controlPlaneReleaseAdmissions() admissions {
	const digest = "quay.io/openshift-release-dev/ocp-release@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	return admissions{minimalControlPlane, map[string]admission{
		"leading v":         {change: `spec: {distributionVersion: v4.19.10}`},
		"OKD":               {change: `spec: {distributionVersion: 4.19.0-okd-scos.17}`},
		"nightly of OKD":    {change: `spec: {distributionVersion: 4.17.0-0.okd-scos-2024-09-30-101739}`},
		"release candidate": {change: `spec: {distributionVersion: 4.20.0-rc.1}`},
		"minor version only": {
			change: `spec: {distributionVersion: "4.19"}`, refused: "distributionVersion must be a full release such as 4.19.10",
		},
		"channel": {
			change: `spec: {distributionVersion: stable-4.19}`, refused: "distributionVersion must be a full release such as 4.19.10",
		},
		"a missing release in the map of a ClusterClass": {
			change: `spec: {distributionVersion: <no value>}`, refused: "distributionVersion must be a full release such as 4.19.10",
		},
		"no release": {change: `spec: {distributionVersion: null}`, refused: "spec.distributionVersion: Required value"},
		"version of Kubernetes as release": {
			change: `spec: {distributionVersion: v1.32.7}`, refused: "the Kubernetes version belongs into version",
		},
		"version of Kubernetes":           {change: `spec: {version: v1.32.7}`},
		"version of Kubernetes without v": {change: `spec: {version: 1.32.7}`},
		"version of Kubernetes with hash": {change: `spec: {version: v1.29.6+aba1e8d}`},
		"minor version of Kubernetes":     {change: `spec: {version: v1.32}`, refused: "version must be a Kubernetes version"},
		"another major version":           {change: `spec: {version: v2.32.5}`, refused: "version must be a Kubernetes version"},
		"pre-release with leading zero":   {change: `spec: {version: v1.32.5-01}`, refused: "version must be a Kubernetes version"},
		"empty version of Kubernetes":     {change: `spec: {version: ""}`, refused: "spec.version in body should be at least 1 chars long"},
		"release as version of Kubernetes": {
			change: `spec: {version: v4.19.10}`, refused: "is an OpenShift release: set distributionVersion",
		},
		"release 5.0 as version": {
			change: `spec: {version: v5.0.1}`, refused: "is an OpenShift release: set distributionVersion",
		},
		"OKD release as version": {
			change: `spec: {version: 4.19.0-okd-scos.17}`, refused: "is an OpenShift release: set distributionVersion",
		},
		"release by digest": {change: `spec: {config: {releaseImage: "` + digest + `"}}`},
		"release by tag": {
			change:  `spec: {config: {releaseImage: "quay.io/openshift-release-dev/ocp-release:4.19.10-x86_64"}}`,
			refused: "releaseImage must name the image by digest",
		},
		"ClusterImageSet": {change: `spec: {config: {clusterImageSetRef: {name: ocp-4.19}}}`},
		"digest and image set": {
			change:  `spec: {config: {releaseImage: "` + digest + `", clusterImageSetRef: {name: x}}}`,
			refused: "releaseImage and clusterImageSetRef exclude each other: remove one of them",
		},
	}}
}

func controlPlaneNetworkAdmissions() admissions {
	return admissions{minimalControlPlane, map[string]admission{
		"inside the machine network": {change: `spec: {config: {machineNetwork: [192.168.111.0/24]}}`},
		"inside one of two networks": {
			change:  `spec: {config: {machineNetwork: [10.0.0.0/24, 192.168.111.0/24]}}`,
			refused: "several networks of one address family in machineNetwork need a user-managed load balancer",
		},
		"two IPv6 networks": {change: `spec: {config: {apiVIPs: ["fd00::5"], ingressVIPs: ["fd00::6"], ` +
			`machineNetwork: ["fd00::/64", "fd01::/64"]}}`, refused: "several networks of one address family"},
		"dual-stack, load balancer": {change: `spec: {config: {loadBalancer: {type: UserManaged}, machineNetwork: ` +
			`[192.168.111.0/24, "fd00::/64"]}}`, refused: "a cluster with a user-managed load balancer cannot be dual-stack"},
		"two VIPs of load balancer": {
			change: `spec: {config: {loadBalancer: {type: UserManaged}, apiVIPs: ` +
				`[192.168.111.5, "fd00::5"], ingressVIPs: [192.168.111.6, "fd00::6"], machineNetwork: [192.168.111.0/24, "fd00::/64"]}}`,
			refused: "a cluster with a user-managed load balancer cannot be dual-stack",
		},
		"three networks": {
			change:  `spec: {config: {machineNetwork: [192.168.111.0/24, 10.0.0.0/24, "fd00::/64"]}}`,
			refused: "machineNetwork of a dual-stack cluster must be one IPv4 and one IPv6 network",
		},
		"dual-stack, no network": {
			change:  `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5"], ingressVIPs: [192.168.111.6, "fd00::6"]}}`,
			refused: "a dual-stack cluster (two apiVIPs) needs machineNetwork",
		},
		"API outside the networks": {
			change:  `spec: {config: {apiVIPs: [192.168.112.5], machineNetwork: [192.168.111.0/24]}}`,
			refused: "each address of apiVIPs must be in a network of machineNetwork",
		},
		"ingress outside of networks": {
			change:  `spec: {config: {ingressVIPs: [192.168.112.6], machineNetwork: [192.168.111.0/24]}}`,
			refused: "each address of ingressVIPs must be in a network of machineNetwork",
		},
		"dual-stack": {change: `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5"], ingressVIPs: ` +
			`[192.168.111.6, "fd00::6"], machineNetwork: [192.168.111.0/24, "fd00::/64"]}}`},
		"two of one family": {change: `spec: {config: {apiVIPs: [192.168.111.5, 192.168.111.7], ingressVIPs: [192.168.111.6, ` +
			`"fd00::6"]}}`, refused: "two apiVIPs must be one IPv4 and one IPv6 address"},
		"two ingress of one family": {change: `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5"], ingressVIPs: [192.168.111.6, ` +
			`192.168.111.8]}}`, refused: "two ingressVIPs must be one IPv4 and one IPv6 address"},
		"three addresses": {
			change:  `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5", 192.168.111.9]}}`,
			refused: "must have at most 2 items",
		},
		"API without ingress": {
			change:  `spec: {config: {ingressVIPs: null}}`,
			refused: "apiVIPs and ingressVIPs must have the same number of addresses: one each, or two each for dual-stack",
		},
		"two API, one ingress": {
			change:  `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5"]}}`,
			refused: "must have the same number of addresses",
		},
		"API name, not address": {
			change:  `spec: {config: {apiVIPs: [api.lab]}}`,
			refused: "apiVIPs must be IP addresses, such as 192.168.111.5",
		},
		"ingress name, not address": {
			change:  `spec: {config: {ingressVIPs: [apps.lab]}}`,
			refused: "ingressVIPs must be IP addresses, such as 192.168.111.6",
		},
		"one address for both": {
			change:  `spec: {config: {ingressVIPs: [192.168.111.5]}}`,
			refused: "apiVIPs and ingressVIPs must be different addresses: change one of them, or set loadBalancer.type to UserManaged",
		},
		"one address for both, in two notations": {
			change:  `spec: {config: {apiVIPs: ["fd00::5"], ingressVIPs: ["fd00:0::5"]}}`,
			refused: "apiVIPs and ingressVIPs must be different addresses: change one of them, or set loadBalancer.type to UserManaged",
		},
		"one address for both of a user's load balancer": {
			change: `spec: {config: {loadBalancer: {type: UserManaged}, apiVIPs: ["fd00::5"], ingressVIPs: ["fd00:0::5"], ` +
				`machineNetwork: ["fd00::/64"]}}`,
		},
		"network with host bits": {
			change:  `spec: {config: {machineNetwork: [192.168.111.20/24]}}`,
			refused: "machineNetwork must contain network addresses without host bits: 192.168.111.0/24, not 192.168.111.20/24",
		},
		"IPv6 network with host bits": {change: `spec: {config: {apiVIPs: ["fd00::5"], ingressVIPs: ["fd00::6"], machineNetwork: ` +
			`["fd00::1/64"]}}`, refused: "machineNetwork must contain network addresses without host bits"},
		"IPv6 network in long form": {change: `spec: {config: {apiVIPs: ["fd00::5"], ingressVIPs: ["fd00::6"], ` +
			`machineNetwork: ["fd00:0:0:0::/64"]}}`},
		"network without prefix": {
			change:  `spec: {config: {machineNetwork: [192.168.111.0]}}`,
			refused: "machineNetwork must contain CIDRs such as 192.168.111.0/24",
		},
		"user's load balancer": {change: `spec: {config: {loadBalancer: {type: UserManaged}, apiVIPs: [10.1.1.1], ` +
			`ingressVIPs: [10.1.1.1], machineNetwork: [192.168.111.0/24, 10.1.1.0/24]}}`},
		"load balancer elsewhere": {
			change: `spec: {config: {loadBalancer: {type: UserManaged}, apiVIPs: [10.1.1.1], ` +
				`ingressVIPs: [192.168.111.6], machineNetwork: [192.168.111.0/24]}}`,
			refused: "each address of apiVIPs must be in a network of machineNetwork, also with a user-managed load balancer",
		},
		"its ingress elsewhere": {change: `spec: {config: {loadBalancer: {type: UserManaged}, ingressVIPs: ` +
			`[10.1.1.1], machineNetwork: [192.168.111.0/24]}}`, refused: "each address of ingressVIPs must be in a network of machineNetwork"},
		"load balancer, no network": {
			change: `spec: {config: {loadBalancer: {type: UserManaged}}}`,
			refused: "a user-managed load balancer needs its addresses in apiVIPs and ingressVIPs, and its network in " +
				"machineNetwork: set these fields",
		},
		"load balancer, no addresses": {change: `spec: {config: {loadBalancer: {type: UserManaged}, apiVIPs: null, ` +
			`ingressVIPs: null, machineNetwork: [192.168.111.0/24]}}`, refused: "a user-managed load balancer needs its addresses"},
		"unknown network plug-in": {change: `spec: {config: {networkType: Flannel}}`, refused: "spec.config.networkType: Unsupported value"},
		"unknown type of load balancer": {
			change:  `spec: {config: {loadBalancer: {type: Foreign}}}`,
			refused: "loadBalancer.type: Unsupported value",
		},
		"cluster name with a dot": {change: `spec: {config: {clusterName: lab.one}}`, refused: "clusterName must be one DNS label"},
		"domain with a label of 64": {
			change:  `spec: {config: {baseDomain: ` + strings.Repeat("a", 64) + `.example.com}}`,
			refused: "baseDomain must be a DNS domain such as example.com",
		},
		"domain of an IP address":  {change: `spec: {config: {baseDomain: 192.168.111.10}}`, refused: "cannot be an IP address"},
		"domain that ends with c":  {change: `spec: {config: {baseDomain: example.c}}`, refused: "must end with a label of two"},
		"domain of a single label": {change: `spec: {config: {baseDomain: lab}}`},
		"domain in upper case": {
			change: `spec: {config: {baseDomain: Lab.example.com}}`, refused: "baseDomain must be a DNS domain such as example.com",
		},
	}}
}

// authority has the form of a CA certificate; notPEM is the message for any other text.
const (
	authority = "-----BEGIN CERTIFICATE-----\nMIIB+/==\n-----END CERTIFICATE-----\n"
	notPEM    = "additionalTrustBundle must contain PEM certificates (-----BEGIN CERTIFICATE-----) and nothing else"
)

// bundleOf returns a patch that sets a trust bundle below a path.
func bundleOf(path, bundle string) string {
	levels := strings.Split(path, ".")
	return strings.Join(levels, ": {") + fmt.Sprintf(": {kubeconfig: {additionalTrustBundle: %q}}", bundle) +
		strings.Repeat("}", len(levels)-1)
}

func controlPlaneSettingsAdmissions() admissions {
	return admissions{minimalControlPlane, map[string]admission{
		"encryption by TPM": {change: `spec: {config: {diskEncryption: {enableOn: all, mode: tpmv2}}}`},
		"encryption by Tang": {change: `spec: {config: {diskEncryption: {enableOn: all, mode: tang, tangServers: ` +
			`'[{"url":"http://tang","thumbprint":"x"}]'}}}`},
		"Tang without servers": {
			change:  `spec: {config: {diskEncryption: {enableOn: all, mode: tang}}}`,
			refused: "mode tang needs tangServers",
		},
		"encryption of masters and workers": {change: `spec: {config: {diskEncryption: {enableOn: "masters,workers", mode: tpmv2}}}`},
		"unknown set of encrypted hosts": {
			change:  `spec: {config: {diskEncryption: {enableOn: "workers,masters", mode: tpmv2}}}`,
			refused: "enableOn: Unsupported value",
		},
		"host prefixes":             {change: `spec: {config: {hostPrefix: {ipv4: 24, ipv6: 64}}}`},
		"host prefix without value": {change: `spec: {config: {hostPrefix: {}}}`, refused: "should have at least 1 properties"},
		"host prefix too long":      {change: `spec: {config: {hostPrefix: {ipv4: 33}}}`, refused: "hostPrefix.ipv4"},
		"hyperthreading":            {change: `spec: {config: {hyperthreading: {controlPlane: Disabled, workers: Enabled}}}`},
		"hyperthreading maybe": {
			change:  `spec: {config: {hyperthreading: {workers: Maybe}}}`,
			refused: "hyperthreading.workers: Unsupported value",
		},
		"external platform": {change: `spec: {config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {name: ` +
			`metal-stack, cloudControllerManager: External}}}`},
		"encryption by a password": {
			change:  `spec: {config: {diskEncryption: {enableOn: all, mode: password}}}`,
			refused: "diskEncryption.mode: Unsupported value",
		},
		"controller of the platform": {change: `spec: {config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {name: ` +
			`metal-stack, cloudControllerManager: Internal}}}`, refused: "cloudControllerManager: Unsupported value"},
		"external platform without name": {
			change:  `spec: {config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {}}}`,
			refused: "externalPlatform.name: Required value",
		},
		"external platform with virtual addresses": {
			change:  `spec: {replicas: 3, config: {apiVIPs: [192.168.111.5], ingressVIPs: [192.168.111.4], externalPlatform: {name: metal-stack}}}`,
			refused: "a cluster on an external platform has no VIPs",
		},
		"unknown capability set": {
			change:  `spec: {config: {capabilities: {baselineCapability: Some}}}`,
			refused: "baselineCapability must be None, vCurrent or a release",
		},
		"NTP servers": {change: `spec: {config: {ntpSources: [ntp.example.com, "fd00::1"]}}`},
		"two NTP servers in one item": {
			change:  `spec: {config: {ntpSources: ["a.example.com,b.example.com"]}}`,
			refused: "ntpSources must contain hostnames or IP addresses",
		},
		"ignored validations": {
			change: `spec: {config: {ignoredValidations: {cluster: [ntp-server-configured], hosts: [has-memory-for-role, ntp-synced]}}}`,
		},
		"no ignored validation": {change: `spec: {config: {ignoredValidations: {}}}`, refused: "should have at least 1 properties"},
		"validation of the cluster that cannot be ignored": {
			change:  `spec: {config: {ignoredValidations: {cluster: [pull-secret-set]}}}`,
			refused: "assisted-service cannot ignore api-vips-defined,",
		},
		"validation of hosts that cannot be ignored": {
			change:  `spec: {config: {ignoredValidations: {hosts: [hostname-unique]}}}`,
			refused: "assisted-service cannot ignore connected,",
		},
		"validation of hosts that do not belong to the cluster yet": {
			change:  `spec: {config: {ignoredValidations: {hosts: [has-min-memory]}}}`,
			refused: "must pass before a host is bound to the cluster, and cannot be ignored: remove them",
		},
		"all validations": {
			change:  `spec: {config: {ignoredValidations: {hosts: [all]}}}`,
			refused: "name each validation to ignore instead of all",
		},
		"several validations in one item": {
			change:  `spec: {config: {ignoredValidations: {hosts: ["ntp-synced,connected"]}}}`,
			refused: "ignoredValidations.hosts must contain IDs of validations",
		},
		"validation of the cluster in upper case": {
			change:  `spec: {config: {ignoredValidations: {cluster: [NTP-server-configured]}}}`,
			refused: "ignoredValidations.cluster must contain IDs of validations",
		},
		"install-config override": {change: `spec: {config: {installConfigOverride: '{"networking":{"networkType":"Cilium"}}'}}`},
		"override that is YAML": {
			change:  `spec: {config: {installConfigOverride: 'networking: {}'}}`,
			refused: "installConfigOverride must be a JSON object",
		},
		"authorities": {change: bundleOf("spec", strings.Repeat(authority, 16))},
		"too many authorities": {
			change:  bundleOf("spec", strings.Repeat(authority, 17)),
			refused: "additionalTrustBundle must contain at most 16 certificates",
		},
		"a private key as authority": {
			change:  bundleOf("spec", authority+strings.ReplaceAll(authority, "CERTIFICATE", "PRIVATE KEY")),
			refused: notPEM,
		},
		"authorities with a comment":  {change: bundleOf("spec", "# mine\n"+authority), refused: notPEM},
		"a truncated authority":       {change: bundleOf("spec", strings.TrimSuffix(authority, "-----\n")), refused: notPEM},
		"kubeconfig without settings": {change: `spec: {kubeconfig: {}}`, refused: "should have at least 1 properties"},
		"unknown field":               {change: `spec: {config: {baseDomian: x}}`, refused: "unknown fields: spec.config.baseDomian"},
	}}
}

func controlPlaneUpdateAdmissions() admissions {
	const (
		notNow   = "spec.replicas cannot change while the cluster is being installed"
		network  = "apiVIPs, ingressVIPs, machineNetwork, networkType and loadBalancer cannot change once the installation has started"
		fixed    = "hostPrefix, externalPlatform and hyperthreading cannot change once the installation has started"
		settings = "the installation has started: change proxy, diskEncryption, capabilities, manifests, " +
			"mastersSchedulable, SSH key and registry mirrors in the installed cluster instead"
	)
	in := func(phase, more string) string { return `{status: {installation: {phase: ` + phase + `}}` + more + `}` }
	return admissions{minimalControlPlane, map[string]admission{
		"base domain": {
			before: in("Pending", ""), change: `spec: {config: {baseDomain: other.example.com}}`,
			refused: "baseDomain is immutable",
		},
		"cluster name set later": {before: in("Pending", ""), change: `spec: {config: {clusterName: other}}`},
		"cluster name changed": {
			before: in("Preparing", `, spec: {config: {clusterName: one}}`),
			change: in("Preparing", `, spec: {config: {clusterName: other}}`), refused: "clusterName cannot change",
		},
		"replicas before installation":    {before: in("Pending", ""), change: in("Pending", `, spec: {replicas: 5}`)},
		"replicas while preparing":        {before: in("Preparing", ""), change: in("Preparing", `, spec: {replicas: 5}`), refused: notNow},
		"replicas while installing":       {before: in("Installing", ""), change: in("Installing", `, spec: {replicas: 5}`), refused: notNow},
		"replicas while finalizing":       {before: in("Finalizing", ""), change: in("Finalizing", `, spec: {replicas: 5}`), refused: notNow},
		"host prefix before installation": {before: in("Pending", ""), change: in("Pending", `, spec: {config: {hostPrefix: {ipv4: 24}}}`)},
		"host prefix once installed": {
			before: in("Installed", ""),
			change: in("Installed", `, spec: {config: {hostPrefix: {ipv4: 24}}}`), refused: fixed,
		},
		"external platform while installing": {
			before: in("Installing", ""),
			change: in("Installing", `, spec: {config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {name: other}}}`), refused: fixed,
		},
		"hyperthreading while preparing": {
			before: in("Preparing", `, spec: {config: {hyperthreading: {workers: Disabled}}}`),
			change: in("Preparing", ""), refused: fixed,
		},
		"hyperthreading unchanged": {
			before: in("Installed", `, spec: {config: {hyperthreading: {workers: Disabled}}}`),
			change: in("Installed", `, spec: {config: {hyperthreading: {workers: Disabled}}}`),
		},
		"replicas of an installed cluster":  {before: in("Installed", ""), change: in("Installed", `, spec: {replicas: 5}`)},
		"replicas of a failed installation": {before: in("Failed", ""), change: in("Failed", `, spec: {replicas: 5}`)},
		"installed cluster to single node": {
			before: in("Installed", `, spec: {config: {apiVIPs: null, ingressVIPs: null}}`),
			change: in("Installed", `, spec: {replicas: 1, config: {apiVIPs: null, ingressVIPs: null}}`),
			refused: "replicas cannot change from or to 1 once the installation has started: a single-node cluster cannot " +
				"become a multi-node cluster, nor vice versa",
		},
		"VIP before installation": {before: in("Pending", ""), change: in("Pending", `, spec: {config: {apiVIPs: [192.168.111.7]}}`)},
		"VIP while installing": {
			before: in("Installing", ""),
			change: in("Installing", `, spec: {config: {apiVIPs: [192.168.111.7]}}`), refused: network,
		},
		"machine network once installed": {
			before: in("Installed", ""),
			change: in("Installed", `, spec: {config: {machineNetwork: [192.168.111.0/24]}}`), refused: network,
		},
		"network plug-in once installed": {
			before: in("Installed", ""), change: in("Installed", `, spec: {config: {networkType: Calico}}`),
			refused: network,
		},
		"proxy while installing": {
			before: in("Installing", ""),
			change: in("Installing", `, spec: {config: {proxy: {httpProxy: "http://p"}}}`), refused: settings,
		},
		"ssh key once installed": {
			before: in("Installed", ""), change: in("Installed", `, spec: {config: {sshAuthorizedKey: k}}`),
			refused: settings,
		},
		"manifests once installed": {
			before: in("Installed", ""),
			change: in("Installed", `, spec: {config: {manifestsConfigMapRefs: [{name: m}]}}`), refused: settings,
		},
		"registry mirrors once installed": {
			before: in("Installed", ""), change: in("Installed", `, spec: {config: {imageRegistryRef: {name: m}}}`), refused: settings,
		},
		"NTP servers once installed": {
			before: in("Installed", ""), change: in("Installed", `, spec: {config: {ntpSources: [ntp.example.com]}}`),
			refused: "the installation has started: change the NTP servers by a MachineConfig",
		},
		"ignored validations once installed": {
			before:  in("Installed", `, spec: {config: {ignoredValidations: {hosts: [ntp-synced]}}}`),
			change:  in("Installed", `, spec: {config: {ignoredValidations: {hosts: [has-memory-for-role]}}}`),
			refused: "the installation has started: change the annotations of the AgentClusterInstall instead of ignoredValidations",
		},
		"hold reverted while preparing": {
			before: in("Preparing", `, spec: {config: {holdInstallation: true}}`),
			change: in("Preparing", `, spec: {config: {holdInstallation: false}}`),
		},
		"release and pull secret of an installed cluster": {
			before: in("Installed", ""), change: in("Installed", `, spec: {distributionVersion: 4.19.11, config: {pullSecretRef: {name: other}}}`),
		},
		"progress of the installation": {before: in("Pending", ""), change: in("Installing", "")},
	}}
}

func controlPlaneTemplateAdmissions() admissions {
	const base = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlaneTemplate
metadata: {name: lab}
spec: {template: {spec: {config: {baseDomain: lab.example.com}}}}
`
	return admissions{base, map[string]admission{
		"settings":    {change: `spec: {template: {spec: {machineTemplate: {spec: {deletion: {nodeDrainTimeoutSeconds: 600}}}}}}`},
		"authorities": {change: bundleOf("spec.template.spec", authority)},
		"too many authorities": {
			change:  bundleOf("spec.template.spec", strings.Repeat(authority, 17)),
			refused: "additionalTrustBundle must contain at most 16 certificates",
		},
		"authorities with a comment": {change: bundleOf("spec.template.spec", "# mine"), refused: notPEM},
		"an arbiter":                 {change: `spec: {template: {spec: {arbiter: {}}}}`},
		"fencing":                    {change: `spec: {template: {spec: {fencing: {credentialsFrom: BareMetalHosts}}}}`},
		"an arbiter in a pool of workers": {
			change:  `spec: {template: {spec: {arbiter: {openshiftAssistedConfigSpec: {machineConfigPool: infra}}}}}`,
			refused: "machineConfigPool is for workers: remove it, the host of an arbiter belongs to the pool arbiter",
		},
		"an arbiter with a role": {
			change:  `spec: {template: {spec: {arbiter: {openshiftAssistedConfigSpec: {role: Arbiter}}}}}`,
			refused: "role of an arbiter is set by the control plane provider: remove it",
		},
		"arbiters by the role of all": {
			change:  `spec: {template: {spec: {openshiftAssistedConfigSpec: {role: Arbiter}}}}`,
			refused: "role is set by the control plane provider: remove it, and set spec.arbiter",
		},
		"a version, which the topology sets": {
			change:  `spec: {template: {spec: {version: v1.32.7}}}`,
			refused: "unknown fields: spec.template.spec.version",
		},
		"a release": {change: `spec: {template: {spec: {distributionVersion: 4.19.10}}}`},
		"a minor version as release": {
			change:  `spec: {template: {spec: {distributionVersion: "4.19"}}}`,
			refused: "distributionVersion must be a full release such as 4.19.10",
		},
		"a version of Kubernetes as release": {
			change: `spec: {template: {spec: {distributionVersion: v1.32.7}}}`, refused: "the Kubernetes version belongs into version",
		},
		"bad installation": {
			change:  `spec: {template: {spec: {config: {apiVIPs: [192.168.111.5]}}}}`,
			refused: "must have the same number of addresses",
		},
	}}
}
