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
)

const (
	etcdNamespace = "openshift-etcd"
	quorumGuard   = "etcd-guard-pdb"
)

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// updatedTo reports whether a Node has a configuration, and is done with it.
func updatedTo(node *corev1.Node, config string) bool {
	a := node.Annotations
	return a[currentAnnotation] == config && a[desiredAnnotation] == config && a[stateAnnotation] == stateDone
}

// available reports whether a Node takes work.
func available(node *corev1.Node) bool {
	return ready(node) && !node.Spec.Unschedulable && updatedTo(node, node.Annotations[desiredAnnotation])
}

// updateNodes takes new Nodes into their pools, and gives the next ones of each pool the configuration that it has.
func (o *Operator) updateNodes(ctx context.Context, v *view) error {
	for _, name := range slices.Sorted(maps.Keys(v.pools)) {
		pool, members := v.pools[name], v.members(name)
		for _, node := range members {
			if err := o.attend(ctx, v, pool, node, members); err != nil {
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

// attend does what is to be done at a Node, whatever its pool is at.
func (o *Operator) attend(ctx context.Context, v *view, pool *machineconfigv1.MachineConfigPool, node *corev1.Node,
	members []*corev1.Node,
) error {
	current, desired := node.Annotations[currentAnnotation], node.Annotations[desiredAnnotation]
	switch {
	case current == "" && desired == "":
		config := joins(v, pool, members)
		node.Annotations = map[string]string{currentAnnotation: config, desiredAnnotation: config, stateAnnotation: stateDone}
		return o.patchNode(ctx, node.Name,
			map[string]any{currentAnnotation: config, desiredAnnotation: config, stateAnnotation: stateDone, reasonAnnotation: ""}, nil)
	case v.rendered[current] == "" || v.rendered[desired] == "":
		// What a test writes there.
	case current != desired:
		o.startUpdate(node.Name, desired)
	case ready(node) && node.Status.NodeInfo.KubeletVersion != v.kubelet(v.rendered[current]):
		return o.setKubelet(ctx, node.Name, v.kubelet(v.rendered[current]))
	}
	return nil
}

// joins is what the machine config server gives a Node that joins: the configuration that the pool goes to once one
// Node has it, else that which it comes from.
func joins(v *view, pool *machineconfigv1.MachineConfigPool, members []*corev1.Node) string {
	target, from := pool.Spec.Configuration.Name, pool.Status.Configuration.Name
	if v.rendered[from] == "" || slices.ContainsFunc(members, func(n *corev1.Node) bool { return updatedTo(n, target) }) {
		return target
	}
	return from
}

// next are the Nodes whose turn it is: as many as may be unavailable, which is one unless the pool says otherwise.
func (v *view) next(pool *machineconfigv1.MachineConfigPool, members []*corev1.Node) []*corev1.Node {
	if pool.Spec.Paused {
		return nil
	}
	capacity := 1
	if most := pool.Spec.MaxUnavailable; most != nil {
		capacity = max(capacity, most.IntValue())
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

// startUpdate gives a Node a configuration, once.
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
			o.options.Log.Info("gave up an update", "node", node, "reason", err.Error())
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.updating, node)
		o.poke()
	})
}

// update is what the machine-config-daemon of a Node does, and for the drain the controller.
func (o *Operator) update(ctx context.Context, node, config string) error {
	// Who asked for it may have seen the Node before it was updated.
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
	if err := o.whileBroken(ctx, node); err != nil {
		return err
	}
	if err := o.persist(ctx, node, map[string]any{stateAnnotation: stateRebooting, lastDrainAnnotation: "drain-" + config}, true); err != nil {
		return err
	}
	if err := o.reboot(ctx, node); err != nil {
		return err
	}
	if err := o.becomeReady(ctx, node); err != nil {
		return err
	}
	end := map[string]any{
		currentAnnotation: config, stateAnnotation: stateDone, reasonAnnotation: "",
		desiredDrainAnnotation: "uncordon-" + config, lastDrainAnnotation: "uncordon-" + config,
	}
	o.options.Log.Info("updated", "node", node, "config", config)
	return o.persist(ctx, node, end, false)
}

// drain waits until a Node may go: its pods take their time, and the quorum guard of etcd holds its member while another is away.
func (o *Operator) drain(ctx context.Context, node string) error {
	pause(ctx, o.options.Drain)
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		guard, pods := &policyv1.PodDisruptionBudget{}, &corev1.PodList{}
		err := o.api.Get(ctx, client.ObjectKey{Namespace: etcdNamespace, Name: quorumGuard}, guard)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err == nil {
			err = o.api.List(ctx, pods, client.InNamespace(etcdNamespace), client.MatchingLabels{"app": "etcd"})
		}
		if err != nil {
			return false, err
		}
		mine, others := false, 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			well := slices.ContainsFunc(pod.Status.Conditions,
				func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
			mine = mine || pod.Spec.NodeName == node
			if well && pod.Spec.NodeName != node {
				others++
			}
		}
		return !mine || guard.Spec.MinAvailable == nil || others >= guard.Spec.MinAvailable.IntValue(), nil
	})
}

// whileBroken keeps a Node degraded until it is mended.
func (o *Operator) whileBroken(ctx context.Context, node string) error {
	told := false
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		reason, broken := o.snapshot().broken[node]
		if !broken || told {
			return !broken, nil
		}
		err := o.patchNode(ctx, node, map[string]any{stateAnnotation: stateFail, reasonAnnotation: reason}, nil)
		told = err == nil
		return false, err
	})
}

func (o *Operator) reboot(ctx context.Context, node string) error {
	if o.options.Reboot == nil {
		if err := o.setReady(ctx, node, corev1.ConditionFalse, "KubeletNotReady"); err != nil {
			return err
		}
		pause(ctx, o.options.Away)
		return o.setReady(ctx, node, corev1.ConditionTrue, "KubeletReady")
	}
	return o.until(ctx, func(context.Context) (bool, error) {
		err := o.options.Reboot(ctx, node) // it may take longer than one look
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

func (o *Operator) becomeReady(ctx context.Context, name string) error {
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		node := &corev1.Node{}
		err := o.api.Get(ctx, client.ObjectKey{Name: name}, node)
		return err == nil && ready(node), err
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

// persist writes annotations, and whether the Node is cordoned, as soon as the API answers.
func (o *Operator) persist(ctx context.Context, node string, annotations map[string]any, cordoned bool) error {
	return o.until(ctx, func(ctx context.Context) (bool, error) {
		err := o.patchNode(ctx, node, annotations, &cordoned)
		return err == nil, err
	})
}

// patchNode writes annotations, and, unless it is nil, whether the Node is cordoned.
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

var errGone = errors.New("the Node is gone")

// until does something until it is done, the Node is gone or ctx ends: the API of a single node is away while that is rebooted.
func (o *Operator) until(ctx context.Context, done func(context.Context) (bool, error)) error {
	for {
		call, cancel := context.WithTimeout(ctx, acting)
		is, err := done(call)
		cancel()
		switch {
		case apierrors.IsNotFound(err):
			return errGone
		case err == nil && is:
			return nil
		case !pause(ctx, min(step, max(o.options.Away, time.Millisecond))):
			return context.Cause(ctx)
		}
	}
}
