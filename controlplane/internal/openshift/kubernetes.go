package openshift

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// KubernetesConflict describes that a release does not have the Kubernetes version in the spec of its control plane, and
// the edits that resolve it. contained is the version in the release image. If it is "", only the minor version is
// compared, by rule. settings are those of the control plane. The result is "" if nothing contradicts the spec.
func KubernetesConflict(release semver.Version, contained, wanted string, settings Settings) string {
	want, err := versions.ParseKubernetes(wanted)
	if err != nil {
		return ""
	}
	has, advice, lower := contained, "to "+contained, !versions.AtLeast(contained, wanted)
	if contained == "" {
		if !versions.Contradict(release, want) {
			return ""
		}
		minor, _ := versions.KubernetesMinor(release)
		has, lower = fmt.Sprintf("1.%d", minor), minor < want.Minor
		advice = `to the version of kubernetes that "oc adm release info" shows for the release, with leading v`
	} else if versions.SameKubernetes(contained, wanted) {
		return ""
	}
	if versions.KubeletsReportHash(release) {
		advice += ", with the hash that kubelets of the release report"
	}
	conflict := fmt.Sprintf("spec.version is %s, but release %s has Kubernetes %s", wanted, release, has)
	if cause := settings.fixed(lower); cause != "" {
		return fmt.Sprintf("%s. %s: set %s to a release with Kubernetes %s", conflict, cause, settings.Release, wanted)
	}
	return fmt.Sprintf("%s. Set %s %s, or set %s to a release with Kubernetes %s",
		conflict, settings.Version, advice, settings.Release, wanted)
}
