package assistedsim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// networksOf returns the NMStateConfigs that an InfraEnv selects, by name. An empty selector selects none.
func (s *Simulator) networksOf(ctx context.Context, env *aiv1beta1.InfraEnv) ([]aiv1beta1.NMStateConfig, error) {
	selector, err := metav1.LabelSelectorAsSelector(&env.Spec.NMStateConfigLabelSelector)
	if err != nil {
		return nil, inputErrorf("invalid label selector for InfraEnv: %s", err)
	}
	if selector.Empty() {
		return nil, nil
	}
	list := &aiv1beta1.NMStateConfigList{}
	if err := s.live.List(ctx, list, client.InNamespace(env.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("cannot list NMStateConfigs: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b aiv1beta1.NMStateConfig) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// infraEnvsOfNetwork finds the InfraEnvs that select an NMStateConfig by matchLabels; of matchExpressions the service takes no notice here.
func (s *Simulator) infraEnvsOfNetwork(ctx context.Context, obj client.Object) []reconcile.Request {
	var found []reconcile.Request
	list := &aiv1beta1.InfraEnvList{}
	if err := s.client.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil
	}
	for i := range list.Items {
		wanted := list.Items[i].Spec.NMStateConfigLabelSelector.MatchLabels
		matches := len(wanted) > 0
		for key, value := range wanted {
			matches = matches && obj.GetLabels()[key] == value
		}
		if matches {
			found = append(found, requestFor(list.Items[i].Namespace, list.Items[i].Name))
		}
	}
	return found
}
