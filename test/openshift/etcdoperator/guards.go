package etcdoperator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

const (
	// guardApp is the label app of guard Pods.
	guardApp    = "guard"
	guardPrefix = "etcd-guard-"
)

// guard publishes the quorum guard: a Pod for each Node, and the PodDisruptionBudget of these Pods. A Pod is Ready while
// the member of its Node serves. The API server refuses evictions, and so drains, while too few members serve
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

// guardNode creates the guard Pod of a Node and sets its readiness. A cordoned Node keeps its Pod, and gets none.
func (o *Operator) guardNode(ctx context.Context, v *view, node *corev1.Node) error {
	found := v.guards[node.Name]
	if found == nil {
		if node.Spec.Unschedulable {
			return nil
		}
		found = guardPod(node)
		v.guards[node.Name] = found
	}
	return o.putPod(ctx, found, node, v.serves(node))
}

// serves reports whether the member of a Node answers and votes.
func (v *view) serves(node *corev1.Node) bool {
	m := v.memberAt(openshift.InternalIP(node))
	return m != nil && m.healthy && !m.IsLearner
}

func guardPod(node *corev1.Node) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named(guardPrefix + node.Name)}
	p.Labels = map[string]string{"app": guardApp}
	p.Spec = corev1.PodSpec{
		NodeName: node.Name, PriorityClassName: "system-cluster-critical", AutomountServiceAccountToken: new(bool),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, // the Node may be unreachable for any time
		Containers:  []corev1.Container{{Name: guardApp, Image: "quay.io/openshift-release-dev/ocp-v4.0-art-dev:cli"}},
	}
	return p
}

// removeGuards removes the guard Pods of deleted Nodes, and evicted Pods, as kubelets do. The Pod of a host that is off
// stays.
func (o *Operator) removeGuards(ctx context.Context, v *view) error {
	for name, found := range v.guards {
		evicted := !found.DeletionTimestamp.IsZero() && o.options.Etcd.On(name)
		if v.node(name) != nil && !evicted {
			continue
		}
		if err := o.removePod(ctx, found); err != nil {
			return err
		}
		delete(v.guards, name)
	}
	return nil
}

// budget is the content of the PodDisruptionBudget of the guard Pods.
type budget struct{ Nodes, Pods, Healthy int32 }

// publishBudget writes the PodDisruptionBudget with its status, because no disruption controller runs. As in OpenShift,
// unhealthyPodEvictionPolicy is unset: an unready Pod is evicted only while enough other Pods are Ready.
func (o *Operator) publishBudget(ctx context.Context, v *view) error {
	b := budget{Nodes: int32(len(v.nodes)), Pods: int32(len(v.guards))}
	for _, guard := range v.guards {
		if openshift.PodReady(guard) && guard.DeletionTimestamp.IsZero() {
			b.Healthy++
		}
	}
	wanted := max(b.Nodes-1, 0)
	return o.written.Once("the budget of the quorum guard", b, func() error {
		pdb := &policyv1.PodDisruptionBudget{ObjectMeta: named(openshift.QuorumGuard)}
		if _, err := controllerutil.CreateOrUpdate(ctx, o.api, pdb, func() error {
			available := intstr.FromInt32(wanted)
			pdb.Spec.MinAvailable, pdb.Spec.Selector = &available, &metav1.LabelSelector{MatchLabels: map[string]string{"app": guardApp}}
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
