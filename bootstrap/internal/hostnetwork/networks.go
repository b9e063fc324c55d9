// Package hostnetwork concludes from the facts of a reconcile whether a host gets static addresses from NMStateConfigs. It
// has no client.
package hostnetwork

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Wanted reports whether hosts get their addresses from NMStateConfigs. An empty selector selects
// none, as in assisted-service.
func Wanted(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	selector := config.Spec.NMStateConfigLabelSelector
	return selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

// Selector returns the selector of NMStateConfigs for messages.
func Selector(f *facts.Facts) string {
	return metav1.FormatLabelSelector(f.Config.Spec.NMStateConfigLabelSelector)
}

// Missing reports whether the image would give hosts no addresses although the config selects
// NMStateConfigs. It is false after the data was handed out, because a block would be too late.
func Missing(f *facts.Facts) bool {
	return Wanted(f.Config) && len(f.Networks) == 0 && !f.DataHandedOut()
}

// Pending reports whether assisted-service has not added the first NMStateConfig to the image of an
// InfraEnv yet. It reports that with a download URL. A further NMStateConfig, or a change, only changes the
// URL of the image.
func Pending(f *facts.Facts, infraEnv *aiv1beta1.InfraEnv) bool {
	return len(f.Networks) > 0 && infraEnv.Status.InfraEnvDebugInfo.StaticNetworkDownloadURL == "" && !f.DataHandedOut()
}

// Mismatch returns that no selected NMStateConfig matches the chosen host, which then boots without
// static addresses. It is "" if one matches, if nothing can be compared, and after the host has registered.
func Mismatch(f *facts.Facts) string {
	if !Wanted(f.Config) || f.Host == nil || len(f.Agents) > 0 {
		return ""
	}
	known := metal3.IdentityOf(f.Host).MACs
	if len(known) == 0 {
		return ""
	}
	if HasStaticAddresses(f, known) {
		return ""
	}
	return fmt.Sprintf(
		"no NMStateConfig that matches %s has a MAC address of BareMetalHost %s/%s (%s), which boots without static addresses: correct "+
			"spec.interfaces of its NMStateConfig, then delete the Machine, which wipes the host",
		Selector(f),
		f.Host.Namespace,
		f.Host.Name,
		bound.List(known),
	)
}

// HasStaticAddresses reports whether one of the selected NMStateConfigs matches a host with these MAC
// addresses.
func HasStaticAddresses(f *facts.Facts, macs []string) bool {
	return slices.ContainsFunc(f.Networks, func(network *aiv1beta1.NMStateConfig) bool {
		return slices.ContainsFunc(metal3.NetworkMACs(network), func(mac string) bool { return slices.Contains(macs, mac) })
	})
}
