package upgrade

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

const (
	running = "quay.io/ocp-release@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	newest  = "quay.io/ocp-release@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	// first is the image of the installation, mirrored another image of the release that is wanted.
	first    = "quay.io/ocp-release@sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
	mirrored = "mirror.example.com/ocp@sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
)

// world is an installed cluster of three hosts that runs 4.19.3 and is to run 4.20.1, which its update graph offers.
type world struct {
	*facts.Facts
	seen facts.ClusterVersion
}

func newWorld() *world {
	w := &world{Facts: &facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}}
	w.ControlPlane.Spec.Replicas, w.ControlPlane.Spec.Version = ptr.To[int32](3), "v4.20.1"
	w.ControlPlane.Status.Installation.Phase = controlplanev1.InstallationInstalled
	var nodes []facts.Node
	for _, name := range []string{"m0", "m1", "m2"} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Status.NodeRef.Name = name
		m.Spec.ProviderID = "metal3://" + name
		w.Machines = append(w.Machines, m)
		nodes = append(nodes, facts.Node{Name: name, ProviderID: m.Spec.ProviderID})
	}
	w.Workload = facts.Workload{Connected: true, OpenShiftVersion: "4.19.3", ReleaseImage: running, Channel: "stable-4.20", Nodes: nodes}
	w.seen = facts.ClusterVersion{Runs: "4.19.3", ResourceVersion: "7", Channel: "stable-4.20", Offers: []facts.Offer{{Version: "4.20.1", Image: newest}}}
	w.Decide()
	return w
}

func (w *world) spec() *controlplanev1.OpenshiftAssistedControlPlaneSpec { return &w.ControlPlane.Spec }

func TestDue(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*world)
		due    bool
	}{
		"a newer release is wanted":            {func(*world) {}, true},
		"it is on its way to it":               {func(w *world) { w.Workload.Upgrading = "4.20.1" }, false},
		"it is on its way to another":          {func(w *world) { w.Workload.Upgrading = "4.20.0" }, true},
		"what runs is wanted":                  {func(w *world) { w.spec().Version = "4.19.3" }, false},
		"an older one is wanted":               {func(w *world) { w.spec().Version = "4.19.2" }, false},
		"a candidate of it runs":               {func(w *world) { w.Workload.OpenShiftVersion = "4.20.1-rc.2" }, true},
		"the next patch has two digits":        {func(w *world) { w.spec().Version, w.Workload.OpenShiftVersion = "4.19.10", "4.19.9" }, true},
		"what runs, by another channel":        {func(w *world) { w.spec().Version, w.spec().Upgrade.Channel = "4.19.3", "eus-4.20" }, false},
		"what runs, and another was asked for": {func(w *world) { w.spec().Version, w.Workload.Rollout = "4.19.3", &facts.Rollout{Pending: true} }, true},
		"what runs, and it fails":              {func(w *world) { w.spec().Version, w.Workload.Rollout = "4.19.3", &facts.Rollout{Failing: "x"} }, false},
		"the cluster is deleted":               {func(w *world) { w.ControlPlane.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, false},
		"what is known may be old":             {func(w *world) { w.Workload.UnreadSince = time.Now() }, false},
		"the cluster does not answer":          {func(w *world) { w.Workload.Connected = false }, false},
		"nobody knows what runs":               {func(w *world) { w.Workload.OpenShiftVersion = "" }, false},
		"it is not installed":                  {func(w *world) { w.InstallationState = facts.InstallationState{} }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld()
			tc.change(w)
			NewWithT(t).Expect(Due(w.Facts)).To(Equal(tc.due))
		})
	}
}

func TestWhatTheClusterIsAskedFor(t *testing.T) {
	risks := []facts.Risk{{Name: "SlowDisks", Message: "disks may be slow"}, {Name: "OldNICs", Message: "links may flap"}}
	for situation, tc := range map[string]struct {
		change func(*world)
		update facts.Update
	}{
		"by the image of the offer":                                        {func(*world) {}, facts.Update{Version: "4.20.1", Image: newest}},
		"by digest, without update graph":                                  {func(w *world) { w.spec().Config.ReleaseImage, w.seen.Offers = newest, nil }, facts.Update{Version: "4.20.1", Image: newest}},
		"by digest, where it is offered":                                   {func(w *world) { w.spec().Config.ReleaseImage = newest }, facts.Update{Version: "4.20.1", Image: newest}},
		"by a ClusterImageSet":                                             {func(w *world) { w.useSet(mirrored) }, facts.Update{Version: "4.20.1", Image: mirrored}},
		"the ClusterImageSet is by tag, and the release is offered":        {func(w *world) { w.useSet("quay.io/ocp-release:4.20.1-x86_64") }, facts.Update{Version: "4.20.1", Image: newest}},
		"the ClusterImageSet was deleted, and the release is offered":      {func(w *world) { w.useSet(""); w.ImageSet = nil }, facts.Update{Version: "4.20.1", Image: newest}},
		"the ClusterImageSet is that of what runs, and it is offered":      {func(w *world) { w.useSet(running) }, facts.Update{Version: "4.20.1", Image: newest}},
		"the image is that of what runs, and the release is offered":       {func(w *world) { w.spec().Config.ReleaseImage = "mirror.example.com/" + running }, facts.Update{Version: "4.20.1", Image: newest}},
		"the image is that of the installation, and another has run since": {func(w *world) { w.spec().Config.ReleaseImage, w.seen.Images = first, []string{running, first} }, facts.Update{Version: "4.20.1", Image: newest}},
		"it is offered twice, with the same image":                         {func(w *world) { w.seen.Offers = append(w.seen.Offers, w.seen.Offers[0]) }, facts.Update{Version: "4.20.1", Image: newest}},
		"it is offered with two images, and the spec has one of them": {func(w *world) {
			w.seen.Offers = append(w.seen.Offers, facts.Offer{Version: "4.20.1", Image: mirrored})
			w.spec().Config.ReleaseImage = mirrored
		}, facts.Update{Version: "4.20.1", Image: mirrored}},
		"it is recommended with one image, and has risks with another": {func(w *world) {
			w.seen.Offers = append(w.seen.Offers, facts.Offer{Version: "4.20.1", Image: mirrored, Risks: risks})
		}, facts.Update{Version: "4.20.1", Image: newest}},
		"the version that an older provider requested alone": {func(w *world) { w.refuse("not available any more") }, facts.Update{Version: "4.20.1", Image: newest}},
		"a degraded operator is tolerated": {func(w *world) {
			w.spec().Upgrade.ToleratedOperators = []string{"insights", "console"}
			w.seen.Unhealthy = []facts.Ailment{{Operator: "insights", Message: "ClusterOperator insights is degraded"}, {Operator: "console", Message: "ClusterOperator console is not available"}}
		}, facts.Update{Version: "4.20.1", Image: newest}},
		"with risks that were accepted, it needs both": {func(w *world) {
			w.seen.Offers[0].Risks = risks
			w.spec().Upgrade.AcceptedRisks = []string{"OldNICs", "SlowDisks"}
		}, facts.Update{Version: "4.20.1", Image: newest}},
		"by the channel that it has": {func(w *world) { w.spec().Upgrade.Channel = "stable-4.20" }, facts.Update{Version: "4.20.1", Image: newest}},
		"forced":                     {func(w *world) { w.spec().Upgrade.WaivePreconditionsAndSignaturesFor = "v4.20.1" }, facts.Update{Version: "4.20.1", Image: newest, Force: true}},
		"forced, with a risk that was accepted": {func(w *world) {
			w.seen.Offers[0].Risks = risks[:1]
			w.spec().Upgrade.AcceptedRisks, w.spec().Upgrade.WaivePreconditionsAndSignaturesFor = []string{"SlowDisks"}, "4.20.1"
		}, facts.Update{Version: "4.20.1", Image: newest, Force: true}},
		"another was forced before":                  {func(w *world) { w.spec().Upgrade.WaivePreconditionsAndSignaturesFor = "4.20.0" }, facts.Update{Version: "4.20.1", Image: newest}},
		"another was asked for, and refused":         {func(w *world) { w.seen.Requested.Version = "4.20.0"; w.refused("no"); w.seen.Ours = true }, facts.Update{Version: "4.20.1", Image: newest}},
		"what was asked for has ended":               {func(w *world) { w.seen.Requested.Version = "4.19.3" }, facts.Update{Version: "4.20.1", Image: newest}},
		"the same, but not forced":                   {func(w *world) { w.seen.Requested = facts.Update{Version: "4.20.1", Force: true} }, facts.Update{Version: "4.20.1", Image: newest}},
		"instead of another patch that is under way": {func(w *world) { w.upgrading("4.20.0") }, facts.Update{Version: "4.20.1", Image: newest}},
		"instead of another patch that makes it unwell": {func(w *world) {
			w.upgrading("4.20.0")
			w.seen.Unhealthy = degraded("etcd")
		}, facts.Update{Version: "4.20.1", Image: newest}},
		"the next major version, which the graph offers":                    {func(w *world) { w.spec().Version, w.seen.Offers[0].Version = "5.0.1", "5.0.1" }, facts.Update{Version: "5.0.1", Image: newest}},
		"the next major version by digest, without update graph, from 4.22": {func(w *world) { w.runs("4.22.9"); w.disconnected("5.0.1", newest) }, facts.Update{Version: "5.0.1", Image: newest}},
		"the next major version by digest, without update graph, from 4.23": {func(w *world) { w.runs("4.23.2"); w.disconnected("5.0.1", newest) }, facts.Update{Version: "5.0.1", Image: newest}},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld()
			tc.change(w)
			request, step := Next(w.Facts, &w.seen)
			g.Expect(request.Update).To(HaveValue(Equal(tc.update)))
			g.Expect(request.ResourceVersion).To(Equal("7"))
			g.Expect(step.Reason).To(Equal(controlplanev1.UpgradeInProgressReason))
			g.Expect(step.Watched).To(BeTrue())
		})
	}
}

func (w *world) useSet(image string) {
	w.spec().Config.ClusterImageSetRef = &controlplanev1.ClusterImageSetReference{Name: "images"}
	w.ImageSet = &hivev1.ClusterImageSet{Spec: hivev1.ClusterImageSetSpec{ReleaseImage: image}}
}

func TestWhatKeepsAClusterFromBeingAsked(t *testing.T) {
	for situation, tc := range map[string]struct {
		change          func(*world)
		reason, message string
		watched         bool
	}{
		"another minor version is under way": {func(w *world) { w.upgrading("4.19.9") }, controlplanev1.UpgradeInProgressReason, "v4.20.1 comes when that is done", true},
		"a newer one is under way":           {func(w *world) { w.upgrading("4.20.4") }, controlplanev1.VersionMismatchReason, "set spec.version to v4.20.4", true},
		"a minor version is skipped":         {func(w *world) { w.spec().Version = "4.21.0" }, controlplanev1.InvalidConfigurationReason, "set spec.version to a release of 4.20 first", true},
		"it is not offered":                  {func(w *world) { w.seen.Offers = nil }, controlplanev1.UpgradeNotOfferedReason, "the channel stable-4.20", true},
		"there is no channel": {
			func(w *world) {
				w.seen.Offers, w.seen.Channel, w.seen.NoOffers = nil, "", "The update channel has not been configured."
			},
			controlplanev1.UpgradeNotOfferedReason, "no channel: The update channel has not been configured. Set spec.upgrade.channel", true,
		},
		"a risk is not accepted": {func(w *world) {
			w.seen.Offers[0].Risks = []facts.Risk{{Name: "SlowDisks", Message: "disks may be slow"}, {Name: "OldNICs", Message: "links may flap"}}
			w.spec().Upgrade.AcceptedRisks = []string{"OldNICs"}
		}, controlplanev1.UpgradeRiskNotAcceptedReason, "accept: SlowDisks (disks may be slow)", true},
		"a risk is not accepted of what is given by digest": {func(w *world) {
			w.spec().Config.ReleaseImage, w.seen.Offers[0].Risks = newest, []facts.Risk{{Name: "SlowDisks"}}
		}, controlplanev1.UpgradeRiskNotAcceptedReason, "SlowDisks", true},
		"the image is still that of what runs":  {func(w *world) { w.disconnected("4.20.1", "mirror.example.com/"+running) }, controlplanev1.InvalidConfigurationReason, "config.releaseImage is still the image of v4.19.3", true},
		"the ClusterImageSet is by tag":         {func(w *world) { w.seen.Offers = nil; w.useSet("quay.io/ocp-release:4.20.1-x86_64") }, controlplanev1.InvalidConfigurationReason, "config.clusterImageSetRef is named by tag", true},
		"the image is that of the installation": {func(w *world) { w.disconnected("4.20.1", first); w.seen.Images = []string{running, first} }, controlplanev1.InvalidConfigurationReason, "config.releaseImage is the image of an older release", true},
		"it is offered with two images": {func(w *world) {
			w.seen.Offers = append(w.seen.Offers, facts.Offer{Version: "4.20.1", Image: mirrored})
		}, controlplanev1.InvalidConfigurationReason, "v4.20.1 is offered with 2 images (" + newest + ", " + mirrored + "). Set config.releaseImage to one of them", true},
		"it is offered without an image":          {func(w *world) { w.seen.Offers[0].Image = "" }, controlplanev1.UpgradeNotOfferedReason, "v4.20.1 is not offered", true},
		"the ClusterImageSet is not there":        {func(w *world) { w.seen.Offers = nil; w.useSet(""); w.ImageSet = nil }, controlplanev1.ClusterImageSetMissingReason, "ClusterImageSet images does not exist", true},
		"something in it is not well":             {func(w *world) { w.seen.Unhealthy = degraded("etcd") }, controlplanev1.WaitingForHealthyClusterReason, "ClusterOperator etcd is degraded", false},
		"a Machine is missing":                    {func(w *world) { w.Machines = w.Machines[1:] }, controlplanev1.WaitingForReplacementReason, "the number of control-plane Machines is 2, and spec.replicas 3", true},
		"a Machine goes":                          {func(w *world) { w.Machines[1].DeletionTimestamp = &metav1.Time{Time: time.Now()} }, controlplanev1.WaitingForReplacementReason, "Machine m1 is being deleted", true},
		"a Machine is being installed":            {func(w *world) { w.Machines[1].Status.NodeRef.Name = "" }, controlplanev1.WaitingForReplacementReason, "Machine m1 has no Node yet", true},
		"a Machine is to be replaced":             {func(w *world) { w.sicken(1) }, controlplanev1.WaitingForReplacementReason, "Machine m1 is unhealthy", true},
		"a Node is gone":                          {func(w *world) { w.Workload.Nodes = w.Workload.Nodes[:2] }, controlplanev1.WaitingForReplacementReason, "Node m2 of Machine m2 is not in the cluster", true},
		"the kubeconfig leads to another cluster": {func(w *world) { w.Workload.Nodes[1].ProviderID = "metal3://other" }, controlplanev1.WaitingForReplacementReason, "Node m1 is not that of Machine m1", true},
		"a host died": {func(w *world) {
			w.Machines[1].Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionFalse}}
		}, controlplanev1.WaitingForReplacementReason, "Node m1 of Machine m1 is not Ready", true},
		"it was taken off that release":                      {func(w *world) { w.seen.Former = []string{"4.19.1", "4.20.1"} }, controlplanev1.VersionMismatchReason, "was brought from v4.20.1 to v4.19.3", true},
		"it is being taken off that release":                 {func(w *world) { w.upgrading("4.20.0"); w.seen.Former = []string{"4.20.1"} }, controlplanev1.VersionMismatchReason, "was brought from v4.20.1 to v4.20.0", true},
		"somebody else asked for another":                    {func(w *world) { w.seen.Requested.Version = "4.20.3"; w.refused("") }, controlplanev1.VersionMismatchReason, "somebody else asked the cluster for another release than v4.20.1: v4.20.3. Take", true},
		"somebody else asked for an image, which is refused": {func(w *world) { w.seen.Requested.Image = "image"; w.refused("no signature") }, controlplanev1.VersionMismatchReason, "image, which refuses it (no signature). Take", true},
		"somebody else asked for it, with its image":         {func(w *world) { w.seen.Requested = facts.Update{Version: "4.20.1", Image: newest}; w.refused("") }, controlplanev1.UpgradeInProgressReason, "waiting until it begins", true},
		"another client requested the same image from a mirror": {func(w *world) {
			w.disconnected("4.20.1", newest)
			w.seen.Requested = facts.Update{Version: "4.20.1", Image: strings.Replace(newest, "quay.io/ocp-release", "mirror.example.com/ocp", 1)}
			w.refused("")
		}, controlplanev1.UpgradeInProgressReason, "waiting until it begins", true},
		"another client requested another image of it": {func(w *world) {
			w.disconnected("4.20.1", newest)
			w.seen.Requested = facts.Update{Version: "4.20.1", Image: mirrored}
			w.refused("")
		}, controlplanev1.VersionMismatchReason, "another client requested another image of v4.20.1", true},
		"what is known is older than what was looked at":          {func(w *world) { w.seen.Runs = "4.20.5" }, controlplanev1.UpgradeInProgressReason, "waiting for its news", false},
		"another began meanwhile":                                 {func(w *world) { w.seen.Upgrading = "4.20.5" }, controlplanev1.UpgradeInProgressReason, "waiting for its news", false},
		"the next major version is not offered":                   {func(w *world) { w.spec().Version, w.spec().Config.ReleaseImage = "5.0.1", newest }, controlplanev1.UpgradeNotOfferedReason, "Set spec.upgrade.channel to one that has it: where the cluster reaches an update graph, only that leads to another major version", true},
		"the next major version, without update graph and digest": {func(w *world) { w.runs("4.22.9"); w.disconnected("5.0.1", "") }, controlplanev1.UpgradeNotOfferedReason, "or, where there is no update graph, config.releaseImage to its image by digest", true},
		"the next major version by digest, too early":             {func(w *world) { w.runs("4.21.9"); w.disconnected("5.0.1", newest) }, controlplanev1.InvalidConfigurationReason, "set spec.version to a release of 4.22 first", true},
		"the second of the next major version by digest":          {func(w *world) { w.runs("4.22.9"); w.disconnected("5.1.0", newest) }, controlplanev1.InvalidConfigurationReason, "set spec.version to a release of 5.0 first", true},
		"the major version after the next by digest":              {func(w *world) { w.runs("5.9.9"); w.disconnected("6.0.0", newest) }, controlplanev1.UpgradeNotOfferedReason, "only an update graph leads to it", true},
		"an operator that is not tolerated": {func(w *world) {
			w.spec().Upgrade.ToleratedOperators, w.seen.Unhealthy = []string{"insights"}, append(degraded("insights"), degraded("console")...)
		}, controlplanev1.WaitingForHealthyClusterReason, "until it is healthy: ClusterOperator console is degraded. If v4.20.1 mends it, add its name to spec.upgrade.toleratedOperators", false},
		"etcd, although it is tolerated":           {func(w *world) { w.tolerate("etcd") }, controlplanev1.WaitingForHealthyClusterReason, "healthy: ClusterOperator etcd is degraded", false},
		"kube-apiserver, although it is tolerated": {func(w *world) { w.tolerate("kube-apiserver") }, controlplanev1.WaitingForHealthyClusterReason, "healthy: ClusterOperator kube-apiserver is degraded", false},
		"machine-config, although it is tolerated": {func(w *world) { w.tolerate("machine-config") }, controlplanev1.WaitingForHealthyClusterReason, "healthy: ClusterOperator machine-config is degraded", false},
		"a pool, whose name is tolerated as that of an operator": {func(w *world) {
			w.spec().Upgrade.ToleratedOperators, w.seen.Unhealthy = []string{"worker"}, []facts.Ailment{{Message: "MachineConfigPool worker is degraded (x)"}}
		}, controlplanev1.WaitingForHealthyClusterReason, "MachineConfigPool worker is degraded", false},
		"another client requested it by its version": {func(w *world) { w.seen.Requested.Version = "4.20.1"; w.refused("") }, controlplanev1.UpgradeInProgressReason, "waiting until it begins", true},
		"something in it is not well, and it is forced": {func(w *world) {
			w.spec().Upgrade.WaivePreconditionsAndSignaturesFor, w.seen.Unhealthy = "4.20.1", degraded("etcd")
		}, controlplanev1.WaitingForHealthyClusterReason, "etcd is degraded", false},
		"a risk is not accepted, and it is forced": {func(w *world) {
			w.spec().Upgrade.WaivePreconditionsAndSignaturesFor, w.seen.Offers[0].Risks = "4.20.1", []facts.Risk{{Name: "SlowDisks"}}
		}, controlplanev1.UpgradeRiskNotAcceptedReason, "SlowDisks", true},
		"something is left of a host": {func(w *world) {
			w.ControlPlane.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: "[{}]"}
		}, controlplanev1.WaitingForReplacementReason, "being cleaned up", true},
		"it was asked, and has not looked at it": {func(w *world) {
			w.seen.Requested = facts.Update{Version: "4.20.1", Image: newest}
			w.Workload.Rollout = &facts.Rollout{Unseen: true, Refused: "the former"}
		}, controlplanev1.UpgradeInProgressReason, "waiting until it begins", true},
		"it was asked, and refuses": {func(w *world) { w.seen.Requested.Image = newest; w.refuse("Cluster operator x should not be upgraded") }, controlplanev1.UpgradeRefusedReason, "the cluster refuses v4.20.1. Cluster operator x should not be upgraded", true},
		"it refuses, and asks for acknowledgement": {func(w *world) {
			w.seen.Requested.Image = newest
			w.refuse("AdminAckRequired")
			w.seen.Gates = []facts.Gate{{Name: "ack-4.18-old", Message: "old"}, {Name: "ack-4.19-done", Acknowledged: true}, {Name: "ack-4.19-apis", Message: "APIs go"}}
		}, controlplanev1.UpgradeRefusedReason, "the cluster refuses v4.20.1. When you have checked what it asks for, name in spec.upgrade.acknowledgements: ack-4.19-apis (APIs go). It says: AdminAckRequired", true},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld()
			tc.change(w)
			request, step := Next(w.Facts, &w.seen)
			g.Expect(request.Update).To(BeNil())
			g.Expect(step.Reason).To(Equal(tc.reason))
			g.Expect(step.Message).To(ContainSubstring(tc.message))
			g.Expect(step.Watched).To(Equal(tc.watched))
		})
	}
}

// degraded are the ailments of a cluster with a degraded operator.
func degraded(operator string) []facts.Ailment {
	return []facts.Ailment{{Operator: operator, Message: "ClusterOperator " + operator + " is degraded"}}
}

// tolerate has a degraded operator, and names it among those that are tolerated.
func (w *world) tolerate(operator string) {
	w.spec().Upgrade.ToleratedOperators, w.seen.Unhealthy = []string{operator}, degraded(operator)
}

// runs makes the cluster run another release.
func (w *world) runs(version string) { w.Workload.OpenShiftVersion, w.seen.Runs = version, version }

// disconnected takes the update graph away, and wants a release by an image.
func (w *world) disconnected(version, image string) {
	w.seen.Offers, w.seen.NoOffers = nil, "The update channel has not been configured."
	w.spec().Version, w.spec().Config.ReleaseImage = version, image
}

// refuse makes the cluster refuse what is wanted, which we asked for.
func (w *world) refuse(why string) {
	w.seen.Requested.Version, w.seen.Ours = "4.20.1", true
	w.refused(why)
}

// refused makes the cluster refuse what it was asked for.
func (w *world) refused(why string) {
	w.Workload.Rollout = &facts.Rollout{Requested: w.seen.Requested, Pending: true, Refused: why}
}

// upgrading makes the cluster be on its way to a release.
func (w *world) upgrading(to string) {
	w.Workload.Upgrading, w.seen.Upgrading, w.seen.Requested.Version = to, to, to
	w.Workload.Rollout = &facts.Rollout{Requested: w.seen.Requested}
}

// sicken makes a MachineHealthCheck ask for the replacement of a Machine.
func (w *world) sicken(i int) {
	w.Machines[i].Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse}, {Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse},
	}
}

func TestAPatchIsNotAskedToBeAcknowledged(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.spec().Version, w.seen.Offers[0].Version = "4.19.9", "4.19.9"
	w.seen.Requested = facts.Update{Version: "4.19.9", Image: newest}
	w.Workload.Rollout = &facts.Rollout{Refused: "the payload could not be loaded"}
	w.seen.Gates = []facts.Gate{{Name: "ack-4.19-apis", Message: "APIs go"}}
	_, step := Next(w.Facts, &w.seen)
	g.Expect(step.Message).NotTo(ContainSubstring("ack-4.19-apis"))
}

func TestTheChannelComesFirst(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.spec().Upgrade.Channel = "fast-4.20"
	request, step := Next(w.Facts, &w.seen)
	g.Expect(request).To(Equal(facts.UpdateRequest{ResourceVersion: "7", Channel: "fast-4.20"}), "what it offers is not known yet")
	g.Expect(step.Message).To(ContainSubstring("fast-4.20"))

	w.spec().Version = "4.19.3"
	request, step = Next(w.Facts, &w.seen)
	g.Expect(request.Empty()).To(BeTrue(), "it is for upgrades")
	g.Expect(step).To(BeNil())
}

func TestWhatMayNotBeginIsTakenBack(t *testing.T) {
	for situation, change := range map[string]func(*world){
		"it is not wanted any more":       func(w *world) { w.spec().Version = "4.19.3" },
		"an older one is wanted":          func(w *world) { w.spec().Version = "4.19.1" },
		"a host is being replaced":        func(w *world) { w.Machines[0].DeletionTimestamp = &metav1.Time{Time: time.Now()} },
		"the cluster is not well anymore": func(w *world) { w.seen.Unhealthy = degraded("x") },
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld()
			w.seen.Requested.Image = newest
			w.refuse("no signature")
			request, step := Next(w.Facts, &w.seen)
			g.Expect(request.Empty()).To(BeTrue(), "it is tried again by the cluster")
			g.Expect(step.Reason).To(Equal(controlplanev1.UpgradeRefusedReason))
			change(w)
			request, _ = Next(w.Facts, &w.seen)
			g.Expect(request.Withdraw).To(BeTrue())
			w.seen.Ours = false
			request, _ = Next(w.Facts, &w.seen)
			g.Expect(request.Withdraw).To(BeFalse(), "it is that of somebody else")
		})
	}
}

func TestOnlyWhatTheClusterAsksForIsAcknowledged(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.spec().Upgrade.Acknowledgements = []string{"ack-4.19-apis", "ack-4.19-done", "ack-4.20-misspelt"}
	w.seen.Gates = []facts.Gate{{Name: "ack-4.19-apis"}, {Name: "ack-4.19-done", Acknowledged: true}, {Name: "ack-4.19-unchecked"}}
	request, _ := Next(w.Facts, &w.seen)
	g.Expect(request.Acknowledge).To(Equal([]string{"ack-4.19-apis"}))
	g.Expect(request.Update).NotTo(BeNil())
}

func TestToleranceIsReported(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.tolerate("insights")
	request, step := Next(w.Facts, &w.seen)
	g.Expect(request.Tolerated).To(Equal([]string{"ClusterOperator insights is degraded"}))
	g.Expect(step.Message).To(HaveSuffix("waiting until it begins. Tolerated: ClusterOperator insights is degraded"))

	w.seen.Requested, w.seen.Ours = *request.Update, true
	w.refused("no signature")
	request, step = Next(w.Facts, &w.seen)
	g.Expect(request.Withdraw).To(BeFalse(), "what is tolerated withdraws nothing")
	g.Expect(step.Reason).To(Equal(controlplanev1.UpgradeRefusedReason))

	w.spec().Upgrade.ToleratedOperators = nil
	request, _ = Next(w.Facts, &w.seen)
	g.Expect(request.Withdraw).To(BeTrue())
}
