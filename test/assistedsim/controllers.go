package assistedsim

import (
	"context"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// concurrency of each controller: the benchmark installs many clusters at once.
const concurrency = 8

// addControllers registers the three reconcilers. Their own status writes do not wake them. Changes of the
// records wake them through the queues that they register with the simulator.
func (s *Simulator) addControllers(mgr ctrl.Manager) error {
	options := controller.Options{MaxConcurrentReconciles: concurrency, SkipNameValidation: ptr.To(true)}
	changed := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	if err := ctrl.NewControllerManagedBy(mgr).Named("agent").WithOptions(options).
		For(&Agent{}, changed).
		WatchesRawSource(s.keepQueue(&s.agentQueue)).
		Complete(s.present(s.reconcileAgent)); err != nil {
		return fmt.Errorf("cannot add agent controller: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("infraenv").WithOptions(options).
		For(&InfraEnv{}, changed).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(s.infraEnvsOfSecret)).
		Watches(&aiv1beta1.NMStateConfig{}, handler.EnqueueRequestsFromMapFunc(s.infraEnvsOfNetwork)).
		WatchesRawSource(s.keepQueue(&s.infraEnvQueue)).
		Complete(s.present(s.reconcileInfraEnv)); err != nil {
		return fmt.Errorf("cannot add InfraEnv controller: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("clusterdeployment").WithOptions(options).
		For(&hivev1.ClusterDeployment{}, changed).
		Watches(&hiveext.AgentClusterInstall{}, handler.EnqueueRequestsFromMapFunc(deploymentOfInstall), changed).
		Watches(&hivev1.ClusterImageSet{}, handler.EnqueueRequestsFromMapFunc(s.deploymentsOfImageSet)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(s.deploymentsOfSecret)).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(s.deploymentsOfConfigMap)).
		WatchesRawSource(s.keepQueue(&s.clusterQueue)).
		Complete(s.present(s.reconcileCluster)); err != nil {
		return fmt.Errorf("cannot add cluster controller: %w", err)
	}
	return nil
}

func (s *Simulator) keepQueue(into *queue) source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		*into = q
		s.notify()
		return nil
	})
}

func requestFor(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func deploymentOfInstall(_ context.Context, obj client.Object) []reconcile.Request {
	aci, ok := obj.(*hiveext.AgentClusterInstall)
	if !ok {
		return nil
	}
	return []reconcile.Request{requestFor(aci.Namespace, aci.Spec.ClusterDeploymentRef.Name)}
}

func (s *Simulator) infraEnvsOfSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	var found []reconcile.Request
	list := &InfraEnvList{}
	if err := s.client.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil
	}
	for i := range list.Items {
		if ref := list.Items[i].Spec.PullSecretRef; ref != nil && ref.Name == obj.GetName() {
			found = append(found, requestFor(list.Items[i].Namespace, list.Items[i].Name))
		}
	}
	return found
}

func (s *Simulator) deploymentsOfSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	var found []reconcile.Request
	list := &hivev1.ClusterDeploymentList{}
	if err := s.client.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
		return nil
	}
	for i := range list.Items {
		if ref := list.Items[i].Spec.PullSecretRef; ref != nil && ref.Name == obj.GetName() {
			found = append(found, requestFor(list.Items[i].Namespace, list.Items[i].Name))
		}
	}
	return found
}

func (s *Simulator) deploymentsOfImageSet(ctx context.Context, obj client.Object) []reconcile.Request {
	return s.deploymentsOf(ctx, "", func(aci *hiveext.AgentClusterInstall) bool {
		return aci.Spec.ImageSetRef != nil && aci.Spec.ImageSetRef.Name == obj.GetName()
	})
}

func (s *Simulator) deploymentsOfConfigMap(ctx context.Context, obj client.Object) []reconcile.Request {
	return s.deploymentsOf(ctx, obj.GetNamespace(), func(aci *hiveext.AgentClusterInstall) bool {
		for _, name := range manifestNames(aci) {
			if name == obj.GetName() {
				return true
			}
		}
		return false
	})
}

func (s *Simulator) deploymentsOf(ctx context.Context, namespace string,
	matches func(*hiveext.AgentClusterInstall) bool,
) []reconcile.Request {
	var found []reconcile.Request
	list := &hiveext.AgentClusterInstallList{}
	if err := s.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	for i := range list.Items {
		if matches(&list.Items[i]) {
			found = append(found, requestFor(list.Items[i].Namespace, list.Items[i].Spec.ClusterDeploymentRef.Name))
		}
	}
	return found
}
