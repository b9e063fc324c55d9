package status

import (
	"slices"

	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// composePreflight reports the problems that preflight finds until the cluster is installed.
func (v *View) composePreflight(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	const t = controlplanev1.PreflightPassedCondition
	found := v.Found.Preflight
	switch {
	case v.Installed() || v.Deleting():
		conditions.Delete(cp, t)
	case found == nil: // this reconcile ran no preflight
	case found.Early && conditions.Has(cp, t): // the last report stays until all facts are known again
	case len(found.Warnings) > 0:
		conditions.Set(cp, condition.False(
			t, controlplanev1.PreflightWarningsReason, bound.Join(slices.Concat(found.Warnings, found.Unknown), ""),
		))
	case len(found.Unknown) > 0:
		conditions.Set(cp, condition.Unknown(t, controlplanev1.PreflightIncompleteReason, bound.Join(found.Unknown, "")))
	default:
		conditions.Set(cp, condition.True(t, controlplanev1.PreflightPassedReason))
	}
}
