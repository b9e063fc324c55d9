package controlplane

import (
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

// scope is one reconcile: the facts that it began with, what its phases find for the status to tell, and what they leave to each other.
type scope struct {
	*facts.Facts
	found *status.Findings

	// stored is the control plane as it was read, or as the API server answered when its metadata was written.
	stored *controlplanev1.OpenshiftAssistedControlPlane
	// credentials are those of the pull secret.
	credentials release.Credentials
	// imageSetName names the ClusterImageSet of the release.
	imageSetName string
	// templates are those of the infra machines that exist.
	templates map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured
	// notPassedOn tells that labels and annotations could not be passed on: nobody states yet those that were there from the first.
	notPassedOn bool
	// relabelled is the ClusterDeployment with its labels put back; nil when none was missing.
	relabelled *hivev1.ClusterDeployment

	// missing is how many Machines of an installed cluster are to be made, when etcd can take them in.
	missing int
	// stuck are the Machines whose hosts left etcd, but whose infrastructure is not deleted.
	stuck []removal.Machine
	// looking is what etcd is being looked at for; empty: nothing. look is what was seen.
	looking    status.Task
	inspection etcdInspection
	// memberSilent is true when a member of etcd was seen in this reconcile that does not answer.
	memberSilent bool

	again reconcile.Requeue
	// released is true once the finalizer is gone: there is no status to write any more.
	released bool
}

func newScope(f *facts.Facts) *scope {
	return &scope{Facts: f, found: status.FindingsOf(f), stored: f.ControlPlane}
}

// block says what the installation waits for.
func (s *scope) block(reason, message string) { s.found.Block(status.Installation, reason, message) }

// registration is what stands for this control plane in assisted-service, as far as it exists.
func (s *scope) registration() []client.Object {
	var parts []client.Object
	if s.OwnsDeployment() {
		parts = append(parts, s.Deployment)
	}
	if s.OwnsInstall() {
		parts = append(parts, s.Install)
	}
	return parts
}
