package assistedsim

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// The rules of this file are those of the real service of April 2025; checkRegistrations
// (test/env/assistedservice) compares them. Registration: internal/bminventory, RegisterClusterInternal. Later
// changes: internal/controller/controllers, updateIfNeeded.
var (
	clusterName           = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	clusterNameOnNone     = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)*$`)
	baseDomainOfOneLabel  = regexp.MustCompile(`^[a-z\d]([\-]*[a-z\d]+)+$`)
	baseDomainOfMore      = regexp.MustCompile(`^([a-z\d]([\-]*[a-z\d]+)*\.)+[a-z\d]+([\-]*[a-z\d]+)+$`)
	dottedDecimal         = regexp.MustCompile(`^\d+(\.\d+){3}$`)
	maxDNSLabel, maxDNSof = 63, 191
)

// checkName checks the names of a cluster, for registration and rename.
func checkName(cd *hivev1.ClusterDeploymentSpec, platform hiveext.PlatformType) error {
	name, domain := cd.ClusterName, cd.BaseDomain
	if platform == hiveext.NonePlatformType && !clusterNameOnNone.MatchString(name) || platform != hiveext.NonePlatformType &&
		!clusterName.MatchString(name) {
		return inputErrorf("Cluster name format is not valid: '%s'. Name must start and end with either a letter or number "+
			"and consist of lower-case letters, numbers, and hyphens. "+
			"Subdomains in cluster names are only valid with none platform.", name)
	}
	if !baseDomainOfOneLabel.MatchString(domain) && (!baseDomainOfMore.MatchString(domain) || dottedDecimal.MatchString(domain)) {
		return inputErrorf("DNS format mismatch: %s domain name is not valid", domain)
	}
	apps := "apps." + name + "." + domain
	if len(apps) > maxDNSof {
		return inputErrorf("Combination of cluster name and base DNS domain too long")
	}
	for _, label := range strings.Split(apps, ".") {
		if len(label) > maxDNSLabel {
			return inputErrorf("DNS label '%s' is longer than 63 bytes", label)
		}
	}
	return nil
}

// checkFamilies checks the networks of a cluster. With two address families, each list has one IPv4 network
// followed by one IPv6 network.
func checkFamilies(spec *hiveext.AgentClusterInstallSpec) error {
	pods := []string{}
	for _, network := range spec.Networking.ClusterNetwork {
		pods = append(pods, network.CIDR)
	}
	lists := []struct {
		name  string
		cidrs []string
	}{{"machine", machineNetworks(spec)}, {"service", spec.Networking.ServiceNetwork}, {"cluster", pods}}
	if !slices.ContainsFunc(lists, func(l struct {
		name  string
		cidrs []string
	},
	) bool {
		return slices.ContainsFunc(l.cidrs, isIPv4) && slices.ContainsFunc(l.cidrs, isIPv6)
	}) {
		if len(lists[0].cidrs) > 1 && !userManagedLoadBalancer(spec) {
			return inputErrorf("Single-stack cluster cannot contain multiple Machine Networks")
		}
		return nil
	}
	if userManagedLoadBalancer(spec) {
		return inputErrorf("cannot use User Managed Load Balancer because it's not compatible with Dual-Stack")
	}
	for _, list := range lists {
		switch {
		case len(list.cidrs) == 0 && list.name == "machine":
			return inputErrorf("Dual-stack cluster cannot be created with empty Machine Networks")
		case len(list.cidrs) != 2:
			return inputErrorf("Expected 2 %s networks, found %d", list.name, len(list.cidrs))
		case !isIPv4(list.cidrs[0]):
			return inputErrorf("First %s network has to be IPv4 subnet", list.name)
		case !isIPv6(list.cidrs[1]):
			return inputErrorf("Second %s network has to be IPv6 subnet", list.name)
		}
	}
	return nil
}

// checkVIPs checks the VIPs of a cluster with machine networks. Each VIP must be in the network at the same
// position. A VIP of a user-managed load balancer may be in any of the networks.
func checkVIPs(spec *hiveext.AgentClusterInstallSpec) error {
	networks := machineNetworks(spec)
	if len(networks) == 0 {
		return nil
	}
	for kind, vips := range map[string][]string{"api-vip": spec.APIVIPs, "ingress-vip": spec.IngressVIPs} {
		for i, vip := range vips {
			of := networks[min(i, len(networks)-1):][:1]
			if userManagedLoadBalancer(spec) {
				of = networks
			}
			if inside(vip, of) {
				continue
			}
			return inputErrorf("%s <%s> does not belong to machine-network-cidr <%s>", kind, vip, strings.Join(of, ","))
		}
	}
	return nil
}

func isIPv4(cidr string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Addr().Is4()
}

func isIPv6(cidr string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Addr().Is6()
}

// checkRegistration checks a cluster before its registration.
func checkRegistration(cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) error {
	if err := checkFamilies(&aci.Spec); err != nil {
		return err
	}
	if err := checkVIPs(&aci.Spec); err != nil {
		return err
	}
	return checkName(&cd.Spec, (&cluster{spec: aci.Spec}).platform())
}

// acceptChanges applies changes of the objects to a registered cluster. A rejected change leaves the cluster
// unchanged. A removed field keeps its value. Some fields are compared only when another field has changed.
func (c *cluster) acceptChanges(cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) error {
	next := *aci.Spec.DeepCopy()
	if err := c.refuseUpdate(cd, &next); err != nil {
		return err
	}
	was := &c.spec
	if len(next.APIVIPs)+len(next.IngressVIPs) == 0 {
		next.APIVIPs, next.IngressVIPs = was.APIVIPs, was.IngressVIPs
	}
	if len(next.Networking.MachineNetwork) == 0 {
		next.Networking.MachineNetwork = was.Networking.MachineNetwork
	}
	if next.LoadBalancer == nil {
		next.LoadBalancer = was.LoadBalancer
	}
	if next.DiskEncryption == nil {
		next.DiskEncryption = was.DiskEncryption
	}
	if next.PlatformType == was.PlatformType {
		next.ExternalPlatformSpec = was.ExternalPlatformSpec
	}
	withdrawn := next.Proxy == nil
	if withdrawn {
		next.Proxy = was.Proxy
	}
	changed := c.name != cd.Spec.ClusterName || !equality.Semantic.DeepEqual(compared(was), compared(&next))
	switch {
	case !changed:
		next.MirrorRegistryRef = was.MirrorRegistryRef
	case withdrawn:
		next.Proxy = nil
	}
	c.name, c.spec = cd.Spec.ClusterName, next
	if err := c.override(aci.Annotations[assisted.InstallConfigOverridesAnnotation]); err != nil {
		return err
	}
	return c.ignoreValidations(aci)
}

// refuseUpdate returns an error for changes that a registered cluster does not support.
func (c *cluster) refuseUpdate(cd *hivev1.ClusterDeployment, next *hiveext.AgentClusterInstallSpec) error {
	was := &c.spec
	api, ingress := changedVIPs(was.APIVIPs, next.APIVIPs), changedVIPs(was.IngressVIPs, next.IngressVIPs)
	switch single := singleNode(next); {
	case c.singleNode() && !single:
		return inputErrorf("single-node clusters must have a single control plane node")
	case !c.singleNode() && single:
		return inputErrorf("there should be 3-5 dedicated control plane nodes for high availability mode Full in openshift version 4.18 or newer")
	case len(was.APIVIPs) > 0 && len(next.APIVIPs) == 0:
		return inputErrorf("User Managed Networking cannot be set with API VIPs")
	case api != ingress:
		return inputErrorf("configuration must include the same number of apiVIPs (got %d) and ingressVIPs (got %d)", api, ingress)
	}
	return checkName(&cd.Spec, (&cluster{spec: *next}).platform())
}

// changedVIPs returns the number of addresses of a changed list.
func changedVIPs(was, is []string) int {
	if slices.Equal(was, is) {
		return 0
	}
	return len(is)
}

// compared returns the fields whose change makes the service update a cluster.
func compared(spec *hiveext.AgentClusterInstallSpec) *hiveext.AgentClusterInstallSpec {
	kept := spec.DeepCopy()
	kept.ClusterMetadata, kept.HoldInstallation, kept.ManifestsConfigMapRef, kept.ManifestsConfigMapRefs,
		kept.ImageSetRef = nil, false, nil, nil, nil
	kept.ProvisionRequirements.WorkerAgents, kept.ProvisionRequirements.ArbiterAgents, kept.MirrorRegistryRef = 0, 0, nil
	kept.Networking.UserManagedNetworking = nil
	return kept
}

// override applies an override of the install-config. Services before April 2026 validate the override with a
// bootstrap host. With a user-managed load balancer, no bootstrap host exists before the installation.
func (c *cluster) override(override string) error {
	if c.overrides == override {
		return nil
	}
	if userManagedLoadBalancer(&c.spec) {
		return inputErrorf("Failed to parse 'agent-install.openshift.io/install-config-overrides' annotation: failed to set "+
			"the bootstap host related machine network as the first machine network element: "+
			"cluster %s has no bootstrap host", c.id)
	}
	c.overrides = override
	return nil
}
