// Package upgrade decides what an installed cluster is asked for when it is to run another release, and what keeps it from being asked. It computes; it has no client. Once the
// cluster has begun, nobody can stop it, and a host that does not come back is lost to it: what is not known to be well is not begun.
package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Due tells whether the cluster has to be looked at: it is to run a newer release than it runs, or is brought to, or was asked for one that it has not begun and that nobody wants any more.
func Due(f *facts.Facts) bool {
	runs, known := f.Runs()
	if !known || !f.Installed() || f.GoesWhole() || !f.Workload.Connected || !f.Workload.UnreadSince.IsZero() {
		return false
	}
	return newer(f, runs) || pending(f)
}

// newer tells whether the spec asks for a release to which the cluster is not on its way.
func newer(f *facts.Facts, runs semver.Version) bool {
	wanted, given := f.WantedVersion()
	return given && wanted.GT(runs) && wanted.String() != f.Workload.Upgrading
}

// pending tells whether the cluster was asked for something that it has not begun.
func pending(f *facts.Facts) bool { return f.Workload.Rollout != nil && f.Workload.Rollout.Pending }

// Next is what the cluster is asked for now, and what is waited for, or keeps it from being asked.
func Next(f *facts.Facts, seen *facts.ClusterVersion) (facts.UpdateRequest, *removal.Step) {
	runs, _ := f.Runs()
	wanted, _ := f.WantedVersion()
	request := facts.UpdateRequest{ResourceVersion: seen.ResourceVersion}
	switch {
	case seen.Runs != f.Workload.OpenShiftVersion || seen.Upgrading != f.Workload.Upgrading:
		return request, unwatched(controlplanev1.UpgradeInProgressReason, "the cluster has just changed its release: waiting for its news")
	case !newer(f, runs):
		request.Withdraw = seen.Ours && pending(f) // somebody may have set spec.version back
		return request, nil
	}
	request.Acknowledge = acknowledged(f, seen)
	if channel := f.ControlPlane.Spec.Upgrade.Channel; channel != "" && channel != seen.Channel {
		request.Channel = channel
		return request, watched(controlplanev1.UpgradeInProgressReason, "the cluster looks for releases in the channel %s now: waiting for what it finds", channel)
	}
	for _, check := range []func(*facts.Facts, semver.Version, *facts.ClusterVersion) *removal.Step{underWay, takenOff, skipped, askedByOthers} {
		if step := check(f, wanted, seen); step != nil {
			return request, step
		}
	}
	update, step := updateTo(f, wanted, seen)
	if step == nil {
		step = preflight(f, wanted, seen)
	}
	switch {
	case step != nil: // what was asked for may begin at any time
		request.Withdraw = seen.Ours && pending(f)
		return request, step
	case answers(seen.Asked, *update):
		return request, answerTo(f, wanted, seen)
	}
	request.Update = update
	return request, watched(controlplanev1.UpgradeInProgressReason, "the cluster was asked for v%s: waiting until it begins", wanted)
}

// answers tells whether a cluster was asked for an update already. An image that was given besides does no harm: the cluster checks that it is of the version.
func answers(asked, update facts.Update) bool {
	return asked.Version == update.Version && asked.Force == update.Force && (update.Image == "" || asked.Image == update.Image)
}

// watched is a wait at the end of which the cluster tells something, unwatched one for what has to be looked at.
func watched(reason, format string, args ...any) *removal.Step {
	step := removal.Watch(reason, format, args...)
	return &step
}

func unwatched(reason, format string, args ...any) *removal.Step {
	step := watched(reason, format, args...)
	step.Watched = false
	return step
}

// acknowledged are the gates that the spec names, the cluster has, and nobody has acknowledged.
func acknowledged(f *facts.Facts, seen *facts.ClusterVersion) []string {
	var names []string
	for _, gate := range seen.Gates {
		if !gate.Acknowledged && slices.Contains(f.ControlPlane.Spec.Upgrade.Acknowledgements, gate.Name) {
			names = append(names, gate.Name)
		}
	}
	return names
}

// underWay is about a cluster that is on its way to another release. To another patch of it, it can be turned; all else has to wait.
func underWay(f *facts.Facts, wanted semver.Version, _ *facts.ClusterVersion) *removal.Step {
	if f.Workload.Upgrading == "" {
		return nil
	}
	to, err := openshift.ParseVersion(f.Workload.Upgrading)
	switch {
	case err == nil && to.GT(wanted):
		return watched(controlplanev1.VersionMismatchReason, "spec.version is v%s, but the cluster is being upgraded to v%s, and never taken back: set spec.version to v%s", wanted, to, to)
	case err != nil || to.Major != wanted.Major || to.Minor != wanted.Minor:
		return watched(controlplanev1.UpgradeInProgressReason, "the cluster is being upgraded to v%s: v%s comes when that is done", f.Workload.Upgrading, wanted)
	}
	return nil
}

// takenOff is about a release that the cluster was on before, by a rollback or for a hotfix: whoever did that had a reason.
func takenOff(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *removal.Step {
	if !slices.Contains(seen.Former, wanted.String()) {
		return nil
	}
	now := cmp.Or(f.Workload.Upgrading, seen.Runs)
	return watched(controlplanev1.VersionMismatchReason, "the cluster was brought from v%s to v%s in the cluster itself, and is not brought back from here: set spec.version to v%s, or ask for v%s there (oc adm upgrade)",
		wanted, now, now, wanted)
}

// skipped is about minor versions, of which OpenShift takes one at a time. Which ones the first of the next major version follow upon, only the update graph knows.
func skipped(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *removal.Step {
	runs, _ := f.Runs()
	switch {
	case wanted.Major != runs.Major && offered(seen, wanted) < 0:
		return notOffered(f, wanted, seen)
	case wanted.Major != runs.Major || wanted.Minor <= runs.Minor+1:
		return nil
	}
	return watched(controlplanev1.InvalidConfigurationReason, "spec.version is v%s, but the cluster runs v%s, and is upgraded by one minor version at a time: set spec.version to a release of %d.%d first",
		wanted, runs, runs.Major, runs.Minor+1)
}

// askedByOthers is about what somebody else asked the cluster for, and has not begun: two who write in turn would keep it from ever beginning.
func askedByOthers(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *removal.Step {
	if seen.Ours || !pending(f) || seen.Asked.Version == wanted.String() {
		return nil
	}
	refused := ""
	if f.Workload.Rollout.Refused != "" {
		refused = ", which refuses it (" + f.Workload.Rollout.Refused + ")"
	}
	return watched(controlplanev1.VersionMismatchReason, "somebody else asked the cluster for another release than v%s: %s%s. Take that back in the cluster (oc adm upgrade --clear), or set spec.version to it",
		wanted, asking(seen.Asked), refused)
}

func asking(asked facts.Update) string {
	if asked.Version == "" {
		return bound.Cause(asked.Image)
	}
	return "v" + bound.Value(asked.Version)
}

// offered is where a release stands among those that are offered; negative: it does not.
func offered(seen *facts.ClusterVersion, wanted semver.Version) int {
	return slices.IndexFunc(seen.Offers, func(o facts.Offer) bool { return o.Version == wanted.String() })
}

// updateTo is what to ask the cluster for.
func updateTo(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) (*facts.Update, *removal.Step) {
	update := &facts.Update{Version: wanted.String(), Force: waived(f, wanted)}
	at := offered(seen, wanted)
	if at >= 0 {
		if step := risky(f, wanted, seen.Offers[at].Risks); step != nil {
			return nil, step
		}
	}
	image, field, step := imageOf(f)
	switch {
	case step != nil:
		return nil, step
	case image != "":
		update.Image = image
		return update, usable(f, wanted, image, field)
	case at < 0:
		return nil, notOffered(f, wanted, seen)
	case len(seen.Offers[at].Risks) > 0: // by its version alone the cluster takes only what is recommended
		update.Image = seen.Offers[at].Image
	}
	return update, nil
}

// waived tells whether neither preconditions nor signature are to be checked for a release.
func waived(f *facts.Facts, wanted semver.Version) bool {
	version, err := openshift.ParseVersion(f.ControlPlane.Spec.Upgrade.WaivePreconditionsAndSignaturesFor)
	return err == nil && version.String() == wanted.String()
}

// risky is about risks that nobody accepted.
func risky(f *facts.Facts, wanted semver.Version, risks []facts.Risk) *removal.Step {
	var left []string
	for _, risk := range risks {
		if !slices.Contains(f.ControlPlane.Spec.Upgrade.AcceptedRisks, risk.Name) {
			left = append(left, fmt.Sprintf("%s (%s)", risk.Name, bound.Cause(risk.Message)))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return watched(controlplanev1.UpgradeRiskNotAcceptedReason, "v%s is not recommended to this cluster; set spec.version to another release, or name in spec.upgrade.acceptedRisks what you accept: %s",
		wanted, bound.Join(left, ""))
}

// imageOf is the image that the spec gives of its version, and the field in which it does; empty: none.
func imageOf(f *facts.Facts) (image, field string, step *removal.Step) {
	config := &f.ControlPlane.Spec.Config
	switch {
	case config.ClusterImageSetRef == nil:
		return config.ReleaseImage, "config.releaseImage", nil
	case f.ImageSet == nil:
		return "", "", watched(controlplanev1.ClusterImageSetMissingReason, "ClusterImageSet %s does not exist: create it, or name another in config.clusterImageSetRef", config.ClusterImageSetRef.Name)
	}
	return f.ImageSet.Spec.ReleaseImage, "config.clusterImageSetRef", nil
}

// usable is about images that cannot be those of the release.
func usable(f *facts.Facts, wanted semver.Version, image, field string) *removal.Step {
	_, digest, by := strings.Cut(image, "@")
	_, running, _ := strings.Cut(f.Workload.ReleaseImage, "@")
	switch {
	case !by:
		return watched(controlplanev1.InvalidConfigurationReason, "the image of %s is named by tag, and the cluster takes none but by digest (registry/path@sha256:...)", field)
	case digest == running:
		return watched(controlplanev1.InvalidConfigurationReason, "%s is still the image of v%s, which runs: set it to that of v%s, or remove it, so that the cluster takes the one of its update graph",
			field, f.Workload.OpenShiftVersion, wanted)
	}
	return nil
}

func notOffered(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *removal.Step {
	graph := "the channel " + bound.Value(seen.Channel)
	if seen.Channel == "" {
		graph = "the update graph, of which the cluster has no channel"
	}
	because := ""
	if seen.NoOffers != "" {
		because = ": " + strings.TrimSuffix(bound.Cause(seen.NoOffers), ".")
	}
	return watched(controlplanev1.UpgradeNotOfferedReason, "v%s is not offered to this cluster, which runs v%s, by %s%s. Set spec.upgrade.channel to one that has it, "+
		"or, where there is no update graph, config.releaseImage to its image by digest", wanted, f.Workload.OpenShiftVersion, graph, because)
}

// answerTo is what the cluster says to what it was asked for.
func answerTo(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *removal.Step {
	if r := f.Workload.Rollout; r != nil && !r.Unseen && r.Refused != "" {
		return watched(controlplanev1.UpgradeRefusedReason, "the cluster refuses v%s. %s%s", wanted, gatesLeft(f, wanted, seen), r.Refused)
	}
	return watched(controlplanev1.UpgradeInProgressReason, "the cluster was asked for v%s: waiting until it begins", wanted)
}

// gatesLeft names what an administrator may acknowledge before the cluster leaves its minor version.
func gatesLeft(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) string {
	runs, _ := f.Runs()
	var left []string
	for _, gate := range seen.Gates {
		if !gate.Acknowledged && strings.HasPrefix(gate.Name, fmt.Sprintf("ack-%d.%d-", runs.Major, runs.Minor)) {
			left = append(left, fmt.Sprintf("%s (%s)", gate.Name, bound.Cause(gate.Message)))
		}
	}
	if len(left) == 0 || wanted.Major == runs.Major && wanted.Minor == runs.Minor {
		return ""
	}
	return "When you have checked what it asks for, name in spec.upgrade.acknowledgements: " + bound.Join(left, "") + ". It says: "
}

// preflight is what should be well before a cluster begins, whatever the cluster itself is told not to check. One that is on its way already may need the other patch to become well.
func preflight(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *removal.Step {
	if f.Workload.Upgrading != "" {
		return nil
	}
	if changing := changing(f); changing != "" {
		return watched(controlplanev1.WaitingForReplacementReason, "the cluster is not asked for v%s yet: %s", wanted, changing)
	}
	if len(seen.Unhealthy) > 0 {
		return unwatched(controlplanev1.WaitingForHealthyClusterReason, "the cluster is not asked for v%s until it is healthy: %s", wanted, bound.Join(seen.Unhealthy, ""))
	}
	return nil
}

// changing says which hosts of the control plane come or go.
func changing(f *facts.Facts) string {
	if n := len(f.Machines); n != int(f.Replicas()) {
		return fmt.Sprintf("the number of control-plane Machines is %d, and spec.replicas %d", n, f.Replicas())
	}
	for _, m := range f.Machines {
		switch at := slices.IndexFunc(f.Workload.Nodes, func(n facts.Node) bool { return n.Name == m.Status.NodeRef.Name }); {
		case !m.DeletionTimestamp.IsZero():
			return fmt.Sprintf("Machine %s is being deleted", m.Name)
		case !m.Status.NodeRef.IsDefined():
			return fmt.Sprintf("Machine %s has no Node yet: waiting until it has, or is deleted", m.Name)
		case at < 0:
			return fmt.Sprintf("Node %s of Machine %s is not in the cluster", m.Status.NodeRef.Name, m.Name)
		case m.Spec.ProviderID != "" && f.Workload.Nodes[at].ProviderID != "" && m.Spec.ProviderID != f.Workload.Nodes[at].ProviderID:
			return fmt.Sprintf("Node %s is not that of Machine %s: they have other provider IDs", m.Status.NodeRef.Name, m.Name)
		case facts.NodeAway(m):
			return fmt.Sprintf("Node %s of Machine %s is not Ready", m.Status.NodeRef.Name, m.Name)
		case f.ToBeRemediated(m):
			return fmt.Sprintf("Machine %s is unhealthy, and is to be replaced", m.Name)
		}
	}
	if f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" {
		return "what a host leaves behind that was removed from etcd is being cleaned up"
	}
	return ""
}
