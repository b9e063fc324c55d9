package lab

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/etcdoperator"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// UseEtcdMembers gives the cluster an etcd with a member on each control-plane Node, and an etcd operator. It belongs before any host brings the API up.
func (c *Cluster) UseEtcdMembers(ctx context.Context) error {
	etcd, err := c.workload.server.UseMembers(ctx)
	if err != nil {
		return fmt.Errorf("cannot give %s an etcd of its own: %w", c.Key(), err)
	}
	log, err := c.lab.log("etcd-operator-" + c.workload.server.Name + ".log")
	if err != nil {
		return err
	}
	life, end := context.WithCancel(c.lab.life)
	c.workload.operate = func(workload client.Client) {
		operator := etcdoperator.New(etcdoperator.Options{Etcd: etcd, Log: log})
		c.lab.running.Go(func() { operator.Run(life, workload) })
	}
	c.workload.leave = func() {
		end()
		etcd.Stop()
	}
	return nil
}

// Etcd is the etcd of a cluster that has one of its own: its processes by the names of Nodes. Nil for others.
func (c *Cluster) Etcd() *members.Cluster { return c.workload.server.Members() }

// EtcdSettled tells whether the etcd of the cluster has nothing left to do: a voter for each control-plane Node, no other member, and one revision everywhere.
func (c *Cluster) EtcdSettled(ctx context.Context) error {
	workload, err := c.workload.running()
	if err != nil {
		return err
	}
	etcd := &operatorv1.Etcd{}
	if err := workload.Get(ctx, types.NamespacedName{Name: "cluster"}, etcd); err != nil {
		return fmt.Errorf("cannot read the state of etcd: %w", err)
	}
	for _, n := range etcd.Status.NodeStatuses {
		if n.CurrentRevision != etcd.Status.LatestAvailableRevision || n.TargetRevision != 0 {
			return fmt.Errorf("node %s has revision %d of etcd, not %d", n.NodeName, n.CurrentRevision, etcd.Status.LatestAvailableRevision)
		}
	}
	operator := &configv1.ClusterOperator{}
	if err := workload.Get(ctx, types.NamespacedName{Name: "etcd"}, operator); err != nil {
		return fmt.Errorf("cannot read ClusterOperator etcd: %w", err)
	}
	for _, condition := range operator.Status.Conditions {
		if condition.Type == configv1.OperatorProgressing && condition.Status != configv1.ConditionFalse {
			return errors.New(condition.Message)
		}
	}
	list, err := c.EtcdMembers(ctx)
	if err != nil {
		return err
	}
	if len(list) != len(etcd.Status.NodeStatuses) {
		return fmt.Errorf("etcd has %d members for %d nodes", len(list), len(etcd.Status.NodeStatuses))
	}
	for name, voter := range list {
		if !voter {
			return fmt.Errorf("etcd member %s does not vote yet", name)
		}
	}
	return nil
}

// EtcdMembers are the members of the cluster's etcd by their names, and whether they vote. It takes a quorum.
func (c *Cluster) EtcdMembers(ctx context.Context) (map[string]bool, error) {
	serving := c.Etcd().Serving()
	urls := make([]string, 0, len(serving))
	for _, url := range serving {
		urls = append(urls, url)
	}
	if len(urls) == 0 {
		return nil, errors.New("no etcd member runs")
	}
	etcd, err := c.Etcd().Client(urls...)
	if err != nil {
		return nil, err
	}
	defer etcd.Close()
	return voters(ctx, etcd)
}

func voters(ctx context.Context, etcd *clientv3.Client) (map[string]bool, error) {
	answer, err := etcd.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the members of etcd: %w", err)
	}
	list := map[string]bool{}
	for _, m := range answer.Members {
		list[m.Name] = !m.IsLearner
	}
	return list, nil
}

// site is where the nodes of a cluster run, if it has a network of its own.
func (l *Lab) site(namespace, name string) hosts.Site {
	w, err := l.workload(types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil || w.server.Members() == nil {
		return nil
	}
	return w.server.Members()
}
