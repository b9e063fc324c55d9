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

// Unasked are the installed nodes that lost their disks though nobody had deleted their Machines: somebody edited what
// a host boots, or installed it again. The end looks well afterwards, as whoever did that goes on to install the host.
func (l *Lab) Unasked() []hosts.Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.unasked)
}

// judge keeps a loss that was not asked for.
func (l *Lab) judge(ctx context.Context, loss hosts.Loss) {
	if !loss.Again && isAskedFor(ctx, l.Client(), loss) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unasked = append(l.unasked, loss)
}

// isAskedFor reports whether a host may be taken from its node: its BareMetalHost or what consumes that is being
// deleted, or gone; without a BareMetalHost the Machine of the Node. An API that does not answer does not excuse it.
func isAskedFor(ctx context.Context, hub client.Reader, loss hosts.Loss) bool {
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
