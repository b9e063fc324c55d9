package plainmetal

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plainmetalv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/plainmetal/api/v1beta1"
)

// clusters reports to Cluster API that the infrastructure of a cluster exists.
type clusters struct{ client client.Client }

// Reconcile implements reconcile.Reconciler.
func (r *clusters) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, reterr error) {
	infra := &plainmetalv1.PlainMetalCluster{}
	if err := r.client.Get(ctx, req.NamespacedName, infra); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, err := util.GetOwnerCluster(ctx, r.client, infra.ObjectMeta)
	if err != nil || cluster == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if isPaused, again, err := paused.EnsurePausedCondition(ctx, r.client, cluster, infra); err != nil || isPaused || again {
		return ctrl.Result{}, err
	}
	helper, err := patch.NewHelper(infra, r.client)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot patch %s: %w", infra.Name, err)
	}
	defer func() { reterr = errors.Join(reterr, helper.Patch(ctx, infra)) }()
	if infra.Spec.ControlPlaneEndpoint.IsZero() {
		conditions.Set(infra, condition(metav1.ConditionFalse, "EndpointMissing", "set spec.controlPlaneEndpoint"))
		return ctrl.Result{}, nil
	}
	infra.Status.Initialization.Provisioned = ptr.To(true)
	conditions.Set(infra, condition(metav1.ConditionTrue, "Provisioned", ""))
	return ctrl.Result{}, nil
}
