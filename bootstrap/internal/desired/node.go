package desired

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// nodeIdentity is the identity of the host as a Node.
type nodeIdentity struct {
	name, providerID string
	labels           map[string]string
}

// resolveNode resolves all settings that are particular to the host, so that the host resolves none.
func resolveNode(f *facts.Facts, agent *aiv1beta1.Agent, settings *hostSettings, metadata func() ([]byte, error)) (*nodeIdentity, error) {
	registration := bootstrapv1.NodeRegistration{}
	if f.Config.Spec.NodeRegistration != nil {
		registration = *f.Config.Spec.NodeRegistration
	}
	texts := append([]string{registration.Name, registration.ProviderID}, registration.KubeletExtraLabels...)
	values, err := variables(f, ignition.Variables(texts...), metadata)
	if err != nil {
		return nil, err
	}
	node := &nodeIdentity{}
	if node.name, err = ignition.Resolve(registration.Name, values); err != nil {
		return nil, invalid("spec.nodeRegistration.name: %s", err)
	}
	node.name = cmp.Or(settings.hostname, node.name, defaultHostname(f, agent))
	if problem := invalidHostname(node.name); problem != "" {
		return nil, invalid("%s: set %s", problem, HostnameSource(f))
	}
	if node.providerID, err = ignition.Resolve(registration.ProviderID, values); err != nil {
		return nil, invalid("spec.nodeRegistration.providerID: %s", err)
	}
	if node.providerID == "" && !f.HasBareMetalHost() {
		node.providerID, _, _ = unstructured.NestedString(f.InfraMachine.Object, "spec", "providerID")
	}
	if node.labels, err = nodeLabels(registration.KubeletExtraLabels, values); err != nil {
		return nil, err
	}
	node.labels = settings.mergeLabels(node.labels)
	if f.Host != nil {
		node.labels[metal3.HostUIDLabel] = string(f.Host.UID)
	}
	return node, addPoolLabel(f, node)
}

// maxHostname is the longest hostname that assisted-service accepts (MaxHostnameLength of its
// internal/host/hostutil), and that Linux supports.
const maxHostname = 63

// invalidHostname returns why a host and its Node cannot have a name; "" if they can.
func invalidHostname(name string) string {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Sprintf("%q cannot be the name of a Node: %s", name, problems[0])
	}
	if len(name) > maxHostname {
		return fmt.Sprintf("%q cannot be the name of a Node: it has %d characters, and a hostname has at most %d", name, len(name), maxHostname)
	}
	return ""
}

// HostnameProblem returns why the host of a BareMetalHost cannot have its future hostname. It is "" if it
// can, or if the name is known only after the host was given to the Machine.
func HostnameProblem(f *facts.Facts, host *metal3.Host) string {
	name := host.Annotations[metal3.HostnameAnnotation]
	if registration := f.Config.Spec.NodeRegistration; name == "" && registration != nil && registration.Name != "" {
		resolved, err := ignition.Resolve(registration.Name, map[string]string{"METADATA_NAME": host.Name, "METADATA_UUID": string(host.UID)})
		if err != nil {
			return ""
		}
		name = resolved
	}
	return invalidHostname(cmp.Or(name, host.Name))
}

// defaultPool is the MachineConfigPool of workers that belong to no other pool.
const defaultPool = "worker"

// poolOf returns the MachineConfigPool to set in an Agent. While an Agent with a pool is being installed,
// assisted-service pauses the pool worker of the cluster, so the default pool is not set. A pool that was set
// is replaced by the default pool, because assisted-service ignores its removal.
func poolOf(f *facts.Facts, agent *aiv1beta1.Agent) string {
	switch pool := f.Config.Spec.MachineConfigPool; {
	case pool != "" && pool != defaultPool:
		return pool
	case agent.Spec.MachineConfigPool != "":
		return defaultPool
	}
	return ""
}

// addPoolLabel adds the label by which a MachineConfigPool selects the Node. Without the label the host would
// be configured again as a member of the pool worker.
func addPoolLabel(f *facts.Facts, node *nodeIdentity) error {
	pool := f.Config.Spec.MachineConfigPool
	if pool == "" || pool == defaultPool {
		return nil
	}
	if hostrole.Of(f) != aiv1beta1.HostRoleWorker {
		return invalid("spec.machineConfigPool: hosts of the control plane belong to the pool %s: remove it", hostrole.Of(f))
	}
	node.labels["node-role.kubernetes.io/"+pool] = ""
	return nil
}

// variables returns the values of the $METADATA_... variables for this host.
func variables(f *facts.Facts, names []string, metadata func() ([]byte, error)) (map[string]string, error) {
	values := map[string]string{}
	if len(names) == 0 || f.Host == nil {
		return values, nil
	}
	values["METADATA_NAME"] = f.Host.Name
	if len(names) > 1 || names[0] != "METADATA_UUID" {
		raw, err := metadata()
		if err != nil {
			return nil, err
		}
		entries, err := metadataEntries(raw)
		if err != nil {
			return nil, err
		}
		texts := map[string]string{}
		for key, value := range entries {
			texts[key] = fmt.Sprint(value)
		}
		for name, value := range ignition.MetadataVariables(texts) {
			values[name] = value
		}
	}
	values["METADATA_UUID"] = string(f.Host.UID)
	return values, nil
}

// metadataBytes is the largest metadata of a host. Metal3DataTemplates render a few short values.
const metadataBytes = 64 << 10

var (
	yamlAnchor = regexp.MustCompile(`&[0-9A-Za-z_-]+`)
	yamlAlias  = regexp.MustCompile(`\*[0-9A-Za-z_-]+`)
)

// metadataEntries returns the keys and values of Metal3 metadata. It rejects aliases, which CAPM3 does not write: the
// decoder limits their number, but not the length of the text that they repeat.
func metadataEntries(raw []byte) (map[string]any, error) {
	if len(raw) > metadataBytes {
		return nil, invalid("the Metal3 metadata of the host has %d KiB (maximum %d KiB): shorten the Metal3DataTemplate",
			len(raw)>>10, metadataBytes>>10)
	}
	anchors := sets.New[string]()
	for _, anchor := range yamlAnchor.FindAll(raw, -1) {
		anchors.Insert(string(anchor[1:]))
	}
	for _, alias := range yamlAlias.FindAll(raw, -1) {
		if anchors.Has(string(alias[1:])) {
			return nil, invalid("the Metal3 metadata of the host has a YAML alias: replace it by its value")
		}
	}
	entries := map[string]any{}
	if err := yaml.Unmarshal(raw, &entries); err != nil {
		return nil, invalid("the Metal3 metadata of the host is not valid YAML")
	}
	return entries, nil
}

func nodeLabels(pairs []string, values map[string]string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		value, err := ignition.Resolve(text, values)
		switch {
		case err != nil:
			return nil, invalid("spec.nodeRegistration.kubeletExtraLabels: %s: %s", key, err)
		case !ok:
			return nil, invalid("spec.nodeRegistration.kubeletExtraLabels: %q is not a label: write key=value", pair)
		}
		if problem := invalidLabel(key, value); problem != "" {
			return nil, invalid("spec.nodeRegistration.kubeletExtraLabels: %s", problem)
		}
		labels[key] = value
	}
	return labels, nil
}

// invalidLabel returns why a label is invalid; "" if it is valid.
func invalidLabel(key, value string) string {
	switch {
	case len(validation.IsQualifiedName(key)) > 0:
		return fmt.Sprintf("%q cannot be the key of a label", key)
	case len(validation.IsValidLabelValue(value)) > 0:
		return fmt.Sprintf("%s: %q cannot be the value of a label", key, value)
	}
	return ""
}

// defaultHostname returns the name of the BareMetalHost, or else the hostname that the host reports, unless
// that is meaningless.
func defaultHostname(f *facts.Facts, agent *aiv1beta1.Agent) string {
	if f.Host != nil {
		return f.Host.Name
	}
	reported := strings.ToLower(agent.Status.Inventory.Hostname)
	_, addressError := netip.ParseAddr(reported)
	if reported == "" || strings.HasPrefix(reported, "localhost") || addressError == nil {
		return f.Machine.Name
	}
	return reported
}
