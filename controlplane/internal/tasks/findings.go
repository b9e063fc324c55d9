// Package tasks names the tasks of a reconcile that may be blocked, and holds what its phases find. The phases write
// these findings, and package status computes the conditions from them. It has no client.
package tasks

import (
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// Findings are the results of the phases of one reconcile, as far as the status reports them.
type Findings struct {
	findings.Findings[Task]

	// Version is the release that the spec requests; zero if the release cannot be installed.
	Version semver.Version
	// ReleaseImage is the image of the release that is registered, or would be.
	ReleaseImage string
	// Registered is true if assisted-service has what the spec requests; it is not set after the installation
	// has begun.
	Registered bool
	// Machines are the Machines of the control plane at the end of this reconcile. They include new Machines
	// that the cache does not contain yet.
	Machines []*clusterv1.Machine
	// Stuck counts the Machines that have left etcd and whose infrastructure is not deleted: a successor may
	// be created.
	Stuck int
	// Kubeconfig is the published kubeconfig at the end of this reconcile.
	Kubeconfig *metav1.PartialObjectMetadata

	// Etcd is the last inspection of the etcd members while they had to be read; nil otherwise.
	Etcd *workload.Etcd

	// Preflight contains the problems found before the cluster is installed; nil if no preflight ran.
	Preflight *preflight.Result
}

// FindingsOf returns the findings before any phase has run.
func FindingsOf(f *facts.Facts) *Findings {
	return &Findings{Machines: slices.Clone(f.Machines), Kubeconfig: f.Kubeconfig}
}

// Task is a step of the reconcile that may be blocked or fail.
type Task string

// The tasks whose blockers the conditions report.
const (
	// Installation also includes all steps before it, and the creation of Machines, which has the same
	// blockers.
	Installation      Task = "installation"
	ReleaseLookup     Task = "look-up of the release image"
	KubeconfigCopy    Task = "publication of the kubeconfig"
	KubeconfigRenewal Task = "renewal of the kubeconfig"
	// KubeconfigAuthorities is the addition of the authorities that the spec states.
	KubeconfigAuthorities Task = "authorities of the kubeconfig"
	// KubeconfigWithdrawal is the removal of authorities that the spec no longer contains.
	KubeconfigWithdrawal Task = "removal of authorities from the kubeconfig"
	// KubeconfigOwner is the owner of the published kubeconfig and of its copies.
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
