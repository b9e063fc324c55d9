package hosts

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const (
	kubeletEnvironmentFile = "/etc/kubernetes/kubelet-env"
	kubeletDropInDir       = "/etc/openshift/kubelet.conf.d"

	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	masterLabel       = "node-role.kubernetes.io/master"
	arbiterLabel      = "node-role.kubernetes.io/arbiter"
	workerLabel       = "node-role.kubernetes.io/worker"
)

// customLabelsOnControlPlane is the first release whose kubelet unit for masters reads CUSTOM_KUBELET_LABELS
// (machine-config-operator, December 2024). The unit for arbiters does not (August 2026).
var customLabelsOnControlPlane = semver.MustParse("4.19.0-0")

// Cluster is the configuration of a cluster that the installed system of a host depends on.
type Cluster struct {
	// ID is the OpenShift cluster id; empty: an id that follows from the cluster's name.
	ID string
	// Version is the OpenShift version, for example 4.19.3.
	Version string
	// ReleaseImage is the pull spec of the release.
	ReleaseImage string
	// PlatformNone is true if the cluster is installed for platform none: its kubelet unit has --provider-id.
	PlatformNone bool
	// SchedulableControlPlane is true if control-plane hosts are workers too.
	SchedulableControlPlane bool
	// Arbiter is true if the control plane has an arbiter.
	Arbiter bool
	// TwoNodes is true if the cluster has two nodes that fence each other.
	TwoNodes bool
	// ControlPlaneDropIns and WorkerDropIns are true if the kubelets of the release read drop-ins in
	// /etc/openshift/kubelet.conf.d as configuration. Those of workers do since September 2025, those of masters
	// since May 2026, those of arbiters do not.
	ControlPlaneDropIns, WorkerDropIns bool
}

// nodeIdentity is the identity with which a kubelet registers its Node.
type nodeIdentity struct {
	name, providerID string
	labels           map[string]string
	taints           []corev1.Taint
}

// newNodeIdentity reads the sources of the kubelet of an installed host. These are its flags,
// /etc/kubernetes/kubelet-env and the configuration drop-ins. An error means that the kubelet does not start.
func newNodeIdentity(instruction Instruction, hardware Hardware, cluster Cluster, config *Ignition) (nodeIdentity, error) {
	version, err := semver.ParseTolerant(cluster.Version)
	if err != nil {
		return nodeIdentity{}, fmt.Errorf("cannot read OpenShift version %q: %w", cluster.Version, err)
	}
	master, arbiter := isMaster(instruction), isArbiter(instruction)
	worker := !master && !arbiter
	single := instruction.SingleNode && !instruction.DayTwo
	environment := ParseEnvironmentFile(config.Files[kubeletEnvironmentFile].Contents)

	node := nodeIdentity{name: hardware.Hostname, labels: map[string]string{}}
	for _, name := range []string{instruction.Hostname, environment["KUBELET_NODE_NAME"]} {
		if name != "" {
			node.name = name
		}
	}
	if problems := validation.IsDNS1123Subdomain(node.name); len(problems) > 0 {
		return nodeIdentity{}, fmt.Errorf("node name %q is not valid: %s", node.name, strings.Join(problems, ", "))
	}
	maps.Copy(node.labels, map[string]string{
		corev1.LabelHostname: node.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: goArchitecture(hardware.Architecture),
		"node.openshift.io/os_id": "rhcos",
	})
	node.setRole(instruction, single || cluster.SchedulableControlPlane)
	if worker || master && version.GE(customLabelsOnControlPlane) {
		if err := node.addLabels(environment["CUSTOM_KUBELET_LABELS"]); err != nil {
			return nodeIdentity{}, err
		}
	}
	if master && cluster.ControlPlaneDropIns || worker && cluster.WorkerDropIns {
		if err := node.readDropIns(config); err != nil {
			return nodeIdentity{}, err
		}
	}
	// Only the kubelet unit for platform none has --provider-id; a flag has precedence over the configuration.
	if id := environment["KUBELET_PROVIDERID"]; id != "" && (single || cluster.PlatformNone) {
		node.providerID = id
	}
	return node, nil
}

func (n *nodeIdentity) setRole(instruction Instruction, schedulable bool) {
	taint := func(keys ...string) {
		for _, key := range keys {
			n.taints = append(n.taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	switch {
	case isArbiter(instruction):
		n.labels[arbiterLabel] = ""
		taint(masterLabel, arbiterLabel) // as on bare metal
		return
	case isMaster(instruction):
		n.labels[controlPlaneLabel], n.labels[masterLabel] = "", ""
		if !schedulable {
			taint(masterLabel)
			return
		}
	}
	n.labels[workerLabel] = ""
}

// addLabels reads the labels of a --node-labels flag as the kubelet does. It returns an error for invalid
// labels, and for names in Kubernetes' own domains that a kubelet may not set on its Node.
func (n *nodeIdentity) addLabels(flag string) error {
	for pair := range strings.SplitSeq(flag, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
		if len(problems) > 0 {
			return fmt.Errorf("kubelet does not start: label %q is not valid: %s", pair, strings.Join(problems, ", "))
		}
		if !mayLabelItself(key) {
			return fmt.Errorf("kubelet does not start: label %q is reserved", key)
		}
		n.labels[key] = value
	}
	return nil
}

// mayLabelItself repeats the kubelet's own check of --node-labels, with the node roles that OpenShift's kubelet
// allows.
func mayLabelItself(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return true
	}
	reserved := domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") ||
		domain == "k8s.io" || strings.HasSuffix(domain, ".k8s.io")
	allowed := []string{"kubelet.kubernetes.io", "node.kubernetes.io", "node-role.kubernetes.io", "topology.kubernetes.io"}
	wellKnown := []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable}
	return !reserved || slices.Contains(allowed, domain) || slices.Contains(wellKnown, key)
}

// readDropIns merges the drop-ins of the kubelet's configuration in lexical order, as the kubelet does with --config-dir.
func (n *nodeIdentity) readDropIns(config *Ignition) error {
	for _, name := range slices.Sorted(maps.Keys(config.Files)) {
		if path.Dir(name) != kubeletDropInDir || path.Ext(name) != ".conf" {
			continue
		}
		var dropIn struct {
			metav1.TypeMeta `json:",inline"`
			ProviderID      string `json:"providerID"`
		}
		if err := yaml.Unmarshal([]byte(config.Files[name].Contents), &dropIn); err != nil {
			return fmt.Errorf("kubelet does not start: cannot read %s: %w", name, err)
		}
		if dropIn.Kind != "KubeletConfiguration" || dropIn.APIVersion != "kubelet.config.k8s.io/v1beta1" {
			return fmt.Errorf("kubelet does not start: %s is no KubeletConfiguration", name)
		}
		if dropIn.ProviderID != "" {
			n.providerID = dropIn.ProviderID
		}
	}
	return nil
}

func goArchitecture(architecture string) string {
	switch architecture {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return architecture
}
