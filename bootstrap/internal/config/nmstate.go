package config

import (
	"context"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

func (s *scope) waitForNetwork() (bool, error) {
	return s.wait(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForNMStateConfigReason,
		"waiting for an NMStateConfig that matches %s (spec.nmStateConfigLabelSelector): create it, with the MAC addresses of the host", s.SelectedNetworks())
}

// warnOfNetworkMismatch emits the event once: the message of the condition tells whether it was emitted.
func (s *scope) warnOfNetworkMismatch(mismatch string) {
	recorded := s.Recorded(bootstrapv1.DataSecretAvailableCondition)
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
