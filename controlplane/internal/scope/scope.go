// Package scope holds what the steps of one reconcile share.
package scope

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Scope is one reconcile: the facts that it began with, what its phases find for the status to tell, and what they leave to each other.
type Scope struct {
	*facts.Facts
	Found *status.Findings

	// Stored is the control plane as it was read, or as the API server answered when its metadata was written.
	Stored *controlplanev1.OpenshiftAssistedControlPlane
	// Credentials are those of the pull secret.
	Credentials release.Credentials
	// ImageSetName names the ClusterImageSet of the release.
	ImageSetName string
	// Templates are those of the infra machines that exist.
	Templates map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured
	// NotPassedOn tells that labels and annotations could not be passed on: nobody states yet those that were there from the first.
	NotPassedOn bool
	// Relabelled is the ClusterDeployment with its labels put back; nil when none was missing.
	Relabelled *hivev1.ClusterDeployment

	// Missing is how many Machines of an installed cluster are to be made, when etcd can take them in.
	Missing int
	// Stuck are the Machines whose hosts left etcd, but whose infrastructure is not deleted.
	Stuck []removal.Machine
	// Inspection is what was seen of etcd in this reconcile.
	Inspection EtcdInspection
	// MemberSilent is true when a member of etcd was seen in this reconcile that does not answer.
	MemberSilent bool

	Again reconcile.Requeue
	// Released is true once the finalizer is gone: there is no status to write any more.
	Released bool
}

// New returns the scope of a reconcile that has found nothing yet.
func New(f *facts.Facts) *Scope {
	return &Scope{Facts: f, Found: status.FindingsOf(f), Stored: f.ControlPlane}
}

// Block says what the installation waits for.
func (s *Scope) Block(reason, message string) { s.Found.Block(status.Installation, reason, message) }

// Registration is what stands for this control plane in assisted-service, as far as it exists.
func (s *Scope) Registration() []client.Object {
	var parts []client.Object
	if s.OwnsDeployment() {
		parts = append(parts, s.Deployment)
	}
	if s.OwnsInstall() {
		parts = append(parts, s.Install)
	}
	return parts
}

// EtcdInspection is what was seen of etcd, or why nothing was.
type EtcdInspection struct {
	Etcd *facts.Etcd
	Err  error
}

// LiveMachines reads all Machines of the cluster from the API server, past the cache.
func (s *Scope) LiveMachines(ctx context.Context, live client.Reader) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := live.List(ctx, list, client.InNamespace(s.ControlPlane.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.ClusterName()}); err != nil {
		return nil, fmt.Errorf("cannot list Machines: %w", err)
	}
	return list.Items, nil
}
