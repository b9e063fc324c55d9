package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// wantsNetworks tells whether hosts get their addresses from NMStateConfigs. An empty selector selects none, as assisted-service has it.
func wantsNetworks(config *bootstrapv1.OpenshiftAssistedConfig) bool {
	selector := config.Spec.NMStateConfigLabelSelector
	return selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

// gatherNetworks lists the NMStateConfigs that the config selects. A selector that cannot be used selects none; its phase says so.
func (r *Reconciler) gatherNetworks(ctx context.Context, s *scope) error {
	selector, err := metav1.LabelSelectorAsSelector(s.config.Spec.NMStateConfigLabelSelector)
	if err != nil || !wantsNetworks(s.config) {
		return nil //nolint:nilerr // the user's mistake, not a failure
	}
	list := &aiv1beta1.NMStateConfigList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.config.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("cannot look for NMStateConfigs: %w", err)
	}
	for i := range list.Items {
		s.networks = append(s.networks, &list.Items[i])
	}
	slices.SortFunc(s.networks, func(a, b *aiv1beta1.NMStateConfig) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// networksMissing tells whether the image would give hosts no addresses although they are to have some. Data that was handed out cannot be held back.
func (s *scope) networksMissing() bool {
	return wantsNetworks(s.config) && len(s.networks) == 0 && !s.dataHandedOut()
}

// networksNotTakenIn tells whether assisted-service has not put the first NMStateConfig into the image yet. It says so by an address at which it
// serves them; of a second one, or a change, nothing can be seen but another URL of the image.
func (s *scope) networksNotTakenIn() bool {
	return len(s.networks) > 0 && s.namesake.Status.InfraEnvDebugInfo.StaticNetworkDownloadURL == "" && !s.dataHandedOut()
}

func (s *scope) waitForNetwork() (bool, error) {
	return s.wait(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForNMStateConfigReason,
		"waiting for an NMStateConfig that matches %s (spec.nmStateConfigLabelSelector): create it, with the MAC addresses of the host", s.selectedNetworks())
}

func (s *scope) selectedNetworks() string {
	return metav1.FormatLabelSelector(s.config.Spec.NMStateConfigLabelSelector)
}

// networkMismatch says that no selected NMStateConfig is made for the chosen host, which then boots without static addresses. It is empty when one
// is, when there is nothing to compare, and once the host has found its way to assisted-service.
func (s *scope) networkMismatch() string {
	if !wantsNetworks(s.config) || s.host == nil || len(s.agents) > 0 {
		return ""
	}
	known := metal3.IdentityOf(s.host).MACs
	if len(known) == 0 {
		return ""
	}
	for _, network := range s.networks {
		if slices.ContainsFunc(metal3.NetworkMACs(network), func(mac string) bool { return slices.Contains(known, mac) }) {
			return ""
		}
	}
	return fmt.Sprintf("no NMStateConfig that matches %s has a MAC address of BareMetalHost %s/%s (%s), which boots without static addresses: correct spec.interfaces of its NMStateConfig and delete the Machine",
		s.selectedNetworks(), s.host.Namespace, s.host.Name, strings.Join(known, ", "))
}

// warnOfNetworkMismatch emits the event once: the message of the condition tells whether it was emitted.
func (s *scope) warnOfNetworkMismatch(mismatch string) {
	recorded := s.recorded(bootstrapv1.DataSecretAvailableCondition)
	if mismatch != "" && (recorded == nil || recorded.Message != mismatch) {
		s.tell(corev1.EventTypeWarning, "NMStateConfigMismatch", "%s", mismatch)
	}
}

// ofNMStateConfig maps to the configs that select it.
func (r *Reconciler) ofNMStateConfig(ctx context.Context, o client.Object) []ctrl.Request {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := r.Client.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{configByNetworks: selecting}); err != nil {
		notMapped(ctx, err, "configs by", configByNetworks)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(list.Items[i].Spec.NMStateConfigLabelSelector)
		if err == nil && selector.Matches(labels.Set(o.GetLabels())) {
			requests = append(requests, ctrl.Request{NamespacedName: keyOf(&list.Items[i])})
		}
	}
	return requests
}

// TrimNMStateConfig is a cache transform that drops the network configuration itself, which is not read.
func TrimNMStateConfig(in any) (any, error) {
	if network, ok := in.(*aiv1beta1.NMStateConfig); ok {
		network.ManagedFields, network.Annotations = nil, nil
		network.Spec.NetConfig = aiv1beta1.NetConfig{}
	}
	return in, nil
}
