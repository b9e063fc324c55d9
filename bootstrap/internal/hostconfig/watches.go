package hostconfig

import (
	"context"
	"fmt"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// SetupWithManager starts the controller. Objects that lead to no config of ours cause no reconcile.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	served, err := servesBareMetalHosts(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	r.metal3.Store(served)
	indexes := informer.Indexes()
	if served {
		indexes = append(indexes, informer.HostIndex())
	}
	if err := kube.AddIndexes(ctx, mgr.GetFieldIndexer(), indexes...); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("openshiftassistedconfig").
		For(&bootstrapv1.OpenshiftAssistedConfig{}, builder.WithPredicates(r.configChanges())).
		Watches(&bootstrapv1.OpenshiftAssistedConfig{}, handler.EnqueueRequestsFromMapFunc(r.ofOtherConfig)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine), builder.WithPredicates(informer.MachineChanges)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(informer.ClusterChanges)).
		Watches(&aiv1beta1.InfraEnv{}, handler.EnqueueRequestsFromMapFunc(r.ofInfraEnv)).
		Watches(&aiv1beta1.Agent{}, handler.EnqueueRequestsFromMapFunc(r.ofAgent), builder.WithPredicates(informer.AgentChanges)).
		Watches(&aiv1beta1.NMStateConfig{}, handler.EnqueueRequestsFromMapFunc(r.ofNMStateConfig)).
		Watches(&hivev1.ClusterDeployment{}, handler.EnqueueRequestsFromMapFunc(r.ofInstallation), builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&hiveext.AgentClusterInstall{}, handler.EnqueueRequestsFromMapFunc(r.ofInstallation),
			builder.WithPredicates(informer.InstallationChanges)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret)).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.ofConfigMap)).
		WatchesRawSource(source.Channel(r.wake, &handler.EnqueueRequestForObject{})).
		WithOptions(options)
	if served {
		b = b.Watches(&metal3.Host{}, r.hostChanges(), builder.WithPredicates(informer.HostChanges))
	}
	c, err := b.Build(reconcile.TolerateConflicts(r))
	if err != nil {
		return fmt.Errorf("cannot start the controller: %w", err)
	}
	log := mgr.GetLogger()
	r.tracker = &external.ObjectTracker{Controller: c, Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), PredicateLogger: &log}
	if served {
		return nil
	}
	return r.awaitBareMetalHosts(mgr, c)
}

// watchInfraMachine watches the infrastructure machines of a kind, from the first one on.
func (r *Reconciler) watchInfraMachine(ctx context.Context, infraMachine *unstructured.Unstructured) error {
	if r.tracker == nil {
		return nil
	}
	if err := r.tracker.Watch(ctrl.LoggerFrom(ctx), infraMachine, r.infraMachineChanges(), informer.InfraMachineChanges); err != nil {
		return fmt.Errorf("cannot watch %s: %w", infraMachine.GetKind(), err)
	}
	return nil
}

// notMapped logs why an event leads to no config. The cache answers all these reads, so that errors are rare.
func notMapped(ctx context.Context, err error, key string, value any) {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine the configs of an event", key, value)
	}
}

// request returns a request for the config if it exists.
func (r *Reconciler) request(ctx context.Context, namespace, name string) []ctrl.Request {
	if name == "" {
		return nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := r.Client.Get(ctx, key, &bootstrapv1.OpenshiftAssistedConfig{}, client.UnsafeDisableDeepCopy); err != nil {
		notMapped(ctx, client.IgnoreNotFound(err), "config", key)
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
}

// configs returns requests for the configs with a value in an index.
func (r *Reconciler) configs(ctx context.Context, namespace, field, value string) []ctrl.Request {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{field: value},
		client.UnsafeDisableDeepCopy); err != nil {
		notMapped(ctx, err, "configs by", field)
		return nil
	}
	requests := make([]ctrl.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// ofOtherConfig maps a config to the configs that wait because this config recorded their Agent.
func (r *Reconciler) ofOtherConfig(_ context.Context, o client.Object) []ctrl.Request {
	config, ok := o.(*bootstrapv1.OpenshiftAssistedConfig)
	if !ok || config.Status.AgentRef == nil {
		return nil
	}
	var requests []ctrl.Request
	for _, waiting := range r.claims.WaitingForConfig(config) {
		if waiting != client.ObjectKeyFromObject(config) {
			requests = append(requests, ctrl.Request{NamespacedName: waiting})
		}
	}
	return requests
}

// ofMachine maps to the config of the Machine, and to the configs that wait until the Machine releases its Node
// name.
func (r *Reconciler) ofMachine(ctx context.Context, o client.Object) []ctrl.Request {
	machine, ok := o.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	requests := r.request(ctx, o.GetNamespace(), informer.ConfigOfMachine(machine))
	for _, config := range r.binder.WaitingForName(machine.Namespace, machine.Status.NodeRef.Name) {
		requests = append(requests, ctrl.Request{NamespacedName: config})
	}
	return requests
}

func (r *Reconciler) ofCluster(ctx context.Context, o client.Object) []ctrl.Request {
	return r.configs(ctx, o.GetNamespace(), informer.ConfigByCluster, o.GetName())
}

// ofInfraEnv maps by the label, else by the name that InfraEnv and config share. The label is missing if the name
// was too long for a label, or if another client removed the label of our InfraEnv.
func (r *Reconciler) ofInfraEnv(ctx context.Context, o client.Object) []ctrl.Request {
	label, labeled := o.GetLabels()[bootstrapv1.ConfigNameLabel]
	if !labeled && !writer.Wrote(o) {
		return nil
	}
	if requests := r.request(ctx, o.GetNamespace(), label); requests != nil {
		return requests
	}
	return r.request(ctx, o.GetNamespace(), o.GetName())
}

// ofAgent maps to the config whose image the Agent booted, and to the configs that wait for a host with its MAC
// addresses.
func (r *Reconciler) ofAgent(ctx context.Context, o client.Object) []ctrl.Request {
	agent, ok := o.(*aiv1beta1.Agent)
	if !ok {
		return nil
	}
	var requests []ctrl.Request
	infraEnv, err := kube.Read(ctx, r.Client, client.ObjectKey{Namespace: agent.Namespace, Name: facts.InfraEnvOf(agent)},
		&aiv1beta1.InfraEnv{})
	notMapped(ctx, err, "InfraEnv", facts.InfraEnvOf(agent))
	if infraEnv != nil {
		requests = r.ofInfraEnv(ctx, infraEnv)
	} else if machine, err := kube.Read(ctx, r.Client, client.ObjectKey{
		Namespace: agent.Namespace,
		Name:      facts.InfraEnvOf(agent),
	}, &clusterv1.Machine{}); err != nil {
		notMapped(ctx, err, "Machine", facts.InfraEnvOf(agent))
	} else if machine != nil {
		requests = r.ofMachine(ctx, machine) // the InfraEnv is deleted
	}
	for _, config := range r.claims.WaitingForAgent(agent) {
		requests = append(requests, ctrl.Request{NamespacedName: config}) // the handler drops duplicates
	}
	return requests
}

// hostChangesDelay is the delay with which a change reaches all configs without a host. While many hosts are
// assigned, each assignment concerns all waiting configs.
const hostChangesDelay = 5 * time.Second

// hostChanges reconciles the config of a changed host at once, and the configs that wait for a host after
// hostChangesDelay.
func (r *Reconciler) hostChanges() handler.EventHandler {
	return r.changesOf(r.ofHost, func(client.Object) bool { return true })
}

// infraMachineChanges reconciles the config of the Machine at once. Once the infrastructure machine needs no host
// anymore, it also reconciles the configs that wait for a host, after hostChangesDelay.
func (r *Reconciler) infraMachineChanges() handler.EventHandler {
	return r.changesOf(r.ofInfraMachine, func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
}

// changesOf reconciles at once the configs that an object maps to. If the object concerns the configs that wait for a
// host, it reconciles them after hostChangesDelay.
func (r *Reconciler) changesOf(mapped handler.MapFunc, concerns func(client.Object) bool) handler.EventHandler {
	type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]
	owner := handler.EnqueueRequestsFromMapFunc(mapped)
	waiting := func(o client.Object, queue requests) {
		if !concerns(o) {
			return
		}
		for _, config := range r.gatherer.WaitingForHost(o.GetNamespace()) {
			queue.AddAfter(ctrl.Request{NamespacedName: config}, hostChangesDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) {
			owner.Create(ctx, e, queue)
			waiting(e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			owner.Update(ctx, e, queue)
			waiting(e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) {
			owner.Delete(ctx, e, queue)
			waiting(e.Object, queue)
		},
	}
}

// ofHost maps to the config of the Machine that has the host, and to the configs that wait for the same server.
func (r *Reconciler) ofHost(ctx context.Context, o client.Object) []ctrl.Request {
	host, ok := o.(*metal3.Host)
	if !ok {
		return nil
	}
	var requests []ctrl.Request
	for _, config := range r.claims.WaitingForServer(host) {
		requests = append(requests, ctrl.Request{NamespacedName: config})
	}
	consumer := metal3.ConsumerOf(host)
	if consumer.Name == "" {
		return requests
	}
	return append(requests, r.ofInfraMachineNamed(ctx, consumer.Namespace, metal3.MachineKind, consumer.Name)...)
}

func (r *Reconciler) ofInfraMachine(ctx context.Context, o client.Object) []ctrl.Request {
	return r.ofInfraMachineNamed(ctx, o.GetNamespace(), o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
}

func (r *Reconciler) ofInfraMachineNamed(ctx context.Context, namespace, kind, name string) []ctrl.Request {
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(namespace),
		client.MatchingFields{informer.MachineByInfraMachine: kind + "/" + name}, client.UnsafeDisableDeepCopy); err != nil {
		notMapped(ctx, err, "Machines by", informer.MachineByInfraMachine)
		return nil
	}
	var requests []ctrl.Request
	for i := range machines.Items {
		requests = append(requests, r.ofMachine(ctx, &machines.Items[i])...)
	}
	return requests
}

// ofInstallation maps a ClusterDeployment or AgentClusterInstall, which has the name of the control plane.
func (r *Reconciler) ofInstallation(ctx context.Context, o client.Object) []ctrl.Request {
	clusters := &clusterv1.ClusterList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{informer.ClusterByControlPlane: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		notMapped(ctx, err, "Clusters by", informer.ClusterByControlPlane)
		return nil
	}
	var requests []ctrl.Request
	for i := range clusters.Items {
		requests = append(requests, r.ofCluster(ctx, &clusters.Items[i])...)
	}
	return requests
}

// ofNMStateConfig maps to the configs that select it.
func (r *Reconciler) ofNMStateConfig(ctx context.Context, o client.Object) []ctrl.Request {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := r.Client.List(ctx, list, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{informer.ConfigByNetworks: informer.Selecting}); err != nil {
		notMapped(ctx, err, "configs by", informer.ConfigByNetworks)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(list.Items[i].Spec.NMStateConfigLabelSelector)
		if err == nil && selector.Matches(labels.Set(o.GetLabels())) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// ofSecret maps pull secrets, certificate authorities and bootstrap data to their configs. It maps the credentials
// of BMCs to the configs of fenced hosts.
func (r *Reconciler) ofSecret(ctx context.Context, o client.Object) []ctrl.Request {
	requests := r.configs(ctx, o.GetNamespace(), informer.ConfigBySecret, o.GetName())
	for _, config := range r.fencing.WaitingFor(o.GetNamespace(), o.GetName()) {
		requests = append(requests, ctrl.Request{NamespacedName: config})
	}
	deployments := &hivev1.ClusterDeploymentList{}
	if err := r.Client.List(ctx, deployments, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{informer.DeploymentsByPullSecret: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		notMapped(ctx, err, "ClusterDeployments by", informer.DeploymentsByPullSecret)
		return requests
	}
	for i := range deployments.Items {
		requests = append(requests, r.ofInstallation(ctx, &deployments.Items[i])...)
	}
	return requests
}

// ofConfigMap maps certificate authorities and mirrors to their configs.
func (r *Reconciler) ofConfigMap(ctx context.Context, o client.Object) []ctrl.Request {
	requests := r.configs(ctx, o.GetNamespace(), informer.ConfigByConfigMap, o.GetName())
	list := &aiv1beta1.InfraEnvList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{informer.InfraEnvByMirrors: client.ObjectKeyFromObject(o).String()},
		client.UnsafeDisableDeepCopy); err != nil {
		notMapped(ctx, err, "InfraEnvs by", informer.InfraEnvByMirrors)
		return requests
	}
	for i := range list.Items {
		requests = append(requests, r.ofInfraEnv(ctx, &list.Items[i])...)
	}
	return requests
}
