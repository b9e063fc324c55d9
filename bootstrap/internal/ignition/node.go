package ignition

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

const (
	// kubeletEnvPath is read by the kubelet units of all platforms (machine-config-operator, EnvironmentFile=-/etc/kubernetes/kubelet-env).
	kubeletEnvPath = "/etc/kubernetes/kubelet-env"
	// kubeletDropInPath is merged into the kubelet's configuration on releases whose unit has --config-dir (machine-config-operator: workers
	// since September 2025, masters since May 2026). Older releases ignore it.
	kubeletDropInPath = "/etc/openshift/kubelet.conf.d/50-openshift-agent-provider-id.conf"
)

// addNode sets the name, labels and providerID of the kubelet.
func addNode(config *types.Config, in Input) {
	var env []string
	if labels := kubeletLabels(in.KubeletLabels); labels != "" {
		env = append(env, environmentLine("CUSTOM_KUBELET_LABELS", labels))
	}
	if in.NodeName != "" {
		env = append(env, environmentLine("KUBELET_NODE_NAME", in.NodeName))
	}
	if in.ProviderID != "" {
		// Read by the kubelet unit of platform none and single nodes only; the drop-in serves the others.
		env = append(env, environmentLine("KUBELET_PROVIDERID", in.ProviderID))
		value := strconv.Quote(in.ProviderID) // valid YAML, because a providerID is printable ASCII
		addFile(
			config,
			kubeletDropInPath,
			fmt.Sprintf("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nproviderID: %s\n", value),
			0o644,
		)
	}
	if len(env) > 0 {
		addFile(config, kubeletEnvPath, strings.Join(env, ""), 0o644)
	}
}

// kubeletLabels joins the labels that the kubelet may set, sorted by key.
func kubeletLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if kubeletMaySet(key) {
			pairs = append(pairs, key+"="+labels[key])
		}
	}
	return strings.Join(pairs, ",")
}

// kubernetesLabel matches labels of the domains kubernetes.io and k8s.io.
var kubernetesLabel = regexp.MustCompile(`^([^/]+\.)?(kubernetes|k8s)\.io/`)

// kubeletMaySet reports whether a kubelet starts with the label in --node-labels: of Kubernetes' own labels
// it accepts only those for kubelets.
func kubeletMaySet(key string) bool {
	return kubeletapis.IsKubeletLabel(key) || !kubernetesLabel.MatchString(key)
}

// environmentLine returns one assignment of a systemd environment file. In double quotes a backslash makes
// the next character literal, and nothing is expanded (systemd.exec(5)).
func environmentLine(name, value string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(value)
	return fmt.Sprintf("%s=\"%s\"\n", name, quoted)
}
