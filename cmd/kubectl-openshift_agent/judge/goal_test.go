package judge

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestProgressTowardGoal(t *testing.T) {
	newRelease := func(c *snapshot.Cluster) {
		c.ControlPlane.Spec.DistributionVersion = "4.20.8"
		setControlPlane(c, cond(controlplanev1.MachinesUpToDateCondition, no, controlplanev1.UpgradeInProgressReason))
	}
	topology := func(c *snapshot.Cluster) { c.Spec.Topology.ClassRef.Name = "agent" }
	for situation, tc := range map[string]struct {
		goal   string
		change func(*snapshot.Cluster)
		want   Progress
	}{
		"installed and available": {Installed, func(*snapshot.Cluster) {}, Reached},
		"installed, and not available yet": {Installed, func(c *snapshot.Cluster) {
			setControlPlane(c, cond(controlplanev1.AvailableCondition, unknown, controlplanev1.WaitingForHealthyClusterReason))
		}, Pending},
		"a blocked host: the user may fix it": {Installed, func(c *snapshot.Cluster) {
			setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.WaitingForHostsReason))
			setConfig(c, cond(bootstrapv1.HostIdentifiedCondition, no, bootstrapv1.HostRefusedReason))
		}, Pending},
		"installation failed": {Installed, func(c *snapshot.Cluster) {
			c.ControlPlane.Status.Installation.Phase = controlplanev1.InstallationFailed
			setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.InstallationFailedReason))
		}, NeverReached},
		"a failed installation is retried": {Installed, func(c *snapshot.Cluster) {
			c.ControlPlane.Status.Installation.Phase = controlplanev1.InstallationFailed
			setControlPlane(c, cond(controlplanev1.InstalledCondition, no, controlplanev1.RetryingInstallationReason))
		}, Pending},
		"deleted before it is installed": {Installed, func(c *snapshot.Cluster) { c.DeletionTimestamp = ptr.To(ago(time.Minute)) }, NeverReached},
		"no control plane yet":           {Installed, func(c *snapshot.Cluster) { c.ControlPlane = nil }, Pending},
		"upgraded":                       {Upgraded, func(*snapshot.Cluster) {}, Reached},
		"upgrade in progress":            {Upgraded, newRelease, Pending},
		"the release is complete, and Nodes are not": {Upgraded, func(c *snapshot.Cluster) {
			setControlPlane(c, cond(controlplanev1.RollingOutCondition, yes, clusterv1.RollingOutReason))
		}, Pending},
		"the status belongs to the spec before": {Upgraded, func(c *snapshot.Cluster) { c.ControlPlane.Generation = 2 }, Pending},
		"Cluster API has not copied the release of the topology": {Upgraded, func(c *snapshot.Cluster) {
			topology(c)
			c.Generation = 2
			setCluster(c, cond(clusterv1.ClusterTopologyReconciledCondition, yes, "ReconcileSucceeded"))
		}, Pending},
		"Cluster API has copied the release of the topology": {Upgraded, func(c *snapshot.Cluster) {
			topology(c)
			setCluster(c, cond(clusterv1.ClusterTopologyReconciledCondition, yes, "ReconcileSucceeded"))
		}, Reached},
		"Cluster API rejects the topology": {Upgraded, func(c *snapshot.Cluster) {
			topology(c)
			setCluster(c, cond(clusterv1.ClusterTopologyReconciledCondition, no, clusterv1.ClusterTopologyReconciledFailedReason))
		}, Pending},
		"the release is not offered": {Upgraded, func(c *snapshot.Cluster) {
			newRelease(c)
			setControlPlane(c, cond(controlplanev1.MachinesUpToDateCondition, no, controlplanev1.UpgradeNotOfferedReason))
		}, NeverReached},
		"an existing Cluster is not deleted": {Deleted, func(*snapshot.Cluster) {}, Pending},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			c := installed()
			tc.change(c)
			got, cause := Toward(tc.goal, c)
			g.Expect(got).To(Equal(tc.want), "%+v", cause)
		})
	}
}

func TestClusterThatIsNotDeletedNeedsItsUser(t *testing.T) {
	g := NewWithT(t)
	_, cause := Toward(Deleted, installed())
	g.Expect(cause.State).To(Equal(Blocked))
	g.Expect(cause.Message).To(Equal("The Cluster is not being deleted."))
}

func TestCauseOfRefusedUpgradeIsTheRefusal(t *testing.T) {
	g := NewWithT(t)
	c := installed()
	setControlPlane(c, cond(controlplanev1.ControlPlaneComponentsHealthyCondition, no, controlplanev1.ComponentsNotHealthyReason))
	setControlPlane(c, cond(controlplanev1.MachinesUpToDateCondition, no, controlplanev1.UpgradeRefusedReason))
	c.ControlPlane.Spec.DistributionVersion = "4.20.8"
	_, cause := Toward(Upgraded, c)
	g.Expect(cause.Reason).To(Equal(controlplanev1.UpgradeRefusedReason))
}
