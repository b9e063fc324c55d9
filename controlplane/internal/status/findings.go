package status

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
)

// Findings are what the phases of one reconcile found out and did, as far as the status tells of it.
type Findings struct {
	// Version is the release that the spec asks for; zero when it is none that can be installed.
	Version semver.Version
	// ReleaseImage is the image of the release that is, or would be, registered.
	ReleaseImage string
	// Registered is true when assisted-service was given what the spec asks for; it is not set any more once the installation has begun.
	Registered bool
	// Machines are those of the control plane as this reconcile leaves them: with those that it made, which the cache has not seen.
	Machines []*clusterv1.Machine
	// Stuck is how many of them have left etcd and hang in the deletion of their infrastructure: a successor may be made.
	Stuck int
	// Kubeconfig is the published kubeconfig as this reconcile leaves it.
	Kubeconfig *metav1.PartialObjectMetadata

	// Etcd is what was last read of the members of etcd while they had to be read; nil otherwise.
	Etcd *facts.Etcd

	// Preflight is what looks wrong before the cluster is installed; nil when nobody looked.
	Preflight *preflight.Result

	outcomes map[Task]Outcome
}

// FindingsOf are the findings before any phase has run.
func FindingsOf(f *facts.Facts) *Findings {
	return &Findings{Machines: slices.Clone(f.Machines), Kubeconfig: f.Kubeconfig, outcomes: map[Task]Outcome{}}
}

// Task is something that is to be done, and may have to wait or may fail.
type Task string

// The tasks of which the conditions tell why they are not done.
const (
	// Installation also stands for all that comes before it, and for the creation of Machines, which waits for the same.
	Installation      Task = "installation"
	ReleaseLookup     Task = "look-up of the release image"
	KubeconfigCopy    Task = "publication of the kubeconfig"
	KubeconfigRenewal Task = "renewal of the kubeconfig"
	// KubeconfigAuthorities are those that the spec states.
	KubeconfigAuthorities Task = "authorities of the kubeconfig"
	// KubeconfigWithdrawal is the removal of authorities that the spec does not contain any more.
	KubeconfigWithdrawal Task = "removal of authorities from the kubeconfig"
	// KubeconfigOwner is that of the published kubeconfig and of its copies.
	KubeconfigOwner Task = "owner of the kubeconfig"
	Retry           Task = "another attempt at a failed installation"
	MachineCreation Task = "creation of Machines"
	TemplateOwner   Task = "owner of the infrastructure template"
	MachineSync     Task = "update of Machines"
	Remediation     Task = "remediation"
	ScaleUp         Task = "scale-up"
	ScaleDown       Task = "scale-down"
	HostRelease     Task = "release of a host from etcd"
	GuardExclusion  Task = "exclusion of guard Pods from drains"
	KubeletApproval Task = "approval of certificates of kubelets"
	Upgrade         Task = "upgrade"
	Deletion        Task = "deletion"
)

// Outcome is why something is not done, as a condition reports it.
type Outcome struct{ Reason, Message string }

// Block says why a task is not done. What is said last counts.
func (f *Findings) Block(task Task, reason, message string) {
	f.outcomes[task] = Outcome{reason, message}
}

// Blocked is why a task is not done; nil when nothing speaks against it.
func (f *Findings) Blocked(task Task) *Outcome {
	if o, blocked := f.outcomes[task]; blocked {
		return &o
	}
	return nil
}

// MachineVersion is the version that a Machine is to bear: the release that its Node runs, else the one with which the
// cluster is registered. Before that it is what the spec asks for; empty when nobody knows. Without a Machine it is
// that of the next one.
func (f *Findings) MachineVersion(known *facts.Facts, m *clusterv1.Machine) string {
	switch {
	case known.Installed() && known.Workload.Upgrading != "" && m != nil:
		return cmp.Or(known.ReleaseOf(m), m.Spec.Version, "v"+known.Workload.OpenShiftVersion)
	case known.Installed() && known.Workload.OpenShiftVersion != "":
		return "v" + known.Workload.OpenShiftVersion
	case known.Installed() && known.ControlPlane.Status.Version != "" && m != nil:
		return cmp.Or(m.Spec.Version, known.ControlPlane.Status.Version) // the cluster cannot be asked now
	case known.Installed() && known.ControlPlane.Status.Version != "":
		return known.ControlPlane.Status.Version
	case f.Registered:
		return "v" + f.Version.String()
	case known.RegisteredVersion() != "":
		return known.RegisteredVersion()
	case f.Version.Major > 0 && !known.Begun:
		return "v" + f.Version.String()
	}
	return ""
}
