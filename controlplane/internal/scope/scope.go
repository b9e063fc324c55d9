// Package scope holds the state that the steps of one reconcile share.
package scope

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Messages of several steps.
const (
	// NotConnected is the message of a step that needs a cluster whose API server does not answer.
	NotConnected = "the cluster's API server does not answer, so the state of etcd is unknown: waiting until it answers, see the condition " +
		"Available"
	// ClusterDeleting is the message of a step that creates nothing for a Cluster that is being deleted. Cluster API deletes the
	// workers first, and then the control plane.
	ClusterDeleting = "the Cluster is being deleted: no installation is begun and no Machine is created; the control plane is deleted " +
		"after the workers"
)

// Scope is the state of one reconcile. It holds the facts at its begin and the findings for the status. It also holds the
// results that a phase leaves for later phases of another chain. These results are no facts: they depend on requests of this
// reconcile, or on how far a chain has come. Each field names the phase that sets it.
type Scope struct {
	*facts.Facts
	Found *tasks.Findings

	// Stored is the control plane as read, or as returned by the API server after the last write of its metadata.
	Stored *controlplanev1.OpenshiftAssistedControlPlane
	// ImageSetName names the ClusterImageSet of the release. releaseimage.Resolver sets it, because the release image may have to
	// be queried from a registry. The registration reads it.
	ImageSetName string
	// Templates are the existing templates of infra machines. Creator.ReadTemplates sets them, because it has to watch their kind
	// before it reads them. The creation of Machines reads them.
	Templates map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured
	// PropagationFailed is true when labels and annotations could not be propagated to the registration. The labels and
	// annotations with which its objects were created then have no field owner for metadata yet. MetadataWriter.Propagate sets
	// it. The registration reads it.
	PropagationFailed bool

	// Missing is the number of Machines that an installed cluster lacks. They are created when etcd can admit members.
	// Creator.CreateMissing sets it only if no phase of the installation blocks the creation of Machines. ScaleUp reads it.
	Missing int
	// Stuck are the Machines whose hosts left etcd, but whose infrastructure is not deleted. Remover.FindStuck sets them: whether
	// a Machine is stuck depends on the time. The creation of Machines and ReportStuck read them.
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
		Facts: f, Found: tasks.FindingsOf(f), Stored: f.ControlPlane,
		removal: sync.OnceValues(func() (*removal.Situation, error) { return removal.Of(f) }),
	}
}

// Block records the blocker of the installation.
func (s *Scope) Block(reason, message string) { s.Found.Block(tasks.Installation, reason, message) }

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
	if ownership.OwnsDeployment(s.Facts) {
		objects = append(objects, s.Deployment)
	}
	if ownership.OwnsInstall(s.Facts) {
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
