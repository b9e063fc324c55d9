package upgrade

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// risksOf returns the risks of an image. If the update graph does not have the image, the risks of the first
// offer of the release apply. Available updates precede conditional ones.
func risksOf(offers []workload.Offer, image string) []workload.Risk {
	if len(offers) == 0 {
		return nil
	}
	at := slices.IndexFunc(offers, func(o workload.Offer) bool { return digestOf(o.Image) == digestOf(image) })
	return offers[max(0, at)].Risks
}

// risky blocks a release with risks that were not accepted.
func risky(f *facts.Facts, wanted semver.Version, risks []workload.Risk) *decision.Blocker {
	var left []string
	for _, risk := range risks {
		if !slices.Contains(f.ControlPlane.Spec.Upgrade.AcceptedRisks, risk.Name) {
			left = append(left, fmt.Sprintf("%s (%s)", risk.Name, bound.Cause(risk.Message)))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return watched(controlplanev1.UpgradeRiskNotAcceptedReason,
		"v%s is not recommended for this cluster. Set %s to another release, or add the risks to "+
			"spec.upgrade.acceptedRisks if you accept them: %s",
		wanted, f.Settings().Release, bound.Join(left, ""))
}

// risksOfUpdate returns the names of the risks of an update that may be requested. All of them are accepted.
func risksOfUpdate(seen *workload.ClusterVersion, update workload.Update) []string {
	var names []string
	for _, risk := range risksOf(offersOf(seen, update.Version), update.Image) {
		names = append(names, risk.Name)
	}
	return names
}

// acceptRisks returns the risks to write into the cluster: those of the update, and those that other clients accepted
// there. It returns nil if the cluster has none, and does not record any.
func acceptRisks(seen *workload.ClusterVersion, accepted []string) []string {
	if !seen.RecordsRisks && len(seen.AcceptedRisks) == 0 {
		return nil
	}
	names := []string{}
	if seen.RecordsRisks {
		names = append(names, accepted...)
	}
	for _, risk := range seen.AcceptedRisks {
		if !risk.Ours && !slices.Contains(names, risk.Name) {
			names = append(names, risk.Name)
		}
	}
	return names
}

// recorded reports whether the cluster has recorded the accepted risks, if it records any.
func recorded(seen *workload.ClusterVersion, accepted []string) bool {
	return !seen.RecordsRisks || !slices.ContainsFunc(accepted, func(name string) bool {
		return !slices.ContainsFunc(seen.AcceptedRisks, func(risk workload.AcceptedRisk) bool { return risk.Name == name })
	})
}

// unrecorded returns the end of a message about a requested release with risks that the cluster does not record.
func unrecorded(f *facts.Facts, wanted semver.Version, seen *workload.ClusterVersion) string {
	update, blocker := updateTo(f, wanted, seen)
	if blocker != nil || seen.RecordsRisks {
		return ""
	}
	names := risksOfUpdate(seen, *update)
	if len(names) == 0 {
		return ""
	}
	return ". The cluster does not record the accepted risks, because its ClusterVersion has no spec.desiredUpdate.acceptRisks, or its " +
		"feature gate ClusterUpdateAcceptRisks is off: " + bound.List(names)
}
