// Package upgrade decides which release is requested from an installed cluster, and what blocks the request.
// It computes and has no client. An upgrade that has started cannot be stopped, and may lose a host that does
// not restart. Therefore an upgrade requires that the cluster is known to be healthy.
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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// Due reports whether the cluster must be inspected. This is the case if the spec has a newer release than
// the cluster runs or is being upgraded to. A pending request that is not desired any more is the other case.
func Due(f *facts.Facts) bool {
	runs, known := versioning.Runs(f)
	if !known || !f.Installed() || f.ClusterDeleting() || !f.Workload.Known() {
		return false
	}
	return newer(f, runs) || pending(f)
}

// newer reports whether the spec has a newer release that the cluster is not being upgraded to.
func newer(f *facts.Facts, runs semver.Version) bool {
	wanted, given := versioning.WantedVersion(f)
	return given && wanted.GT(runs) && wanted.String() != f.Workload.Upgrading
}

// pending reports whether the cluster has not started a requested update.
func pending(f *facts.Facts) bool { return f.Workload.Rollout != nil && f.Workload.Rollout.Pending }

// Kubernetes is what is known of the Kubernetes version of the release in the spec.
type Kubernetes struct {
	// Version is the version in the release image; "" if it is unknown.
	Version string
	// Pending is true while the version is read, or the query is repeated after a failure. Unknown is the cause of the
	// failure, for messages; "" if there is none.
	Pending bool
	Unknown string
}

// Image returns the image that would be requested; "" if none can be.
func Image(f *facts.Facts, seen *workload.ClusterVersion) string {
	runs, _ := versioning.Runs(f)
	wanted, _ := versioning.WantedVersion(f)
	if !newer(f, runs) {
		return ""
	}
	update, blocker := updateTo(f, wanted, seen)
	if blocker != nil {
		return ""
	}
	return update.Image
}

// Next returns the request to write now, and the blocker or the wait for the cluster.
func Next(f *facts.Facts, seen *workload.ClusterVersion, kubernetes Kubernetes) (workload.UpdateRequest, *decision.Blocker) {
	runs, _ := versioning.Runs(f)
	wanted, _ := versioning.WantedVersion(f)
	request := workload.UpdateRequest{ResourceVersion: seen.ResourceVersion}
	switch {
	case seen.Runs != f.Workload.OpenShiftVersion || seen.Upgrading != f.Workload.Upgrading:
		return request, unwatched(controlplanev1.UpgradeInProgressReason,
			"the cluster has just changed its release: waiting for its status")
	case !newer(f, runs):
		withdraw(f, seen, &request) // spec.distributionVersion may have been reverted
		return request, nil
	}
	request.Acknowledge = acknowledged(f, seen)
	if channel := f.ControlPlane.Spec.Upgrade.Channel; channel != "" && channel != seen.Channel {
		request.Channel = channel
		return request, watched(controlplanev1.UpgradeInProgressReason,
			"the cluster queries the channel %s for releases: waiting for the result", channel)
	}
	for _, check := range []func(*facts.Facts, semver.Version, *workload.ClusterVersion) *decision.Blocker{
		inProgress, rolledBack, skipped, skippedWorkers,
		foreignRequest,
	} {
		if blocker := check(f, wanted, seen); blocker != nil {
			return request, blocker
		}
	}
	update, blocker := updateTo(f, wanted, seen)
	if blocker == nil {
		blocker = cmp.Or(otherKubernetes(f, wanted, kubernetes.Version), preflight(f, wanted, seen))
	}
	switch {
	case blocker != nil: // a pending request may start at any time
		withdraw(f, seen, &request)
		return request, blocker
	case requested(seen, wanted, *update):
		return request, answerTo(f, wanted, seen)
	case !seen.Ours && pending(f) && seen.Requested.Version == update.Version && seen.Requested.Image != "":
		return request, watched(controlplanev1.VersionMismatchReason,
			"another client requested another image of v%s from the cluster: %s. Withdraw the request in the cluster (oc adm upgrade --clear), "+
				"or name this image in the spec", wanted, bound.Cause(seen.Requested.Image))
	case kubernetes.Pending:
		return request, reading(wanted, kubernetes.Unknown)
	case versioning.TopologySkipsWorkers(f):
		request.Pause, blocker = pause(f, wanted)
		return request, blocker
	}
	request.Update, request.Tolerated, request.Accepted = update, tolerated(f, seen), risksOfUpdate(seen, *update)
	request.AcceptRisks = acceptRisks(seen, request.Accepted)
	return request, assuming(requestedNow(f, wanted, seen), kubernetes.Unknown)
}

// withdraw withdraws our request if the cluster has not begun the upgrade.
func withdraw(f *facts.Facts, seen *workload.ClusterVersion, request *workload.UpdateRequest) {
	if seen.Ours && pending(f) {
		request.Withdraw, request.AcceptRisks = true, acceptRisks(seen, nil)
	}
}

// reading waits for the Kubernetes version of a release, or for the next query after a failure.
func reading(wanted semver.Version, failure string) *decision.Blocker {
	if failure == "" {
		return watched(controlplanev1.UpgradeInProgressReason, "Reading the Kubernetes version of release %s from its image", wanted)
	}
	return watched(controlplanev1.UpgradeInProgressReason, "The Kubernetes version of release %s cannot be read from its image: %s. The "+
		"query is repeated. If it fails for 10 minutes, spec.version is assumed to be correct", wanted, failure)
}

// assuming adds to the wait for a requested release that its Kubernetes version could not be read.
func assuming(wait *decision.Blocker, failure string) *decision.Blocker {
	if failure != "" {
		wait.Message += ". Its Kubernetes version could not be read, and spec.version is assumed to be correct: " + failure
	}
	return wait
}

// requested reports whether the update was already requested. A request of another client for a recommended
// release is kept, with or without an image: the cluster checks that the image has the version. Our own
// request without an image is from an older version of the provider. It is completed, because the cluster
// ignores it as Invalid when its update graph does not offer the version any more.
func requested(seen *workload.ClusterVersion, wanted semver.Version, update workload.Update) bool {
	current := seen.Requested
	if current.Version != update.Version || current.Force != update.Force {
		return false
	}
	if seen.Ours && !recorded(seen, risksOfUpdate(seen, update)) {
		return false
	}
	recommended := func(o workload.Offer) bool { return o.Image == update.Image && len(o.Risks) == 0 }
	return sameImage(current.Image, update.Image) || !seen.Ours && slices.ContainsFunc(offersOf(seen, wanted.String()), recommended)
}

// sameImage compares images by digest, because mirrors have the image of a release under other names.
func sameImage(a, b string) bool {
	return a == b || digestOf(a) != "" && digestOf(a) == digestOf(b)
}

// requestedNow returns the wait for the start of a requested update.
func requestedNow(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	in := ""
	if ailments := tolerated(f, seen); len(ailments) > 0 {
		in = ". Tolerated: " + bound.Join(ailments, "")
	}
	return watched(controlplanev1.UpgradeInProgressReason, "v%s was requested: waiting until the cluster starts the upgrade%s%s", wanted,
		in, unrecorded(f, wanted, seen))
}

// watched returns a blocker whose end an event reports, unwatched one that needs another inspection.
func watched(reason, format string, args ...any) *decision.Blocker {
	blocker := decision.Watch(reason, format, args...)
	return &blocker
}

func unwatched(reason, format string, args ...any) *decision.Blocker {
	blocker := watched(reason, format, args...)
	blocker.Watched = false
	return blocker
}

// acknowledged returns the gates in the spec that the cluster has, and that are not acknowledged yet.
func acknowledged(f *facts.Facts, seen *workload.ClusterVersion) []string {
	var names []string
	for _, gate := range seen.Gates {
		if !gate.Acknowledged && slices.Contains(f.ControlPlane.Spec.Upgrade.Acknowledgements, gate.Name) {
			names = append(names, gate.Name)
		}
	}
	return names
}

// skippedWorkers blocks the first of several minor versions of a topology while the hosts of its MachineDeployments would
// follow. It does not if this provider may pause their pools. Cluster API has not planned that version for them. From 1.14 on it
// upgrades nothing any more when their kubelets have it.
func skippedWorkers(f *facts.Facts, wanted semver.Version, _ *workload.ClusterVersion) *decision.Blocker {
	switch {
	case !versioning.TopologySkipsWorkers(f):
		return nil
	case !f.Workload.PoolsKnown:
		return watched(controlplanev1.UpgradeInProgressReason,
			"v%s is not requested yet: waiting for the MachineConfigPools of the cluster to be read", wanted)
	case versioning.PausesWorkerPools(f):
		return longChain(f, wanted)
	}
	return watched(controlplanev1.TopologySkipsWorkersReason, "v%s is not requested yet: the topology of Cluster %s is upgraded to %s by "+
		"several minor versions, and the hosts of its MachineDeployments would follow each of them, after which Cluster API upgrades nothing. "+
		"Set spec.upgrade.pauseWorkerPools to DuringChain, or pause these MachineConfigPools until the control plane has the last version, "+
		"which restarts and wipes no host: %s",
		wanted, f.Cluster.Name, f.Cluster.Spec.Topology.Version, bound.List(f.Workload.UnpausedPools))
}

// otherKubernetes blocks a release that does not have the Kubernetes version in the spec. Otherwise the kubelets of the
// cluster would get a version that the topology of the Cluster does not request. From 1.14 on Cluster API then sets no
// other version.
func otherKubernetes(f *facts.Facts, wanted semver.Version, contained string) *decision.Blocker {
	conflict := openshift.KubernetesConflict(wanted, contained, versioning.WantedKubernetes(f), f.Settings())
	if conflict == "" {
		return nil
	}
	return watched(controlplanev1.KubernetesVersionMismatchReason, "The upgrade is not requested: %s", conflict)
}

// inProgress blocks while the cluster is being upgraded to another release. Only a newer patch of the same
// minor version can replace the running upgrade.
func inProgress(f *facts.Facts, wanted semver.Version, _ *workload.ClusterVersion) *decision.Blocker {
	if f.Workload.Upgrading == "" {
		return nil
	}
	to, err := versions.ParseRelease(f.Workload.Upgrading)
	switch {
	case err == nil && to.GT(wanted):
		return watched(controlplanev1.VersionMismatchReason,
			"spec.distributionVersion is v%s, but the cluster is being upgraded to v%s, and downgrades are not supported. Set %s to v%s",
			wanted, to, f.Settings().Release, to)
	case err != nil || to.Major != wanted.Major || to.Minor != wanted.Minor:
		return watched(controlplanev1.UpgradeInProgressReason, "the cluster is being upgraded to v%s: v%s follows after that",
			f.Workload.Upgrading, wanted)
	}
	return nil
}

// rolledBack blocks a release that the cluster ran before, and left by a rollback or for a hotfix. That change
// was intentional.
func rolledBack(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	if !slices.Contains(seen.Former, wanted.String()) {
		return nil
	}
	now := cmp.Or(f.Workload.Upgrading, seen.Runs)
	return watched(controlplanev1.VersionMismatchReason,
		"the cluster was moved from v%s to v%s in the cluster itself, which is not reverted automatically. Set %s to v%s, or "+
			"request v%s in the cluster (oc adm upgrade)",
		wanted, now, f.Settings().Release, now, wanted)
}

// skipped blocks releases that skip a minor version, which OpenShift does not support.
func skipped(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	runs, _ := versioning.Runs(f)
	switch {
	case wanted.Major != runs.Major:
		return nextMajor(f, runs, wanted, seen)
	case wanted.Minor <= runs.Minor+1:
		return nil
	}
	return tooFar(f, wanted, runs.Major, runs.Minor+1)
}

// tooFar names the minor version that must precede a release.
func tooFar(f *facts.Facts, wanted semver.Version, major, minor uint64) *decision.Blocker {
	runs, _ := versioning.Runs(f)
	return watched(controlplanev1.InvalidConfigurationReason,
		"spec.distributionVersion is v%s, but the cluster runs v%s, and is upgraded by one minor version at a time. Set %s "+
			"to a release of %d.%d first",
		wanted, runs, f.Settings().Release, major, minor)
}

// lastBeforeFive is the first minor version of OpenShift 4 from which 5.0 is at most one minor version of
// Kubernetes away. 4.22 has Kubernetes 1.35, 4.23 and 5.0 have 1.36. The cluster version operator itself
// permits 5.0 after any 4.y (precondition ClusterVersionGiantHop).
const lastBeforeFive = 22

// nextMajor blocks another major version that cannot follow. The update graph has the permitted releases.
// Without a graph the known rule for 5.0 applies.
func nextMajor(f *facts.Facts, runs, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	switch fromFourToFive := runs.Major == 4 && wanted.Major == 5; {
	case len(offersOf(seen, wanted.String())) > 0:
		return nil
	case seen.NoOffers == "":
		return notOffered(f, wanted, seen, "if the cluster reaches an update graph, another major version must be in the graph")
	case !fromFourToFive:
		return notOffered(f, wanted, seen, "this major version requires an update graph")
	case runs.Minor < lastBeforeFive:
		return tooFar(f, wanted, runs.Major, runs.Minor+1)
	case wanted.Minor > 0:
		return tooFar(f, wanted, wanted.Major, 0)
	}
	return nil
}

// foreignRequest blocks while a request of another client is pending. Two clients that overwrite each other
// would prevent any upgrade.
func foreignRequest(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	if seen.Ours || !pending(f) || seen.Requested.Version == wanted.String() {
		return nil
	}
	refused := ""
	if f.Workload.Rollout.Refused != "" {
		refused = ", which refuses it (" + f.Workload.Rollout.Refused + ")"
	}
	return watched(controlplanev1.VersionMismatchReason,
		"another client requested another release than v%s: %s%s. Withdraw the request in the cluster (oc adm upgrade --clear), or set "+
			"%s to that release",
		wanted, describe(seen.Requested), refused, f.Settings().Release)
}

func describe(requested workload.Update) string {
	if requested.Version == "" {
		return bound.Cause(requested.Image)
	}
	return "v" + bound.Value(requested.Version)
}

// answerTo returns the response of the cluster to the request.
func answerTo(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	if r := f.Workload.Rollout; r != nil && !r.Unseen && r.Refused != "" {
		return watched(controlplanev1.UpgradeRefusedReason, "the cluster refuses v%s. %s%s", wanted, gatesLeft(f, wanted, seen),
			r.Refused)
	}
	return requestedNow(f, wanted, seen)
}

// gatesLeft names the gates to acknowledge before the cluster can leave its minor version.
func gatesLeft(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) string {
	runs, _ := versioning.Runs(f)
	var left []string
	for _, gate := range seen.Gates {
		if !gate.Acknowledged && strings.HasPrefix(gate.Name, fmt.Sprintf("ack-%d.%d-", runs.Major, runs.Minor)) {
			left = append(left, fmt.Sprintf("%s (%s)", gate.Name, bound.Cause(gate.Message)))
		}
	}
	if len(left) == 0 || wanted.Major == runs.Major && wanted.Minor == runs.Minor {
		return ""
	}
	return "After the required checks, add to spec.upgrade.acknowledgements: " + bound.Join(left, "") + ". Message of the cluster: "
}

// preflight blocks an upgrade of an unhealthy cluster, even if the checks of the cluster itself are waived. A
// running upgrade may need another patch to become healthy.
func preflight(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) *decision.Blocker {
	if f.Workload.Upgrading != "" {
		return nil
	}
	if changing := changing(f); changing != "" {
		return watched(controlplanev1.WaitingForReplacementReason, "v%s is not requested yet: %s", wanted, changing)
	}
	return unhealthy(f, wanted, seen)
}

// changing describes which control plane hosts are being added or removed, or are unhealthy.
func changing(f *facts.Facts) string {
	if n := len(f.Machines); n != int(f.Replicas()) {
		return fmt.Sprintf("the number of control-plane Machines is %d, and spec.replicas %d", n, f.Replicas())
	}
	for _, m := range f.Machines {
		switch at := slices.IndexFunc(f.Workload.Nodes, func(n workload.Node) bool { return n.Name == m.Status.NodeRef.Name }); {
		case !m.DeletionTimestamp.IsZero():
			return fmt.Sprintf("Machine %s is being deleted", m.Name)
		case !m.Status.NodeRef.IsDefined():
			return fmt.Sprintf("Machine %s has no Node yet: waiting for the Node, or the deletion of the Machine", m.Name)
		case at < 0:
			return fmt.Sprintf("Node %s of Machine %s is not in the cluster", m.Status.NodeRef.Name, m.Name)
		case m.Spec.ProviderID != "" && f.Workload.Nodes[at].ProviderID != "" && m.Spec.ProviderID != f.Workload.Nodes[at].ProviderID:
			return fmt.Sprintf("Node %s does not belong to Machine %s: their provider IDs differ", m.Status.NodeRef.Name, m.Name)
		case facts.NodeAway(m):
			return fmt.Sprintf("Node %s of Machine %s is not Ready", m.Status.NodeRef.Name, m.Name)
		case f.ToBeRemediated(m):
			return fmt.Sprintf("Machine %s is unhealthy, and will be replaced", m.Name)
		}
	}
	if f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" {
		return "the remains of a host that was removed from etcd are being cleaned up"
	}
	return ""
}
