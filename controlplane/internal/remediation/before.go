package remediation

import (
	"github.com/dustin/go-humanize/english"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/replicas"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// twoNode blocks in clusters of two nodes with fencing.
func (a *Situation) twoNode(m *clusterv1.Machine) *Step {
	if !a.Fenced() {
		return nil
	}
	return cannot(m, "the nodes of the cluster fence each other (spec.fencing): Pacemaker restarts a failed node, and manages etcd. "+
		"Repair the host, or replace it as OpenShift documents it for two-node clusters with fencing")
}

// installed blocks while the cluster is not installed, or does not accept hosts.
func (a *Situation) installed(m *clusterv1.Machine) *Step {
	switch {
	case !a.Installed():
		return deferred(m, "the cluster is not installed; see the condition Installed of the control plane")
	case !a.Progress.DayTwo:
		return deferred(m, "the cluster does not accept a replacement host yet (state of assisted-service); see the conditions Installed "+
			"and MachinesCreated of the control plane")
	}
	return nil
}

// single blocks the replacement of the only Machine.
func (a *Situation) single(m *clusterv1.Machine) *Step {
	if len(a.Facts.Machines) > 1 && a.Replicas() > 1 {
		return nil
	}
	return cannot(m, "a single node is the whole cluster. Repair the host. Deleting the Cluster wipes it")
}

// validRecords blocks if annotations of the control plane are invalid.
func (a *Situation) validRecords(m *clusterv1.Machine) *Step {
	for _, err := range []error{a.corrupt, a.doubt} {
		if err != nil {
			return cannot(m, "%s. Remove this annotation of the provider from the control plane", err)
		}
	}
	return nil
}

// upgrading blocks while hosts may be restarting for an upgrade. OpenShift restarts one after the other.
func (a *Situation) upgrading(m *clusterv1.Machine) *Step {
	const byHand = "If the upgrade does not proceed because the host is dead, delete the Machine, which wipes the host"
	switch {
	case a.Workload.Connected && !a.Workload.UnreadSince.IsZero():
		return deferred(m, "the state of upgrades of the cluster cannot be read; see the condition Available of the control plane")
	case versioning.UpgradingTo(a.Facts) != "":
		return deferred(m, "the cluster is being upgraded to %s, which restarts hosts. %s", versioning.UpgradingTo(a.Facts), byHand)
	case a.awaitsVersion():
		return deferred(m, "waiting until Cluster API sets version %s of the Cluster's topology in the control plane; see the condition "+
			"TopologyReconciled of the Cluster. %s", a.Cluster.Spec.Topology.Version, byHand)
	}
	return nil
}

// awaitsVersion reports whether Cluster API will set another version in the control plane. A topology that is upgraded over
// several minor versions has a version that the control plane gets last. The version of its present step blocks nothing, as in
// KubeadmControlPlane. The release of that step may wait for days for a decision of the user. It also waits for a healthy
// cluster, and so for the replacement of a dead host.
func (a *Situation) awaitsVersion() bool {
	last, is := a.Cluster.Spec.Topology.Version, a.ControlPlane.Spec.Version
	return last != "" && is != last && is != a.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
}

// missingHook blocks while a Machine does not have our pre-terminate hook. Without the hook a deletion would
// wipe the host immediately.
func (a *Situation) missingHook(m *clusterv1.Machine) *Step {
	if removal.HasHook(m) {
		return nil
	}
	return deferred(m, "it has no pre-terminate hook of this provider yet; see the condition MachinesUpToDate of the control plane")
}

// leaving blocks while another host leaves etcd, or its remains are cleaned up.
func (a *Situation) leaving(m *clusterv1.Machine) *Step {
	for _, other := range a.Facts.Machines {
		if !other.DeletionTimestamp.IsZero() && !removal.HasHook(other) {
			return deferred(m, "waiting for the removal of Machine %s: see its condition Deleting", other.Name)
		}
	}
	if a.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" {
		return deferred(m, "waiting for the cleanup of the host that was removed before: see the condition HostsReleasing of the control plane")
	}
	return nil
}

// changing blocks while other Machines are being deleted or are missing. A failed member blocks the addition
// of hosts and the removal of healthy members. Then those must not block its replacement.
func (a *Situation) changing(m *clusterv1.Machine, etcd *workload.Etcd) *Step {
	down := a.isDown(m, etcd)
	for _, other := range a.Facts.Machines {
		if !other.DeletionTimestamp.IsZero() && !(down && a.serves(other, etcd)) {
			return deferred(m, "waiting for the removal of Machine %s: see its condition Deleting", other.Name)
		}
	}
	if down {
		return nil
	}
	if missing := int(a.Replicas()) - len(a.Facts.Machines); missing > 0 {
		return deferred(m, "%s missing and must be created first: see the condition MachinesCreated of the control plane",
			english.Plural(missing, "Machine is", "Machines are"))
	}
	return a.provisioning(m)
}

// provisioning blocks while hosts are being installed. Such hosts are never remediated, and no other host is
// remediated meanwhile.
func (a *Situation) provisioning(m *clusterv1.Machine) *Step {
	var named []*clusterv1.Machine
	for _, other := range a.Facts.Machines {
		if !other.Status.NodeRef.IsDefined() && !a.ToBeRemediated(other) || a.installs(other) {
			named = append(named, other)
		}
	}
	if len(named) == 0 {
		return nil
	}
	return deferred(m, "waiting for the installation of the host of %s. If the host does not come up, delete its Machine, which wipes "+
		"the host", replicas.Names(named))
}

// installing are the states of a host in assisted-service from the preparation to the end of its
// installation.
var installing = sets.New(
	aiv1beta1.HostStatusPreparingForInstallation, aiv1beta1.HostStatusPreparingSuccessful,
	aiv1beta1.HostStatusInstalling, aiv1beta1.HostStatusInstallingInProgress, aiv1beta1.HostStatusInstallingPendingUserAction,
)

// installs reports whether the host of a Machine is being installed, according to assisted-service.
func (a *Situation) installs(m *clusterv1.Machine) bool {
	for i := range a.Agents {
		if facts.RunsOn(&a.Agents[i], m) && installing.Has(a.Agents[i].Status.DebugInfo.State) {
			return true
		}
	}
	return false
}
