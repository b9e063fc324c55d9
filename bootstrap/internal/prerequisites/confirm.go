package prerequisites

import (
	"context"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Confirm reads the API server, past the cache, to check whether ClusterDeployment and
// AgentClusterInstall still belong to the Machine's Cluster. It runs right before a host is bound or approved. The
// cache may not show yet that an object was deleted, or replaced by an object of another owner, a moment ago.
func (c *Checker) Confirm(ctx context.Context, s *scope.Scope, stage string) (bool, error) {
	key := client.ObjectKeyFromObject(s.Deployment)
	cluster, err := kube.Read(ctx, c.live, client.ObjectKeyFromObject(s.Cluster), &clusterv1.Cluster{})
	if err != nil {
		return false, err
	}
	deployment, err := kube.Read(ctx, c.live, key, &hivev1.ClusterDeployment{})
	if err != nil {
		return false, err
	}
	install, err := kube.Read(ctx, c.live, key, &hiveext.AgentClusterInstall{})
	if err != nil {
		return false, err
	}
	live := &facts.Facts{Config: s.Config, Machine: s.Machine, Cluster: cluster, Deployment: deployment, Install: install}
	if live.ClusterDeleting() || cluster.Spec.ControlPlaneRef.Name != key.Name {
		s.Again.In(reconcile.CacheLag)
		return s.Blockf(stage, bootstrapv1.WaitingForMachineReason,
			"Cluster %s is being deleted or has another control plane: %s is not installed for it", s.Cluster.Name, s.DescribeHost(s.Agent)), nil
	}
	if reason, message := registrationBlocker(live); reason != "" {
		s.Again.In(reconcile.CacheLag)
		return s.Block(stage, reason, message), nil
	}
	return true, nil
}
