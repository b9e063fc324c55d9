package inplace

import (
	"context"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgradeplan"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// GenerateUpgradePlan plans the upgrade of a topology whose ClusterClass names this handler. The response depends on the request
// only, so each replica of the manager can give it. Cluster API caches a plan for ten minutes, and repeats a failed request.
func (*Extension) GenerateUpgradePlan(_ context.Context, req *hooksv1.GenerateUpgradePlanRequest,
	resp *hooksv1.GenerateUpgradePlanResponse,
) {
	plan, err := upgradeplan.Compute(&req.Cluster, upgradeplan.Request{
		From: req.FromControlPlaneKubernetesVersion, FromWorkers: req.FromWorkersKubernetesVersion, To: req.ToKubernetesVersion,
	}, req.Settings)
	if err != nil {
		resp.SetStatus(hooksv1.ResponseStatusFailure)
		resp.SetMessage(bound.Message(err.Error()))
		return
	}
	resp.SetStatus(hooksv1.ResponseStatusSuccess)
	resp.ControlPlaneUpgrades, resp.WorkersUpgrades = steps(plan.ControlPlane), steps(plan.Workers)
}

func steps(versions []string) []hooksv1.UpgradeStep {
	var steps []hooksv1.UpgradeStep
	for _, version := range versions {
		steps = append(steps, hooksv1.UpgradeStep{Version: version})
	}
	return steps
}
