// Package autoscaling states the capacity of the hosts of a MachineDeployment to the cluster autoscaler, if an
// annotation of the MachineDeployment requests it. Package capacity decides the capacity.
package autoscaling

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/capacity"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Options are the dependencies of a Reconciler.
type Options struct {
	// Client reads from caches, and writes.
	Client client.Client
	// Recorder emits Events on MachineDeployments.
	Recorder record.EventRecorder
	// Selected reports whether this manager reconciles an object (its watch filter).
	Selected func(client.Object) bool
	// Clock is the source of the time.
	Clock clock.PassiveClock
}

// Reconciler states the capacity of MachineDeployments.
type Reconciler struct {
	Options

	applier *apply.Applier
	// recent are the writes that the cache does not show yet.
	recent *reconcile.RecentWrites
	// reported are the last messages, by the UID of the MachineDeployment.
	reported *lru.Cache[types.UID, string]

	// watchTemplate watches a kind of templates.
	watchTemplate func(client.Object) error
	// hostWatches are the steps until BareMetalHosts and HardwareData are watched.
	hostWatches *kube.Steps
}

// maxReported is the number of MachineDeployments whose last message is known. Others repeat their Event.
const maxReported = 4096

// New returns a Reconciler.
func New(options Options) *Reconciler {
	options.Recorder = reconcile.LogEvents(options.Recorder, ctrl.Log.WithName("events"))
	return &Reconciler{
		Options: options, applier: apply.New(options.Client, writer.FieldOwner), recent: reconcile.NewRecentWrites(options.Clock),
		reported: lru.New[types.UID, string](maxReported), hostWatches: kube.NewSteps(),
	}
}

// Reconcile implements reconcile.Reconciler for MachineDeployments.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d, err := kube.Read(ctx, r.Client, req.NamespacedName, &clusterv1.MachineDeployment{})
	if err != nil || d == nil || !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	if responsible, err := r.responsible(ctx, d); err != nil || !responsible {
		return ctrl.Result{}, err
	}
	value, requested := d.Annotations[controlplanev1.AutoscalingCapacityAnnotation]
	decision := capacity.Decision{}
	if requested {
		if decision, err = r.decide(ctx, d, value); err != nil {
			return ctrl.Result{}, err
		}
	}
	again := reconcile.Requeue{}
	foreign, err := r.state(ctx, &again, d, decision.Capacity)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.report(d, decision, foreign)
	return reconcile.ResultAfter(again.Delay()), nil
}

// responsible reports whether the MachineDeployment belongs to a Cluster of this provider, and is not paused.
func (r *Reconciler) responsible(ctx context.Context, d *clusterv1.MachineDeployment) (bool, error) {
	cluster, err := kube.Read(ctx, r.Client, client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.ClusterName}, &clusterv1.Cluster{})
	if err != nil || cluster == nil {
		return false, err
	}
	ref := cluster.Spec.ControlPlaneRef
	ours := ref.APIGroup == controlplanev1.GroupVersion.Group && ref.Kind == facts.ControlPlaneKind
	return ours && r.Selected(d) && !annotations.IsPaused(cluster, d), nil
}

// decide reads the template and the hosts of a MachineDeployment, and returns its capacity.
func (r *Reconciler) decide(ctx context.Context, d *clusterv1.MachineDeployment, value string) (capacity.Decision, error) {
	ref := d.Spec.Template.Spec.InfrastructureRef
	switch {
	case value != controlplanev1.AutoscalingCapacityFromHardwareData:
		return capacity.UnknownValue(value), nil
	case ref.Kind != metal3.TemplateKind || !kube.Readable(ref):
		return capacity.OtherInfrastructure(ref.Kind), nil
	}
	template, err := r.template(ctx, d)
	if err != nil {
		return capacity.Decision{}, err
	}
	if template == nil {
		return capacity.NoTemplate(ref.Name), nil
	}
	if watching, err := r.ensureWatches(ctx); err != nil || !watching {
		return capacity.NoOperator(), err
	}
	hosts, data, err := r.hosts(ctx, d.Namespace)
	if err != nil {
		return capacity.Decision{}, err
	}
	return capacity.Of(template, hosts, data), nil
}

// template reads the infrastructure template of a MachineDeployment; nil if it does not exist.
func (r *Reconciler) template(ctx context.Context, d *clusterv1.MachineDeployment) (*unstructured.Unstructured, error) {
	template, err := kube.External(ctx, r.Client, d.Spec.Template.Spec.InfrastructureRef, d.Namespace)
	if err != nil || template == nil {
		return nil, err
	}
	if err := r.watchTemplate(kube.EmptyOf(template)); err != nil {
		return nil, err
	}
	return kube.Read(ctx, r.Client, client.ObjectKeyFromObject(template), template)
}

// hosts returns the BareMetalHosts of a namespace, and their HardwareData by name.
func (r *Reconciler) hosts(ctx context.Context, namespace string) ([]*metal3.Host, map[string]*metal3.HardwareData, error) {
	within := []client.ListOption{
		client.InNamespace(namespace), client.MatchingFields{informer.AllField: informer.All}, client.UnsafeDisableDeepCopy,
	}
	hosts, data := &metal3.HostList{}, &metal3.HardwareDataList{}
	if err := r.Client.List(ctx, hosts, within...); err != nil {
		return nil, nil, fmt.Errorf("cannot list BareMetalHosts: %w", err)
	}
	if err := r.Client.List(ctx, data, within...); err != nil {
		return nil, nil, fmt.Errorf("cannot list HardwareData: %w", err)
	}
	found, byName := make([]*metal3.Host, 0, len(hosts.Items)), make(map[string]*metal3.HardwareData, len(data.Items))
	for i := range hosts.Items {
		found = append(found, &hosts.Items[i])
	}
	slices.SortFunc(found, func(a, b *metal3.Host) int { return strings.Compare(a.Name, b.Name) })
	for i := range data.Items {
		byName[data.Items[i].Name] = &data.Items[i]
	}
	return found, byName, nil
}
