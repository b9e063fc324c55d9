package remediation

import (
	"github.com/dustin/go-humanize/english"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
)

// fenced is about two nodes with fencing.
func (a *Situation) fenced(m *clusterv1.Machine) *Step {
	if !a.Fenced() {
		return nil
	}
	return cannot(m, "the nodes of the cluster fence each other (spec.fencing): Pacemaker restarts one that fails, and its etcd is not changed from here. Repair the host, or replace it as OpenShift documents "+
		"it for two-node clusters with fencing")
}

// installed is about a cluster that is not, or takes no host.
func (a *Situation) installed(m *clusterv1.Machine) *Step {
	switch {
	case !a.Installed():
		return deferred(m, "the cluster is not installed; see the condition Installed of the control plane")
	case !a.Progress.DayTwo:
		return deferred(m, "assisted-service does not say that the cluster accepts hosts, so that none could take its place; see the conditions Installed and MachinesCreated of the control plane")
	}
	return nil
}

// single is about the only Machine.
func (a *Situation) single(m *clusterv1.Machine) *Step {
	if len(a.Facts.Machines) > 1 && a.Replicas() > 1 {
		return nil
	}
	return cannot(m, "a single node is the whole cluster. Repair the host. Deleting the Cluster wipes it")
}

// kept is about books that cannot be read.
func (a *Situation) kept(m *clusterv1.Machine) *Step {
	for _, err := range []error{a.corrupt, a.doubt} {
		if err != nil {
			return cannot(m, "%s; it is ours: take it off the control plane", err)
		}
	}
	return nil
}

// upgrading is about hosts that are away because they are being updated. OpenShift restarts one after the other.
func (a *Situation) upgrading(m *clusterv1.Machine) *Step {
	const byHand = "If the upgrade does not proceed because the host is dead, delete the Machine, which wipes the host"
	planned := a.Cluster.Spec.Topology.Version
	switch {
	case a.Workload.Connected && !a.Workload.UnreadSince.IsZero():
		return deferred(m, "it cannot be read whether the cluster is being upgraded; see the condition Available of the control plane")
	case a.UpgradingTo() != "":
		return deferred(m, "the cluster is being upgraded to %s, which restarts hosts. %s", a.UpgradingTo(), byHand)
	case planned != "" && planned != a.ControlPlane.Spec.Version:
		return deferred(m, "waiting for the version %s of the Cluster's topology to come to the control plane", planned)
	}
	return nil
}

// missingHook is about our hook, which a Machine may lack that cannot be updated: without it its host would be touched at once.
func (a *Situation) missingHook(m *clusterv1.Machine) *Step {
	if removal.Holds(m) {
		return nil
	}
	return deferred(m, "it does not carry our pre-terminate hook yet; see the condition MachinesUpToDate of the control plane")
}

// leaving is about hosts that leave etcd now, or have left something behind.
func (a *Situation) leaving(m *clusterv1.Machine) *Step {
	for _, other := range a.Facts.Machines {
		if !other.DeletionTimestamp.IsZero() && !removal.Holds(other) {
			return deferred(m, "Machine %s is being removed, which comes first: see its condition Deleting", other.Name)
		}
	}
	if a.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" {
		return deferred(m, "what is left of the host that was removed before comes first: see the condition ScalingDown of the control plane")
	}
	return nil
}

// changing is about Machines that are to go, or to come. A member that is down keeps others from coming, and healthy
// ones from going: then these cannot come first.
func (a *Situation) changing(m *clusterv1.Machine, etcd *facts.Etcd) *Step {
	down := a.isDown(m, etcd)
	for _, other := range a.Facts.Machines {
		if !other.DeletionTimestamp.IsZero() && !(down && a.serves(other, etcd)) {
			return deferred(m, "Machine %s is being removed, which comes first: see its condition Deleting", other.Name)
		}
	}
	if down {
		return nil
	}
	if missing := int(a.Replicas()) - len(a.Facts.Machines); missing > 0 {
		return deferred(m, "%s missing, to be made first: see the condition MachinesCreated of the control plane", english.Plural(missing, "Machine is", "Machines are"))
	}
	return a.provisioning(m)
}

// provisioning is about hosts that are being installed: they are never remediated, nor is another beside them.
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
	return deferred(m, "waiting for the installation of the host of %s. If the host does not come up, delete its Machine, which wipes the host", status.Names(named))
}

// installing are the states of a host in assisted-service from when its installation is prepared until it has ended.
var installing = sets.New(
	models.HostStatusPreparingForInstallation, models.HostStatusPreparingSuccessful,
	models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusInstallingPendingUserAction,
)

// installs reports whether the host of a Machine is being installed, as assisted-service says.
func (a *Situation) installs(m *clusterv1.Machine) bool {
	for i := range a.Agents {
		if facts.RunsOn(&a.Agents[i], m) && installing.Has(a.Agents[i].Status.DebugInfo.State) {
			return true
		}
	}
	return false
}
