package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
)

// namespaceVariable stands for the namespace of a cluster in a sample.
const namespaceVariable = "${NAMESPACE}"

// cluster is a cluster from a sample.
type cluster struct {
	hub  *hub
	key  types.NamespacedName
	rest []*unstructured.Unstructured
}

// Apply applies a sample. The command can neither withhold hosts from a cluster nor delay its installation.
func (h *hub) Apply(ctx context.Context, options conformance.ClusterOptions) (conformance.Cluster, error) {
	objects, err := readObjects(h.description.path(h.description.Samples[options.Sample]), func(content []byte) []byte {
		return bytes.ReplaceAll(content, []byte(namespaceVariable), []byte(options.Namespace))
	})
	if err != nil {
		return nil, err
	}
	c := &cluster{hub: h}
	for i := range objects {
		o := &objects[i]
		if o.GroupVersionKind().GroupKind() == clusterv1.GroupVersion.WithKind("Cluster").GroupKind() {
			c.key = types.NamespacedName{Namespace: options.Namespace, Name: o.GetName()}
		}
		o.SetNamespace(options.Namespace)
		if options.Edit != nil {
			options.Edit(o)
		}
		if options.Without != nil && options.Without(o) {
			c.rest = append(c.rest, o)
			continue
		}
		if err := h.apply(ctx, o); err != nil {
			return nil, err
		}
	}
	if c.key.Name == "" {
		return nil, fmt.Errorf("sample %s has no Cluster", options.Sample)
	}
	return c, nil
}

// Key returns namespace and name of the Cluster.
func (c *cluster) Key() types.NamespacedName { return c.key }

// ApplyRest applies the objects that were left out.
func (c *cluster) ApplyRest(ctx context.Context) error {
	for _, o := range c.rest {
		if err := c.hub.apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// Available waits until the Cluster reports that it is available and that no Machine is being added or replaced, and all
// its Machines are ready. The conditions of the Cluster alone may be those before the last change.
func (c *cluster) Available(ctx context.Context) error {
	missing := errors.New("nothing was read")
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		missing = c.missing(ctx)
		return missing == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cluster %s is not available: %w: %w", c.key, missing, err)
	}
	return nil
}

// missing returns what a cluster needs to be available.
func (c *cluster) missing(ctx context.Context) error {
	now := &clusterv1.Cluster{}
	if err := c.hub.client.Get(ctx, c.key, now); err != nil {
		return fmt.Errorf("cannot read it: %w", err)
	}
	for name, wanted := range map[string]metav1.ConditionStatus{
		clusterv1.ClusterAvailableCondition: metav1.ConditionTrue, clusterv1.ClusterScalingUpCondition: metav1.ConditionFalse,
		clusterv1.ClusterRollingOutCondition: metav1.ConditionFalse, clusterv1.ClusterRemediatingCondition: metav1.ConditionFalse,
	} {
		if err := expectCondition(now.Status.Conditions, name, wanted); err != nil {
			return err
		}
	}
	machines := &clusterv1.MachineList{}
	if err := c.hub.client.List(ctx, machines, client.InNamespace(c.key.Namespace)); err != nil {
		return fmt.Errorf("cannot list its Machines: %w", err)
	}
	for _, m := range machines.Items {
		if m.Spec.ClusterName != c.key.Name {
			continue
		}
		if err := expectCondition(m.Status.Conditions, clusterv1.MachineReadyCondition, metav1.ConditionTrue); err != nil {
			return fmt.Errorf("machine %s: %w", m.Name, err)
		}
	}
	return nil
}

func expectCondition(conditions []metav1.Condition, name string, wanted metav1.ConditionStatus) error {
	c := meta.FindStatusCondition(conditions, name)
	if c == nil {
		return fmt.Errorf("condition %s does not exist", name)
	}
	if c.Status != wanted {
		return fmt.Errorf("condition %s is %s: %s: %s", name, c.Status, c.Reason, c.Message)
	}
	return nil
}

// Upgrade does nothing: the version of the topology is enough for the provider.
func (*cluster) Upgrade(context.Context, string) error { return nil }

// Release does nothing: no installation is delayed.
func (*cluster) Release() {}

// Forget does nothing: the command has no resources of a cluster.
func (*cluster) Forget() {}

// AgeKubeconfig is not possible: each provider has its own record of the renewal.
func (*cluster) AgeKubeconfig(context.Context) error {
	return unsupported("make a kubeconfig due for renewal")
}

// RotateKubeconfig is not possible: each provider has its own source of the kubeconfig.
func (*cluster) RotateKubeconfig(context.Context) error { return unsupported("rotate a kubeconfig") }

// UsersKubeconfig is not possible: each provider has its own recommendation to users.
func (*cluster) UsersKubeconfig(context.Context) ([]byte, error) {
	return nil, unsupported("read the kubeconfig of users")
}

// Ignition is not possible: each provider has its own format of the bootstrap data.
func (*cluster) Ignition(context.Context, string) ([]byte, error) {
	return nil, unsupported("read what a host executes")
}

// Disturb is not possible: the command has no access to hosts.
func (*cluster) Disturb(context.Context, string) (func(context.Context) error, error) {
	return nil, unsupported("disturb a host")
}
