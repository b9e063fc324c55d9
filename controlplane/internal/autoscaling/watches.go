package autoscaling

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// SetupWithManager starts the controller. Hosts are watched from the first MachineDeployment on that requests its
// capacity.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, options controller.Options) error {
	hardwareData := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == metal3.HardwareDataCRD })
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("machinedeployment-capacity").
		For(&clusterv1.MachineDeployment{}, builder.WithPredicates(informer.CapacityChanges)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(informer.ClusterChanges)).
		WatchesMetadata(kube.MetadataOf(kube.CustomResourceDefinition), handler.EnqueueRequestsFromMapFunc(r.ofDefinition),
			builder.WithPredicates(hardwareData, predicate.ResourceVersionChangedPredicate{})).
		WithOptions(options).
		Build(reconcile.TolerateConflicts(r))
	if err != nil {
		return fmt.Errorf("cannot set up the controller of capacities: %w", err)
	}
	mapped := handler.EnqueueRequestsFromMapFunc(r.inNamespace)
	index := func(index kube.Index) func(context.Context) error {
		return func(ctx context.Context) error { return kube.AddIndexes(ctx, mgr.GetFieldIndexer(), index) }
	}
	watch := func(object client.Object, changes predicate.Predicate) func(context.Context) error {
		return func(context.Context) error { return c.Watch(source.Kind(mgr.GetCache(), object, mapped, changes)) }
	}
	r.hostWatches = kube.NewSteps(
		index(informer.AllOf(&metal3.HardwareData{})), watch(&metal3.HardwareData{}, informer.HardwareChanges),
		index(informer.AllOf(&metal3.Host{})), watch(&metal3.Host{}, informer.HostChanges),
	)
	r.watchTemplate = kube.Tracker(mgr.GetCache(), c, r.inNamespace, informer.TemplateChanges)
	return nil
}

// ensureWatches watches the hosts once their kinds exist. It returns false if the Bare Metal Operator is not installed.
func (r *Reconciler) ensureWatches(ctx context.Context) (watching bool, err error) {
	if r.hostWatches.Done() {
		return true, nil
	}
	crd, err := kube.Read(ctx, r.Client, client.ObjectKey{Name: metal3.HardwareDataCRD}, kube.MetadataOf(kube.CustomResourceDefinition))
	if err != nil || crd == nil {
		return false, err
	}
	if err := r.hostWatches.Run(ctx); err != nil {
		return false, fmt.Errorf("cannot watch the hosts: %w", err)
	}
	return true, nil
}

// ofCluster maps a Cluster to its MachineDeployments.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	return r.requests(ctx, client.InNamespace(cluster.GetNamespace()),
		client.MatchingFields{informer.ClusterNameField: cluster.GetName(), informer.CapacityField: informer.Stated})
}

// inNamespace maps hosts, HardwareData and templates to the MachineDeployments of their namespace.
func (r *Reconciler) inNamespace(ctx context.Context, o client.Object) []ctrl.Request {
	return r.requests(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{informer.CapacityField: informer.Stated})
}

// ofDefinition maps the definition of HardwareData to all MachineDeployments.
func (r *Reconciler) ofDefinition(ctx context.Context, _ client.Object) []ctrl.Request {
	return r.requests(ctx, client.MatchingFields{informer.CapacityField: informer.Stated})
}

// requests returns requests for the MachineDeployments that the options select.
func (r *Reconciler) requests(ctx context.Context, selected ...client.ListOption) []ctrl.Request {
	list := &clusterv1.MachineDeploymentList{}
	if err := r.Client.List(ctx, list, append(selected, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list MachineDeployments")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
