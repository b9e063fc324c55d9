package facts

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// WantsNetworks reports whether hosts get their addresses from NMStateConfigs. An empty selector selects
// none, as in assisted-service.
func WantsNetworks(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	selector := config.Spec.NMStateConfigLabelSelector
	return selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

// SelectedNetworks returns the selector of NMStateConfigs for messages.
func (f *Facts) SelectedNetworks() string {
	return metav1.FormatLabelSelector(f.Config.Spec.NMStateConfigLabelSelector)
}

// NetworksMissing reports whether the image would give hosts no addresses although the config selects
// NMStateConfigs. It is false after the data was handed out, because a block would be too late.
func (f *Facts) NetworksMissing() bool {
	return WantsNetworks(f.Config) && len(f.Networks) == 0 && !f.DataHandedOut()
}

// NetworksPending reports whether assisted-service has not added the first NMStateConfig to the image of an
// InfraEnv yet. It reports that with a download URL. A further NMStateConfig, or a change, only changes the
// URL of the image.
func (f *Facts) NetworksPending(infraEnv *aiv1beta1.InfraEnv) bool {
	return len(f.Networks) > 0 && infraEnv.Status.InfraEnvDebugInfo.StaticNetworkDownloadURL == "" && !f.DataHandedOut()
}

// NetworkMismatch returns that no selected NMStateConfig matches the chosen host, which then boots without
// static addresses. It is "" if one matches, if nothing can be compared, and after the host has registered.
func (f *Facts) NetworkMismatch() string {
	if !WantsNetworks(f.Config) || f.Host == nil || len(f.Agents) > 0 {
		return ""
	}
	known := metal3.IdentityOf(f.Host).MACs
	if len(known) == 0 {
		return ""
	}
	if f.HasStaticAddresses(known) {
		return ""
	}
	return fmt.Sprintf(
		"no NMStateConfig that matches %s has a MAC address of BareMetalHost %s/%s (%s), which boots without static addresses: correct "+
			"spec.interfaces of its NMStateConfig, then delete the Machine, which wipes the host",
		f.SelectedNetworks(),
		f.Host.Namespace,
		f.Host.Name,
		bound.List(known),
	)
}

// HasStaticAddresses reports whether one of the selected NMStateConfigs matches a host with these MAC
// addresses.
func (f *Facts) HasStaticAddresses(macs []string) bool {
	return slices.ContainsFunc(f.Networks, func(network *aiv1beta1.NMStateConfig) bool {
		return slices.ContainsFunc(metal3.NetworkMACs(network), func(mac string) bool { return slices.Contains(macs, mac) })
	})
}
