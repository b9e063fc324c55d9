package etcdoperator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	guardLabel  = "guard"
	guardPrefix = "etcd-guard-"
)

// guard publishes the quorum guard: a Pod for each Node, which is Ready while the member of the Node serves, and a
// PodDisruptionBudget over these Pods. So an eviction, and with it a drain, is refused while too few members serve
// (library-go, pkg/operator/staticpod/controller/guard).
func (o *Operator) guard(ctx context.Context, v *view) error {
	for i := range v.nodes {
		if err := o.guardNode(ctx, v, &v.nodes[i]); err != nil {
			return err
		}
	}
	if err := o.removeGuards(ctx, v); err != nil {
		return err
	}
	return o.publishBudget(ctx, v)
}

// guardNode makes the guard Pod of a Node and sets whether it is Ready. A Node that is cordoned gets none; one that it has stays.
func (o *Operator) guardNode(ctx context.Context, v *view, node *corev1.Node) error {
	found := v.guards[node.Name]
	if found == nil {
		if node.Spec.Unschedulable {
			return nil
		}
		found = guardPod(node)
		if err := o.api.Create(ctx, found); err != nil {
			return fmt.Errorf("cannot create pod %s: %w", found.Name, err)
		}
		v.guards[node.Name] = found
	}
	before, ready := found.DeepCopy(), v.serves(node)
	setPodStatus(found, internalIP(node), ready)
	if before.Status.Phase == found.Status.Phase && podReady(before) == ready {
		return nil
	}
	if err := o.api.Status().Patch(ctx, found, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of pod %s: %w", found.Name, err)
	}
	return nil
}

// serves reports whether the member of a Node answers and votes.
func (v *view) serves(node *corev1.Node) bool {
	m := v.memberAt(internalIP(node))
	return m != nil && m.healthy && !m.IsLearner
}

func guardPod(node *corev1.Node) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named(guardPrefix + node.Name)}
	p.Labels = map[string]string{"app": guardLabel}
	p.Spec = corev1.PodSpec{
		NodeName: node.Name, PriorityClassName: "system-cluster-critical", AutomountServiceAccountToken: new(bool),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, // the Node may be unreachable for any time
		Containers:  []corev1.Container{{Name: guardLabel, Image: "quay.io/openshift-release-dev/ocp-v4.0-art-dev:cli"}},
	}
	return p
}

// removeGuards removes guard Pods of Nodes that do not exist any more, and, as kubelets do, those that were evicted:
// that of a host that is off stays.
func (o *Operator) removeGuards(ctx context.Context, v *view) error {
	for name, found := range v.guards {
		evicted := !found.DeletionTimestamp.IsZero() && o.options.Etcd.On(name)
		if v.node(name) != nil && !evicted {
			continue
		}
		if err := o.api.Delete(ctx, found, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot remove pod %s: %w", found.Name, err)
		}
		delete(v.guards, name)
	}
	return nil
}

// budget is what the PodDisruptionBudget of the guard Pods says.
type budget struct{ Nodes, Pods, Healthy int32 }

// publishBudget writes the PodDisruptionBudget, and its status, which no disruption controller computes here.
// unhealthyPodEvictionPolicy is unset, as in the real one: an unready Pod is evicted only while enough others are
// Ready.
func (o *Operator) publishBudget(ctx context.Context, v *view) error {
	b := budget{Nodes: int32(len(v.nodes)), Pods: int32(len(v.guards))}
	for _, guard := range v.guards {
		if podReady(guard) && guard.DeletionTimestamp.IsZero() {
			b.Healthy++
		}
	}
	wanted := max(b.Nodes-1, 0)
	return o.once("the budget of the quorum guard", b, func() error {
		pdb := &policyv1.PodDisruptionBudget{ObjectMeta: named("etcd-guard-pdb")}
		if _, err := controllerutil.CreateOrUpdate(ctx, o.api, pdb, func() error {
			available := intstr.FromInt32(wanted)
			pdb.Spec.MinAvailable, pdb.Spec.Selector = &available, &metav1.LabelSelector{MatchLabels: map[string]string{"app": guardLabel}}
			return nil
		}); err != nil {
			return err
		}
		pdb.Status = policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: pdb.Generation, ExpectedPods: b.Pods, DesiredHealthy: wanted, CurrentHealthy: b.Healthy,
			DisruptionsAllowed: max(b.Healthy-wanted, 0),
		}
		return o.api.Status().Update(ctx, pdb)
	})
}
