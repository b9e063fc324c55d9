package controlplane

import (
	"context"
	"fmt"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// SetupWithManager makes the manager reconcile a control plane when an object on which it depends changes. Objects of no
// control plane of this provider trigger nothing.
func (r *Reconciler) SetupWithManager(
	ctx context.Context, mgr manager.Manager, options controller.Options, clusters *cluster.Clusters,
) error {
	if err := kube.AddIndexes(ctx, mgr.GetFieldIndexer(), informer.Indexes()...); err != nil {
		return err
	}
	options.RateLimiter = r.retries
	mapped := handler.EnqueueRequestsFromMapFunc
	deploymentChanges, setChanges := informer.OwnerChanges[*clusterv1.MachineDeployment](), informer.OwnerChanges[*clusterv1.MachineSet]()
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&controlplanev1.OpenshiftAssistedControlPlane{}).
		WithOptions(options).
		Watches(&clusterv1.Cluster{}, mapped(ofCluster), builder.WithPredicates(informer.ClusterChanges)).
		Watches(&clusterv1.Machine{}, mapped(r.ofMember), builder.WithPredicates(informer.MachineChanges)).
		Watches(&clusterv1.MachineDeployment{}, mapped(r.ofMember), builder.WithPredicates(deploymentChanges)).
		Watches(&clusterv1.MachineSet{}, mapped(r.ofMember), builder.WithPredicates(setChanges)).
		Watches(&clusterv1.MachineDrainRule{}, mapped(r.ofDrainRule), builder.WithPredicates(informer.DrainRuleChanges)).
		Watches(&hivev1.ClusterDeployment{}, mapped(r.ofSameName), builder.WithPredicates(informer.DeploymentChanges)).
		Watches(&hiveext.AgentClusterInstall{}, mapped(r.ofSameName)).
		Watches(&hivev1.ClusterImageSet{}, mapped(r.ofImageSet)).
		Watches(&aiv1beta1.Agent{}, mapped(r.ofAgent), builder.WithPredicates(informer.AgentChanges)).
		WatchesMetadata(kube.MetadataOf(kube.Secret), mapped(r.ofSecret)).
		WatchesMetadata(kube.MetadataOf(kube.ConfigMap), mapped(r.ofConfigMap)).
		WatchesRawSource(source.Channel(r.wake, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(clusters.Source()).
		Build(reconcile.TolerateConflicts(r))
	if err != nil {
		return fmt.Errorf("cannot set up the controller: %w", err)
	}
	r.creator.Watch = kube.Tracker(mgr.GetCache(), c, r.ofTemplate, informer.TemplateChanges)
	r.trackReboots = kube.Tracker(mgr.GetCache(), c, r.ofReboot, informer.RebootChanges)
	return nil
}

// ClustersOf returns a function that reports whether a Cluster has a selected control plane.
func ClustersOf(c client.Reader, selected func(client.Object) bool) func(context.Context, *clusterv1.Cluster) (bool, error) {
	return func(ctx context.Context, cluster *clusterv1.Cluster) (bool, error) {
		named := controlPlaneOf(cluster)
		if len(named) == 0 {
			return false, nil
		}
		cp, err := kube.Read(ctx, c, named[0].NamespacedName, &controlplanev1.OpenshiftAssistedControlPlane{})
		return err == nil && cp != nil && selected(cp), err
	}
}

// InstalledBy returns a function that reports whether the status of the control plane of a Cluster is installed.
func InstalledBy(c client.Reader) func(context.Context, *clusterv1.Cluster) bool {
	return func(ctx context.Context, cluster *clusterv1.Cluster) bool {
		cp := &controlplanev1.OpenshiftAssistedControlPlane{}
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
		return c.Get(ctx, key, cp, client.UnsafeDisableDeepCopy) == nil && cp.Status.Installation.Phase == controlplanev1.InstallationInstalled
	}
}

// RequestsOf returns a function that maps a Cluster to its control plane.
func RequestsOf(c client.Reader) cluster.RequestsFunc {
	return func(ctx context.Context, cluster client.ObjectKey) []ctrl.Request {
		found := &clusterv1.Cluster{}
		if err := client.IgnoreNotFound(c.Get(ctx, cluster, found, client.UnsafeDisableDeepCopy)); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot read the Cluster", "Cluster", cluster)
		}
		return controlPlaneOf(found)
	}
}

// controlPlaneOf returns the control plane that a Cluster names, if it has the kind of this provider.
func controlPlaneOf(cluster *clusterv1.Cluster) []ctrl.Request {
	ref := cluster.Spec.ControlPlaneRef
	if ref.APIGroup != controlplanev1.GroupVersion.Group || ref.Kind != facts.ControlPlaneKind {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}}}
}

func requestsBy(ctx context.Context, c client.Reader, namespace, field, value string) []ctrl.Request {
	if value == "" {
		return nil
	}
	list := &controlplanev1.OpenshiftAssistedControlPlaneList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list control planes", "by", field)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

func ofCluster(_ context.Context, obj client.Object) []ctrl.Request {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok {
		return nil
	}
	return controlPlaneOf(cluster)
}

// ofMember maps Machines and their sets.
func (r *Reconciler) ofMember(ctx context.Context, obj client.Object) []ctrl.Request {
	cluster := ""
	switch o := obj.(type) {
	case *clusterv1.Machine:
		cluster = o.Spec.ClusterName
	case *clusterv1.MachineDeployment:
		cluster = o.Spec.ClusterName
	case *clusterv1.MachineSet:
		cluster = o.Spec.ClusterName
	}
	return RequestsOf(r.Client)(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: cluster})
}

// ofReboot maps Metal3Remediations, which have the names of Machines.
func (r *Reconciler) ofReboot(ctx context.Context, obj client.Object) []ctrl.Request {
	m := &clusterv1.Machine{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(obj), m, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return r.ofMember(ctx, m)
}

// ofSameName maps objects that have the name of their control plane.
func (r *Reconciler) ofSameName(ctx context.Context, obj client.Object) []ctrl.Request {
	return r.ifExists(ctx, client.ObjectKeyFromObject(obj))
}

// ofDrainRule maps a MachineDrainRule to the control plane that gives its rule this name. The rule may be foreign: once
// it is deleted, the control plane creates its own.
func (r *Reconciler) ofDrainRule(ctx context.Context, rule client.Object) []ctrl.Request {
	controlPlane, ok := strings.CutSuffix(rule.GetName(), desired.DrainRuleSuffix)
	if !ok {
		return nil
	}
	return r.ifExists(ctx, client.ObjectKey{Namespace: rule.GetNamespace(), Name: controlPlane})
}

func (r *Reconciler) ifExists(ctx context.Context, key client.ObjectKey) []ctrl.Request {
	if err := r.Client.Get(ctx, key, &controlplanev1.OpenshiftAssistedControlPlane{}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
}

func (r *Reconciler) ofImageSet(ctx context.Context, obj client.Object) []ctrl.Request {
	requests := requestsBy(ctx, r.Client, "", informer.ImageSetField, obj.GetName())
	if namespace, name, ok := strings.Cut(obj.GetAnnotations()[facts.OwnerAnnotation], "/"); ok {
		requests = append(requests, r.ifExists(ctx, client.ObjectKey{Namespace: namespace, Name: name})...)
	}
	return requests
}

func (r *Reconciler) ofAgent(ctx context.Context, obj client.Object) []ctrl.Request {
	agent, ok := obj.(*aiv1beta1.Agent)
	if !ok {
		return nil
	}
	var requests []ctrl.Request
	for _, name := range informer.ClusterOfAgent(agent) {
		requests = append(requests, r.ifExists(ctx, client.ObjectKey{Namespace: agent.Namespace, Name: name})...)
	}
	if ref := agent.Spec.ClusterDeploymentName; len(informer.ForeignClusterOfAgent(agent)) > 0 {
		requests = append(requests, r.ifExists(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})...)
	}
	return requests
}

func (r *Reconciler) ofTemplate(ctx context.Context, obj client.Object) []ctrl.Request {
	key := informer.TemplateKey(obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName())
	return requestsBy(ctx, r.Client, obj.GetNamespace(), informer.InfraTemplateField, key)
}

// ofSecret maps Secrets: ours by owner, pull secrets by reference, kubeconfigs of assisted-service by reference, and
// kubeconfigs of users by name.
func (r *Reconciler) ofSecret(ctx context.Context, obj client.Object) []ctrl.Request {
	var requests []ctrl.Request
	if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == facts.ControlPlaneKind {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}})
	}
	requests = append(requests, requestsBy(ctx, r.Client, obj.GetNamespace(), informer.PullSecretField, obj.GetName())...)
	if cluster, purpose, err := secret.ParseSecretName(obj.GetName()); err == nil && purpose == secret.Kubeconfig {
		requests = append(requests, RequestsOf(r.Client)(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: cluster})...)
	}
	installs := &hiveext.AgentClusterInstallList{}
	named := client.MatchingFields{informer.AdminSecretField: obj.GetName()}
	err := r.Client.List(ctx, installs, client.InNamespace(obj.GetNamespace()), named, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list AgentClusterInstalls")
	}
	for i := range installs.Items {
		requests = append(requests, r.ifExists(ctx, client.ObjectKeyFromObject(&installs.Items[i]))...)
	}
	return requests
}

func (r *Reconciler) ofConfigMap(ctx context.Context, obj client.Object) []ctrl.Request {
	return requestsBy(ctx, r.Client, obj.GetNamespace(), informer.ConfigMapField, obj.GetName())
}
