package hostconfig

import (
	"context"
	"errors"
	"fmt"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// bareMetalHostCRD is the name of the CustomResourceDefinition that the Bare Metal Operator installs.
const bareMetalHostCRD = "baremetalhosts.metal3.io"

var errNotServed = errors.New("the API of BareMetalHosts is defined but not served yet")

// bareMetalHosts starts to watch BareMetalHosts if the Bare Metal Operator is installed after the start of this
// manager.
type bareMetalHosts struct {
	reconciler *Reconciler
	mapper     meta.RESTMapper
	// steps index BareMetalHosts, and start to watch them.
	steps *kube.Steps
}

// Reconcile is called for the CustomResourceDefinition of BareMetalHosts, by one worker.
func (b *bareMetalHosts) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if b.reconciler.metal3.Load() {
		return ctrl.Result{}, nil
	}
	definition, err := kube.Read(ctx, b.reconciler.Client, client.ObjectKey{Name: bareMetalHostCRD},
		kube.MetadataOf(kube.CustomResourceDefinition))
	if err != nil || definition == nil {
		return ctrl.Result{}, err
	}
	served, err := servesBareMetalHosts(b.mapper)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !served {
		// The definition exists a moment before its API is served, and no event reports the API.
		return ctrl.Result{}, errNotServed
	}
	if err := b.steps.Run(ctx); err != nil {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).Info("BareMetalHosts are served now: watching them")
	return ctrl.Result{}, nil
}

// reading returns a step that watches BareMetalHosts. Configs are reconciled with BareMetalHosts from its first event on.
func (b *bareMetalHosts) reading(watch func() error) func(context.Context) error {
	return func(context.Context) error {
		b.reconciler.metal3.Store(true)
		if err := watch(); err != nil {
			b.reconciler.metal3.Store(false)
			return fmt.Errorf("cannot watch BareMetalHosts: %w", err)
		}
		return nil
	}
}

// servesBareMetalHosts reports whether the API of the Bare Metal Operator is served.
func servesBareMetalHosts(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: metal3api.GroupVersion.Group, Kind: metal3.HostKind}, metal3api.GroupVersion.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot determine whether BareMetalHosts are served: %w", err)
	}
	return true, nil
}

// awaitBareMetalHosts adds the controller that notices a later installation of the Bare Metal Operator. c is the
// controller of the configs.
func (r *Reconciler) awaitBareMetalHosts(mgr ctrl.Manager, c controller.Controller) error {
	later := &bareMetalHosts{reconciler: r, mapper: mgr.GetRESTMapper()}
	later.steps = kube.NewSteps(
		func(ctx context.Context) error {
			return kube.AddIndexes(ctx, mgr.GetFieldIndexer(), informer.HostIndex())
		},
		later.reading(func() error {
			return c.Watch(source.Kind[client.Object](mgr.GetCache(), &metal3.Host{}, r.hostChanges(), informer.HostChanges))
		}),
	)
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == bareMetalHostCRD })
	err := ctrl.NewControllerManagedBy(mgr).Named("baremetalhosts").
		For(&apiextensionsv1.CustomResourceDefinition{}, builder.OnlyMetadata, builder.WithPredicates(ours)).
		Complete(later)
	if err != nil {
		return fmt.Errorf("cannot watch for the Bare Metal Operator: %w", err)
	}
	return nil
}
