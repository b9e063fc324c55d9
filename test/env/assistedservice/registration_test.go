package assistedservice

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/openshift/hive/apis/hive/v1/agent"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// change changes an AgentClusterInstall.
type change = func(*hiveext.AgentClusterInstall)

func onBareMetal(i *hiveext.AgentClusterInstall) {
	i.Spec.PlatformType, i.Spec.Networking.UserManagedNetworking = hiveext.BareMetalPlatformType, ptr.To(false)
	i.Spec.APIVIPs, i.Spec.IngressVIPs = []string{"192.168.111.5"}, []string{"192.168.111.6"}
}

func onNone(i *hiveext.AgentClusterInstall) {
	i.Spec.PlatformType, i.Spec.Networking.UserManagedNetworking = hiveext.NonePlatformType, ptr.To(true)
	i.Spec.APIVIPs, i.Spec.IngressVIPs = nil, nil
}

func ofOneNode(i *hiveext.AgentClusterInstall) {
	onNone(i)
	i.Spec.ProvisionRequirements.ControlPlaneAgents = 1
}

func ofThreeNodes(i *hiveext.AgentClusterInstall) {
	i.Spec.ProvisionRequirements.ControlPlaneAgents = 3
}

func withLoadBalancer(i *hiveext.AgentClusterInstall) {
	onBareMetal(i)
	i.Spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerTypeUserManaged}
	inNetwork(i)
}

func inNetwork(i *hiveext.AgentClusterInstall) {
	i.Spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "192.168.111.0/24"}}
}

func networksOf(cidrs ...string) []hiveext.MachineNetworkEntry {
	var networks []hiveext.MachineNetworkEntry
	for _, cidr := range cidrs {
		networks = append(networks, hiveext.MachineNetworkEntry{CIDR: cidr})
	}
	return networks
}

func ofTwoFamilies(i *hiveext.AgentClusterInstall) {
	i.Spec.Networking.MachineNetwork = networksOf("192.168.111.0/24", "fd00::/64")
	i.Spec.Networking.ClusterNetwork = append(i.Spec.Networking.ClusterNetwork, hiveext.ClusterNetworkEntry{CIDR: "fd01::/48", HostPrefix: 64})
	i.Spec.Networking.ServiceNetwork = append(i.Spec.Networking.ServiceNetwork, "fd02::/112")
}

func external(name string) change {
	return func(i *hiveext.AgentClusterInstall) {
		onNone(i)
		i.Spec.PlatformType, i.Spec.ExternalPlatformSpec = hiveext.ExternalPlatformType, &hiveext.ExternalPlatformSpec{PlatformName: name}
	}
}

// registrations are changes of the AgentClusterInstall of a registered cluster, with their result in the
// service. They show why the control plane provider registers some clusters again.
var registrations = map[string]struct {
	before, after change
	// refused is the error of the service, forbidden the error of the API server.
	refused, forbidden string
	// known are the values that the service has for the cluster afterwards.
	known any
	of    func(*models.Cluster) any
}{
	"disks-stay": {
		before: func(i *hiveext.AgentClusterInstall) {
			onBareMetal(i)
			i.Spec.DiskEncryption = &hiveext.DiskEncryption{EnableOn: ptr.To("all"), Mode: ptr.To("tpmv2")}
		},
		after: func(i *hiveext.AgentClusterInstall) { i.Spec.DiskEncryption = nil },
		known: "all", of: func(c *models.Cluster) any { return *c.DiskEncryption.EnableOn },
	},
	"proxy-stays": {
		before: func(i *hiveext.AgentClusterInstall) {
			onBareMetal(i)
			i.Spec.Proxy = &hiveext.Proxy{HTTPProxy: "http://former.example.com"}
		},
		after: func(i *hiveext.AgentClusterInstall) { i.Spec.Proxy = nil },
		known: "http://former.example.com", of: func(c *models.Cluster) any { return c.HTTPProxy },
	},
	"networks-stay": {
		before: func(i *hiveext.AgentClusterInstall) { onNone(i); inNetwork(i) },
		after:  func(i *hiveext.AgentClusterInstall) { i.Spec.Networking.MachineNetwork = nil },
		known:  1, of: func(c *models.Cluster) any { return len(c.MachineNetworks) },
	},
	"balancer-stays": {
		before: withLoadBalancer, after: func(i *hiveext.AgentClusterInstall) {
			i.Spec.LoadBalancer, i.Spec.SSHPublicKey = nil, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvcm1lcmZvcm1lcmZvcm1lcmZvcm1lcmZvcm1lcmZv later"
		},
		refused: "has no bootstrap host", // about the override, which shows that the service has reconciled
		known:   "user-managed", of: func(c *models.Cluster) any { return c.LoadBalancer.Type },
	},
	"external-stays": {before: external("former"), after: external("later"), forbidden: "platform name cannot be changed once set"},
	"external-added": {
		before: onNone, after: external("later"),
		known: "later", of: func(c *models.Cluster) any { return *c.Platform.External.PlatformName },
	},
	"key-goes": {
		before: func(i *hiveext.AgentClusterInstall) {
			onBareMetal(i)
			i.Spec.SSHPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvcm1lcmZvcm1lcmZvcm1lcmZvcm1lcmZvcm1lcmZv former"
		},
		after: func(i *hiveext.AgentClusterInstall) { i.Spec.SSHPublicKey = "" },
		known: "", of: func(c *models.Cluster) any { return c.SSHPublicKey },
	},
	"vips-added": {before: onNone, after: onBareMetal, known: 1, of: func(c *models.Cluster) any { return len(c.APIVips) }},
	"vips-go":    {before: onBareMetal, after: onNone, refused: "User Managed Networking cannot be set with API VIPs"},
	"one-vip": {
		before: onBareMetal, after: func(i *hiveext.AgentClusterInstall) { i.Spec.IngressVIPs = []string{"192.168.111.7"} },
		refused: "must include the same number of apiVIPs (got 0) and ingressVIPs (got 1)",
	},
	"one-to-three": {
		before: ofOneNode, after: func(i *hiveext.AgentClusterInstall) { onNone(i); ofThreeNodes(i) },
		refused: "single-node clusters must have a single control plane node",
	},
	"three-to-one": {before: onNone, after: ofOneNode, refused: "there should be 3-5 dedicated control plane nodes"},
}

// names are the names and base domains that the service registers or rejects.
var names = map[string]struct {
	name, domain string
	platform     change
	refused      string
}{
	"dot-none":  {name: "a.b", platform: onNone},
	"dot-metal": {name: "a.b", platform: onBareMetal, refused: "Cluster name format is not valid"},
	"label-63":  {name: strings.Repeat("a", 63), platform: onBareMetal},
	"label-64":  {name: strings.Repeat("a", 64), platform: onNone, refused: "is longer than 63 bytes"},
	"domain-64": {name: "site", domain: strings.Repeat("a", 64) + ".example.com", platform: onNone, refused: "is longer than 63 bytes"},
	"too-long": {
		name: "site", domain: strings.Repeat("abcdefgh.", 20) + "example.com", platform: onNone,
		refused: "Combination of cluster name and base DNS domain too long",
	},
	"address":   {name: "site", domain: "1.2.3.4", platform: onNone, refused: "DNS format mismatch"},
	"one-label": {name: "site", domain: "lab", platform: onNone},
	"short-end": {name: "site", domain: "example.c", platform: onNone, refused: "DNS format mismatch"},
	"balancer": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		withLoadBalancer(i)
		i.Spec.APIVIPs, i.Spec.IngressVIPs = []string{"198.51.100.5"}, []string{"198.51.100.5"}
	}, refused: "does not belong to machine-network-cidr"},
	"balancer-networks": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		withLoadBalancer(i)
		i.Spec.APIVIPs, i.Spec.IngressVIPs = []string{"198.51.100.5"}, []string{"198.51.100.5"}
		i.Spec.Networking.MachineNetwork = networksOf("192.0.2.0/24", "198.51.100.0/24")
	}},
	"balancer-dual": {
		name: "site", platform: func(i *hiveext.AgentClusterInstall) { withLoadBalancer(i); ofTwoFamilies(i) },
		refused: "because it's not compatible with",
	},
	"balancer-three": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		withLoadBalancer(i)
		ofTwoFamilies(i)
		i.Spec.Networking.MachineNetwork = networksOf("192.168.111.0/24", "198.51.100.0/24", "fd00::/64")
	}, refused: "Expected 2 machine networks, found 3"},
	"two-networks": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		onBareMetal(i)
		i.Spec.Networking.MachineNetwork = networksOf("192.168.111.0/24", "198.51.100.0/24")
	}, refused: "Single-stack cluster cannot contain multiple Machine Networks"},
	"two-networks-none": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		onNone(i)
		i.Spec.Networking.MachineNetwork = networksOf("192.168.111.0/24", "198.51.100.0/24")
	}, refused: "Single-stack cluster cannot contain multiple Machine Networks"},
	"dual-no-machines": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		onNone(i)
		ofTwoFamilies(i)
		i.Spec.Networking.MachineNetwork = nil
	}, refused: "Dual-stack cluster cannot be created with empty Machine Networks"},
	"dual-three-pods": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		onBareMetal(i)
		ofTwoFamilies(i)
		i.Spec.Networking.ClusterNetwork = append(i.Spec.Networking.ClusterNetwork,
			hiveext.ClusterNetworkEntry{CIDR: "10.0.0.0/16", HostPrefix: 23})
	}, refused: "Expected 2 cluster networks, found 3"},
	"dual-ipv4-vip": {name: "site", platform: func(i *hiveext.AgentClusterInstall) { onBareMetal(i); ofTwoFamilies(i) }},
	"dual-ipv6-vip": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		onBareMetal(i)
		ofTwoFamilies(i)
		i.Spec.APIVIPs, i.Spec.IngressVIPs = []string{"fd00::5"}, []string{"fd00::6"}
	}, refused: "does not belong to machine-network-cidr"},
	"dual-ipv6-first": {name: "site", platform: func(i *hiveext.AgentClusterInstall) { // services of 2026 accept it
		onNone(i)
		ofTwoFamilies(i)
		slices.Reverse(i.Spec.Networking.MachineNetwork)
	}, refused: "First machine network has to be IPv4 subnet"},
	"families": {name: "site", platform: func(i *hiveext.AgentClusterInstall) {
		onNone(i)
		i.Spec.Networking.ServiceNetwork = append(i.Spec.Networking.ServiceNetwork, "fd02::/112")
	}, refused: "found 1"},
}

// checkRegistrations shows why the control plane provider registers a cluster again, and checks names before it
// creates objects. The simulated service (test/assistedsim) has the same rules.
func checkRegistrations(ctx context.Context, t *testing.T, e *env.Env, service *Service) {
	for name, tc := range registrations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, c := NewWithT(t), e.Client()
			_, install := register(ctx, g, c, name, name, "", tc.before)
			g.Eventually(func(g Gomega) {
				g.Expect(synced(ctx, g, c, install)).To(HaveField("Status",
					corev1.ConditionTrue))
			}).WithTimeout(eventually).Should(Succeed())
			before := install.DeepCopy()
			tc.after(install)
			metav1.SetMetaDataAnnotation(&install.ObjectMeta, assisted.InstallConfigOverridesAnnotation, `{"fips":true}`)
			if tc.forbidden != "" {
				g.Expect(c.Patch(ctx, install, client.MergeFrom(before))).To(MatchError(ContainSubstring(tc.forbidden)))
				return
			}
			g.Expect(c.Patch(ctx, install, client.MergeFrom(before))).To(Succeed())
			g.Eventually(func(g Gomega) {
				if tc.refused != "" {
					g.Expect(synced(ctx, g, c, install)).To(And(HaveField("Status", corev1.ConditionFalse),
						HaveField("Message", ContainSubstring(tc.refused))))
				} else {
					g.Expect(known(ctx, g, service, install).InstallConfigOverrides).NotTo(BeEmpty(),
						"accepted in the same reconcile, after all other fields")
				}
				if tc.of != nil {
					g.Expect(tc.of(known(ctx, g, service, install))).To(Equal(tc.known))
				}
			}).WithTimeout(eventually).Should(Succeed())
		})
	}
	for id, tc := range names {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			g, c := NewWithT(t), e.Client()
			_, install := register(ctx, g, c, id, tc.name, tc.domain, tc.platform)
			g.Eventually(func(g Gomega) {
				if tc.refused == "" {
					g.Expect(synced(ctx, g, c, install)).To(HaveField("Status", corev1.ConditionTrue))
				} else {
					g.Expect(synced(ctx, g, c, install)).To(And(HaveField("Status", corev1.ConditionFalse),
						HaveField("Message", ContainSubstring(tc.refused))))
				}
			}).WithTimeout(eventually).Should(Succeed())
		})
	}
}

// register creates a changed cluster of three nodes.
func register(ctx context.Context, g Gomega, c client.Client, id, name, domain string,
	change change,
) (*hivev1.ClusterDeployment, *hiveext.AgentClusterInstall) {
	deployment, install := stated(id)
	deployment.Spec.ClusterName, deployment.Spec.BaseDomain = name, cmp.Or(domain, deployment.Spec.BaseDomain)
	change(install)
	g.Expect(c.Create(ctx, deployment)).To(Succeed())
	g.Expect(c.Create(ctx, install)).To(Succeed())
	return deployment, install
}

// stated returns the objects of a cluster.
func stated(name string) (*hivev1.ClusterDeployment, *hiveext.AgentClusterInstall) {
	meta := metav1.ObjectMeta{Namespace: rack, Name: name}
	install := &hiveext.AgentClusterInstall{ObjectMeta: meta, Spec: hiveext.AgentClusterInstallSpec{
		ClusterDeploymentRef: corev1.LocalObjectReference{Name: name},
		ImageSetRef:          &hivev1.ClusterImageSetReference{Name: rack},
		Networking: hiveext.Networking{
			ClusterNetwork: []hiveext.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}},
			ServiceNetwork: []string{"172.30.0.0/16"},
		},
		ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: 3},
		APIVIPs:               []string{"192.168.111.5"},
		IngressVIPs:           []string{"192.168.111.6"},
	}}
	deployment := &hivev1.ClusterDeployment{ObjectMeta: meta, Spec: hivev1.ClusterDeploymentSpec{
		BaseDomain: "example.com", ClusterName: name,
		PullSecretRef: &corev1.LocalObjectReference{Name: rack},
		Platform:      hivev1.Platform{AgentBareMetal: &agent.BareMetalPlatform{}},
		ClusterInstallRef: &hivev1.ClusterInstallLocalReference{
			Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall", Name: name,
		},
	}}
	return deployment, install
}

// synced returns the service's condition for the last change.
func synced(ctx context.Context, g Gomega, c client.Client, install *hiveext.AgentClusterInstall) hivev1.ClusterInstallCondition {
	g.Expect(c.Get(ctx, client.ObjectKeyFromObject(install), install)).To(Succeed())
	index := slices.IndexFunc(install.Status.Conditions,
		func(c hivev1.ClusterInstallCondition) bool { return c.Type == hiveext.ClusterSpecSyncedCondition })
	g.Expect(index).To(BeNumerically(">=", 0))
	return install.Status.Conditions[index]
}

// known returns the service's record of a cluster.
func known(ctx context.Context, g Gomega, service *Service, install *hiveext.AgentClusterInstall) *models.Cluster {
	events, err := url.Parse(install.Status.DebugInfo.EventsURL)
	g.Expect(err).NotTo(HaveOccurred())
	id := events.Query().Get("cluster_id")
	token, err := service.ClusterToken(id)
	g.Expect(err).NotTo(HaveOccurred())
	cluster := &models.Cluster{}
	g.Expect(json.Unmarshal(get(ctx, g, service, service.URL()+"/api/assisted-install/v2/clusters/"+id, token), cluster)).To(Succeed())
	return cluster
}
