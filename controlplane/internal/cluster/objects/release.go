package objects

import (
	"cmp"
	"hash/fnv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// CurrentConfigAnnotation of a Node names the rendered machine configuration in use. The machine config
	// operator sets it after the host restarted.
	CurrentConfigAnnotation = "machineconfiguration.openshift.io/currentConfig"
	// DesiredConfigAnnotation names the desired configuration. It differs while the machine config operator
	// drains, updates and restarts the host.
	DesiredConfigAnnotation = "machineconfiguration.openshift.io/desiredConfig"
	// LongestVersion and longestImage are the limits of our status, without the v of a version. A longer value
	// would prevent all updates of the status. longestName is the limit of object names.
	LongestVersion, longestImage, longestName = 255, 1024, 253
	// failing, invalid and releaseAccepted are conditions of a ClusterVersion without a constant in OpenShift's
	// API (cluster version operator).
	failing, invalid, releaseAccepted configv1.ClusterStatusConditionType = "Failing", "Invalid", "ReleaseAccepted"
)

// release is the state of the release in a ClusterVersion.
type release struct {
	// Completed is the release that was completed last, and Image its image. Upgrading is the release that is
	// being rolled out.
	Completed, Image, Upgrading string
	Channel                     string
	Offers                      uint64
	Rollout                     *workload.Rollout
}

func releaseOf(version *configv1.ClusterVersion) *release {
	r := &release{Channel: version.Spec.Channel, Offers: offersOf(version)}
	history := version.Status.History // newest first
	for _, entry := range history {
		if entry.State == configv1.CompletedUpdate {
			r.Completed, r.Image = bound.Identifier(entry.Version, LongestVersion), bound.Identifier(entry.Image, longestImage)
			break
		}
	}
	if r.Completed != "" && history[0].State != configv1.CompletedUpdate {
		r.Upgrading = bound.Identifier(history[0].Version, LongestVersion)
	}
	r.Rollout = rolloutOf(version, r)
	return r
}

// rolloutOf returns nil if the cluster runs the requested release, and reports no problem. Only the condition
// ReleaseAccepted reports that a request was refused: all other fields stay unchanged.
func rolloutOf(version *configv1.ClusterVersion, r *release) *workload.Rollout {
	conditions := map[configv1.ClusterStatusConditionType]configv1.ClusterOperatorStatusCondition{}
	for _, c := range version.Status.Conditions {
		conditions[c.Type] = c
	}
	rollout := &workload.Rollout{Requested: RequestedUpdate(version), Unseen: version.Status.ObservedGeneration < version.Generation}
	rollout.Pending = isPending(rollout.Requested, version.Status.History)
	if c := conditions[configv1.OperatorProgressing]; r.Upgrading != "" {
		rollout.Progress = messageOf(c)
	}
	if c := conditions[failing]; c.Status == configv1.ConditionTrue {
		rollout.Failing = messageOf(c)
	}
	switch ignored, accepted := conditions[invalid], conditions[releaseAccepted]; {
	case ignored.Status == configv1.ConditionTrue:
		rollout.Refused = messageOf(ignored)
	case accepted.Status == configv1.ConditionFalse:
		rollout.Refused = messageOf(accepted)
	}
	if r.Upgrading == "" && !rollout.Unseen && !rollout.Pending && rollout.Failing == "" && rollout.Refused == "" {
		return nil
	}
	return rollout
}

// isPending reports whether the requested release differs from the newest entry of the history. While the
// cluster version operator verifies a request, no other field reports it.
func isPending(requested workload.Update, history []configv1.UpdateHistory) bool {
	switch {
	case requested == workload.Update{}, len(history) == 0:
		return false
	case requested.Version != "":
		return requested.Version != history[0].Version
	}
	return requested.Image != history[0].Image
}

// messageOf returns the beginning of the message of a condition, or of its reason if it has no message.
func messageOf(c configv1.ClusterOperatorStatusCondition) string {
	return truncated(cmp.Or(c.Message, c.Reason))
}

// truncated returns the beginning of a text of a cluster.
func truncated(text string) string {
	return bound.Cause(text)
}

// ReleasesOf returns the release that a cluster completed last, the one that is being rolled out, and those
// that were requested before and replaced.
func ReleasesOf(version *configv1.ClusterVersion) (runs, upgrading string, former []string) {
	r := releaseOf(version)
	for _, entry := range version.Status.History[min(1, len(version.Status.History)):] {
		if entry.Version != r.Completed {
			former = append(former, entry.Version)
		}
	}
	return r.Completed, r.Upgrading, former
}

// RequestedUpdate returns the release that was requested last.
func RequestedUpdate(version *configv1.ClusterVersion) workload.Update {
	if requested := version.Spec.DesiredUpdate; requested != nil {
		return workload.Update{Version: requested.Version, Image: requested.Image, Force: requested.Force}
	}
	return workload.Update{}
}

// offersOf returns a hash of the fields that decide which updates the cluster accepts.
func offersOf(version *configv1.ClusterVersion) uint64 {
	var conditions []string
	for _, r := range version.Status.AvailableUpdates {
		conditions = append(conditions, r.Version, r.Image)
	}
	for _, u := range version.Status.ConditionalUpdates {
		conditions = append(conditions, u.Release.Version, u.Release.Image)
		for _, c := range u.Conditions {
			conditions = append(conditions, c.Type, string(c.Status), c.Reason)
		}
	}
	for _, c := range version.Status.Conditions {
		switch c.Type {
		case configv1.OperatorUpgradeable:
			conditions = append(conditions, string(c.Type), string(c.Status), c.Message)
		case configv1.RetrievedUpdates: // its message contains the local port, which differs for each attempt
			conditions = append(conditions, string(c.Type), string(c.Status), c.Reason)
		}
	}
	if len(conditions) == 0 {
		return 0
	}
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(strings.Join(conditions, "\n"))) // never fails
	return digest.Sum64()
}
