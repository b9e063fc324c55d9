package lab

import (
	"context"
	"slices"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// UnrequestedLosses returns the installed Nodes whose disks were wiped although their Machines were not
// deleted. Another client may have changed the host's image or installed it again. The final state hides such a
// loss, because the host is installed again.
func (l *Lab) UnrequestedLosses() []hosts.Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.unrequested)
}

// judge records a loss that was not requested.
func (l *Lab) judge(ctx context.Context, loss hosts.Loss) {
	if !loss.Again && isRequested(ctx, l.Client(), loss) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unrequested = append(l.unrequested, loss)
}

// isRequested reports whether the user requested the loss: the BareMetalHost or its consumer is being deleted
// or no longer exists. Without a BareMetalHost, the Machine of the Node counts. An unreachable API server does
// not excuse a loss.
func isRequested(ctx context.Context, hub client.Reader, loss hosts.Loss) bool {
	if loss.Key.Name == "" {
		machines := &clusterv1.MachineList{}
		err := hub.List(ctx, machines, client.InNamespace(loss.Cluster.Namespace))
		return err == nil && !slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool {
			return m.Status.NodeRef.Name == loss.Node && m.DeletionTimestamp.IsZero()
		})
	}
	host := &metal3api.BareMetalHost{}
	if err := hub.Get(ctx, loss.Key, host); err != nil {
		return apierrors.IsNotFound(err)
	}
	consumer := host.Spec.ConsumerRef
	if !host.DeletionTimestamp.IsZero() || consumer == nil {
		return true
	}
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(Metal3MachineKind)
	if err := hub.Get(ctx, types.NamespacedName{Namespace: consumer.Namespace, Name: consumer.Name}, machine); err != nil {
		return apierrors.IsNotFound(err)
	}
	return machine.GetDeletionTimestamp() != nil
}
