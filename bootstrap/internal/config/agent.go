package config

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// agentWish is what an Agent is told. All of it goes out in the request that binds the host: later assisted-service accepts changes and
// silently ignores them.
type agentWish struct {
	clusterNamespace, clusterName   string
	role, hostname, diskID          string
	nodeLabels                      map[string]string
	ignitionOverride, installerArgs string
}

// problem is what keeps a host from being bound, for the user to change.
type problem struct{ reason, message string }

func (p *problem) Error() string { return p.message }

func invalid(format string, args ...any) *problem {
	return &problem{bootstrapv1.InvalidConfigurationReason, fmt.Sprintf(format, args...)}
}

// wish computes what the identified Agent is told. metadata returns the host's Metal3 metadata, and is only asked when a variable needs it.
// Requirements and the disk are settled before the host is bound: what changes later does not take it out of the cluster again.
func (s *scope) wish(metadata func() ([]byte, error)) (*agentWish, error) {
	if p := s.belowRequirements(); p != nil && !facts.Told(s.agent) {
		return nil, p
	}
	node, err := s.resolveNode(metadata)
	if err != nil {
		return nil, err
	}
	w := &agentWish{
		clusterNamespace: s.Deployment.Namespace,
		clusterName:      s.Deployment.Name,
		role:             s.Role(),
		hostname:         node.name,
		nodeLabels:       node.labels,
	}
	if w.diskID, err = s.installationDisk(); err != nil {
		return nil, err
	}
	spec := &s.Config.Spec
	if w.installerArgs, err = installerArgs(spec.KernelArguments); err != nil {
		return nil, err
	}
	w.ignitionOverride, err = ignition.Build(ignition.Input{
		NodeName:       node.name,
		KubeletLabels:  node.labels,
		ProviderID:     node.providerID,
		PreCommands:    spec.PreBootstrapCommands,
		PostCommands:   spec.PostBootstrapCommands,
		SentinelDir:    spec.BootstrapCommandSentinelDir,
		KubeconfigPath: spec.PostBootstrapKubeconfigPath,
		Override:       s.Config.Annotations[bootstrapv1.IgnitionOverrideAnnotation],
	})
	if err != nil {
		return nil, invalid("annotation %s: %s", bootstrapv1.IgnitionOverrideAnnotation, err)
	}
	return w, nil
}

// object states the wish on the Agent, with the cluster reference if bind, and the approval if approve.
func (w *agentWish) object(agent *aiv1beta1.Agent, bind, approve bool) *unstructured.Unstructured {
	labels := map[string]any{}
	for key, value := range w.nodeLabels {
		labels[key] = value
	}
	spec := map[string]any{
		"role":                    w.role,
		"hostname":                w.hostname,
		"installation_disk_id":    w.diskID,
		"ignitionConfigOverrides": w.ignitionOverride,
		"installerArgs":           w.installerArgs,
		// Also when it is false: an approval outlives the unbinding of a host, which would then be installed as soon as it is bound again.
		"approved": approve,
	}
	if len(labels) > 0 {
		spec["nodeLabels"] = labels
	}
	if bind {
		spec["clusterDeploymentName"] = map[string]any{"name": w.clusterName, "namespace": w.clusterNamespace}
	}
	desired := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	desired.SetGroupVersionKind(aiv1beta1.GroupVersion.WithKind("Agent"))
	desired.SetNamespace(agent.Namespace)
	desired.SetName(agent.Name)
	return desired
}

// nodeIdentity is how the host appears as a Node.
type nodeIdentity struct {
	name, providerID string
	labels           map[string]string
}

// resolveNode resolves everything that is particular to the host, here and not on the host.
func (s *scope) resolveNode(metadata func() ([]byte, error)) (*nodeIdentity, error) {
	registration := bootstrapv1.NodeRegistration{}
	if s.Config.Spec.NodeRegistration != nil {
		registration = *s.Config.Spec.NodeRegistration
	}
	texts := append([]string{registration.Name, registration.ProviderID}, registration.KubeletExtraLabels...)
	values, err := s.variables(ignition.Variables(texts...), metadata)
	if err != nil {
		return nil, err
	}
	node := &nodeIdentity{}
	if node.name, err = ignition.Resolve(registration.Name, values); err != nil {
		return nil, invalid("spec.nodeRegistration.name: %s", err)
	}
	node.name = cmp.Or(node.name, s.defaultHostname())
	if problems := validation.IsDNS1123Subdomain(node.name); len(problems) > 0 {
		return nil, invalid("%q cannot be the name of a Node: %s: set spec.nodeRegistration.name", node.name, problems[0])
	}
	if node.providerID, err = ignition.Resolve(registration.ProviderID, values); err != nil {
		return nil, invalid("spec.nodeRegistration.providerID: %s", err)
	}
	if node.providerID == "" && !s.HasBareMetalHost() {
		node.providerID, _, _ = unstructured.NestedString(s.InfraMachine.Object, "spec", "providerID")
	}
	if node.labels, err = nodeLabels(registration.KubeletExtraLabels, values); err != nil {
		return nil, err
	}
	if s.Host != nil {
		node.labels[metal3.HostUIDLabel] = string(s.Host.UID)
	}
	return node, nil
}

// variables returns the values that $METADATA_... stands for on this host.
func (s *scope) variables(names []string, metadata func() ([]byte, error)) (map[string]string, error) {
	values := map[string]string{}
	if len(names) == 0 || s.Host == nil {
		return values, nil
	}
	values["METADATA_NAME"] = s.Host.Name
	if len(names) > 1 || names[0] != "METADATA_UUID" {
		raw, err := metadata()
		if err != nil {
			return nil, err
		}
		entries := map[string]any{}
		if err := yaml.Unmarshal(raw, &entries); err != nil {
			return nil, invalid("the Metal3 metadata of the host is not valid YAML")
		}
		texts := map[string]string{}
		for key, value := range entries {
			texts[key] = fmt.Sprint(value)
		}
		for name, value := range ignition.MetadataVariables(texts) {
			values[name] = value
		}
	}
	values["METADATA_UUID"] = string(s.Host.UID)
	return values, nil
}

func nodeLabels(pairs []string, values map[string]string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		value, err := ignition.Resolve(text, values)
		switch {
		case err != nil:
			return nil, invalid("spec.nodeRegistration.kubeletExtraLabels: %s: %s", key, err)
		case !ok || len(validation.IsQualifiedName(key)) > 0:
			return nil, invalid("spec.nodeRegistration.kubeletExtraLabels: %q is not a label: write key=value", pair)
		case len(validation.IsValidLabelValue(value)) > 0:
			return nil, invalid("spec.nodeRegistration.kubeletExtraLabels: %s: %q cannot be the value of a label", key, value)
		}
		labels[key] = value
	}
	return labels, nil
}

// defaultHostname is the BareMetalHost's name, else what the host calls itself, unless that says nothing.
func (s *scope) defaultHostname() string {
	if s.Host != nil {
		return s.Host.Name
	}
	reported := strings.ToLower(s.agent.Status.Inventory.Hostname)
	_, addressError := netip.ParseAddr(reported)
	if reported == "" || strings.HasPrefix(reported, "localhost") || addressError == nil {
		return s.Machine.Name
	}
	return reported
}

func (s *scope) belowRequirements() *problem {
	wanted := s.Config.Spec.HostRequirements
	if wanted == nil {
		return nil
	}
	inventory := &s.agent.Status.Inventory
	var missing []string
	if inventory.Cpu.Count < int64(wanted.MinCPUCores) {
		missing = append(missing, fmt.Sprintf("it has %d CPU cores, not %d", inventory.Cpu.Count, wanted.MinCPUCores))
	}
	memory := cmp.Or(inventory.Memory.UsableBytes, inventory.Memory.PhysicalBytes)
	if wanted.MinMemory != nil && memory < wanted.MinMemory.Value() {
		missing = append(missing, fmt.Sprintf("it has %d MiB of usable memory, not %s", memory>>20, wanted.MinMemory))
	}
	if _, err := s.installationDisk(); err != nil && wanted.MinDiskSize != nil && s.rootDeviceHintsMatch() {
		missing = append(missing, err.Error())
	}
	if len(missing) == 0 {
		return nil
	}
	return &problem{bootstrapv1.HostBelowRequirementsReason, fmt.Sprintf("the host is below spec.hostRequirements: %s", strings.Join(missing, "; "))}
}

// installationDisk returns the id of the disk to install to; empty when assisted-service may choose.
func (s *scope) installationDisk() (string, error) {
	if facts.Told(s.agent) {
		return s.agent.Spec.InstallationDiskID, nil
	}
	minBytes := int64(0)
	if wanted := s.Config.Spec.HostRequirements; wanted != nil && wanted.MinDiskSize != nil {
		minBytes = wanted.MinDiskSize.Value()
	}
	return s.selectDisk(minBytes)
}

// rootDeviceHintsMatch tells whether a disk would do if only it were large enough.
func (s *scope) rootDeviceHintsMatch() bool {
	_, err := s.selectDisk(0)
	return err == nil
}

func (s *scope) selectDisk(minBytes int64) (string, error) {
	disks := s.agent.Status.Inventory.Disks
	var hints *metal3api.RootDeviceHints
	if s.Host != nil {
		hints = s.Host.Spec.RootDeviceHints
	}
	disk, err := metal3.SelectDisk(hints, minBytes, disks, s.agent.Status.InstallationDiskID)
	if err != nil {
		return "", &problem{bootstrapv1.InstallationDiskNotFoundReason, err.Error()}
	}
	if disk == nil {
		return "", nil
	}
	return disk.ID, nil
}

// installerArgs are the arguments of coreos-installer as JSON. assisted-service allows these two (its pkg/validations).
func installerArgs(arguments []bootstrapv1.KernelArgument) (string, error) {
	if len(arguments) == 0 {
		return "", nil
	}
	args := make([]string, 0, 2*len(arguments))
	for _, a := range arguments {
		switch a.Operation {
		case "append", "delete":
			args = append(args, "--"+a.Operation+"-karg", a.Value)
		default:
			return "", invalid("spec.kernelArguments: operation %q is not supported: use append or delete", a.Operation)
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", fmt.Errorf("cannot encode the kernel arguments: %w", err)
	}
	return string(raw), nil
}

func (r *Reconciler) wishOf(ctx context.Context, s *scope) (*agentWish, error) {
	return s.wish(func() ([]byte, error) { return r.metal3Metadata(ctx, s) })
}

// sinceTransition is the moment at which assisted-service last changed its mind about a condition of the Agent.
func sinceTransition(agent *aiv1beta1.Agent) metav1.Time {
	return assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition).LastTransitionTime
}
