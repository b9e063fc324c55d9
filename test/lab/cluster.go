package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// interval is the interval of polls of the management cluster.
const interval = 500 * time.Millisecond

// Metal3MachineKind is the kind of CAPM3's infra machines, which the lab handles as unstructured objects.
var Metal3MachineKind = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "Metal3Machine"}

// Cluster is a cluster that was applied from a sample or created by a test.
type Cluster struct {
	// Namespace and Name of the Cluster, its control plane, its ClusterDeployment and its AgentClusterInstall.
	Namespace, Name string
	// Sample is the name of the sample; empty without sample.
	Sample string
	// Hosts are the BareMetalHosts of the cluster at their creation.
	Hosts []*metal3api.BareMetalHost

	lab      *Lab
	workload *workload
	// applied are the applied objects of the sample, rest the objects that are not applied yet.
	applied, rest []*unstructured.Unstructured
}

// NewCluster reserves the API server of a cluster without objects. Hosts start the API server after
// [Cluster.ReleaseAPI].
func (l *Lab) NewCluster(key types.NamespacedName) (*Cluster, error) {
	return l.newCluster(key, false)
}

func (l *Lab) newCluster(key types.NamespacedName, light bool) (*Cluster, error) {
	workload, err := l.reserveWorkload(key, light)
	if err != nil {
		return nil, err
	}
	return &Cluster{lab: l, workload: workload, Namespace: key.Namespace, Name: key.Name}, nil
}

// TakeOver adds a cluster of another lab, whose objects are being moved here, to this lab: its API server and
// its machines. It creates the namespace.
func (l *Lab) TakeOver(ctx context.Context, c *Cluster) (*Cluster, error) {
	if err := l.EnsureNamespace(ctx, c.Namespace); err != nil {
		return nil, err
	}
	if err := l.ensureCA(ctx, c.Namespace); err != nil {
		return nil, err
	}
	c.lab.Rack.HandOver(l.Rack, c.Namespace)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workloads[c.Key()] = c.workload
	c.workload.mu.Lock()
	c.workload.rack = l.Rack
	c.workload.mu.Unlock()
	moved := *c
	moved.lab = l
	return &moved, nil
}

// Key returns namespace and name of the cluster.
func (c *Cluster) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// ApplyRest applies the objects that [Mutations.Without] left out.
func (c *Cluster) ApplyRest(ctx context.Context) error {
	for _, object := range c.rest {
		if err := c.lab.Apply(ctx, object); err != nil {
			return err
		}
	}
	c.applied, c.rest = append(c.applied, c.rest...), nil
	return nil
}

// ReleaseAPI lets hosts start the API of the cluster, see [Mutations.HoldAPI].
func (c *Cluster) ReleaseAPI() { c.workload.release.Do(func() { close(c.workload.held) }) }

// Wait polls the cluster until done returns true. If ctx ends before, the error lists the unmet conditions.
//
// Reading a cluster takes ten requests, and many waits run in parallel. So Wait reads the cache until done
// returns true, and then the API server. The cache may be older than the caller's last change.
func (c *Cluster) Wait(ctx context.Context, what string, done func(*State) bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !c.isDone(ctx, done, c.lab.watched, c.lab.Client()) {
		if failure := c.lab.Failure(); failure != nil {
			return failure
		}
		select {
		case <-ctx.Done():
			return c.Explain(fmt.Errorf("cluster %s is not %s: %w", c.Key(), what, context.Cause(ctx)))
		case <-tick.C:
		}
	}
	return nil
}

// isDone reports whether done returns true for the state in each API, in order. It reads an API only after done
// was true for the previous one.
func (c *Cluster) isDone(ctx context.Context, done func(*State) bool, apis ...client.Reader) bool {
	for _, api := range apis {
		if state, err := c.stateIn(ctx, api); err != nil || !done(state) {
			return false
		}
	}
	return true
}

// explainTimeout is the timeout for reading the unmet conditions of a cluster.
const explainTimeout = 10 * time.Second

// Explain adds the unmet conditions of the cluster to an error, which may be the end of a context.
func (c *Cluster) Explain(err error) error {
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), explainTimeout)
	defer cancel()
	state, problem := c.State(ctx)
	if problem != nil {
		return errors.Join(err, problem)
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(state.Waiting(), "\n"))
}

// WaitAvailable waits until the Cluster is Available and all its Machines run.
func (c *Cluster) WaitAvailable(ctx context.Context) error {
	return c.Wait(ctx, "available", (*State).Available)
}

// Workload returns an administrator's client of the installed cluster. It returns an error before the API was
// started.
func (c *Cluster) Workload() (client.Client, error) { return c.workload.running() }

// WorkloadAs returns a client of the installed cluster that impersonates a user.
func (c *Cluster) WorkloadAs(ctx context.Context, user rest.ImpersonationConfig) (client.Client, error) {
	return c.lab.workloadClientAs(ctx, c.Namespace, c.Name, user)
}

// Server returns the API server of the installed cluster.
func (c *Cluster) Server() *env.WorkloadCluster { return c.workload.server }

// Kubeconfig reads the kubeconfig that the control plane provider published.
func (c *Cluster) Kubeconfig(ctx context.Context) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := c.lab.Client().Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Name + "-kubeconfig"}, secret); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of %s: %w", c.Key(), err)
	}
	return secret.Data["value"], nil
}

// WriteKubeconfig writes that kubeconfig to the folder of the logs and returns its path.
func (c *Cluster) WriteKubeconfig(ctx context.Context) (string, error) {
	kubeconfig, err := c.Kubeconfig(ctx)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.lab.Dir(), fmt.Sprintf("%s-%s.kubeconfig", c.Namespace, c.Name))
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return "", fmt.Errorf("cannot write the kubeconfig of %s: %w", c.Key(), err)
	}
	return path, nil
}

// Scale sets the number of Machines of the cluster's MachineDeployment.
func (c *Cluster) Scale(ctx context.Context, replicas int32) error {
	deployments := &clusterv1.MachineDeploymentList{}
	if err := c.lab.Client().List(ctx, deployments, c.ours()...); err != nil {
		return fmt.Errorf("cannot list the MachineDeployments of %s: %w", c.Key(), err)
	}
	if len(deployments.Items) != 1 {
		return fmt.Errorf("cluster %s has %d MachineDeployments", c.Key(), len(deployments.Items))
	}
	deployment := &deployments.Items[0]
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = &replicas
	if err := c.lab.Client().Patch(ctx, deployment, before); err != nil {
		return fmt.Errorf("cannot scale the workers of %s: %w", c.Key(), err)
	}
	return nil
}

// ScaleControlPlane sets the number of control-plane Machines.
func (c *Cluster) ScaleControlPlane(ctx context.Context, replicas int32) error {
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := c.lab.Client().Patch(ctx, controlPlane, patch); err != nil {
		return fmt.Errorf("cannot scale the control plane of %s: %w", c.Key(), err)
	}
	return nil
}

// FreeHosts returns the number of the cluster's hosts that are available and have no consumer.
func (c *Cluster) FreeHosts(ctx context.Context) (int, error) {
	list := &metal3api.BareMetalHostList{}
	if err := c.lab.Client().List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return 0, fmt.Errorf("cannot list the BareMetalHosts of %s: %w", c.Key(), err)
	}
	free := 0
	for i := range list.Items {
		if host := &list.Items[i]; host.Spec.ConsumerRef == nil && host.Status.Provisioning.State == metal3api.StateAvailable {
			free++
		}
	}
	return free, nil
}

// DeleteMachine deletes a Machine without waiting.
func (c *Cluster) DeleteMachine(ctx context.Context, m Machine) error {
	if err := c.lab.Client().Delete(ctx, m.Machine.DeepCopy()); err != nil {
		return fmt.Errorf("cannot delete Machine %s: %w", m.Name, err)
	}
	return nil
}

// Pause sets or clears spec.paused of the Cluster.
func (c *Cluster) Pause(ctx context.Context, paused bool) error {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	patch := fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused)
	if err := c.lab.Client().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("cannot pause %s: %w", c.Key(), err)
	}
	return nil
}

// Delete deletes the Cluster, waits until it no longer exists, and stops its API server.
func (c *Cluster) Delete(ctx context.Context) error {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	if err := c.lab.Client().Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete %s: %w", c.Key(), err)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := c.lab.Client().Get(ctx, c.Key(), cluster)
		if apierrors.IsNotFound(err) {
			c.workload.stop()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster %s still exists: %w: %s", c.Key(), context.Cause(ctx),
				messages(cluster.Status.Conditions, clusterv1.ClusterDeletingCondition))
		case <-tick.C:
		}
	}
}

// ours returns options that select the objects with the label of the cluster.
func (c *Cluster) ours() []client.ListOption {
	return []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}}
}
