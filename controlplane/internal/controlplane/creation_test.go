package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// refusing makes the creation of infra machines, or the ownership of their template, fail.
func (h *hub) refusing(template bool, err error) {
	h.cached.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, infra := obj.(*unstructured.Unstructured); infra && !template {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if obj.GetName() == "hosts" && template {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
}

// created returns the condition MachinesCreated after a reconcile at a time. The reconcile may fail.
func (h *hub) created(at time.Time) *metav1.Condition {
	h.t.Helper()
	h.clock.now = func() time.Time { return at }
	_, _ = h.r.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
	return conditions.Get(h.controlPlane(), controlplanev1.MachinesCreatedCondition)
}

func TestTransientErrorIsNoFailureOfACreationAtOnce(t *testing.T) {
	machines := schema.GroupResource{Group: infraGV.Group, Resource: "hostmachines"}
	for situation, tc := range map[string]struct {
		err     error
		passing bool
	}{
		"a webhook restarts": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "default.metal3machine": connection refused`)), true,
		},
		"a conflict":           {apierrors.NewConflict(machines, "m", errors.New("changed")), true},
		"a quota is used up":   {apierrors.NewForbidden(machines, "m", errors.New("exceeded quota: q")), true},
		"a right is missing":   {apierrors.NewForbidden(machines, "m", errors.New("no RBAC policy matched")), false},
		"the kind is unknown":  {errors.New("no matches for kind"), false},
		"no answer in time":    {apierrors.NewTimeoutError("etcd", 1), true},
		"the server is closed": {apierrors.NewServiceUnavailable("starting"), true},
	} {
		for part, template := range map[string]bool{"infra machine": false, "template": true} {
			t.Run(situation+", "+part, func(t *testing.T) {
				h := newHub(t, world(nil)...)
				now := time.Now()
				h.refusing(template, tc.err)
				if !tc.passing {
					h.Expect(h.created(now)).To(HaveField("Reason", controlplanev1.MachineCreationFailedReason))
					return
				}
				for _, at := range []time.Duration{0, kube.TransientPeriod - time.Second} {
					h.Expect(h.created(now.Add(at))).To(
						And(
							HaveField("Reason", clusterv1.ScalingUpReason),
							HaveField("Message", And(HavePrefix("Machines not created yet: "), ContainSubstring(tc.err.Error()))),
						),
					)
				}
				h.Expect(h.created(now.Add(kube.TransientPeriod))).To(
					And(HaveField("Reason", controlplanev1.MachineCreationFailedReason), HaveField("Message", ContainSubstring(tc.err.Error()))),
				)
			})
		}
	}
}

// An error that ended does not count when it occurs again.
func TestTransientErrorEndsWithTheCreation(t *testing.T) {
	h := newHub(t, world(nil)...)
	now := time.Now()
	conflict := apierrors.NewConflict(corev1.Resource("x"), "m", errors.New("changed"))
	h.refusing(false, conflict)
	h.Expect(h.created(now)).To(HaveField("Reason", clusterv1.ScalingUpReason))
	h.cached.Client = h.Client
	h.Expect(h.created(now.Add(time.Minute))).To(HaveField("Status", metav1.ConditionTrue))
	h.created(now.Add(time.Hour))
	h.Expect(h.r.creator.Failing.Since(reconcile.Key("creation", h.controlPlane()))).To(Equal(now.Add(time.Hour)), "the period starts again")
}
