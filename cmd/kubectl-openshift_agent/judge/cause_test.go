package judge

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func TestFirstCauseOfCluster(t *testing.T) {
	waitsForHosts := func(c *snapshot.Cluster) {
		setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.WaitingForHostsReason))
		setControlPlane(c, cond(controlplanev1.AvailableCondition, no, controlplanev1.WaitingForInstallationReason))
	}
	for situation, tc := range map[string]struct {
		change func(*snapshot.Cluster)
		state  State
		kind   string
		reason string
		// condition has the cause. It is not compared if it is empty.
		condition string
	}{
		"installed: advisory conditions are no cause": {
			change: func(*snapshot.Cluster) {}, state: Ready, kind: snapshot.KindCluster,
		},
		"not reported yet: Cluster API works": {
			change: func(c *snapshot.Cluster) { c.Status.Conditions, c.ControlPlane.Status.Conditions = nil, nil },
			state:  Progressing, kind: snapshot.KindCluster,
		},
		"infrastructure missing: before the wait of the control plane": {
			change: func(c *snapshot.Cluster) {
				setCluster(c, cond(clusterv1.ClusterInfrastructureReadyCondition, no, "NotReady"))
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.WaitingForClusterInfrastructureReason))
			},
			state: Progressing, kind: snapshot.KindCluster, reason: "NotReady",
		},
		"infrastructure missing for long: slow": {
			change: func(c *snapshot.Cluster) {
				setCluster(c, condAgo(time.Hour, clusterv1.ClusterInfrastructureReadyCondition, no, "NotReady"))
			},
			state: Slow, kind: snapshot.KindCluster, reason: "NotReady",
		},
		"invalid variable of the topology: blocked": {
			change: func(c *snapshot.Cluster) {
				setCluster(c, cond(clusterv1.ClusterTopologyReconciledCondition, no, clusterv1.ClusterTopologyReconciledFailedReason))
			},
			state: Blocked, kind: snapshot.KindCluster, reason: "ReconcileFailed",
		},
		"no control plane: blocked": {
			change: func(c *snapshot.Cluster) { c.ControlPlane = nil },
			state:  Blocked, kind: snapshot.KindCluster, reason: clusterv1.ObjectDoesNotExistReason,
		},
		"release not found: before the waits for it": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.MachinesCreatedCondition, no, controlplanev1.WaitingForReleaseImageReason))
				setControlPlane(c, cond(controlplanev1.ReleaseImageResolvedCondition, no, controlplanev1.ReleaseImageNotFoundReason))
			},
			state: Blocked, kind: snapshot.KindControlPlane, reason: controlplanev1.ReleaseImageNotFoundReason,
		},
		"pull secret missing: the condition with the cause, not those that refer to it": {
			change: func(c *snapshot.Cluster) {
				refers := cond(controlplanev1.ReleaseImageResolvedCondition, no, controlplanev1.PullSecretMissingReason)
				refers.Message = "see the condition Installed"
				setControlPlane(c, refers)
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.PullSecretMissingReason))
			},
			state: Blocked, kind: snapshot.KindControlPlane, reason: controlplanev1.PullSecretMissingReason,
			condition: controlplanev1.InstalledCondition,
		},
		"assisted-service lost an installed cluster: blocked": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.RegistrationHealthyCondition, no, controlplanev1.ReregisteredReason))
			},
			state: Blocked, kind: snapshot.KindControlPlane, reason: controlplanev1.ReregisteredReason,
			condition: controlplanev1.RegistrationHealthyCondition,
		},
		"a moved cluster is being imported: progressing": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.RegistrationHealthyCondition, no, controlplanev1.WaitingForImportReason))
			},
			state: Progressing, kind: snapshot.KindControlPlane, reason: controlplanev1.WaitingForImportReason,
			condition: controlplanev1.RegistrationHealthyCondition,
		},
		"a host boots: the host, not the control plane that waits for it": {
			change: func(c *snapshot.Cluster) {
				waitsForHosts(c)
				setConfig(c, cond(bootstrapv1.HostIdentifiedCondition, no, bootstrapv1.WaitingForHostReason))
			},
			state: Progressing, kind: snapshot.KindConfig, reason: bootstrapv1.WaitingForHostReason,
		},
		"a host is refused: the host": {
			change: func(c *snapshot.Cluster) {
				waitsForHosts(c)
				setConfig(c, cond(bootstrapv1.HostIdentifiedCondition, no, bootstrapv1.HostRefusedReason))
			},
			state: Blocked, kind: snapshot.KindConfig, reason: bootstrapv1.HostRefusedReason,
		},
		"no host fits: before the wait for a host": {
			change: func(c *snapshot.Cluster) {
				waitsForHosts(c)
				setConfig(c, cond(bootstrapv1.HostIdentifiedCondition, no, bootstrapv1.WaitingForHostReason))
				setConfig(c, cond(bootstrapv1.HostAvailableCondition, no, bootstrapv1.NoHostFitsReason))
			},
			state: Blocked, kind: snapshot.KindConfig, reason: bootstrapv1.NoHostFitsReason,
		},
		"hosts install: the control plane has the progress of all": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.InstallingReason))
				setConfig(c, cond(bootstrapv1.HostInstalledCondition, no, bootstrapv1.HostInstallingReason))
			},
			state: Progressing, kind: snapshot.KindControlPlane, reason: controlplanev1.InstallingReason,
		},
		"slow installation with a slow host: the host": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.InstallingReason))
				c.ControlPlane.Status.Installation.StartTime = ptr.To(ago(3 * time.Hour))
				setConfig(c, cond(bootstrapv1.HostInstalledCondition, no, bootstrapv1.HostInstallingReason))
				c.Machines[0].Config.Status.InstallationProgress = "Rebooting"
				c.Machines[0].Config.Status.InstallationStageStartTime = ptr.To(ago(time.Hour))
			},
			state: Slow, kind: snapshot.KindConfig, reason: bootstrapv1.HostInstallingReason,
		},
		"installation failed: failed": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.InstallationFailedReason))
				setConfig(c, cond(bootstrapv1.HostInstalledCondition, no, bootstrapv1.HostInstallationFailedReason))
			},
			state: Failed, kind: snapshot.KindControlPlane, reason: controlplanev1.InstallationFailedReason,
		},
		"a host lags: slow, although its stage has time left": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.InstallingReason))
				setControlPlane(c, cond(controlplanev1.HostsProgressingCondition, no, controlplanev1.HostsLaggingReason))
			},
			state: Slow, kind: snapshot.KindControlPlane, reason: controlplanev1.HostsLaggingReason,
		},
		"operators start during the installation: the installation": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.FinalizingReason))
				setControlPlane(c, cond(controlplanev1.AvailableCondition, no, controlplanev1.WaitingForInstallationReason))
				setControlPlane(c, cond(controlplanev1.ControlPlaneComponentsHealthyCondition, no, controlplanev1.ComponentsNotHealthyReason))
				setControlPlane(c, cond(controlplanev1.EtcdClusterHealthyCondition, no, controlplanev1.EtcdClusterNotHealthyReason))
			},
			state: Progressing, kind: snapshot.KindControlPlane, reason: controlplanev1.FinalizingReason,
		},
		"operators are not healthy after the installation: blocked": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.ControlPlaneComponentsHealthyCondition, no, controlplanev1.ComponentsNotHealthyReason))
			},
			state: Blocked, kind: snapshot.KindControlPlane, reason: controlplanev1.ComponentsNotHealthyReason,
		},
		"Machines wait for the release: the release, not the number of Machines": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.ReleaseImageResolvedCondition, unknown, controlplanev1.WaitingForReleaseImageReason))
				setControlPlane(c, cond(controlplanev1.ScalingUpCondition, yes, clusterv1.ScalingUpReason))
			},
			state: Progressing, kind: snapshot.KindControlPlane, reason: controlplanev1.WaitingForReleaseImageReason,
		},
		"the provider has not processed the spec: not ready": {
			change: func(c *snapshot.Cluster) { c.ControlPlane.Generation = 2 },
			state:  Progressing, kind: snapshot.KindControlPlane, reason: "WaitingForManager",
		},
		"etcd member down: before the availability that follows": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.AvailableCondition, no, controlplanev1.NotAvailableReason))
				setControlPlane(c, cond(controlplanev1.EtcdClusterHealthyCondition, no, controlplanev1.EtcdClusterNotHealthyReason))
			},
			state: Blocked, kind: snapshot.KindControlPlane, reason: controlplanev1.EtcdClusterNotHealthyReason,
		},
		"upgrade: progressing": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.MachinesUpToDateCondition, no, controlplanev1.UpgradeInProgressReason))
				setControlPlane(c, cond(controlplanev1.RollingOutCondition, yes, clusterv1.RollingOutReason))
			},
			state: Progressing, kind: snapshot.KindControlPlane, reason: controlplanev1.UpgradeInProgressReason,
		},
		"upgrade fails: before its progress": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.MachinesUpToDateCondition, no, controlplanev1.UpgradeInProgressReason))
				setControlPlane(c, cond(controlplanev1.RollingOutCondition, yes, controlplanev1.UpgradeFailingReason))
			},
			state: Blocked, kind: snapshot.KindControlPlane, reason: controlplanev1.UpgradeFailingReason,
		},
		"a Node restarts: progressing": {
			change: func(c *snapshot.Cluster) {
				setMachine(c, cond(clusterv1.MachineNodeHealthyCondition, no, "NodeNotHealthy"))
			},
			state: Progressing, kind: snapshot.KindMachine, reason: "NodeNotHealthy",
		},
		"a Node is down: slow": {
			change: func(c *snapshot.Cluster) {
				setMachine(c, condAgo(time.Hour, clusterv1.MachineNodeHealthyCondition, unknown, "ConnectionDown"))
			},
			state: Slow, kind: snapshot.KindMachine, reason: "ConnectionDown",
		},
		"an unhealthy Machine of an installed cluster: blocked": {
			change: func(c *snapshot.Cluster) {
				setMachine(c, cond(clusterv1.MachineHealthCheckSucceededCondition, no, "UnhealthyNode"))
			},
			state: Blocked, kind: snapshot.KindMachine, reason: "UnhealthyNode",
		},
		"paused Cluster: nothing else counts": {
			change: func(c *snapshot.Cluster) {
				c.Spec.Paused = ptr.To(true)
				setConfig(c, cond(bootstrapv1.HostIdentifiedCondition, no, bootstrapv1.HostRefusedReason))
			},
			state: Paused, kind: snapshot.KindCluster, reason: clusterv1.PausedReason,
		},
		"paused control plane: paused": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(clusterv1.PausedCondition, yes, clusterv1.PausedReason))
			},
			state: Paused, kind: snapshot.KindControlPlane, reason: clusterv1.PausedReason,
		},
		"hosts are ready, and the installation is on hold: paused": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.InstallationOnHoldReason))
			},
			state: Paused, kind: snapshot.KindControlPlane, reason: controlplanev1.InstallationOnHoldReason,
		},
		"a reason of a newer provider: blocked": {
			change: func(c *snapshot.Cluster) {
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, "NewReason"))
			},
			state: Blocked, kind: snapshot.KindControlPlane, reason: "NewReason",
		},
		"deleted: the Machine that waits": {
			change: func(c *snapshot.Cluster) {
				c.DeletionTimestamp, c.ControlPlane.DeletionTimestamp = ptr.To(ago(time.Minute)), ptr.To(ago(time.Minute))
				c.Machines[0].DeletionTimestamp = ptr.To(ago(time.Minute))
				setControlPlane(c, cond(controlplanev1.DeletingCondition, yes, controlplanev1.WaitingForMachinesDeletionReason))
				setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.InstallationFailedReason))
				setMachine(c, cond(clusterv1.DeletingCondition, yes, "WaitingForInfrastructureDeletion"))
			},
			state: Progressing, kind: snapshot.KindMachine, reason: "WaitingForInfrastructureDeletion",
		},
		"deleted: a host that cannot be cleaned": {
			change: func(c *snapshot.Cluster) {
				c.DeletionTimestamp = ptr.To(ago(time.Minute))
				c.Machines[0].DeletionTimestamp = ptr.To(ago(time.Minute))
				setMachine(c, cond(clusterv1.DeletingCondition, yes, "WaitingForInfrastructureDeletion"))
				setConfig(c, cond(bootstrapv1.HostAvailableCondition, no, bootstrapv1.HostFailedReason))
			},
			state: Blocked, kind: snapshot.KindConfig, reason: bootstrapv1.HostFailedReason,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			c := installed()
			tc.change(c)
			cause := Cluster(c)
			g.Expect([]any{cause.State, cause.Object.Kind, cause.Reason}).To(Equal([]any{tc.state, tc.kind, tc.reason}), cause.Message)
			g.Expect(cause.ReadFrom).NotTo(BeEmpty())
			if tc.condition != "" {
				g.Expect(cause.Condition).To(Equal(tc.condition))
			}
		})
	}
}

func TestHiddenObjectsMakeTheStateUnknown(t *testing.T) {
	g := NewWithT(t)
	c := installed()
	c.ControlPlane, c.NotReadable = nil, map[string]string{snapshot.KindControlPlane: "no permission"}
	cause := Cluster(c)
	g.Expect(cause.State).To(Equal(Unknown))
	g.Expect(cause.Message).To(ContainSubstring("OpenshiftAssistedControlPlanes are not readable (no permission)"))

	setConfig(c, cond(bootstrapv1.HostIdentifiedCondition, no, bootstrapv1.HostRefusedReason))
	g.Expect(Cluster(c).Reason).To(Equal(bootstrapv1.HostRefusedReason), "what is visible is blocked anyway")

	c = installed()
	c.NotReadable = map[string]string{snapshot.KindHost: "no permission"}
	g.Expect(Cluster(c).State).To(Equal(Ready), "the conditions do not depend on BareMetalHosts")
	c.NotReadable = map[string]string{snapshot.KindConfig: "no permission"}
	c.Machines[0].Config = nil
	g.Expect(Machine(c, &c.Machines[0]).State).To(Equal(Unknown))
}

func TestStepBeginsWithTheEndOfTheStepBefore(t *testing.T) {
	g := NewWithT(t)
	c := installed()
	setConfig(c, condAgo(time.Hour, bootstrapv1.HostBoundCondition, yes, bootstrapv1.HostBoundReason))
	setConfig(c, condAgo(10*time.Minute, bootstrapv1.HostApprovedCondition, yes, bootstrapv1.HostApprovedReason))
	setConfig(c, condAgo(2*time.Hour, bootstrapv1.HostInstalledCondition, no, bootstrapv1.HostInstallingReason))
	config := c.Machines[0].Config
	g.Expect(StageStart(config, Stage(config))).To(Equal(ago(10*time.Minute)), "HostInstalled was False before the host was approved")

	config.Status.InstallationStageStartTime = ptr.To(ago(3 * time.Minute))
	g.Expect(StageStart(config, Stage(config))).To(Equal(ago(3 * time.Minute)))
}

func TestProblemOfAnInstalledClusterBeginsWithItsCondition(t *testing.T) {
	g := NewWithT(t)
	c := installed()
	setControlPlane(c, cond(controlplanev1.KubeconfigAvailableCondition, yes, controlplanev1.KubeconfigAvailableReason))
	setControlPlane(c, condAgo(time.Hour, controlplanev1.EtcdClusterHealthyCondition, no, controlplanev1.EtcdClusterNotHealthyReason))
	g.Expect(Cluster(c).Since).To(HaveValue(Equal(ago(time.Hour))), "a renewed kubeconfig is no step")

	setControlPlane(c, cond(controlplanev1.EtcdClusterHealthyCondition, yes, controlplanev1.EtcdClusterHealthyReason))
	setControlPlane(c, condAgo(10*time.Minute, controlplanev1.MachinesCreatedCondition, yes, controlplanev1.MachinesCreatedReason))
	setControlPlane(c, condAgo(time.Hour, controlplanev1.InstalledCondition, no, controlplanev1.ValidationFailedReason))
	g.Expect(Cluster(c).Since).To(HaveValue(Equal(ago(10*time.Minute))), "the Machines are created since then")
}

func TestCauseOfMachineNamesItsConfig(t *testing.T) {
	g := NewWithT(t)
	c := installed()
	setConfig(c, cond(bootstrapv1.HostBoundCondition, no, bootstrapv1.NodeNameTakenReason))
	cause := Machine(c, &c.Machines[0])
	g.Expect(cause.State).To(Equal(Blocked))
	g.Expect(cause.ReadFrom).To(Equal([]Object{
		{Kind: snapshot.KindMachine, Namespace: "lab", Name: "m0"}, {Kind: snapshot.KindConfig, Namespace: "lab", Name: "m0"},
	}))
	g.Expect(cause.Host).To(BeEmpty())

	c.Machines[0].Host = &metal3.Host{ObjectMeta: named("rack0")}
	g.Expect(Machine(c, &c.Machines[0]).Host).To(Equal("rack0"), "an older provider does not report the name")
	c.Machines[0].Config.Status.HostName, c.Machines[0].Host = "rack1", nil
	g.Expect(Machine(c, &c.Machines[0]).Host).To(Equal("rack1"), "BareMetalHosts are not readable")
}
