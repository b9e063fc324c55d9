package versionoperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kuberetry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// updatedTo reports whether a Node has a configuration and completed its update.
func updatedTo(node *corev1.Node, config string) bool {
	a := node.Annotations
	return a[currentAnnotation] == config && a[desiredAnnotation] == config && a[stateAnnotation] == stateDone
}

// available reports whether a Node accepts Pods.
func available(node *corev1.Node) bool {
	return openshift.NodeReady(node) && !node.Spec.Unschedulable && updatedTo(node, node.Annotations[desiredAnnotation])
}

// updateNodes adds new Nodes to their pools, and sets the configuration of each pool on its next Nodes.
func (o *Operator) updateNodes(ctx context.Context, v *view) error {
	for _, name := range slices.Sorted(maps.Keys(v.pools)) {
		pool, members := v.pools[name], v.members(name)
		for _, node := range members {
			if err := o.syncNode(ctx, v, pool, node, members); err != nil {
				return err
			}
		}
		for _, node := range v.next(pool, members) {
			if err := o.patchNode(ctx, node.Name, map[string]any{desiredAnnotation: pool.Spec.Configuration.Name}, nil); err != nil {
				return err
			}
			o.startUpdate(node.Name, pool.Spec.Configuration.Name)
		}
	}
	return nil
}

// syncNode makes the step of a Node that does not depend on the state of its pool.
func (o *Operator) syncNode(ctx context.Context, v *view, pool *machineconfigv1.MachineConfigPool, node *corev1.Node,
	members []*corev1.Node,
) error {
	current, desired := node.Annotations[currentAnnotation], node.Annotations[desiredAnnotation]
	switch {
	case current == "" && desired == "":
		config := joinConfig(v, pool, members)
		node.Annotations = map[string]string{currentAnnotation: config, desiredAnnotation: config, stateAnnotation: stateDone}
		return o.patchNode(ctx, node.Name,
			map[string]any{currentAnnotation: config, desiredAnnotation: config, stateAnnotation: stateDone, reasonAnnotation: ""}, nil)
	case v.rendered[current] == "" || v.rendered[desired] == "":
		// A test wrote the configuration.
	case current != desired:
		o.startUpdate(node.Name, desired)
	case openshift.NodeReady(node) && node.Status.NodeInfo.KubeletVersion != v.kubelet(v.rendered[current]):
		return o.setKubelet(ctx, node.Name, v.kubelet(v.rendered[current]))
	}
	return nil
}

// joinConfig returns the configuration that the machine config server sends to a joining Node. It is the target of the
// pool if a Node has it, otherwise the former configuration.
func joinConfig(v *view, pool *machineconfigv1.MachineConfigPool, members []*corev1.Node) string {
	target, from := pool.Spec.Configuration.Name, pool.Status.Configuration.Name
	if v.rendered[from] == "" || slices.ContainsFunc(members, func(n *corev1.Node) bool { return updatedTo(n, target) }) {
		return target
	}
	return from
}

// next returns the Nodes to update now: at most maxUnavailable of the pool, by default one.
func (v *view) next(pool *machineconfigv1.MachineConfigPool, members []*corev1.Node) []*corev1.Node {
	if pool.Spec.Paused {
		return nil
	}
	capacity := 1
	if limit := pool.Spec.MaxUnavailable; limit != nil {
		capacity = max(capacity, limit.IntValue())
	}
	var outdated []*corev1.Node
	for _, node := range members {
		current := node.Annotations[currentAnnotation]
		switch {
		case v.rendered[current] == "":
		case !available(node):
			capacity--
		case current != pool.Spec.Configuration.Name:
			outdated = append(outdated, node)
		}
	}
	return outdated[:max(0, min(capacity, len(outdated)))]
}

// startUpdate starts the update of a Node, unless the Node is being updated.
func (o *Operator) startUpdate(node, config string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.updating[node] {
		return
	}
	o.updating[node] = true
	o.updates.Go(func() {
		err := o.update(o.life, node, config)
		if err != nil && o.life.Err() == nil {
			o.options.Log.Info("an update failed", "node", node, "reason", err.Error())
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.updating, node)
		o.wakeUp()
	})
}

// update updates a Node, as its machine-config-daemon does, and drains it, as the machine-config-controller does.
func (o *Operator) update(ctx context.Context, node, config string) error {
	// The caller may have read the Node before it was updated.
	done := false
	err := o.until(ctx, func(ctx context.Context) (bool, error) {
		found := &corev1.Node{}
		err := o.api.Get(ctx, client.ObjectKey{Name: node}, found)
		done = updatedTo(found, config)
		return err == nil, err
	})
	if done || err != nil {
		return err
	}
	o.options.Log.Info("updating", "node", node, "config", config)
	begin := map[string]any{stateAnnotation: stateWorking, reasonAnnotation: "", desiredDrainAnnotation: "drain-" + config}
	if err := o.persist(ctx, node, begin, true); err != nil {
		return err
	}
	if err := o.drain(ctx, node); err != nil {
		return err
	}
	if err := o.awaitRepair(ctx, node); err != nil {
		return err
	}
	if err := o.persist(ctx, node, map[string]any{stateAnnotation: stateRebooting, lastDrainAnnotation: "drain-" + config}, true); err != nil {
		return err
	}
	if err := o.reboot(ctx, node); err != nil {
		return err
	}
	if err := o.awaitReady(ctx, node); err != nil {
		return err
	}
	end := map[string]any{
		currentAnnotation: config, stateAnnotation: stateDone, reasonAnnotation: "",
		desiredDrainAnnotation: "uncordon-" + config, lastDrainAnnotation: "uncordon-" + config,
	}
	o.options.Log.Info("updated", "node", node, "config", config)
	return o.persist(ctx, node, end, false)
}

// drain waits until a Node is drained. The quorum guard of etcd blocks the drain of a member while another member is
// down.
func (o *Operator) drain(ctx context.Context, node string) error {
	openshift.Pause(ctx, o.options.Drain)
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		guard, pods := &policyv1.PodDisruptionBudget{}, &corev1.PodList{}
		err := o.api.Get(ctx, client.ObjectKey{Namespace: openshift.EtcdNamespace, Name: openshift.QuorumGuard}, guard)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err == nil {
			err = o.api.List(ctx, pods, client.InNamespace(openshift.EtcdNamespace), client.MatchingLabels{"app": openshift.EtcdApp})
		}
		if err != nil {
			return false, err
		}
		mine, others := false, 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			mine = mine || pod.Spec.NodeName == node
			if openshift.PodReady(pod) && pod.Spec.NodeName != node {
				others++
			}
		}
		return !mine || guard.Spec.MinAvailable == nil || others >= guard.Spec.MinAvailable.IntValue(), nil
	})
}

// awaitRepair reports a Node as degraded until it is repaired.
func (o *Operator) awaitRepair(ctx context.Context, node string) error {
	reported := false
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		reason, broken := o.snapshot().broken[node]
		if !broken || reported {
			return !broken, nil
		}
		err := o.patchNode(ctx, node, map[string]any{stateAnnotation: stateFail, reasonAnnotation: reason}, nil)
		reported = err == nil
		return false, err
	})
}

func (o *Operator) reboot(ctx context.Context, node string) error {
	if o.options.Reboot == nil {
		if err := o.setReady(ctx, node, corev1.ConditionFalse, "KubeletNotReady"); err != nil {
			return err
		}
		openshift.Pause(ctx, o.options.Away)
		return o.setReady(ctx, node, corev1.ConditionTrue, "KubeletReady")
	}
	return o.until(ctx, func(context.Context) (bool, error) {
		err := o.options.Reboot(ctx, node) // a reboot may take longer than requestTimeout
		return err == nil, err
	})
}

func (o *Operator) setReady(ctx context.Context, name string, status corev1.ConditionStatus, reason string) error {
	return o.changeStatus(ctx, name, func(node *corev1.Node) {
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions,
			func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: status, Reason: reason, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
		})
	})
}

func (o *Operator) awaitReady(ctx context.Context, name string) error {
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		err := o.api.Get(ctx, client.ObjectKey{Name: name}, node)
		return err == nil && openshift.NodeReady(node), err
	})
}

func (o *Operator) setKubelet(ctx context.Context, name, version string) error {
	return client.IgnoreNotFound(kuberetry.RetryOnConflict(kuberetry.DefaultRetry, func() error {
		node := &corev1.Node{}
		if err := o.api.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		node.Status.NodeInfo.KubeletVersion = version
		return o.api.Status().Update(ctx, node)
	}))
}

func (o *Operator) changeStatus(ctx context.Context, name string, change func(*corev1.Node)) error {
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		if err := o.api.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return false, err
		}
		change(node)
		err := o.api.Status().Update(ctx, node)
		return err == nil, err
	})
}

// persist writes annotations and whether a Node is cordoned, and retries until the API answers.
func (o *Operator) persist(ctx context.Context, node string, annotations map[string]any, cordoned bool) error {
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		err := o.patchNode(ctx, node, annotations, &cordoned)
		return err == nil, err
	})
}

// patchNode writes annotations, and whether a Node is cordoned unless cordoned is nil.
func (o *Operator) patchNode(ctx context.Context, name string, annotations map[string]any, cordoned *bool) error {
	fields := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if cordoned != nil {
		fields["spec"] = map[string]any{"unschedulable": *cordoned}
	}
	patch, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("cannot encode a patch of Node %s: %w", name, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return o.api.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch))
}

var errDeleted = errors.New("the Node was deleted")

// until retries until done returns true, the Node is deleted or ctx ends. The API of a single node fails during its
// reboot.
func (o *Operator) until(ctx context.Context, done func(context.Context) (bool, error)) error {
	for {
		call, cancel := context.WithTimeout(ctx, requestTimeout)
		is, err := done(call)
		cancel()
		switch {
		case apierrors.IsNotFound(err):
			return errDeleted
		case err == nil && is:
			return nil
		case !openshift.Pause(ctx, min(pollInterval, max(o.options.Away, time.Millisecond))):
			return context.Cause(ctx)
		}
	}
}
