package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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

// Apply applies a sample. The command can neither keep hosts from a cluster nor delay its installation.
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

// Available waits until the Cluster reports that it is available and that no Machine is being added or replaced.
func (c *cluster) Available(ctx context.Context) error {
	var now *clusterv1.Cluster
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		now, err = c.read(ctx)
		return err == nil && isInstalled(now), nil
	})
	if err != nil && now != nil {
		return fmt.Errorf("cluster %s is not available: %v: %w", c.key, now.Status.Conditions, err)
	}
	return err
}

func (c *cluster) read(ctx context.Context) (*clusterv1.Cluster, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	if err := c.hub.client.Get(ctx, c.key, o); err != nil {
		return nil, fmt.Errorf("cannot read Cluster %s: %w", c.key, err)
	}
	now := &clusterv1.Cluster{}
	return now, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, now)
}

// isInstalled reports whether all Machines of a Cluster run.
func isInstalled(now *clusterv1.Cluster) bool {
	for name, wanted := range map[string]metav1.ConditionStatus{
		clusterv1.ClusterAvailableCondition: metav1.ConditionTrue, clusterv1.ClusterScalingUpCondition: metav1.ConditionFalse,
		clusterv1.ClusterRollingOutCondition: metav1.ConditionFalse, clusterv1.ClusterRemediatingCondition: metav1.ConditionFalse,
	} {
		if c := meta.FindStatusCondition(now.Status.Conditions, name); c == nil || c.Status != wanted {
			return false
		}
	}
	return true
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
