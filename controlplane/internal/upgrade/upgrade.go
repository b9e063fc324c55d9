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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Due reports whether the cluster has to be looked at: it is to run a newer release than it runs, or is brought to, or was asked for one that it has not begun and that nobody wants any more.
func Due(f *facts.Facts) bool {
	runs, known := f.Runs()
	if !known || !f.Installed() || f.ClusterDeleting() || !f.Workload.Connected || !f.Workload.UnreadSince.IsZero() {
		return false
	}
	return newer(f, runs) || pending(f)
}

// newer reports whether the spec asks for a release to which the cluster is not on its way.
func newer(f *facts.Facts, runs semver.Version) bool {
	wanted, given := f.WantedVersion()
	return given && wanted.GT(runs) && wanted.String() != f.Workload.Upgrading
}

// pending reports whether the cluster was asked for something that it has not begun.
func pending(f *facts.Facts) bool { return f.Workload.Rollout != nil && f.Workload.Rollout.Pending }

// Next is what the cluster is asked for now, and what is waited for, or keeps it from being asked.
func Next(f *facts.Facts, seen *facts.ClusterVersion) (facts.UpdateRequest, *decision.Blocker) {
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
	for _, check := range []func(*facts.Facts, semver.Version, *facts.ClusterVersion) *decision.Blocker{underWay, takenOff, skipped, foreignRequest} {
		if blocker := check(f, wanted, seen); blocker != nil {
			return request, blocker
		}
	}
	update, blocker := updateTo(f, wanted, seen)
	if blocker == nil {
		blocker = preflight(f, wanted, seen)
	}
	switch {
	case blocker != nil: // what was asked for may begin at any time
		request.Withdraw = seen.Ours && pending(f)
		return request, blocker
	case requested(seen, wanted, *update):
		return request, answerTo(f, wanted, seen)
	case !seen.Ours && pending(f) && seen.Requested.Version == update.Version && seen.Requested.Image != "":
		return request, watched(controlplanev1.VersionMismatchReason, "another client requested another image of v%s from the cluster: %s. Withdraw the request in the cluster (oc adm upgrade --clear), "+
			"or name this image in the spec", wanted, bound.Cause(seen.Requested.Image))
	}
	request.Update, request.Tolerated = update, tolerated(f, seen)
	return request, requestedNow(f, wanted, seen)
}

// requested reports whether the cluster was asked for an update already. A request of another client for a recommended release stands, whichever image it names, or none:
// the cluster checks that the image is of the version. A request of ours that has no image comes from a version of the provider that sent none: it is completed, because
// the cluster ignores it as Invalid as soon as its update graph does not offer the version any more.
func requested(seen *facts.ClusterVersion, wanted semver.Version, update facts.Update) bool {
	asked := seen.Requested
	if asked.Version != update.Version || asked.Force != update.Force {
		return false
	}
	recommended := func(o facts.Offer) bool { return o.Image == update.Image && len(o.Risks) == 0 }
	return sameImage(asked.Image, update.Image) || !seen.Ours && slices.ContainsFunc(offersOf(seen, wanted), recommended)
}

// sameImage compares images by digest: mirrors have the image of a release under other names.
func sameImage(a, b string) bool {
	return a == b || digestOf(a) != "" && digestOf(a) == digestOf(b)
}

// requestedNow is the wait of an update that is requested and not begun.
func requestedNow(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *decision.Blocker {
	in := ""
	if ailments := tolerated(f, seen); len(ailments) > 0 {
		in = ". Tolerated: " + bound.Join(ailments, "")
	}
	return watched(controlplanev1.UpgradeInProgressReason, "the cluster was asked for v%s: waiting until it begins%s", wanted, in)
}

// watched is a wait at the end of which the cluster tells something, unwatched one for what has to be looked at.
func watched(reason, format string, args ...any) *decision.Blocker {
	blocker := decision.Watch(reason, format, args...)
	return &blocker
}

func unwatched(reason, format string, args ...any) *decision.Blocker {
	blocker := watched(reason, format, args...)
	blocker.Watched = false
	return blocker
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
func underWay(f *facts.Facts, wanted semver.Version, _ *facts.ClusterVersion) *decision.Blocker {
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
func takenOff(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *decision.Blocker {
	if !slices.Contains(seen.Former, wanted.String()) {
		return nil
	}
	now := cmp.Or(f.Workload.Upgrading, seen.Runs)
	return watched(controlplanev1.VersionMismatchReason, "the cluster was brought from v%s to v%s in the cluster itself, and is not brought back from here: set spec.version to v%s, or ask for v%s there (oc adm upgrade)",
		wanted, now, now, wanted)
}

// skipped is about minor versions, of which OpenShift takes one at a time.
func skipped(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *decision.Blocker {
	runs, _ := f.Runs()
	switch {
	case wanted.Major != runs.Major:
		return nextMajor(f, runs, wanted, seen)
	case wanted.Minor <= runs.Minor+1:
		return nil
	}
	return tooFar(wanted, runs, runs.Major, runs.Minor+1)
}

func tooFar(wanted, runs semver.Version, major, minor uint64) *decision.Blocker {
	return watched(controlplanev1.InvalidConfigurationReason, "spec.version is v%s, but the cluster runs v%s, and is upgraded by one minor version at a time: set spec.version to a release of %d.%d first",
		wanted, runs, major, minor)
}

// lastBeforeFive is the first minor version of OpenShift 4 from which 5.0 is one minor version of Kubernetes away, or none: 4.22 has Kubernetes 1.35, 4.23 and 5.0 have 1.36.
// The cluster version operator itself lets 5.0 follow upon any 4.y (precondition ClusterVersionGiantHop).
const lastBeforeFive = 22

// nextMajor is about another major version. Which releases lead to it is in the update graph; where the cluster has none, what is known of 5.0 counts.
func nextMajor(f *facts.Facts, runs, wanted semver.Version, seen *facts.ClusterVersion) *decision.Blocker {
	switch fromFourToFive := runs.Major == 4 && wanted.Major == 5; {
	case len(offersOf(seen, wanted)) > 0:
		return nil
	case seen.NoOffers == "":
		return notOffered(f, wanted, seen, "where the cluster reaches an update graph, only that leads to another major version")
	case !fromFourToFive:
		return notOffered(f, wanted, seen, "only an update graph leads to it")
	case runs.Minor < lastBeforeFive:
		return tooFar(wanted, runs, runs.Major, runs.Minor+1)
	case wanted.Minor > 0:
		return tooFar(wanted, runs, wanted.Major, 0)
	}
	return nil
}

// foreignRequest is about what somebody else asked the cluster for, and has not begun: two who write in turn would keep it from ever beginning.
func foreignRequest(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *decision.Blocker {
	if seen.Ours || !pending(f) || seen.Requested.Version == wanted.String() {
		return nil
	}
	refused := ""
	if f.Workload.Rollout.Refused != "" {
		refused = ", which refuses it (" + f.Workload.Rollout.Refused + ")"
	}
	return watched(controlplanev1.VersionMismatchReason, "somebody else asked the cluster for another release than v%s: %s%s. Take that back in the cluster (oc adm upgrade --clear), or set spec.version to it",
		wanted, describe(seen.Requested), refused)
}

func describe(requested facts.Update) string {
	if requested.Version == "" {
		return bound.Cause(requested.Image)
	}
	return "v" + bound.Value(requested.Version)
}

// answerTo is what the cluster says to what it was asked for.
func answerTo(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *decision.Blocker {
	if r := f.Workload.Rollout; r != nil && !r.Unseen && r.Refused != "" {
		return watched(controlplanev1.UpgradeRefusedReason, "the cluster refuses v%s. %s%s", wanted, gatesLeft(f, wanted, seen), r.Refused)
	}
	return requestedNow(f, wanted, seen)
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
func preflight(f *facts.Facts, wanted semver.Version, seen *facts.ClusterVersion) *decision.Blocker {
	if f.Workload.Upgrading != "" {
		return nil
	}
	if changing := changing(f); changing != "" {
		return watched(controlplanev1.WaitingForReplacementReason, "the cluster is not asked for v%s yet: %s", wanted, changing)
	}
	return unhealthy(f, wanted, seen)
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
