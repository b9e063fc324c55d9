package assistedsim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	igntypes "github.com/coreos/ignition/v2/config/v3_1/types"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func machineNetworks(spec *hiveext.AgentClusterInstallSpec) []string {
	var networks []string
	for _, entry := range spec.Networking.MachineNetwork {
		networks = append(networks, entry.CIDR)
	}
	return networks
}

func userManagedLoadBalancer(spec *hiveext.AgentClusterInstallSpec) bool {
	return spec.LoadBalancer != nil && spec.LoadBalancer.Type == hiveext.LoadBalancerTypeUserManaged
}

// outsideMachineNetworks returns an error text if a host lacks an address in the machine networks of its
// cluster, or "". With a user-managed load balancer one of the networks suffices. With user-managed networking
// and several hosts, the service does not check.
func outsideMachineNetworks(c *cluster, h *host) string {
	networks := machineNetworks(&c.spec)
	if len(networks) == 0 || h.inventory == nil || c.userManagedNetworking() && !c.singleNode() {
		return ""
	}
	missing := 0
	for _, network := range networks {
		if !addressed(h.inventory, network) {
			missing++
		}
	}
	switch own := userManagedLoadBalancer(&c.spec); {
	case own && missing == len(networks):
		return failingAnyMachineNetwork
	case !own && missing > 0:
		return failingMachineNetworks
	}
	return ""
}

// addressed reports whether a host has an address in a network.
func addressed(inventory *models.Inventory, network string) bool {
	return slices.ContainsFunc(inventory.Interfaces, func(nic *models.Interface) bool {
		return slices.ContainsFunc(slices.Concat(nic.IPV4Addresses, nic.IPV6Addresses), func(cidr string) bool {
			address, _, _ := strings.Cut(cidr, "/")
			return inside(address, []string{network})
		})
	})
}

// nmstate has the fields of a network configuration that determine a host's addresses.
type nmstate struct {
	Interfaces []struct {
		Name string  `json:"name"`
		IPv4 ipstate `json:"ipv4"`
		IPv6 ipstate `json:"ipv6"`
	} `json:"interfaces"`
}

type ipstate struct {
	Enabled bool `json:"enabled"`
	Address []struct {
		IP           string `json:"ip"`
		PrefixLength int    `json:"prefix-length"`
	} `json:"address"`
}

// networkFiles returns the files of NMStateConfigs in an image: a table of interfaces for each object, and a
// connection profile of NetworkManager for each interface.
func networkFiles(networks []aiv1beta1.NMStateConfig) ([]igntypes.File, error) {
	var files []igntypes.File
	for i := range networks {
		folder := fmt.Sprintf("/etc/assisted/network/host%d/", i)
		var table []byte
		for _, nic := range networks[i].Spec.Interfaces {
			table = fmt.Appendf(table, "%s=%s\n", nic.MacAddress, nic.Name)
		}
		files = append(files, ignitionFile(folder+"mac_interface.ini", table, 0o600))
		config := nmstate{}
		if err := yaml.Unmarshal(networks[i].Spec.Config, &config); err != nil {
			return nil, inputErrorf("cannot read the configuration of NMStateConfig %s: %v", networks[i].Name, err)
		}
		for _, nic := range config.Interfaces {
			profile := "[connection]\nid=" + nic.Name + "\n" + nic.IPv4.profile("ipv4") + nic.IPv6.profile("ipv6")
			files = append(files, ignitionFile(folder+nic.Name+".nmconnection", []byte(profile), 0o600))
		}
	}
	return files, nil
}

// profile returns the section of a connection profile for an address family.
func (s ipstate) profile(family string) string {
	section := fmt.Appendf(nil, "\n[%s]\n", family)
	if !s.Enabled {
		return string(append(section, "method=disabled\n"...))
	}
	for i, address := range s.Address {
		section = fmt.Appendf(section, "address%d=%s/%d\n", i+1, address.IP, address.PrefixLength)
	}
	return string(section)
}

// networksOf returns the NMStateConfigs that an InfraEnv selects, ordered by name. An empty selector selects
// none.
func (s *Simulator) networksOf(ctx context.Context, env *InfraEnv) ([]aiv1beta1.NMStateConfig, error) {
	selector, err := metav1.LabelSelectorAsSelector(&env.Spec.NMStateConfigLabelSelector)
	if err != nil {
		return nil, inputErrorf("invalid label selector for InfraEnv: %s", err)
	}
	if selector.Empty() {
		return nil, nil
	}
	list := &aiv1beta1.NMStateConfigList{}
	if err := s.live.List(ctx, list, client.InNamespace(env.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("cannot list NMStateConfigs: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b aiv1beta1.NMStateConfig) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// infraEnvsOfNetwork returns the InfraEnvs that select an NMStateConfig by matchLabels; the service ignores
// matchExpressions here.
func (s *Simulator) infraEnvsOfNetwork(ctx context.Context, obj client.Object) []reconcile.Request {
	var found []reconcile.Request
	list := &InfraEnvList{}
	if err := s.client.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil
	}
	for i := range list.Items {
		wanted := list.Items[i].Spec.NMStateConfigLabelSelector.MatchLabels
		matches := len(wanted) > 0
		for key, value := range wanted {
			matches = matches && obj.GetLabels()[key] == value
		}
		if matches {
			found = append(found, requestFor(list.Items[i].Namespace, list.Items[i].Name))
		}
	}
	return found
}
