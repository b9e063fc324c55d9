package etcdoperator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// report writes how things are, and takes the roll-out further: what is written next depends on what was written.
func (o *Operator) report(ctx context.Context, v *view) error {
	if err := o.reportEtcd(ctx, v); err != nil {
		return err
	}
	names := make([]string, 0, len(v.nodes))
	for i := range v.nodes {
		names = append(names, v.nodes[i].Name)
	}
	progressing := finding{string(configv1.OperatorProgressing), !o.rollout.settled(), "NodeInstaller", o.rollout.message()}
	degraded := finding{string(configv1.OperatorDegraded), o.degraded(v), "EtcdMembers_UnhealthyMembers", v.message()}
	available := finding{string(configv1.OperatorAvailable), true, "AsExpected", ""}
	if err := o.reportOperator(ctx, etcdOperator, available, progressing, degraded); err != nil {
		return err
	}
	if err := o.reportOperator(ctx, "kube-apiserver", available, progressing); err != nil {
		return err
	}
	o.rollOut(ctx, v, names)
	return nil
}

// rollOut takes the roll-out one step further. What a member is restarted for was reported before.
func (o *Operator) rollOut(ctx context.Context, v *view, nodes []string) {
	name := o.rollout.advance(circumstances{
		now: time.Now(), content: v.content(), safe: v.tolerant(), nodes: nodes, takes: o.options.Rollout, held: o.holds(Rollout),
		runs: o.options.Etcd.On, ready: v.well,
	})
	if name == "" {
		return
	}
	o.options.Log.Info("restarting etcd for a revision", "node", name, "revision", o.rollout.latest)
	o.makeWay(ctx, v, name)
	o.options.Etcd.Bounce(name, o.options.Rollout)
}

// content is what a revision is made of.
func (v *view) content() string {
	var parts []string
	for i := range v.nodes {
		node := &v.nodes[i]
		parts = append(parts, node.Name+"="+internalIP(node))
		for _, prefix := range []string{peerPrefix, servingPrefix, metricsPrefix} {
			if secret := v.secrets[prefix+node.Name]; secret != nil {
				parts = append(parts, string(secret.Data[corev1.TLSCertKey]))
			}
		}
	}
	endpoints := v.endpoints()
	for _, id := range slices.Sorted(maps.Keys(endpoints)) {
		parts = append(parts, id+"="+endpoints[id])
	}
	return strings.Join(parts, "\n")
}

// degraded reports whether members are unhealthy. One that is being restarted for a revision is not counted so soon.
func (o *Operator) degraded(v *view) bool {
	return slices.ContainsFunc(v.unhealthy(), func(name string) bool {
		n := o.rollout.nodes[name]
		return n == nil || !n.restarted || n.target == 0 || time.Since(n.since) > o.options.Rollout+grace
	})
}

// message says what the members are like, in the words of the operator.
func (v *view) message() string {
	unhealthy := v.unhealthy()
	if len(unhealthy) == 0 {
		return fmt.Sprintf("%d members are available", len(v.members))
	}
	return fmt.Sprintf("%d of %d members are available, %s is unhealthy", len(v.members)-len(unhealthy), len(v.members),
		strings.Join(unhealthy, ", "))
}

func (r *rollout) message() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		lines = append(lines, fmt.Sprintf("node %s at revision %d of %d", name, r.nodes[name].current, r.latest))
	}
	return strings.Join(lines, "; ")
}

// finding is one condition.
type finding struct {
	Type            string
	Is              bool
	Reason, Message string
}

func (f finding) status() string {
	if f.Is {
		return string(metav1.ConditionTrue)
	}
	return string(metav1.ConditionFalse)
}

func (o *Operator) reportEtcd(ctx context.Context, v *view) error {
	status := operatorv1.EtcdStatus{}
	status.LatestAvailableRevision = o.rollout.latest
	for _, name := range slices.Sorted(maps.Keys(o.rollout.nodes)) {
		n := o.rollout.nodes[name]
		status.NodeStatuses = append(status.NodeStatuses,
			operatorv1.NodeStatus{NodeName: name, CurrentRevision: n.current, TargetRevision: n.target})
	}
	learner := slices.ContainsFunc(v.members, func(m member) bool { return m.IsLearner })
	for _, f := range []finding{
		{"EtcdMembersAvailable", true, "EtcdQuorate", v.message()},
		{"EtcdMembersDegraded", o.degraded(v), "UnhealthyMembers", v.message()},
		{"EtcdMembersProgressing", learner, "MembersNotStarted", v.message()},
		{"NodeInstallerProgressing", !o.rollout.settled(), "", o.rollout.message()},
	} {
		status.Conditions = append(status.Conditions, operatorv1.OperatorCondition{
			Type: f.Type, Status: operatorv1.ConditionStatus(f.status()), Reason: f.Reason, Message: f.Message,
		})
	}
	return o.once("the state of etcds/cluster", status, func() error {
		etcd := &operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		etcd.Spec.ManagementState = operatorv1.Managed
		if err := o.api.Create(ctx, etcd); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		if err := o.api.Get(ctx, client.ObjectKeyFromObject(etcd), etcd); err != nil {
			return err
		}
		before := etcd.Status.Conditions
		etcd.Status = status
		for i := range etcd.Status.Conditions {
			c := &etcd.Status.Conditions[i]
			c.LastTransitionTime = metav1.Now()
			for _, old := range before {
				if old.Type == c.Type && old.Status == c.Status {
					c.LastTransitionTime = old.LastTransitionTime
				}
			}
		}
		return o.api.Status().Update(ctx, etcd)
	})
}

// reportOperator writes conditions of a ClusterOperator, which the installation creates.
func (o *Operator) reportOperator(ctx context.Context, name string, findings ...finding) error {
	return client.IgnoreNotFound(o.once("ClusterOperator "+name, findings, func() error {
		operator := &configv1.ClusterOperator{}
		if err := o.api.Get(ctx, client.ObjectKey{Name: name}, operator); err != nil {
			return err
		}
		for _, f := range findings {
			wanted := configv1.ClusterOperatorStatusCondition{
				Type: configv1.ClusterStatusConditionType(f.Type), Status: configv1.ConditionStatus(f.status()), Reason: f.Reason, Message: f.Message,
				LastTransitionTime: metav1.Now(),
			}
			i := slices.IndexFunc(operator.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == wanted.Type })
			if i < 0 {
				operator.Status.Conditions = append(operator.Status.Conditions, wanted)
				continue
			}
			if operator.Status.Conditions[i].Status == wanted.Status {
				wanted.LastTransitionTime = operator.Status.Conditions[i].LastTransitionTime
			}
			operator.Status.Conditions[i] = wanted
		}
		return o.api.Status().Update(ctx, operator)
	}))
}
