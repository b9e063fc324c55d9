package desired

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/assisted-service/models"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// hostSettings are those of one host, for which its BareMetalHost has annotations. They come before what the config says of all hosts that are made from its template.
type hostSettings struct {
	hostname, ignition string
	installerArgs      []string
	labels             map[string]string
}

// settingsOf reads the annotations of a BareMetalHost. One that is meant for another role is a host that somebody else counts upon.
func settingsOf(f *facts.Facts) (hostSettings, error) {
	settings := hostSettings{labels: map[string]string{}}
	if f.Host == nil {
		return settings, nil
	}
	told := f.Host.Annotations
	settings.hostname, settings.ignition = told[metal3.HostnameAnnotation], told[metal3.IgnitionAnnotation]
	switch role := models.HostRole(told[metal3.RoleAnnotation]); role {
	case "", models.HostRoleAutoAssign, f.Role():
	default:
		return settings, invalid("BareMetalHost %s is for the role %s by its annotation %s, but Machine %s is a %s: choose its hosts by hostSelector, or correct the annotation",
			f.Host.Name, role, metal3.RoleAnnotation, f.Machine.Name, f.Role())
	}
	if args := told[metal3.InstallerArgsAnnotation]; args != "" {
		if err := json.Unmarshal([]byte(args), &settings.installerArgs); err != nil {
			return settings, invalid(`annotation %s of BareMetalHost %s must be a JSON array such as ["--save-partlabel", "data"]`, metal3.InstallerArgsAnnotation, f.Host.Name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) { // of several problems always the same is told
		if label, is := strings.CutPrefix(key, metal3.NodeLabelAnnotationPrefix); is {
			if problem := notALabel(label, told[key]); problem != "" {
				return settings, invalid("annotation %s of BareMetalHost %s: %s", key, f.Host.Name, problem)
			}
			settings.labels[label] = told[key]
		}
	}
	return settings, nil
}

// NameGivenBy says, for people, where another name of the host and its Node is given.
func NameGivenBy(f *facts.Facts) string {
	if f.Host != nil && f.Host.Annotations[metal3.HostnameAnnotation] != "" {
		return fmt.Sprintf("the annotation %s of BareMetalHost %s", metal3.HostnameAnnotation, f.Host.Name)
	}
	return "spec.nodeRegistration.name"
}

// over adds the labels of the host to others.
func (s *hostSettings) over(labels map[string]string) map[string]string {
	all := maps.Clone(labels)
	maps.Copy(all, s.labels)
	return all
}
