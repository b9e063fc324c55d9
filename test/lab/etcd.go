package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/etcdoperator"
)

// etcdAnswer is the timeout of one request to an etcd member. moveTimeout is the time for attempts to move the
// leader on a busy machine.
const etcdAnswer, moveTimeout = 5 * time.Second, time.Minute

// UseEtcdMembers gives the cluster an etcd with a member on each control-plane Node, and an etcd operator. Call
// it before a host starts the API.
func (c *Cluster) UseEtcdMembers(ctx context.Context, options etcdoperator.Options) error {
	etcd, err := c.workload.server.UseMembers(ctx)
	if err != nil {
		return fmt.Errorf("cannot start the etcd of %s: %w", c.Key(), err)
	}
	log, err := c.lab.log("etcd-operator-" + c.workload.server.Name + ".log")
	if err != nil {
		return err
	}
	options.Etcd, options.Log = etcd, log
	operator := etcdoperator.New(options)
	c.workload.operator = operator
	c.workload.wipes = &wipes{hub: c.lab.Client(), cluster: c.Key(), etcd: etcd}
	c.workload.operates(c.lab, func(ctx context.Context) { operator.Run(ctx, c.workload.client) })
	c.workload.leave = append(c.workload.leave, etcd.Stop)
	return nil
}

// Etcd returns the etcd of a cluster with its own etcd: its processes by the names of Nodes, and the network of
// its hosts. It returns nil for other clusters.
func (c *Cluster) Etcd() *members.Cluster { return c.workload.server.Members() }

// EtcdOperator returns the simulated etcd operator of a cluster whose etcd has members, or nil.
func (c *Cluster) EtcdOperator() *etcdoperator.Operator { return c.workload.operator }

// EtcdSettled returns an error until the etcd of the cluster is settled. Each control-plane Node has a voter,
// no other member exists, and all Nodes have one revision. The operators of etcd and of the kube-apiserver are
// available and not progressing.
func (c *Cluster) EtcdSettled(ctx context.Context) error {
	workload, err := c.workload.running()
	if err != nil {
		return err
	}
	if err := settledRevisions(ctx, workload); err != nil {
		return err
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := operatorSettled(ctx, workload, name); err != nil {
			return err
		}
	}
	var names []string
	for _, role := range []string{"master", "arbiter"} {
		nodes := &corev1.NodeList{}
		if err := workload.List(ctx, nodes, client.HasLabels{"node-role.kubernetes.io/" + role}); err != nil {
			return fmt.Errorf("cannot list the Nodes: %w", err)
		}
		for i := range nodes.Items {
			names = append(names, nodes.Items[i].Name)
		}
	}
	list, err := c.EtcdMembers(ctx)
	if err != nil {
		return err
	}
	return eachVotes(names, list)
}

// eachVotes returns an error unless the members are exactly one voter for each node.
func eachVotes(nodes []string, list []EtcdMember) error {
	names := make([]string, 0, len(list))
	for _, m := range list {
		if !m.Voter {
			return fmt.Errorf("etcd member %q does not vote", m.Name)
		}
		names = append(names, m.Name)
	}
	slices.Sort(nodes)
	slices.Sort(names)
	if len(nodes) == 0 || !slices.Equal(nodes, names) {
		return fmt.Errorf("etcd has the members %q, and the control plane the Nodes %q", names, nodes)
	}
	return nil
}

func settledRevisions(ctx context.Context, workload client.Client) error {
	etcd := &operatorv1.Etcd{}
	if err := workload.Get(ctx, types.NamespacedName{Name: "cluster"}, etcd); err != nil {
		return fmt.Errorf("cannot read the state of etcd: %w", err)
	}
	for _, n := range etcd.Status.NodeStatuses {
		if n.CurrentRevision != etcd.Status.LatestAvailableRevision || n.TargetRevision != 0 {
			return fmt.Errorf("node %s has revision %d of etcd, not %d", n.NodeName, n.CurrentRevision, etcd.Status.LatestAvailableRevision)
		}
	}
	return nil
}

func operatorSettled(ctx context.Context, workload client.Client, name string) error {
	operator := &configv1.ClusterOperator{}
	if err := workload.Get(ctx, types.NamespacedName{Name: name}, operator); err != nil {
		return fmt.Errorf("cannot read ClusterOperator %s: %w", name, err)
	}
	wanted := map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
		configv1.OperatorAvailable: configv1.ConditionTrue, configv1.OperatorProgressing: configv1.ConditionFalse,
		configv1.OperatorDegraded: configv1.ConditionFalse,
	}
	for _, condition := range operator.Status.Conditions {
		if status, ok := wanted[condition.Type]; ok && condition.Status != status {
			return fmt.Errorf("ClusterOperator %s is %s=%s: %s", name, condition.Type, condition.Status, condition.Message)
		}
		delete(wanted, condition.Type)
	}
	if len(wanted) > 0 {
		return fmt.Errorf("ClusterOperator %s does not have all of its conditions", name)
	}
	return nil
}

// EtcdMember is a member of a cluster's etcd. A new member that has not started yet has no name.
type EtcdMember struct {
	ID    uint64
	Name  string
	Voter bool
}

// EtcdMembers returns the members of the cluster's etcd ordered by name. It requires a quorum.
func (c *Cluster) EtcdMembers(ctx context.Context) ([]EtcdMember, error) {
	var list []EtcdMember
	err := c.anyEtcd(ctx, func(ctx context.Context, _ string, etcd *clientv3.Client) (bool, error) {
		answer, err := etcd.MemberList(ctx)
		if err != nil {
			return false, fmt.Errorf("cannot list the members of etcd: %w", err)
		}
		for _, m := range answer.Members {
			list = append(list, EtcdMember{ID: m.ID, Name: m.Name, Voter: !m.IsLearner})
		}
		return true, nil
	})
	slices.SortFunc(list, func(a, b EtcdMember) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// EtcdLeader returns the Node whose member is the leader.
func (c *Cluster) EtcdLeader(ctx context.Context) (string, error) {
	leader := ""
	err := c.anyEtcd(ctx, func(ctx context.Context, node string, etcd *clientv3.Client) (bool, error) {
		id, leads, err := idOf(ctx, etcd)
		if err == nil && id == leads {
			leader = node
		}
		return leader != "", err
	})
	if leader == "" && err == nil {
		err = errors.New("etcd has no leader")
	}
	return leader, err
}

// MoveEtcdLeader makes the member of a Node the leader. It waits for an election that interferes.
func (c *Cluster) MoveEtcdLeader(ctx context.Context, node string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, moveTimeout, true, func(ctx context.Context) (bool, error) {
		last = c.moveEtcdLeader(ctx, node)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the etcd member of %s is not the leader: %w", node, errors.Join(err, last))
	}
	return nil
}

func (c *Cluster) moveEtcdLeader(ctx context.Context, node string) error {
	url := c.Etcd().Serving()[node]
	if url == "" {
		return fmt.Errorf("the etcd member of %s does not run", node)
	}
	var id uint64
	err := c.callEtcd(ctx, url, func(ctx context.Context, etcd *clientv3.Client) (err error) {
		id, _, err = idOf(ctx, etcd)
		return err
	})
	if err != nil {
		return err
	}
	leader, err := c.EtcdLeader(ctx)
	if err != nil || leader == node {
		return err
	}
	return c.callEtcd(ctx, c.Etcd().Serving()[leader], func(ctx context.Context, etcd *clientv3.Client) error {
		_, err := etcd.MoveLeader(ctx, id)
		return err
	})
}

// idOf returns the ID of a member and of the leader.
func idOf(ctx context.Context, etcd *clientv3.Client) (id, leader uint64, err error) {
	status, err := etcd.Status(ctx, etcd.Endpoints()[0])
	if err != nil {
		return 0, 0, err
	}
	return status.Header.MemberId, status.Leader, nil
}

// anyEtcd calls the running members one after the other until one succeeds. The error is that of the last one.
func (c *Cluster) anyEtcd(ctx context.Context,
	call func(ctx context.Context, node string, etcd *clientv3.Client) (enough bool, err error),
) error {
	result := errors.New("no etcd member runs")
	for node, url := range c.Etcd().Serving() {
		enough := false
		result = c.callEtcd(ctx, url, func(ctx context.Context, etcd *clientv3.Client) (err error) {
			enough, err = call(ctx, node, etcd)
			return err
		})
		if enough {
			return nil
		}
	}
	return result
}

func (c *Cluster) callEtcd(ctx context.Context, url string, call func(context.Context, *clientv3.Client) error) error {
	return callMember(ctx, c.Etcd(), url, call)
}

// callMember calls one member, and retries for a while until it responds.
func callMember(ctx context.Context, cluster *members.Cluster, url string, call func(context.Context, *clientv3.Client) error) error {
	etcd, err := cluster.Client(url)
	if err != nil {
		return err
	}
	defer etcd.Close()
	ctx, cancel := context.WithTimeout(ctx, etcdAnswer)
	defer cancel()
	if err := call(ctx, etcd); err != nil {
		return fmt.Errorf("etcd member at %s: %w", url, err)
	}
	return nil
}
