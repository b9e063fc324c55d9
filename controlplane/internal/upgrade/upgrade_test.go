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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

const (
	running = "quay.io/ocp-release@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	newest  = "quay.io/ocp-release@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	// first is the image of the installation, mirrored another image of the desired release.
	first    = "quay.io/ocp-release@sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
	mirrored = "mirror.example.com/ocp@sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
)

// world is an installed cluster of three hosts. It runs 4.19.3, and its update graph offers the desired
// 4.20.1.
type world struct {
	*facts.Facts
	seen workload.ClusterVersion
}

func newWorld() *world {
	w := &world{Facts: &facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}}
	w.ControlPlane.Spec.Replicas, w.ControlPlane.Spec.DistributionVersion = ptr.To[int32](3), "v4.20.1"
	w.ControlPlane.Status.Installation.Phase = controlplanev1.InstallationInstalled
	var nodes []workload.Node
	for _, name := range []string{"m0", "m1", "m2"} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Status.NodeRef.Name = name
		m.Spec.ProviderID = "metal3://" + name
		w.Machines = append(w.Machines, m)
		nodes = append(nodes, workload.Node{Name: name, ProviderID: m.Spec.ProviderID})
	}
	w.Workload = workload.State{Connected: true, OpenShiftVersion: "4.19.3", ReleaseImage: running, Channel: "stable-4.20", Nodes: nodes}
	w.seen = workload.ClusterVersion{
		Runs: "4.19.3", ResourceVersion: "7", Channel: "stable-4.20",
		Offers: []workload.Offer{{Version: "4.20.1", Image: newest}},
	}
	installationstate.Decide(w.Facts)
	return w
}

func (w *world) spec() *controlplanev1.OpenshiftAssistedControlPlaneSpec { return &w.ControlPlane.Spec }

func TestDue(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*world)
		due    bool
	}{
		"newer release":             {func(*world) {}, true},
		"being upgraded to it":      {func(w *world) { w.Workload.Upgrading = "4.20.1" }, false},
		"being upgraded to another": {func(w *world) { w.Workload.Upgrading = "4.20.0" }, true},
		"running release":           {func(w *world) { w.spec().DistributionVersion = "4.19.3" }, false},
		"older release":             {func(w *world) { w.spec().DistributionVersion = "4.19.2" }, false},
		"release candidate runs":    {func(w *world) { w.Workload.OpenShiftVersion = "4.20.1-rc.2" }, true},
		"patch with two digits": {func(w *world) {
			w.spec().DistributionVersion, w.Workload.OpenShiftVersion = "4.19.10", "4.19.9"
		}, true},
		"running release, another channel": {func(w *world) {
			w.spec().DistributionVersion, w.spec().Upgrade.Channel = "4.19.3", "eus-4.20"
		}, false},
		"running release, pending request": {func(w *world) {
			w.spec().DistributionVersion, w.Workload.Rollout = "4.19.3",
				&workload.Rollout{Pending: true}
		}, true},
		"running release, failing": {
			func(w *world) {
				w.spec().DistributionVersion, w.Workload.Rollout = "4.19.3", &workload.Rollout{Failing: "x"}
			},
			false,
		},
		"being deleted":           {func(w *world) { w.ControlPlane.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, false},
		"state may be outdated":   {func(w *world) { w.Workload.UnreadSince = time.Now() }, false},
		"not connected":           {func(w *world) { w.Workload.Connected = false }, false},
		"unknown running release": {func(w *world) { w.Workload.OpenShiftVersion = "" }, false},
		"not installed":           {func(w *world) { w.InstallationState = facts.InstallationState{} }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld()
			tc.change(w)
			NewWithT(t).Expect(Due(w.Facts)).To(Equal(tc.due))
		})
	}
}

func TestRequestedUpdate(t *testing.T) {
	risks := []workload.Risk{{Name: "SlowDisks", Message: "disks may be slow"}, {Name: "OldNICs", Message: "links may flap"}}
	for situation, tc := range map[string]struct {
		change func(*world)
		update workload.Update
	}{
		"image of the offer": {func(*world) {}, workload.Update{Version: "4.20.1", Image: newest}},
		"digest, without update graph": {
			func(w *world) { w.spec().Config.ReleaseImage, w.seen.Offers = newest, nil },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"digest of offered release": {
			func(w *world) { w.spec().Config.ReleaseImage = newest },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"ClusterImageSet": {func(w *world) { w.useSet(mirrored) }, workload.Update{Version: "4.20.1", Image: mirrored}},
		"ClusterImageSet by tag, release offered": {
			func(w *world) { w.useSet("quay.io/ocp-release:4.20.1-x86_64") },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"ClusterImageSet deleted, release offered": {
			func(w *world) { w.useSet(""); w.ImageSet = nil },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"ClusterImageSet of running release, release offered": {
			func(w *world) { w.useSet(running) },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"image of running release, release offered": {
			func(w *world) { w.spec().Config.ReleaseImage = "mirror.example.com/" + running },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"image of the installation, release offered": {func(w *world) {
			w.spec().Config.ReleaseImage, w.seen.Images = first,
				[]string{running, first}
		}, workload.Update{Version: "4.20.1", Image: newest}},
		"offered twice with the same image": {
			func(w *world) { w.seen.Offers = append(w.seen.Offers, w.seen.Offers[0]) },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"offered with two images, one is in the spec": {func(w *world) {
			w.seen.Offers = append(w.seen.Offers, workload.Offer{Version: "4.20.1", Image: mirrored})
			w.spec().Config.ReleaseImage = mirrored
		}, workload.Update{Version: "4.20.1", Image: mirrored}},
		"recommended image and image with risks": {func(w *world) {
			w.seen.Offers = append(w.seen.Offers, workload.Offer{Version: "4.20.1", Image: mirrored, Risks: risks})
		}, workload.Update{Version: "4.20.1", Image: newest}},
		"request of an older provider without image": {
			func(w *world) { w.refuse("not available any more") },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"tolerated degraded operator": {func(w *world) {
			w.spec().Upgrade.ToleratedOperators = []string{"insights", "console"}
			w.seen.Unhealthy = []workload.Ailment{
				{Operator: "insights", Message: "ClusterOperator insights is degraded"},
				{Operator: "console", Message: "ClusterOperator console is not available"},
			}
		}, workload.Update{Version: "4.20.1", Image: newest}},
		"all risks accepted": {func(w *world) {
			w.seen.Offers[0].Risks = risks
			w.spec().Upgrade.AcceptedRisks = []string{"OldNICs", "SlowDisks"}
		}, workload.Update{Version: "4.20.1", Image: newest}},
		"current channel": {func(w *world) { w.spec().Upgrade.Channel = "stable-4.20" }, workload.Update{Version: "4.20.1", Image: newest}},
		"forced": {
			func(w *world) { w.spec().Upgrade.WaivePreconditionsAndSignaturesFor = "v4.20.1" },
			workload.Update{Version: "4.20.1", Image: newest, Force: true},
		},
		"forced, risk accepted": {func(w *world) {
			w.seen.Offers[0].Risks = risks[:1]
			w.spec().Upgrade.AcceptedRisks, w.spec().Upgrade.WaivePreconditionsAndSignaturesFor = []string{"SlowDisks"}, "4.20.1"
		}, workload.Update{Version: "4.20.1", Image: newest, Force: true}},
		"another release forced": {
			func(w *world) { w.spec().Upgrade.WaivePreconditionsAndSignaturesFor = "4.20.0" },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"another release requested and refused": {
			func(w *world) { w.seen.Requested.Version = "4.20.0"; w.refused("no"); w.seen.Ours = true },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"former request complete": {
			func(w *world) { w.seen.Requested.Version = "4.19.3" },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"same request without force": {
			func(w *world) { w.seen.Requested = workload.Update{Version: "4.20.1", Force: true} },
			workload.Update{Version: "4.20.1", Image: newest},
		},
		"another patch in progress": {func(w *world) { w.upgrading("4.20.0") }, workload.Update{Version: "4.20.1", Image: newest}},
		"another patch in progress, unhealthy": {func(w *world) {
			w.upgrading("4.20.0")
			w.seen.Unhealthy = degraded("etcd")
		}, workload.Update{Version: "4.20.1", Image: newest}},
		"next major version, offered": {
			func(w *world) { w.spec().DistributionVersion, w.seen.Offers[0].Version = "5.0.1", "5.0.1" },
			workload.Update{Version: "5.0.1", Image: newest},
		},
		"next major version by digest from 4.22": {
			func(w *world) { w.runs("4.22.9"); w.disconnected("5.0.1", newest) },
			workload.Update{Version: "5.0.1", Image: newest},
		},
		"next major version by digest from 4.23": {
			func(w *world) { w.runs("4.23.2"); w.disconnected("5.0.1", newest) },
			workload.Update{Version: "5.0.1", Image: newest},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld()
			tc.change(w)
			request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Update).To(HaveValue(Equal(tc.update)))
			g.Expect(request.ResourceVersion).To(Equal("7"))
			g.Expect(blocker.Reason).To(Equal(controlplanev1.UpgradeInProgressReason))
			g.Expect(blocker.Watched).To(BeTrue())
		})
	}
}

func (w *world) useSet(image string) {
	w.spec().Config.ClusterImageSetRef = &controlplanev1.ClusterImageSetReference{Name: "images"}
	w.ImageSet = &hivev1.ClusterImageSet{Spec: hivev1.ClusterImageSetSpec{ReleaseImage: image}}
}

func TestBlockers(t *testing.T) {
	for situation, tc := range map[string]struct {
		change          func(*world)
		reason, message string
		watched         bool
	}{
		"another minor version in progress": {
			func(w *world) { w.upgrading("4.19.9") }, controlplanev1.UpgradeInProgressReason,
			"v4.20.1 follows after that", true,
		},
		"newer release in progress": {
			func(w *world) { w.upgrading("4.20.4") }, controlplanev1.VersionMismatchReason,
			"Set spec.distributionVersion to v4.20.4", true,
		},
		"minor version skipped": {
			func(w *world) { w.spec().DistributionVersion = "4.21.0" }, controlplanev1.InvalidConfigurationReason,
			"Set spec.distributionVersion to a release of 4.20 first", true,
		},
		"not offered": {func(w *world) { w.seen.Offers = nil }, controlplanev1.UpgradeNotOfferedReason, "the channel stable-4.20", true},
		"no channel": {
			func(w *world) {
				w.seen.Offers, w.seen.Channel, w.seen.NoOffers = nil, "", "The update channel has not been configured."
			},
			controlplanev1.UpgradeNotOfferedReason,
			"because the cluster has no channel: The update channel has not been configured. Set spec.upgrade.channel", true,
		},
		"risk not accepted": {func(w *world) {
			w.seen.Offers[0].Risks = []workload.Risk{
				{Name: "SlowDisks", Message: "disks may be slow"},
				{Name: "OldNICs", Message: "links may flap"},
			}
			w.spec().Upgrade.AcceptedRisks = []string{"OldNICs"}
		}, controlplanev1.UpgradeRiskNotAcceptedReason, "accept them: SlowDisks (disks may be slow)", true},
		"risk not accepted, digest in the spec": {func(w *world) {
			w.spec().Config.ReleaseImage, w.seen.Offers[0].Risks = newest, []workload.Risk{{Name: "SlowDisks"}}
		}, controlplanev1.UpgradeRiskNotAcceptedReason, "SlowDisks", true},
		"image of running release": {
			func(w *world) { w.disconnected("4.20.1", "mirror.example.com/"+running) },
			controlplanev1.InvalidConfigurationReason, "config.releaseImage is still the image of v4.19.3", true,
		},
		"ClusterImageSet by tag": {
			func(w *world) { w.seen.Offers = nil; w.useSet("quay.io/ocp-release:4.20.1-x86_64") },
			controlplanev1.InvalidConfigurationReason, "config.clusterImageSetRef is named by tag", true,
		},
		"image of the installation": {
			func(w *world) { w.disconnected("4.20.1", first); w.seen.Images = []string{running, first} },
			controlplanev1.InvalidConfigurationReason, "config.releaseImage is the image of an older release", true,
		},
		"offered with two images": {func(w *world) {
			w.seen.Offers = append(w.seen.Offers, workload.Offer{Version: "4.20.1", Image: mirrored})
		}, controlplanev1.InvalidConfigurationReason, "v4.20.1 is offered with 2 images (" + newest + ", " + mirrored +
			"). Set config.releaseImage to one of them", true},
		"offered without image": {
			func(w *world) { w.seen.Offers[0].Image = "" }, controlplanev1.UpgradeNotOfferedReason,
			"v4.20.1 is not offered", true,
		},
		"no ClusterImageSet": {
			func(w *world) { w.seen.Offers = nil; w.useSet(""); w.ImageSet = nil },
			controlplanev1.ClusterImageSetMissingReason, "ClusterImageSet images does not exist", true,
		},
		"unhealthy": {
			func(w *world) { w.seen.Unhealthy = degraded("etcd") }, controlplanev1.WaitingForHealthyClusterReason,
			"ClusterOperator etcd is degraded", false,
		},
		"Machine missing": {
			func(w *world) { w.Machines = w.Machines[1:] }, controlplanev1.WaitingForReplacementReason,
			"the number of control-plane Machines is 2, and spec.replicas 3", true,
		},
		"Machine being deleted": {
			func(w *world) { w.Machines[1].DeletionTimestamp = &metav1.Time{Time: time.Now()} },
			controlplanev1.WaitingForReplacementReason, "Machine m1 is being deleted", true,
		},
		"Machine without Node": {
			func(w *world) { w.Machines[1].Status.NodeRef.Name = "" }, controlplanev1.WaitingForReplacementReason,
			"Machine m1 has no Node yet", true,
		},
		"unhealthy Machine": {
			func(w *world) { w.sicken(1) }, controlplanev1.WaitingForReplacementReason, "Machine m1 is unhealthy",
			true,
		},
		"Node missing": {
			func(w *world) { w.Workload.Nodes = w.Workload.Nodes[:2] }, controlplanev1.WaitingForReplacementReason,
			"Node m2 of Machine m2 is not in the cluster", true,
		},
		"kubeconfig of another cluster": {
			func(w *world) { w.Workload.Nodes[1].ProviderID = "metal3://other" },
			controlplanev1.WaitingForReplacementReason, "Node m1 does not belong to Machine m1", true,
		},
		"Node not Ready": {func(w *world) {
			w.Machines[1].Status.Conditions = []metav1.Condition{{
				Type:   clusterv1.MachineNodeReadyCondition,
				Status: metav1.ConditionFalse,
			}}
		}, controlplanev1.WaitingForReplacementReason, "Node m1 of Machine m1 is not Ready", true},
		"rolled back": {
			func(w *world) { w.seen.Former = []string{"4.19.1", "4.20.1"} }, controlplanev1.VersionMismatchReason,
			"was moved from v4.20.1 to v4.19.3", true,
		},
		"being rolled back": {
			func(w *world) { w.upgrading("4.20.0"); w.seen.Former = []string{"4.20.1"} },
			controlplanev1.VersionMismatchReason, "was moved from v4.20.1 to v4.20.0", true,
		},
		"another client requested another release": {
			func(w *world) { w.seen.Requested.Version = "4.20.3"; w.refused("") },
			controlplanev1.VersionMismatchReason, "another client requested another release than v4.20.1: v4.20.3. Withdraw", true,
		},
		"another client requested an image, refused": {
			func(w *world) { w.seen.Requested.Image = "image"; w.refused("no signature") },
			controlplanev1.VersionMismatchReason, "image, which refuses it (no signature). Withdraw", true,
		},
		"another client requested the same image": {func(w *world) {
			w.seen.Requested = workload.Update{
				Version: "4.20.1",
				Image:   newest,
			}
			w.refused("")
		}, controlplanev1.UpgradeInProgressReason, "waiting until the cluster starts", true},
		"another client requested the same image from a mirror": {func(w *world) {
			w.disconnected("4.20.1", newest)
			w.seen.Requested = workload.Update{Version: "4.20.1", Image: strings.Replace(newest, "quay.io/ocp-release",
				"mirror.example.com/ocp",
				1)}
			w.refused("")
		}, controlplanev1.UpgradeInProgressReason, "waiting until the cluster starts", true},
		"another client requested another image": {func(w *world) {
			w.disconnected("4.20.1", newest)
			w.seen.Requested = workload.Update{Version: "4.20.1", Image: mirrored}
			w.refused("")
		}, controlplanev1.VersionMismatchReason, "another client requested another image of v4.20.1", true},
		"state older than the inspection": {
			func(w *world) { w.seen.Runs = "4.20.5" }, controlplanev1.UpgradeInProgressReason,
			"waiting for its status", false,
		},
		"another upgrade started meanwhile": {
			func(w *world) { w.seen.Upgrading = "4.20.5" }, controlplanev1.UpgradeInProgressReason,
			"waiting for its status", false,
		},
		"next major version, not offered": {
			func(w *world) { w.spec().DistributionVersion, w.spec().Config.ReleaseImage = "5.0.1", newest },
			controlplanev1.UpgradeNotOfferedReason,
			"Set spec.upgrade.channel to a channel with this release: if the cluster reaches an update graph, another major version must be " +
				"in the graph", true,
		},
		"next major version, neither update graph nor digest": {
			func(w *world) { w.runs("4.22.9"); w.disconnected("5.0.1", "") },
			controlplanev1.UpgradeNotOfferedReason, "or, without an update graph, set config.releaseImage to its image by digest", true,
		},
		"next major version by digest, from too old a release": {
			func(w *world) { w.runs("4.21.9"); w.disconnected("5.0.1", newest) },
			controlplanev1.InvalidConfigurationReason, "Set spec.distributionVersion to a release of 4.22 first", true,
		},
		"later minor version of the next major version by digest": {
			func(w *world) { w.runs("4.22.9"); w.disconnected("5.1.0", newest) },
			controlplanev1.InvalidConfigurationReason, "Set spec.distributionVersion to a release of 5.0 first", true,
		},
		"unknown major version by digest": {
			func(w *world) { w.runs("5.9.9"); w.disconnected("6.0.0", newest) },
			controlplanev1.UpgradeNotOfferedReason, "this major version requires an update graph", true,
		},
		"operator not tolerated": {
			func(w *world) {
				w.spec().Upgrade.ToleratedOperators, w.seen.Unhealthy = []string{"insights"},
					append(degraded("insights"), degraded("console")...)
			}, controlplanev1.WaitingForHealthyClusterReason,
			"until the cluster is healthy: ClusterOperator console is degraded. If v4.20.1 fixes the operator, add its name to " +
				"spec.upgrade.toleratedOperators", false,
		},
		"etcd in the tolerated operators": {
			func(w *world) { w.tolerate("etcd") }, controlplanev1.WaitingForHealthyClusterReason,
			"healthy: ClusterOperator etcd is degraded", false,
		},
		"kube-apiserver in the tolerated operators": {
			func(w *world) { w.tolerate("kube-apiserver") },
			controlplanev1.WaitingForHealthyClusterReason, "healthy: ClusterOperator kube-apiserver is degraded", false,
		},
		"machine-config in the tolerated operators": {
			func(w *world) { w.tolerate("machine-config") },
			controlplanev1.WaitingForHealthyClusterReason, "healthy: ClusterOperator machine-config is degraded", false,
		},
		"pool in the tolerated operators": {func(w *world) {
			w.spec().Upgrade.ToleratedOperators, w.seen.Unhealthy = []string{"worker"},
				[]workload.Ailment{{Message: "MachineConfigPool worker is degraded (x)"}}
		}, controlplanev1.WaitingForHealthyClusterReason, "MachineConfigPool worker is degraded", false},
		"another client requested the version": {
			func(w *world) { w.seen.Requested.Version = "4.20.1"; w.refused("") },
			controlplanev1.UpgradeInProgressReason, "waiting until the cluster starts", true,
		},
		"unhealthy, forced": {func(w *world) {
			w.spec().Upgrade.WaivePreconditionsAndSignaturesFor, w.seen.Unhealthy = "4.20.1", degraded("etcd")
		}, controlplanev1.WaitingForHealthyClusterReason, "etcd is degraded", false},
		"risk not accepted, forced": {func(w *world) {
			w.spec().Upgrade.WaivePreconditionsAndSignaturesFor, w.seen.Offers[0].Risks = "4.20.1", []workload.Risk{{Name: "SlowDisks"}}
		}, controlplanev1.UpgradeRiskNotAcceptedReason, "SlowDisks", true},
		"cleanup of a removed host": {func(w *world) {
			w.ControlPlane.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: "[{}]"}
		}, controlplanev1.WaitingForReplacementReason, "being cleaned up", true},
		"requested, not observed": {func(w *world) {
			w.seen.Requested = workload.Update{Version: "4.20.1", Image: newest}
			w.Workload.Rollout = &workload.Rollout{Unseen: true, Refused: "the former"}
		}, controlplanev1.UpgradeInProgressReason, "waiting until the cluster starts", true},
		"refused": {
			func(w *world) { w.seen.Requested.Image = newest; w.refuse("Cluster operator x should not be upgraded") },
			controlplanev1.UpgradeRefusedReason, "the cluster refuses v4.20.1. Cluster operator x should not be upgraded", true,
		},
		"refused, acknowledgement required": {
			func(w *world) {
				w.seen.Requested.Image = newest
				w.refuse("AdminAckRequired")
				w.seen.Gates = []workload.Gate{
					{Name: "ack-4.18-old", Message: "old"},
					{Name: "ack-4.19-done", Acknowledged: true},
					{Name: "ack-4.19-apis", Message: "APIs go"},
				}
			}, controlplanev1.UpgradeRefusedReason,
			"the cluster refuses v4.20.1. After the required checks, add to spec.upgrade.acknowledgements: ack-4.19-apis (APIs go). Message " +
				"of the cluster: AdminAckRequired", true,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld()
			tc.change(w)
			request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Update).To(BeNil())
			g.Expect(blocker.Reason).To(Equal(tc.reason))
			g.Expect(blocker.Message).To(ContainSubstring(tc.message))
			g.Expect(blocker.Watched).To(Equal(tc.watched))

			w = newWorld()
			w.ControlPlane.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
			tc.change(w)
			_, blocker = Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(blocker.Message).NotTo(MatchRegexp(`(?i)set (spec.distributionVersion|spec.upgrade.channel to|config.releaseImage to)`),
				"Cluster API reverts the edit")
		})
	}
}

// degraded returns the problem of a degraded operator.
func degraded(operator string) []workload.Ailment {
	return []workload.Ailment{{Operator: operator, Message: "ClusterOperator " + operator + " is degraded"}}
}

// tolerate adds a degraded operator that the spec tolerates.
func (w *world) tolerate(operator string) {
	w.spec().Upgrade.ToleratedOperators, w.seen.Unhealthy = []string{operator}, degraded(operator)
}

// runs makes the cluster run another release.
func (w *world) runs(version string) { w.Workload.OpenShiftVersion, w.seen.Runs = version, version }

// disconnected removes the update graph, and sets release and image in the spec.
func (w *world) disconnected(version, image string) {
	w.seen.Offers, w.seen.NoOffers = nil, "The update channel has not been configured."
	w.spec().DistributionVersion, w.spec().Config.ReleaseImage = version, image
}

// refuse makes the cluster refuse our request.
func (w *world) refuse(why string) {
	w.seen.Requested.Version, w.seen.Ours = "4.20.1", true
	w.refused(why)
}

// refused makes the cluster refuse the request.
func (w *world) refused(why string) {
	w.Workload.Rollout = &workload.Rollout{Requested: w.seen.Requested, Pending: true, Refused: why}
}

// upgrading starts an upgrade.
func (w *world) upgrading(to string) {
	w.Workload.Upgrading, w.seen.Upgrading, w.seen.Requested.Version = to, to, to
	w.Workload.Rollout = &workload.Rollout{Requested: w.seen.Requested}
}

// sicken makes a MachineHealthCheck request the replacement of a Machine.
func (w *world) sicken(i int) {
	w.Machines[i].Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse},
		{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse},
	}
}

func TestPatchNeedsNoAcknowledgement(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.spec().DistributionVersion, w.seen.Offers[0].Version = "4.19.9", "4.19.9"
	w.seen.Requested = workload.Update{Version: "4.19.9", Image: newest}
	w.Workload.Rollout = &workload.Rollout{Refused: "the payload could not be loaded"}
	w.seen.Gates = []workload.Gate{{Name: "ack-4.19-apis", Message: "APIs go"}}
	_, blocker := Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(blocker.Message).NotTo(ContainSubstring("ack-4.19-apis"))
}

// Both orders of two edits end in a request, and no other pair of release and version does.
func TestKubernetesVersionOfTheRelease(t *testing.T) {
	for situation, tc := range map[string]struct {
		release, version string
		kubernetes       Kubernetes
		requested        bool
		message          string
	}{
		"no version":                     {release: "4.20.1", requested: true},
		"the version of the release":     {"4.20.1", "v1.33.4", Kubernetes{Version: "v1.33.4"}, true, ""},
		"the release first":              {"4.20.1", "v1.32.6", Kubernetes{Version: "v1.33.4"}, false, "has Kubernetes v1.33.4"},
		"a wrong patch":                  {"4.20.1", "v1.33.5", Kubernetes{Version: "v1.33.4"}, false, "to v1.33.4"},
		"unknown, the patch is believed": {"4.20.1", "v1.33.5", Kubernetes{}, true, ""},
		"unknown, another minor version": {"4.20.1", "v1.32.6", Kubernetes{}, false, "has Kubernetes 1.33"},
		"being read":                     {"4.20.1", "v1.33.4", Kubernetes{Pending: true}, false, "Reading the Kubernetes version"},
		"failed, and is retried": {
			"4.20.1", "v1.33.4", Kubernetes{Pending: true, Unknown: "no route"}, false, "from its image: no route",
		},
		"failed for long":                    {"4.20.1", "v1.33.4", Kubernetes{Unknown: "no route"}, true, "assumed to be correct: no route"},
		"the version first":                  {"4.19.3", "v1.33.4", Kubernetes{}, false, ""},
		"a release with the running version": {"4.20.1", "v1.33.4+aba1e8d", Kubernetes{Version: "v1.33.4"}, true, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld()
			w.spec().DistributionVersion, w.spec().Version = tc.release, tc.version
			request, blocker := Next(w.Facts, &w.seen, tc.kubernetes)
			g.Expect(request.Update != nil).To(Equal(tc.requested))
			if tc.message != "" {
				g.Expect(blocker.Message).To(ContainSubstring(tc.message))
				g.Expect(blocker.Watched).To(BeTrue(), "the resolver reconciles the control plane")
			}
		})
	}
}

// A topology that is upgraded by several minor versions upgrades the control plane first, and its workers once.
func TestWorkersThatATopologySkipsMustBePaused(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.spec().Version = "v1.33.4"
	w.Cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	w.Cluster.Spec.Topology.Version = "v1.34.2"
	w.Cluster.Spec.Topology.Workers.MachineDeployments = make([]clusterv1.MachineDeploymentTopology, 1)
	request, blocker := Next(w.Facts, &w.seen, Kubernetes{Version: "v1.33.4"})
	g.Expect(request.Empty()).To(BeTrue())
	g.Expect(blocker.Reason).To(Equal(controlplanev1.UpgradeInProgressReason), "the pools are not known")
	g.Expect(blocker.Watched).To(BeTrue(), "the pools are watched")

	w.Workload.PoolsKnown, w.Workload.UnpausedPools = true, []string{"gpu"}
	w.Workload.Pools = []workload.Pool{{Name: "worker", Paused: true}}
	request, blocker = Next(w.Facts, &w.seen, Kubernetes{Version: "v1.33.4"})
	g.Expect(request.Empty()).To(BeTrue())
	g.Expect(blocker.Reason).To(Equal(controlplanev1.TopologySkipsWorkersReason))
	g.Expect(blocker.Message).To(HaveSuffix(": gpu"))
	g.Expect(blocker.Watched).To(BeTrue())

	w.Workload.UnpausedPools = nil
	request, _ = Next(w.Facts, &w.seen, Kubernetes{Version: "v1.33.4"})
	g.Expect(request.Update).NotTo(BeNil())
}

func TestRequestIsWithdrawnForAnotherKubernetesVersion(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.seen.Requested, w.seen.Ours = workload.Update{Version: "4.20.1", Image: newest}, true
	w.Workload.Rollout = &workload.Rollout{Requested: w.seen.Requested, Pending: true}
	w.spec().Version = "v1.33.4"
	request, _ := Next(w.Facts, &w.seen, Kubernetes{Pending: true})
	g.Expect(request.Empty()).To(BeTrue(), "the registry is queried again")
	request, blocker := Next(w.Facts, &w.seen, Kubernetes{Version: "v1.33.5"})
	g.Expect(request.Withdraw).To(BeTrue())
	g.Expect(blocker.Reason).To(Equal(controlplanev1.KubernetesVersionMismatchReason))
}

func TestChannelIsSetFirst(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.spec().Upgrade.Channel = "fast-4.20"
	request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request).To(Equal(workload.UpdateRequest{ResourceVersion: "7", Channel: "fast-4.20"}), "its offers are not known yet")
	g.Expect(blocker.Message).To(ContainSubstring("fast-4.20"))

	w.spec().DistributionVersion = "4.19.3"
	request, blocker = Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Empty()).To(BeTrue(), "the channel is only for upgrades")
	g.Expect(blocker).To(BeNil())
}

func TestBlockedRequestIsWithdrawn(t *testing.T) {
	for situation, change := range map[string]func(*world){
		"reverted":            func(w *world) { w.spec().DistributionVersion = "4.19.3" },
		"older release":       func(w *world) { w.spec().DistributionVersion = "4.19.1" },
		"host being replaced": func(w *world) { w.Machines[0].DeletionTimestamp = &metav1.Time{Time: time.Now()} },
		"unhealthy":           func(w *world) { w.seen.Unhealthy = degraded("x") },
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), newWorld()
			w.seen.Requested.Image = newest
			w.refuse("no signature")
			request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Empty()).To(BeTrue(), "the cluster retries the request")
			g.Expect(blocker.Reason).To(Equal(controlplanev1.UpgradeRefusedReason))
			change(w)
			request, _ = Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Withdraw).To(BeTrue())
			w.seen.Ours = false
			request, _ = Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Withdraw).To(BeFalse(), "the request of another client is kept")
		})
	}
}

func TestOnlyGatesOfTheClusterAreAcknowledged(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.spec().Upgrade.Acknowledgements = []string{"ack-4.19-apis", "ack-4.19-done", "ack-4.20-misspelled"}
	w.seen.Gates = []workload.Gate{{Name: "ack-4.19-apis"}, {Name: "ack-4.19-done", Acknowledged: true}, {Name: "ack-4.19-unchecked"}}
	request, _ := Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Acknowledge).To(Equal([]string{"ack-4.19-apis"}))
	g.Expect(request.Update).NotTo(BeNil())
}

func TestToleranceIsReported(t *testing.T) {
	g, w := NewWithT(t), newWorld()
	w.tolerate("insights")
	request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Tolerated).To(Equal([]string{"ClusterOperator insights is degraded"}))
	g.Expect(blocker.Message).To(HaveSuffix("waiting until the cluster starts the upgrade. Tolerated: ClusterOperator insights is degraded"))

	w.seen.Requested, w.seen.Ours = *request.Update, true
	w.refused("no signature")
	request, blocker = Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Withdraw).To(BeFalse(), "a tolerated problem does not withdraw the request")
	g.Expect(blocker.Reason).To(Equal(controlplanev1.UpgradeRefusedReason))

	w.spec().Upgrade.ToleratedOperators = nil
	request, _ = Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Withdraw).To(BeTrue())
}
