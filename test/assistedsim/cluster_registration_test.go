package assistedsim

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

type install = hiveext.AgentClusterInstall

// described returns the objects of a cluster of three nodes with VIPs.
func described(changes ...func(*install)) (*hivev1.ClusterDeployment, *install) {
	deployment := &hivev1.ClusterDeployment{Spec: hivev1.ClusterDeploymentSpec{ClusterName: "site", BaseDomain: "example.com"}}
	aci := &install{}
	aci.Spec.PlatformType, aci.Spec.ProvisionRequirements.ControlPlaneAgents = hiveext.BareMetalPlatformType, 3
	aci.Spec.APIVIPs, aci.Spec.IngressVIPs = []string{"192.168.111.5"}, []string{"192.168.111.6"}
	aci.Spec.Networking.ClusterNetwork = []hiveext.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}}
	aci.Spec.Networking.ServiceNetwork = []string{"172.30.0.0/16"}
	for _, change := range changes {
		change(aci)
	}
	return deployment, aci
}

func onNone(i *install) {
	i.Spec.PlatformType, i.Spec.APIVIPs, i.Spec.IngressVIPs = hiveext.NonePlatformType, nil, nil
}

func withLoadBalancer(i *install) {
	i.Spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerTypeUserManaged}
}

func TestChecksOfRegistration(t *testing.T) {
	for name, tc := range map[string]struct {
		name, domain string
		change       func(*install)
		refused      string
	}{
		"site": {}, "dot": {name: "a.b", refused: "Cluster name format is not valid"}, "dot on none": {name: "a.b", change: onNone},
		"63": {name: strings.Repeat("a", 63)}, "64": {name: strings.Repeat("a", 64), refused: "is longer than 63 bytes"},
		"label":   {domain: strings.Repeat("a", 64) + ".example.com", refused: "is longer than 63 bytes"},
		"long":    {domain: strings.Repeat("abcdefgh.", 20) + "com", refused: "too long"},
		"address": {domain: "1.2.3.4", refused: "DNS format mismatch"}, "end": {domain: "example.c", refused: "DNS format mismatch"},
		"services": {change: func(i *install) {
			i.Spec.Networking.ServiceNetwork = append(i.Spec.Networking.ServiceNetwork, "fd02::/112")
		}, refused: "Dual-stack cluster cannot be created with empty Machine Networks"},
		"IPv6 first": {change: func(i *install) {
			i.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "fd00::/64"}, {CIDR: "10.0.0.0/24"}}
		}, refused: "First machine network has to be IPv4 subnet"},
		"networks": {change: func(i *install) {
			i.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "10.0.1.0/24"}, {CIDR: "10.0.0.0/24"}}
		}, refused: "Single-stack cluster cannot contain multiple Machine Networks"},
		"balancer elsewhere": {change: func(i *install) {
			withLoadBalancer(i)
			i.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "192.0.2.0/24"}}
		}, refused: "does not belong to machine-network-cidr <192.0.2.0/24>"},
		"balancer in another network": {change: func(i *install) {
			withLoadBalancer(i)
			i.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "192.0.2.0/24"}, {CIDR: "192.168.111.0/24"}}
		}},
		"VIP elsewhere": {change: func(i *install) {
			i.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "192.0.2.0/24"}}
		}, refused: "does not belong to machine-network-cidr"},
	} {
		deployment, aci := described()
		if tc.change != nil {
			tc.change(aci)
		}
		if tc.name != "" {
			deployment.Spec.ClusterName = tc.name
		}
		if tc.domain != "" {
			deployment.Spec.BaseDomain = tc.domain
		}
		if err := checkRegistration(deployment, aci); tc.refused == "" {
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), name)
		} else {
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.refused)), name)
		}
	}
}

func TestAcceptedChangesOfRegisteredCluster(t *testing.T) {
	nothing := func(*install) {}
	proxy := func(i *install) { i.Spec.Proxy = &hiveext.Proxy{HTTPProxy: "http://former"} }
	mirrors := func(i *install) { i.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: "former"} }
	key := func(i *install) { i.Spec.SSHPublicKey = "later" }
	override := func(i *install) {
		i.Annotations = map[string]string{assisted.InstallConfigOverridesAnnotation: `{"fips":true}`}
	}
	for name, tc := range map[string]struct {
		before, after func(*install)
		refused       string
		value         func(*hiveext.AgentClusterInstallSpec) any
		kept          bool
	}{
		"a proxy": {
			before: proxy, after: nothing,
			value: func(s *hiveext.AgentClusterInstallSpec) any { return s.Proxy }, kept: true,
		},
		"a proxy and another key": {before: proxy, after: key, value: func(s *hiveext.AgentClusterInstallSpec) any { return s.Proxy }},
		"mirrors": {
			before: mirrors, after: nothing,
			value: func(s *hiveext.AgentClusterInstallSpec) any { return s.MirrorRegistryRef }, kept: true,
		},
		"mirrors and another key": {
			before: mirrors, after: key,
			value: func(s *hiveext.AgentClusterInstallSpec) any { return s.MirrorRegistryRef },
		},
		"disk encryption": {
			before: func(i *install) { i.Spec.DiskEncryption = &hiveext.DiskEncryption{Mode: ptr.To("tpmv2")} }, after: key,
			value: func(s *hiveext.AgentClusterInstallSpec) any { return s.DiskEncryption }, kept: true,
		},
		"a machine network": {
			before: func(i *install) {
				i.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "192.168.111.0/24"}}
			}, after: key,
			value: func(s *hiveext.AgentClusterInstallSpec) any { return s.Networking.MachineNetwork }, kept: true,
		},
		"a load balancer": {
			before: withLoadBalancer, after: key,
			value: func(s *hiveext.AgentClusterInstallSpec) any { return s.LoadBalancer }, kept: true,
		},
		"a key":   {before: key, after: nothing, value: func(s *hiveext.AgentClusterInstallSpec) any { return s.SSHPublicKey }},
		"no VIPs": {before: nothing, after: onNone, refused: "User Managed Networking cannot be set with API VIPs"},
		"one VIP": {
			before: nothing, after: func(i *install) { i.Spec.IngressVIPs = []string{"192.168.111.7"} },
			refused: "(got 0) and ingressVIPs (got 1)",
		},
		"a single node": {
			before: onNone,
			after:  func(i *install) { onNone(i); i.Spec.ProvisionRequirements.ControlPlaneAgents = 1 }, refused: "there should be 3-5 dedicated",
		},
		"three nodes": {
			before: func(i *install) { onNone(i); i.Spec.ProvisionRequirements.ControlPlaneAgents = 1 },
			after:  nothing, refused: "single-node clusters must have",
		},
		"override and own balancer": {before: withLoadBalancer, after: override, refused: "has no bootstrap host"},
		"override":                  {before: nothing, after: override, value: func(s *hiveext.AgentClusterInstallSpec) any { return s.Proxy }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment, before := described(tc.before)
			c := &cluster{name: deployment.Spec.ClusterName, spec: *before.Spec.DeepCopy()}
			_, after := described(tc.after)
			err := c.acceptChanges(deployment, after)
			if tc.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.refused)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if tc.kept {
				g.Expect(tc.value(&c.spec)).To(Equal(tc.value(&before.Spec)))
			} else {
				g.Expect(tc.value(&c.spec)).To(BeZero())
			}
		})
	}
}
