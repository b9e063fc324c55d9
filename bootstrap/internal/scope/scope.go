// Package scope holds the state that the steps of one reconcile share.
package scope

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/status"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Scope is one reconcile. It holds the facts that were read before the first phase, and the findings of the phases for
// users. No phase changes the facts. The other fields are results that a phase passes to later phases and the report.
type Scope struct {
	*facts.Facts
	status.Findings

	// Stored is the config in the current state of the API server: finalizers are written before the report.
	Stored *bootstrapv1.OpenshiftAssistedConfig
	// Status is the status to report.
	Status bootstrapv1.OpenshiftAssistedConfigStatus
	// InfraEnv is the InfraEnv whose image the host boots, once it exists.
	InfraEnv *aiv1beta1.InfraEnv
	// Agent is the Agent of the Machine's host, once it is identified.
	Agent *aiv1beta1.Agent
	// Wanted is the desired spec of the Agent, once it is known. Fencing is the data about its BMC.
	Wanted  *aiv1beta1.AgentSpec
	Fencing desired.Fencing
	// Reactions are the delays of the actions that the status now reports. They count once the status is written.
	Reactions []measure.Reaction
	// Again collects the times after which the config is reconciled again.
	Again reconcile.Requeue
}

// New returns a Scope without findings.
func New(f *facts.Facts) *Scope {
	return &Scope{Facts: f, Stored: f.Config.DeepCopy(), Status: *f.Config.Status.DeepCopy()}
}

// Key returns the namespace and name of the config.
func (s *Scope) Key() types.NamespacedName { return client.ObjectKeyFromObject(s.Config) }

// ClusterOf names the cluster that an Agent is bound to, unless the cluster is in another namespace.
func (s *Scope) ClusterOf(agent *aiv1beta1.Agent) string {
	if ref := agent.Spec.ClusterDeploymentName; ref.Namespace == s.Config.Namespace {
		return "ClusterDeployment " + ref.Name
	}
	return "a cluster of another namespace"
}
