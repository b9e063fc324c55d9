package cluster

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// CurrentConfigAnnotation of a Node names the rendered machine configuration that it has, releaseVersionAnnotation of that names its release (machine config operator).
	CurrentConfigAnnotation = "machineconfiguration.openshift.io/currentConfig"
	// DesiredConfigAnnotation names the one that it is to have. It differs while the machine config operator drains, updates and restarts the host.
	DesiredConfigAnnotation  = "machineconfiguration.openshift.io/desiredConfig"
	releaseVersionAnnotation = "machineconfiguration.openshift.io/release-image-version"
	// longestVersion and longestImage are what our status takes, without the v of a version: a longer one makes the status unwritable. longestName is that of objects.
	longestVersion, longestImage, longestName = 255, 1024, 253
	// failing, invalid and releaseAccepted are conditions of a ClusterVersion that OpenShift's API has no names for (cluster version operator).
	failing, invalid, releaseAccepted configv1.ClusterStatusConditionType = "Failing", "Invalid", "ReleaseAccepted"
)

// machineConfigs is the kind of rendered machine configurations, which are large: only their metadata is read.
var machineConfigs = machineconfigurationv1.GroupVersion.WithKind("MachineConfig")

// release is what a ClusterVersion says of the release of its cluster.
type release struct {
	// completed is the one that was completed last, image its image; upgrading is the one that is being rolled out after it.
	completed, image, upgrading string
	channel                     string
	offers                      uint64
	rollout                     *facts.Rollout
}

func releaseOf(version *configv1.ClusterVersion) *release {
	r := &release{channel: version.Spec.Channel, offers: offersOf(version)}
	history := version.Status.History // newest first
	for _, entry := range history {
		if entry.State == configv1.CompletedUpdate {
			r.completed, r.image = bound.Identifier(entry.Version, longestVersion), bound.Identifier(entry.Image, longestImage)
			break
		}
	}
	if r.completed != "" && history[0].State != configv1.CompletedUpdate {
		r.upgrading = bound.Identifier(history[0].Version, longestVersion)
	}
	r.rollout = rolloutOf(version, r)
	return r
}

// rolloutOf is nil when the cluster runs what it was asked for, and nothing is told against it. Only ReleaseAccepted tells of a request that is refused: all else stays as it was before it.
func rolloutOf(version *configv1.ClusterVersion, r *release) *facts.Rollout {
	told := map[configv1.ClusterStatusConditionType]configv1.ClusterOperatorStatusCondition{}
	for _, c := range version.Status.Conditions {
		told[c.Type] = c
	}
	rollout := &facts.Rollout{Requested: RequestedUpdate(version), Unseen: version.Status.ObservedGeneration < version.Generation}
	rollout.Pending = isPending(rollout.Requested, version.Status.History)
	if c := told[configv1.OperatorProgressing]; r.upgrading != "" {
		rollout.Progress = saying(c)
	}
	if c := told[failing]; c.Status == configv1.ConditionTrue {
		rollout.Failing = saying(c)
	}
	switch ignored, accepted := told[invalid], told[releaseAccepted]; {
	case ignored.Status == configv1.ConditionTrue:
		rollout.Refused = saying(ignored)
	case accepted.Status == configv1.ConditionFalse:
		rollout.Refused = saying(accepted)
	}
	if r.upgrading == "" && !rollout.Unseen && !rollout.Pending && rollout.Failing == "" && rollout.Refused == "" {
		return nil
	}
	return rollout
}

// isPending reports whether a request is not what the cluster runs, or works towards. While it is looked at nothing else tells of it.
func isPending(asked facts.Update, history []configv1.UpdateHistory) bool {
	switch {
	case asked == facts.Update{}, len(history) == 0:
		return false
	case asked.Version != "":
		return asked.Version != history[0].Version
	}
	return asked.Image != history[0].Image
}

// saying is what a condition says, the beginning of it; its reason where it says nothing.
func saying(c configv1.ClusterOperatorStatusCondition) string {
	return shortened(cmp.Or(c.Message, c.Reason))
}

// shortened is the beginning of what a cluster says.
func shortened(words string) string {
	return bound.Cause(words)
}

// ReleasesOf are the release that a cluster completed last, the one that is being rolled out over it, and those that it was asked for before and taken off.
func ReleasesOf(version *configv1.ClusterVersion) (runs, upgrading string, former []string) {
	r := releaseOf(version)
	for _, entry := range version.Status.History[min(1, len(version.Status.History)):] {
		if entry.Version != r.completed {
			former = append(former, entry.Version)
		}
	}
	return r.completed, r.upgrading, former
}

// RequestedUpdate is the release that a cluster was asked for last.
func RequestedUpdate(version *configv1.ClusterVersion) facts.Update {
	if asked := version.Spec.DesiredUpdate; asked != nil {
		return facts.Update{Version: asked.Version, Image: asked.Image, Force: asked.Force}
	}
	return facts.Update{}
}

// offersOf is another number when something changed that decides what the cluster can be asked for.
func offersOf(version *configv1.ClusterVersion) uint64 {
	var told []string
	for _, r := range version.Status.AvailableUpdates {
		told = append(told, r.Version, r.Image)
	}
	for _, u := range version.Status.ConditionalUpdates {
		told = append(told, u.Release.Version, u.Release.Image)
		for _, c := range u.Conditions {
			told = append(told, c.Type, string(c.Status), c.Reason)
		}
	}
	for _, c := range version.Status.Conditions {
		switch c.Type {
		case configv1.OperatorUpgradeable:
			told = append(told, string(c.Type), string(c.Status), c.Message)
		case configv1.RetrievedUpdates: // its message has another port with each try
			told = append(told, string(c.Type), string(c.Status), c.Reason)
		}
	}
	if len(told) == 0 {
		return 0
	}
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(strings.Join(told, "\n"))) // it never fails
	return digest.Sum64()
}

// AwaitReleases says whether it matters of which release the Nodes of a cluster are although it is not being upgraded any more: hosts may follow later.
func (c *Clusters) AwaitReleases(cluster client.ObjectKey, needed bool) {
	l := c.known(cluster)
	if l == nil {
		return
	}
	l.mu.Lock()
	begins := needed && !l.releasesNeeded
	l.releasesNeeded = needed
	l.forgetReleases()
	l.mu.Unlock()
	if begins {
		l.again()
	}
}

// readReleases reads, where it matters, of which release the machine configurations are that its Nodes have. One that cannot be read is asked for when something changes again.
func (l *connection) readReleases(ctx context.Context, access *access) {
	l.mu.Lock()
	l.forgetReleases()
	missing := l.configsWithoutRelease()
	l.mu.Unlock()
	if len(missing) == 0 {
		return
	}
	found := map[string]string{}
	err := access.call(func(c client.Client) error {
		for _, name := range missing {
			config := &metav1.PartialObjectMetadata{}
			config.SetGroupVersionKind(machineConfigs)
			if err := c.Get(ctx, client.ObjectKey{Name: name}, config); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot read MachineConfig %s of the workload cluster: %w", name, err)
			}
			found[name] = config.Annotations[releaseVersionAnnotation]
		}
		return nil
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read of which release the Nodes of the workload cluster are", "Cluster", l.key)
	}
	l.update(func() {
		if l.releases == nil {
			l.releases = map[string]string{}
		}
		maps.Copy(l.releases, found)
	})
}

// releasesMatter reports whether anybody asks of which release the Nodes are; the caller holds the lock.
func (l *connection) releasesMatter() bool {
	released := l.released()
	return released != nil && (released.upgrading != "" || l.releasesNeeded)
}

// forgetReleases keeps nothing of them where nobody does; the caller holds the lock.
func (l *connection) forgetReleases() {
	if !l.releasesMatter() {
		l.releases = nil
	}
}

// configsWithoutRelease are the machine configurations of Nodes of which it is not known, and has to be, that they are of the newest release.
// A release that changes nothing in a configuration takes it over as it is: one of a former release may be of another one later. The caller holds the lock.
func (l *connection) configsWithoutRelease() []string {
	if !l.releasesMatter() {
		return nil
	}
	newest := cmp.Or(l.released().upgrading, l.released().completed)
	missing := sets.New[string]()
	for _, n := range l.nodes {
		if n.Config != "" && l.releases[n.Config] != newest {
			missing.Insert(n.Config)
		}
	}
	return sets.List(missing)
}
