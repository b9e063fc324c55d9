package versionoperator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// Release is a release that clusters can be upgraded to.
type Release struct {
	Version string
	// Image is its pull spec, by digest.
	Image string
	// Kubernetes is the version of its kubelets. Default: see [openshift.KubernetesVersion].
	Kubernetes string
	// Channels are its channels in the update graph. Without channel it can be requested only by its image.
	Channels []string
	// From are the versions with an edge to it. Default: all older versions of the same and of the last minor version.
	From []string
	// Risks make it a conditional update.
	Risks []Risk
	// Unsigned releases are refused unless they are forced.
	Unsigned bool
}

// Risk is a known issue of a release.
type Risk struct {
	// Name is the name by which the risk is accepted.
	Name, Message, URL string
	// Exposure reports whether the cluster is exposed. Default: True. A release is recommended if Exposure is False for
	// all of its risks.
	Exposure metav1.ConditionStatus
}

// kubelet returns the version of the kubelets of a release, or an empty string if it is not known.
func (r Release) kubelet() string {
	if r.Kubernetes != "" {
		return "v" + strings.TrimPrefix(r.Kubernetes, "v")
	}
	version, err := openshift.KubernetesVersion(r.Version)
	if err != nil {
		return ""
	}
	return version
}

// described returns the release as in the status of the ClusterVersion.
func (r Release) described() configv1.Release {
	return configv1.Release{Version: r.Version, Image: r.Image, Channels: r.Channels}
}

// digest returns the digest of a pull spec, or an empty string.
func digest(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// graph is the answer of the update service for one version.
type graph struct {
	available   []configv1.Release
	conditional []configv1.ConditionalUpdate
	// risks are those of all conditional updates, if risks can be accepted.
	risks     []configv1.ConditionalUpdateRisk
	condition openshift.Condition
}

const retrievedUpdates = "RetrievedUpdates"

// updates queries the update service for the updates in the channel of a spec.
func (s *settings) updates(spec *configv1.ClusterVersionSpec, current configv1.Release, now metav1.Time) graph {
	channel := spec.Channel
	unavailable := func(reason, message string) graph {
		return graph{condition: openshift.Condition{Type: retrievedUpdates, Status: configv1.ConditionFalse, Reason: reason, Message: message}}
	}
	version, err := semver.Parse(current.Version)
	switch {
	case channel == "":
		return unavailable("NoChannel", "The update channel has not been configured.")
	case s.disconnected:
		return unavailable("RemoteFailed",
			"Unable to retrieve available updates: Get \"https://api.openshift.com/api/upgrades_info/v1/graph\": dial tcp: i/o timeout")
	case err != nil:
		return unavailable("InvalidCurrentVersion",
			"The current cluster version is not a valid semantic version and cannot be used to calculate upgrades.")
	case !slices.ContainsFunc(s.releases, func(r Release) bool { return slices.Contains(r.Channels, channel) }):
		return unavailable("VersionNotFound",
			fmt.Sprintf("Unable to retrieve available updates: currently reconciling cluster version %s not found in the %q channel",
				current.Version, channel))
	}
	g := graph{condition: openshift.Condition{Type: retrievedUpdates, Status: configv1.ConditionTrue}}
	for _, r := range s.releases {
		if !slices.Contains(r.Channels, channel) || !r.follows(version) {
			continue
		}
		if len(r.Risks) == 0 {
			g.available = append(g.available, r.described())
			continue
		}
		update := r.conditional(now)
		if s.recordsRisks {
			g.risks = append(g.risks, evaluate(&update, spec.DesiredUpdate, r.Risks, now)...)
		}
		g.conditional = append(g.conditional, update)
		if meta.IsStatusConditionTrue(update.Conditions, recommended) {
			g.available = append(g.available, r.described())
		}
	}
	slices.SortFunc(g.available, func(a, b configv1.Release) int { return compare(b.Version, a.Version) })
	slices.SortFunc(g.conditional, func(a, b configv1.ConditionalUpdate) int { return compare(b.Release.Version, a.Release.Version) })
	g.risks = unique(g.risks)
	return g
}

// follows reports whether the graph has an edge to the release.
func (r Release) follows(current semver.Version) bool {
	version, err := semver.Parse(r.Version)
	if err != nil || version.LTE(current) {
		return false
	}
	if len(r.From) > 0 {
		return slices.Contains(r.From, current.String())
	}
	return version.Major == current.Major && version.Minor <= current.Minor+1
}

// recommended is the condition of a conditional update.
const recommended = "Recommended"

func (r Release) conditional(now metav1.Time) configv1.ConditionalUpdate {
	update := configv1.ConditionalUpdate{Release: r.described()}
	condition := metav1.Condition{
		Type: recommended, Status: metav1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: now,
		Message: "The update is recommended, because none of the conditional update risks apply to this cluster.",
	}
	var messages []string
	for _, risk := range r.Risks {
		exposure := cmp.Or(risk.Exposure, metav1.ConditionTrue)
		update.Risks = append(update.Risks, configv1.ConditionalUpdateRisk{
			URL: cmp.Or(risk.URL, "https://issues.example.com/"+risk.Name), Name: risk.Name, Message: cmp.Or(risk.Message, risk.Name),
			MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: "group(cluster_version)"}}},
		})
		switch {
		case exposure == metav1.ConditionFalse:
			continue
		case exposure == metav1.ConditionUnknown && condition.Status != metav1.ConditionFalse:
			condition.Status = metav1.ConditionUnknown
		case exposure == metav1.ConditionTrue:
			condition.Status = metav1.ConditionFalse
		}
		messages = append(messages, cmp.Or(risk.Message, risk.Name))
		condition.Reason = risk.Name
		if len(messages) > 1 {
			condition.Reason = "MultipleReasons"
		}
	}
	if len(messages) > 0 {
		condition.Message = strings.Join(messages, "\n\n")
	}
	update.Conditions = []metav1.Condition{condition}
	return update
}

// compare compares versions. An invalid version is the oldest.
func compare(a, b string) int {
	v, _ := semver.Parse(a)
	w, _ := semver.Parse(b)
	return v.Compare(w)
}

// payload returns the release in an image.
func (s *settings) payload(image string) (Release, bool) {
	for _, r := range s.releases {
		if r.Image == image || digest(image) != "" && digest(r.Image) == digest(image) {
			r.Image = image
			return r, true
		}
	}
	if s.versionOf != nil {
		if version := s.versionOf(image); version != "" {
			return Release{Version: version, Image: image}, true
		}
	}
	return Release{}, false
}

// kubelet returns the version of the kubelets of a version of OpenShift.
func (s *settings) kubelet(version string) string {
	for _, r := range s.releases {
		if r.Version == version {
			return r.kubelet()
		}
	}
	return Release{Version: version}.kubelet()
}
