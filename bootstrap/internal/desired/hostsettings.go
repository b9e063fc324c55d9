package desired

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// hostSettings are the settings of one host, from the annotations of its BareMetalHost. They precede those of
// the config, which apply to all hosts of a template.
type hostSettings struct {
	hostname, ignition string
	installerArgs      []string
	labels             map[string]string
}

// settingsOf reads the annotations of a BareMetalHost. A host with another role is refused, because it is
// reserved for another use.
func settingsOf(f *facts.Facts) (hostSettings, error) {
	settings := hostSettings{labels: map[string]string{}}
	if f.Host == nil {
		return settings, nil
	}
	annotations := f.Host.Annotations
	settings.hostname, settings.ignition = annotations[metal3.HostnameAnnotation], annotations[metal3.IgnitionAnnotation]
	switch role := aiv1beta1.HostRole(annotations[metal3.RoleAnnotation]); role {
	case "", aiv1beta1.HostRoleAutoAssign, hostrole.Of(f):
	default:
		return settings, invalid(
			"BareMetalHost %s is for the role %s by its annotation %s, but Machine %s is a %s: choose its hosts by hostSelector, or correct "+
				"the annotation",
			f.Host.Name,
			role,
			metal3.RoleAnnotation,
			f.Machine.Name,
			hostrole.Of(f),
		)
	}
	if args := annotations[metal3.InstallerArgsAnnotation]; args != "" {
		if err := json.Unmarshal([]byte(args), &settings.installerArgs); err != nil {
			return settings, invalid(
				`annotation %s of BareMetalHost %s must be a JSON array such as ["--save-partlabel", "data"]`,
				metal3.InstallerArgsAnnotation,
				f.Host.Name,
			)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) { // sorted, so that the message is stable
		if label, is := strings.CutPrefix(key, metal3.NodeLabelAnnotationPrefix); is {
			if problem := invalidLabel(label, annotations[key]); problem != "" {
				return settings, invalid("annotation %s of BareMetalHost %s: %s", key, f.Host.Name, problem)
			}
			settings.labels[label] = annotations[key]
		}
		if label, is := strings.CutPrefix(key, metal3.AgentLabelAnnotationPrefix); is {
			if problem := invalidAgentLabel(label, annotations[key]); problem != "" {
				return settings, invalid("annotation %s of BareMetalHost %s: %s", key, f.Host.Name, problem)
			}
		}
	}
	return settings, nil
}

// invalidAgentLabel returns why an Agent cannot get a label; "" if it can. The labels of assisted-service name the
// InfraEnv and the cluster of an Agent.
func invalidAgentLabel(key, value string) string {
	if aiv1beta1.IsServiceLabel(key) {
		return fmt.Sprintf("the label %s is reserved for assisted-service: remove the annotation", key)
	}
	return invalidLabel(key, value)
}

// HostnameSource returns where the name of the host and its Node is set, for messages.
func HostnameSource(f *facts.Facts) string {
	if f.Host != nil && f.Host.Annotations[metal3.HostnameAnnotation] != "" {
		return fmt.Sprintf("the annotation %s of BareMetalHost %s", metal3.HostnameAnnotation, f.Host.Name)
	}
	return "spec.nodeRegistration.name"
}

// mergeLabels adds the labels of the host to others.
func (s *hostSettings) mergeLabels(labels map[string]string) map[string]string {
	all := maps.Clone(labels)
	maps.Copy(all, s.labels)
	return all
}
