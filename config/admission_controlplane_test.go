package config_test

import "testing"

const minimalControlPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlane
metadata: {name: lab}
spec:
  replicas: 3
  version: 4.19.10
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: lab}
  config: {baseDomain: lab.example.com, apiVIPs: [192.168.111.5], ingressVIPs: [192.168.111.6]}
`

func TestControlPlaneShapeAdmission(t *testing.T) {
	const badReplicas = "replicas must be 1 (single node), 3, 4 or 5"
	checkAdmissions(t, minimalControlPlane, map[string]admission{
		"three":                         {},
		"four":                          {change: `spec: {replicas: 4}`},
		"five":                          {change: `spec: {replicas: 5}`},
		"none":                          {change: `spec: {replicas: 0}`, refused: badReplicas},
		"two":                           {change: `spec: {replicas: 2}`, refused: badReplicas},
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
		"names that would collide": {
			change:  `spec: {machineNaming: {template: "{{ .cluster.name }}"}}`,
			refused: "template must contain {{ .random }}",
		},
		"a pool for control-plane hosts": {
			change:  `spec: {openshiftAssistedConfigSpec: {machineConfigPool: infra}}`,
			refused: "machineConfigPool is for workers: hosts of the control plane belong to the pool master",
		},
		"bad host settings": {
			change:  `spec: {openshiftAssistedConfigSpec: {nodeRegistration: {name: Node1}}}`,
			refused: "name must be a host name",
		},
	})
}

func TestControlPlaneReleaseAdmission(t *testing.T) {
	const digest = "quay.io/openshift-release-dev/ocp-release@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	checkAdmissions(t, minimalControlPlane, map[string]admission{
		"leading v":            {change: `spec: {version: v4.19.10}`},
		"OKD":                  {change: `spec: {version: 4.19.0-okd-scos.17}`},
		"release candidate":    {change: `spec: {version: 4.20.0-rc.1}`},
		"minor version only":   {change: `spec: {version: "4.19"}`, refused: "spec.version"},
		"channel":              {change: `spec: {version: stable-4.19}`, refused: "spec.version"},
		"no version":           {change: `spec: {version: null}`, refused: "spec.version: Required value"},
		"release by digest":    {change: `spec: {config: {releaseImage: "` + digest + `"}}`},
		"release by tag":       {change: `spec: {config: {releaseImage: "quay.io/openshift-release-dev/ocp-release:4.19.10-x86_64"}}`, refused: "spec.config.releaseImage"},
		"ClusterImageSet":      {change: `spec: {config: {clusterImageSetRef: {name: ocp-4.19}}}`},
		"digest and image set": {change: `spec: {config: {releaseImage: "` + digest + `", clusterImageSetRef: {name: x}}}`, refused: "give the release as releaseImage or as clusterImageSetRef, not both"},
	})
}

func TestControlPlaneNetworkAdmission(t *testing.T) {
	checkAdmissions(t, minimalControlPlane, map[string]admission{
		"inside the machine network":  {change: `spec: {config: {machineNetwork: [192.168.111.0/24]}}`},
		"inside one of two networks":  {change: `spec: {config: {machineNetwork: [10.0.0.0/24, 192.168.111.0/24]}}`},
		"API outside the networks":    {change: `spec: {config: {apiVIPs: [192.168.112.5], machineNetwork: [192.168.111.0/24]}}`, refused: "each of apiVIPs must lie in one of machineNetwork (or set loadBalancer.type to UserManaged)"},
		"ingress outside of networks": {change: `spec: {config: {ingressVIPs: [192.168.112.6], machineNetwork: [192.168.111.0/24]}}`, refused: "each of ingressVIPs must lie in one of machineNetwork (or set loadBalancer.type to UserManaged)"},
		"dual-stack":                  {change: `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5"], ingressVIPs: [192.168.111.6, "fd00::6"], machineNetwork: [192.168.111.0/24, "fd00::/64"]}}`},
		"two of one family":           {change: `spec: {config: {apiVIPs: [192.168.111.5, 192.168.111.7], ingressVIPs: [192.168.111.6, "fd00::6"]}}`, refused: "two apiVIPs must be one IPv4 and one IPv6 address"},
		"two ingress of one family":   {change: `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5"], ingressVIPs: [192.168.111.6, 192.168.111.8]}}`, refused: "two ingressVIPs must be one IPv4 and one IPv6 address"},
		"three addresses":             {change: `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5", 192.168.111.9]}}`, refused: "must have at most 2 items"},
		"API without ingress":         {change: `spec: {config: {ingressVIPs: null}}`, refused: "apiVIPs and ingressVIPs must have the same number of addresses: one each, or two each for dual-stack"},
		"two API, one ingress":        {change: `spec: {config: {apiVIPs: [192.168.111.5, "fd00::5"]}}`, refused: "must have the same number of addresses"},
		"API name, not address":       {change: `spec: {config: {apiVIPs: [api.lab]}}`, refused: "apiVIPs must be IP addresses"},
		"ingress name, not address":   {change: `spec: {config: {ingressVIPs: [apps.lab]}}`, refused: "ingressVIPs must be IP addresses"},
		"one address for both":        {change: `spec: {config: {ingressVIPs: [192.168.111.5]}}`, refused: "apiVIPs and ingressVIPs must be different addresses (or set loadBalancer.type to UserManaged)"},
		"network without prefix":      {change: `spec: {config: {machineNetwork: [192.168.111.0]}}`, refused: "machineNetwork must be CIDRs such as 192.168.111.0/24"},
		"user's load balancer":        {change: `spec: {config: {loadBalancer: {type: UserManaged}, apiVIPs: [10.1.1.1], ingressVIPs: [10.1.1.1], machineNetwork: [192.168.111.0/24]}}`},
		"load balancer, no network":   {change: `spec: {config: {loadBalancer: {type: UserManaged}}}`, refused: "a user-managed load balancer needs its addresses in apiVIPs and ingressVIPs, and machineNetwork"},
		"load balancer, no addresses": {change: `spec: {config: {loadBalancer: {type: UserManaged}, apiVIPs: null, ingressVIPs: null, machineNetwork: [192.168.111.0/24]}}`, refused: "a user-managed load balancer needs its addresses"},
		"unknown network plug-in":     {change: `spec: {config: {networkType: Flannel}}`, refused: "spec.config.networkType: Unsupported value"},
		"domain in upper case":        {change: `spec: {config: {baseDomain: Lab.example.com}}`, refused: "spec.config.baseDomain"},
	})
}

func TestControlPlaneSettingsAdmission(t *testing.T) {
	checkAdmissions(t, minimalControlPlane, map[string]admission{
		"encryption by TPM":           {change: `spec: {config: {diskEncryption: {enableOn: all, mode: tpmv2}}}`},
		"encryption by Tang":          {change: `spec: {config: {diskEncryption: {enableOn: all, mode: tang, tangServers: '[{"url":"http://tang","thumbprint":"x"}]'}}}`},
		"Tang without servers":        {change: `spec: {config: {diskEncryption: {enableOn: all, mode: tang}}}`, refused: "mode tang needs tangServers"},
		"encryption of two kinds":     {change: `spec: {config: {diskEncryption: {enableOn: "masters,workers", mode: tpmv2}}}`},
		"encryption of nobody":        {change: `spec: {config: {diskEncryption: {enableOn: "workers,masters", mode: tpmv2}}}`, refused: "enableOn: Unsupported value"},
		"host prefixes":               {change: `spec: {config: {hostPrefix: {ipv4: 24, ipv6: 64}}}`},
		"host prefix of nothing":      {change: `spec: {config: {hostPrefix: {}}}`, refused: "should have at least 1 properties"},
		"host prefix too long":        {change: `spec: {config: {hostPrefix: {ipv4: 33}}}`, refused: "hostPrefix.ipv4"},
		"hyperthreading":              {change: `spec: {config: {hyperthreading: {controlPlane: Disabled, workers: Enabled}}}`},
		"hyperthreading maybe":        {change: `spec: {config: {hyperthreading: {workers: Maybe}}}`, refused: "hyperthreading.workers: Unsupported value"},
		"external platform":           {change: `spec: {config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {name: metal-stack, cloudControllerManager: External}}}`},
		"external platform of nobody": {change: `spec: {config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {}}}`, refused: "externalPlatform.name: Required value"},
		"external platform with virtual addresses": {
			change:  `spec: {replicas: 3, config: {apiVIPs: [192.168.111.5], ingressVIPs: [192.168.111.4], externalPlatform: {name: metal-stack}}}`,
			refused: "on an external platform the cluster has no virtual addresses",
		},
		"unknown capability set":  {change: `spec: {config: {capabilities: {baselineCapability: Some}}}`, refused: "baselineCapability"},
		"install-config override": {change: `spec: {config: {installConfigOverride: '{"networking":{"networkType":"Cilium"}}'}}`},
		"override that is YAML":   {change: `spec: {config: {installConfigOverride: 'networking: {}'}}`, refused: "installConfigOverride must be a JSON object"},
		"unknown field":           {change: `spec: {config: {baseDomian: x}}`, refused: "unknown fields: spec.config.baseDomian"},
	})
}

func TestControlPlaneUpdateAdmission(t *testing.T) {
	const (
		notNow   = "spec.replicas cannot change while the cluster is being installed"
		network  = "apiVIPs, ingressVIPs, machineNetwork, networkType and loadBalancer cannot change once the installation has started"
		fixed    = "hostPrefix, externalPlatform and hyperthreading cannot change once the installation has started"
		settings = "the installation has started: change proxy, diskEncryption, capabilities, manifests, mastersSchedulable, ssh key and registry mirrors in the installed cluster instead"
	)
	in := func(phase, more string) string { return `{status: {installation: {phase: ` + phase + `}}` + more + `}` }
	checkAdmissions(t, minimalControlPlane, map[string]admission{
		"base domain":                     {before: in("Pending", ""), change: `spec: {config: {baseDomain: other.example.com}}`, refused: "baseDomain is immutable"},
		"cluster name given later":        {before: in("Pending", ""), change: `spec: {config: {clusterName: other}}`, refused: "clusterName is immutable"},
		"cluster name changed":            {before: `spec: {config: {clusterName: one}}`, change: `spec: {config: {clusterName: other}}`, refused: "clusterName is immutable"},
		"replicas before installation":    {before: in("Pending", ""), change: in("Pending", `, spec: {replicas: 5}`)},
		"replicas while preparing":        {before: in("Preparing", ""), change: in("Preparing", `, spec: {replicas: 5}`), refused: notNow},
		"replicas while installing":       {before: in("Installing", ""), change: in("Installing", `, spec: {replicas: 5}`), refused: notNow},
		"replicas while finalizing":       {before: in("Finalizing", ""), change: in("Finalizing", `, spec: {replicas: 5}`), refused: notNow},
		"host prefix before installation": {before: in("Pending", ""), change: in("Pending", `, spec: {config: {hostPrefix: {ipv4: 24}}}`)},
		"host prefix once installed":      {before: in("Installed", ""), change: in("Installed", `, spec: {config: {hostPrefix: {ipv4: 24}}}`), refused: fixed},
		"external platform while installing": {
			before: in("Installing", ""), change: in("Installing", `, spec: {config: {apiVIPs: null, ingressVIPs: null, externalPlatform: {name: other}}}`), refused: fixed,
		},
		"hyperthreading while preparing":    {before: in("Preparing", `, spec: {config: {hyperthreading: {workers: Disabled}}}`), change: in("Preparing", ""), refused: fixed},
		"hyperthreading that stays":         {before: in("Installed", `, spec: {config: {hyperthreading: {workers: Disabled}}}`), change: in("Installed", `, spec: {config: {hyperthreading: {workers: Disabled}}}`)},
		"replicas of an installed cluster":  {before: in("Installed", ""), change: in("Installed", `, spec: {replicas: 5}`)},
		"replicas of a failed installation": {before: in("Failed", ""), change: in("Failed", `, spec: {replicas: 5}`)},
		"installed cluster to single node": {
			before:  in("Installed", `, spec: {config: {apiVIPs: null, ingressVIPs: null}}`),
			change:  in("Installed", `, spec: {replicas: 1, config: {apiVIPs: null, ingressVIPs: null}}`),
			refused: "an installed single-node cluster cannot become a multi-node one, nor the other way round",
		},
		"VIP before installation":        {before: in("Pending", ""), change: in("Pending", `, spec: {config: {apiVIPs: [192.168.111.7]}}`)},
		"VIP while installing":           {before: in("Installing", ""), change: in("Installing", `, spec: {config: {apiVIPs: [192.168.111.7]}}`), refused: network},
		"machine network once installed": {before: in("Installed", ""), change: in("Installed", `, spec: {config: {machineNetwork: [192.168.111.0/24]}}`), refused: network},
		"network plug-in once installed": {before: in("Installed", ""), change: in("Installed", `, spec: {config: {networkType: Calico}}`), refused: network},
		"proxy while installing":         {before: in("Installing", ""), change: in("Installing", `, spec: {config: {proxy: {httpProxy: "http://p"}}}`), refused: settings},
		"ssh key once installed":         {before: in("Installed", ""), change: in("Installed", `, spec: {config: {sshAuthorizedKey: k}}`), refused: settings},
		"manifests once installed":       {before: in("Installed", ""), change: in("Installed", `, spec: {config: {manifestsConfigMapRefs: [{name: m}]}}`), refused: settings},
		"registry mirrors once installed": {
			before: in("Installed", ""), change: in("Installed", `, spec: {config: {imageRegistryRef: {name: m}}}`), refused: settings,
		},
		"hold taken back while preparing": {
			before: in("Preparing", `, spec: {config: {holdInstallation: true}}`), change: in("Preparing", `, spec: {config: {holdInstallation: false}}`),
		},
		"version and pull secret of an installed cluster": {
			before: in("Installed", ""), change: in("Installed", `, spec: {version: 4.19.11, config: {pullSecretRef: {name: other}}}`),
		},
		"progress of the installation": {before: in("Pending", ""), change: in("Installing", "")},
	})
}

func TestControlPlaneTemplateAdmission(t *testing.T) {
	const base = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlaneTemplate
metadata: {name: lab}
spec: {template: {spec: {config: {baseDomain: lab.example.com}}}}
`
	checkAdmissions(t, base, map[string]admission{
		"settings": {change: `spec: {template: {spec: {machineTemplate: {spec: {deletion: {nodeDrainTimeoutSeconds: 600}}}}}}`},
		"what the topology sets": {
			change:  `spec: {template: {spec: {version: 4.19.10}}}`,
			refused: "unknown fields: spec.template.spec.version",
		},
		"bad installation": {
			change:  `spec: {template: {spec: {config: {apiVIPs: [192.168.111.5]}}}}`,
			refused: "must have the same number of addresses",
		},
	})
}
