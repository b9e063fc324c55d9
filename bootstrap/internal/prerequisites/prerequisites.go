// Package prerequisites checks the objects of other controllers on which the phases depend.
package prerequisites

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/joining"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Checker checks the prerequisites of a config.
type Checker struct {
	live client.Reader
}

// New returns a Checker that confirms prerequisites by live, which reads from the API server.
func New(live client.Reader) *Checker { return &Checker{live: live} }

// Check waits for the objects of other controllers.
func (c *Checker) Check(_ context.Context, s *scope.Scope) (bool, error) {
	if !clusterReady(s) || !registrationReady(s) {
		return false, nil
	}
	return infraMachineReady(s)
}

// clusterReady waits for the Machine and for the infrastructure of its Cluster.
func clusterReady(s *scope.Scope) (proceed bool) {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	switch {
	case s.Machine == nil && ownedByMachinePool(s.Config):
		return s.Blockf(stage, bootstrapv1.MachinePoolNotSupportedReason,
			"a MachinePool cannot use an OpenshiftAssistedConfig: use a MachineDeployment")
	case s.Machine == nil:
		return s.Blockf(stage, bootstrapv1.WaitingForMachineReason,
			"waiting until Cluster API sets the Machine whose spec.bootstrap.configRef is this object as its owner")
	case s.Cluster == nil:
		return s.Blockf(stage, bootstrapv1.WaitingForClusterInfrastructureReason, "waiting for Cluster %s", s.Machine.Spec.ClusterName)
	case !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		return s.Blockf(stage, bootstrapv1.WaitingForClusterInfrastructureReason,
			"waiting for the infrastructure of Cluster %s to be provisioned", s.Cluster.Name)
	}
	return true
}

// registrationReady waits for the registration of the Machine's Cluster: see registrationBlocker.
func registrationReady(s *scope.Scope) (proceed bool) {
	reason, message := registrationBlocker(s.Facts)
	return reason == "" || s.Block(bootstrapv1.DiscoveryImageReadyCondition, reason, message)
}

// registrationBlocker returns what blocks hosts of a cluster: ClusterDeployment and
// AgentClusterInstall must exist, belong to the Machine's Cluster and be registered; "" if they are. A cluster that
// assisted-service refuses is never installed. A missing AgentClusterInstall does not prove that the cluster has no
// mirrors, no arbiter and no fencing: the object may have been refused. An approved host is only observed.
func registrationBlocker(f *facts.Facts) (reason, message string) {
	if f.ApprovedAgent() != nil && f.Deployment != nil {
		return "", ""
	}
	name := f.Cluster.Spec.ControlPlaneRef.Name
	obstacle, foreign := joining.ClusterBlocker(f)
	switch {
	case foreign:
		return bootstrapv1.ClusterDeploymentNotOursReason, obstacle
	case obstacle != "":
		return bootstrapv1.WaitingForClusterDeploymentReason, obstacle
	case f.Deployment == nil:
		return bootstrapv1.WaitingForClusterDeploymentReason,
			fmt.Sprintf("waiting for ClusterDeployment %s, which the control plane provider creates", name)
	case f.Install == nil:
		return bootstrapv1.WaitingForAgentClusterInstallReason, fmt.Sprintf(
			"waiting for AgentClusterInstall %s, which states whether the cluster has mirrors, an arbiter or fencing: "+
				"see condition Installed of OpenshiftAssistedControlPlane %s", name, name,
		)
	// A state that is cleared later, as while a database restarts, withdraws no image.
	case !f.DataHandedOut() && !f.Installation().Registered:
		return bootstrapv1.WaitingForAgentClusterInstallReason, fmt.Sprintf(
			"assisted-service has not registered the cluster of AgentClusterInstall %s: see condition Installed of "+
				"OpenshiftAssistedControlPlane %s", name, name,
		)
	}
	return "", ""
}

// infraMachineReady waits for the infrastructure machine.
func infraMachineReady(s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	switch {
	case !kube.Readable(s.Machine.Spec.InfrastructureRef):
		ref := s.Machine.Spec.InfrastructureRef
		return s.Blockf(stage, bootstrapv1.WaitingForInfraMachineReason,
			"infrastructureRef of Machine %s is %s of group %s. Only kinds of group %s are supported: recreate the Machine with one of them",
			s.Machine.Name, ref.Kind, ref.APIGroup, clusterv1.GroupVersionInfrastructure.Group), nil
	case s.InfraMachineFailure != nil:
		s.Blockf(stage, bootstrapv1.WaitingForInfraMachineReason, "cannot read %s %s: %s",
			s.Machine.Spec.InfrastructureRef.Kind, s.Machine.Spec.InfrastructureRef.Name, s.InfraMachineFailure)
		return false, s.InfraMachineFailure
	case s.InfraMachine == nil:
		ref := s.Machine.Spec.InfrastructureRef
		return s.Blockf(stage, bootstrapv1.WaitingForInfraMachineReason, "waiting for %s %s", ref.Kind, ref.Name), nil
	}
	return true, nil
}

func ownedByMachinePool(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	return slices.ContainsFunc(config.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "MachinePool" })
}
