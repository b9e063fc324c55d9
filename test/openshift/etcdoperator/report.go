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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// report writes the status of etcd and of the ClusterOperators, and then advances the rollout: the next status shows the
// result.
func (o *Operator) report(ctx context.Context, v *view) error {
	if err := o.reportEtcd(ctx, v); err != nil {
		return err
	}
	names := make([]string, 0, len(v.nodes))
	for i := range v.nodes {
		names = append(names, v.nodes[i].Name)
	}
	progressing := openshift.NewCondition(configv1.OperatorProgressing, !o.rollout.settled(), "NodeInstaller", o.rollout.message())
	degraded := openshift.NewCondition(configv1.OperatorDegraded, o.degraded(v), "EtcdMembers_UnhealthyMembers", v.message())
	available := openshift.NewCondition(configv1.OperatorAvailable, true, "AsExpected", "")
	if err := o.reportOperator(ctx, openshift.Etcd, available, progressing, degraded); err != nil {
		return err
	}
	if err := o.reportOperator(ctx, openshift.KubeAPIServer, available, progressing); err != nil {
		return err
	}
	o.rollOut(ctx, v, names)
	return nil
}

// rollOut advances the rollout by one step. The target revision was reported before the member restarts.
func (o *Operator) rollOut(ctx context.Context, v *view, nodes []string) {
	name := o.rollout.advance(circumstances{
		now: time.Now(), content: v.content(), safe: v.tolerant(), nodes: nodes, takes: o.options.Rollout, blocked: o.blocks(Rollout),
		runs: o.options.Etcd.On, ready: v.healthyAt,
	})
	if name == "" {
		return
	}
	o.options.Log.Info("restarting etcd for a revision", "node", name, "revision", o.rollout.latest)
	o.moveLeader(ctx, v, name)
	o.options.Etcd.Bounce(name, o.options.Rollout)
}

// content returns the content of the Pods, which decides whether a new revision is created.
func (v *view) content() string {
	var parts []string
	for i := range v.nodes {
		node := &v.nodes[i]
		parts = append(parts, node.Name+"="+openshift.InternalIP(node))
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

// degraded reports whether members are unhealthy, except members that restart for a revision.
func (o *Operator) degraded(v *view) bool {
	return slices.ContainsFunc(v.unhealthy(), func(name string) bool {
		n := o.rollout.nodes[name]
		return n == nil || !n.restarted || n.target == 0 || time.Since(n.since) > o.options.Rollout+grace
	})
}

// message describes the health of the members in the words of the operator.
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

func (o *Operator) reportEtcd(ctx context.Context, v *view) error {
	status := operatorv1.EtcdStatus{}
	status.LatestAvailableRevision = o.rollout.latest
	for _, name := range slices.Sorted(maps.Keys(o.rollout.nodes)) {
		n := o.rollout.nodes[name]
		status.NodeStatuses = append(status.NodeStatuses,
			operatorv1.NodeStatus{NodeName: name, CurrentRevision: n.current, TargetRevision: n.target})
	}
	learner := slices.ContainsFunc(v.members, func(m member) bool { return m.IsLearner })
	for _, c := range []openshift.Condition{
		openshift.NewCondition("EtcdMembersAvailable", true, "EtcdQuorate", v.message()),
		openshift.NewCondition("EtcdMembersDegraded", o.degraded(v), "UnhealthyMembers", v.message()),
		openshift.NewCondition("EtcdMembersProgressing", learner, "MembersNotStarted", v.message()),
		openshift.NewCondition("NodeInstallerProgressing", !o.rollout.settled(), "", o.rollout.message()),
	} {
		status.Conditions = append(status.Conditions, operatorv1.OperatorCondition{
			Type: string(c.Type), Status: operatorv1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		})
	}
	return o.written.Once("the state of etcds/cluster", status, func() error {
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
func (o *Operator) reportOperator(ctx context.Context, name string, conditions ...openshift.Condition) error {
	return client.IgnoreNotFound(o.written.Once("ClusterOperator "+name, conditions, func() error {
		operator := &configv1.ClusterOperator{}
		if err := o.api.Get(ctx, client.ObjectKey{Name: name}, operator); err != nil {
			return err
		}
		return openshift.WriteConditions(ctx, o.api, operator, conditions)
	}))
}
