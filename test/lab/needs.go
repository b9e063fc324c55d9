package lab

import (
	"cmp"
	"fmt"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const hostKind = "BareMetalHost"

// need describes a host that a sample needs.
type need struct {
	// labels are the labels in the hostSelector of its Metal3MachineTemplate.
	labels map[string]string
	// architecture is the CPU architecture; empty means the default.
	architecture string
	// networks are the networks in which the host has an address, from DHCP or its NMStateConfig. Empty means
	// the default.
	networks []string
	// static hosts use no DHCP. mac is the MAC address of the NMStateConfig; empty means any.
	static bool
	mac    string
}

// withNeeds applies the needs to the first BareMetalHosts.
func withNeeds(needs []need) hosts.HostOption {
	return func(i int, host *metal3api.BareMetalHost) {
		if i >= len(needs) {
			return
		}
		n := needs[i]
		host.Spec.Architecture = n.architecture
		host.Spec.BootMACAddress = cmp.Or(n.mac, host.Spec.BootMACAddress)
		if len(n.labels) > 0 {
			hosts.WithLabels(n.labels)(i, host)
		}
		if n.static {
			hosts.WithNetworks()(i, host)
		} else if len(n.networks) > 0 {
			hosts.WithNetworks(n.networks...)(i, host)
		}
	}
}

// manifests are objects that refer to each other by name.
type manifests []*unstructured.Unstructured

// field returns a field of the object with a kind and name, or nil.
func (m manifests) field(kind, name string, fields ...string) any {
	for _, object := range m {
		if object.GetKind() == kind && object.GetName() == name {
			return field(object, fields...)
		}
	}
	return nil
}

func field(object *unstructured.Unstructured, fields ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	return value
}

// needs returns the needs of all Machines of the sample, in the order of the objects.
func (m manifests) needs() []need {
	var all []need
	networks, macs := m.machineNetworks(), m.macs()
	for _, object := range m {
		one := m.needOf(object)
		for i := range machinesOf(object) {
			next := one
			if own, found := field(object, "spec", "arbiter", "machineTemplate", "spec", "infrastructureRef", "name").(string); found && i == 0 {
				next.labels = m.selectedBy(own)
			}
			next.networks = networks
			if one.static && len(macs) > 0 {
				next.mac, macs = macs[0], macs[1:]
			}
			all = append(all, next)
		}
	}
	return all
}

// needOf returns the need according to the templates of an object.
func (m manifests) needOf(object *unstructured.Unstructured) need {
	var template, config any
	switch object.GetKind() {
	case controlPlaneKind:
		template = field(object, "spec", "machineTemplate", "spec", "infrastructureRef", "name")
		config = field(object, "spec", "openshiftAssistedConfigSpec")
	case machineDeploymentKind:
		template = field(object, "spec", "template", "spec", "infrastructureRef", "name")
		named, _ := field(object, "spec", "template", "spec", "bootstrap", "configRef", "name").(string)
		config = m.field(configTemplateKind, named, "spec", "template", "spec")
	}
	var n need
	settings, _ := config.(map[string]any)
	if architecture, ok := settings["cpuArchitecture"].(string); ok {
		n.architecture = tagArchitecture(architecture) // the notation of inspections, too
	}
	_, n.static = settings["nmStateConfigLabelSelector"]
	named, _ := template.(string)
	n.labels = m.selectedBy(named)
	return n
}

// selectedBy returns the labels by which a Metal3MachineTemplate selects hosts, or nil.
func (m manifests) selectedBy(template string) map[string]string {
	for _, object := range m {
		if object.GetKind() == "Metal3MachineTemplate" && object.GetName() == template {
			labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "spec", "hostSelector", "matchLabels")
			return labels
		}
	}
	return nil
}

// hosts returns the BareMetalHosts in the sample. They satisfy the first needs.
func (m manifests) hosts(needs []need) ([]*metal3api.BareMetalHost, error) {
	var own []*metal3api.BareMetalHost
	for _, object := range m {
		if object.GetKind() != hostKind {
			continue
		}
		host := &metal3api.BareMetalHost{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, host); err != nil {
			return nil, fmt.Errorf("%s %s: %w", hostKind, object.GetName(), err)
		}
		withNeeds(needs)(len(own), host)
		object.SetAnnotations(host.Annotations)
		own = append(own, host)
	}
	return own, nil
}

// machineNetworks returns the machine networks from the control plane or the variable of a topology.
func (m manifests) machineNetworks() []string {
	var networks any
	for _, object := range m {
		switch object.GetKind() {
		case controlPlaneKind:
			networks = field(object, "spec", "config", "machineNetwork")
		case clusterKind:
			variables, _ := field(object, "spec", "topology", "variables").([]any)
			for _, variable := range variables {
				if v, ok := variable.(map[string]any); ok && v["name"] == "machineNetwork" {
					networks = v["value"]
				}
			}
		}
	}
	list, _ := networks.([]any)
	var cidrs []string
	for _, cidr := range list {
		if text, ok := cidr.(string); ok {
			cidrs = append(cidrs, text)
		}
	}
	return cidrs
}

// macs returns the MAC addresses of the first interfaces of the NMStateConfigs.
func (m manifests) macs() []string {
	var macs []string
	for _, object := range m {
		interfaces, _ := field(object, "spec", "interfaces").([]any)
		if object.GetKind() != "NMStateConfig" || len(interfaces) == 0 {
			continue
		}
		if nic, ok := interfaces[0].(map[string]any); ok {
			mac, _ := nic["macAddress"].(string)
			macs = append(macs, mac)
		}
	}
	return macs
}
