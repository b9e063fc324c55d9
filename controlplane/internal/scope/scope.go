// Package scope holds the state that the steps of one reconcile share.
package scope

import (
	"context"
	"fmt"
	"sync"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Messages of several steps.
const (
	// NotConnected is the message of a step that needs a cluster whose API server does not answer.
	NotConnected = "the cluster's API server does not answer, so that nothing is known of etcd: waiting until it does, see the " +
		"condition Available"
	// ClusterDeleting is the message of a step that creates nothing for a Cluster that is being deleted. Cluster API deletes the
	// workers first, and then the control plane.
	ClusterDeleting = "the Cluster is being deleted: no installation is begun and no Machine is made; the control plane is deleted " +
		"after the workers"
)

// Scope is the state of one reconcile. It holds the facts at its begin, the findings for the status, and the results that
// phases pass to each other.
type Scope struct {
	*facts.Facts
	Found *status.Findings

	// Stored is the control plane as read, or as returned by the API server after the last write of its metadata.
	Stored *controlplanev1.OpenshiftAssistedControlPlane
	// ImageSetName names the ClusterImageSet of the release.
	ImageSetName string
	// Templates are the templates of the existing infra machines.
	Templates map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured
	// PropagationFailed is true when labels and annotations could not be propagated to the registration. The labels and
	// annotations with which its objects were created then have no field owner for metadata yet.
	PropagationFailed bool
	// Relabeled is the ClusterDeployment with its missing labels restored; nil when no label was missing.
	Relabeled *hivev1.ClusterDeployment

	// Missing is the number of Machines that an installed cluster lacks. They are created when etcd can admit members.
	Missing int
	// Stuck are the Machines whose hosts left etcd, but whose infrastructure is not deleted.
	Stuck []quorum.Machine
	// Inspection is the result of reading etcd in this reconcile.
	Inspection EtcdInspection
	// MemberSilent is true when this reconcile observed an etcd member that does not answer.
	MemberSilent bool

	// Again collects the times after which the control plane is reconciled again.
	Again   reconcile.Requeue
	removal func() (*removal.Situation, error)
	// Released is true once the finalizer was removed. No status is written then.
	Released bool
}

// New returns the scope of a reconcile without findings.
func New(f *facts.Facts) *Scope {
	return &Scope{
		Facts: f, Found: status.FindingsOf(f), Stored: f.ControlPlane,
		removal: sync.OnceValues(func() (*removal.Situation, error) { return removal.Of(f) }),
	}
}

// Block records the blocker of the installation.
func (s *Scope) Block(reason, message string) { s.Found.Block(status.Installation, reason, message) }

// Removal returns the situation of the Machines that are being deleted, as the facts show it. The error is about the
// record of released hosts. Several phases decide by the situation, and none changes that of another phase: each call
// returns a copy.
func (s *Scope) Removal() (*removal.Situation, error) {
	situation, err := s.removal()
	copied := *situation
	return &copied, err
}

// Registration returns the existing objects that register this control plane with assisted-service.
func (s *Scope) Registration() []client.Object {
	var objects []client.Object
	if s.OwnsDeployment() {
		objects = append(objects, s.Deployment)
	}
	if s.OwnsInstall() {
		objects = append(objects, s.Install)
	}
	return objects
}

// EtcdInspection is the observed etcd, or the error of reading it.
type EtcdInspection struct {
	Etcd *workload.Etcd
	Err  error
}

// LiveMachines reads all Machines of the cluster from the API server, past the cache.
func (s *Scope) LiveMachines(ctx context.Context, live client.Reader) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	ofCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: s.ClusterName()}
	if err := live.List(ctx, list, client.InNamespace(s.ControlPlane.Namespace), ofCluster); err != nil {
		return nil, fmt.Errorf("cannot list Machines: %w", err)
	}
	return list.Items, nil
}
