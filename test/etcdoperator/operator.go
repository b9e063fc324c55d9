package etcdoperator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
)

const (
	namespace    = "openshift-etcd"
	masterLabel  = "node-role.kubernetes.io/master"
	etcdOperator = "etcd"

	defaultInterval = 250 * time.Millisecond
	// defaultRestart is the first back-off of a kubelet for a container that ends at once.
	defaultRestart = 10 * time.Second
	// answer is how long a healthy member may take, on a busy machine.
	answer = 2 * time.Second
)

// Options of an Operator.
type Options struct {
	// Client is an administrator's of the workload cluster.
	Client client.Client
	// Etcd is the etcd of the cluster.
	Etcd *members.Cluster
	// Interval is how often the operator looks: etcd tells nobody that a member came or went. Default: 250 ms.
	Interval time.Duration
	// Rollout is how long a revision takes on each node at least.
	Rollout time.Duration
	// Restart is how long the container of a removed member is away. Default: 10 s.
	Restart time.Duration
	// Log receives what the operator does. The zero value discards it.
	Log logr.Logger
}

// Operator is the etcd operator of one workload cluster.
type Operator struct {
	options Options
	clients map[string]*clientv3.Client
	rollout rollout
	// ended is when the members of nodes ended by themselves, removed tells which of them others removed.
	ended   map[string]time.Time
	removed map[string]bool
	// written is what was written last, by object.
	written map[string]string
	problem string
}

// New prepares an operator.
func New(options Options) *Operator {
	options.Interval = cmp.Or(options.Interval, defaultInterval)
	options.Restart = cmp.Or(options.Restart, defaultRestart)
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	return &Operator{
		options: options, clients: map[string]*clientv3.Client{}, ended: map[string]time.Time{},
		removed: map[string]bool{}, written: map[string]string{},
		rollout: rollout{nodes: map[string]*nodeRevision{}},
	}
}

// Run works until ctx ends.
func (o *Operator) Run(ctx context.Context) {
	tick := time.NewTicker(o.options.Interval)
	defer tick.Stop()
	defer o.forgetClients(nil)
	for ctx.Err() == nil {
		o.tell(ctx, o.sync(ctx))
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// tell logs a problem once.
func (o *Operator) tell(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != o.problem && ctx.Err() == nil {
		o.options.Log.Info("held up", "reason", text)
	}
	o.problem = text
}

// view is what one look finds.
type view struct {
	// nodes are the control-plane Nodes, in the order of their names.
	nodes   []corev1.Node
	members []member
	secrets map[string]*corev1.Secret
	pods    map[string]*corev1.Pod
}

type member struct {
	*etcdserverpb.Member
	healthy bool
}

// sync looks, and does what is to be done now. Without quorum there is nothing to be seen, and nothing is done.
func (o *Operator) sync(ctx context.Context) error {
	if err := o.restart(ctx); err != nil {
		return err
	}
	v, err := o.look(ctx)
	if err != nil {
		return err
	}
	for _, act := range []func(context.Context, *view) error{o.publish, o.discardRemoved, o.scaleUp, o.report} {
		if err := act(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) look(ctx context.Context) (*view, error) {
	v := &view{secrets: map[string]*corev1.Secret{}, pods: map[string]*corev1.Pod{}}
	nodes, secrets, pods := &corev1.NodeList{}, &corev1.SecretList{}, &corev1.PodList{}
	if err := o.options.Client.List(ctx, nodes, client.HasLabels{masterLabel}); err != nil {
		return nil, fmt.Errorf("cannot list the Nodes: %w", err)
	}
	if err := o.options.Client.List(ctx, secrets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the Secrets: %w", err)
	}
	if err := o.options.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the pods: %w", err)
	}
	v.nodes = nodes.Items
	slices.SortFunc(v.nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range secrets.Items {
		v.secrets[secrets.Items[i].Name] = &secrets.Items[i]
	}
	for i := range pods.Items {
		v.pods[pods.Items[i].Name] = &pods.Items[i]
	}
	return v, o.lookAtMembers(ctx, v)
}

func (v *view) node(name string) *corev1.Node {
	for i := range v.nodes {
		if v.nodes[i].Name == name {
			return &v.nodes[i]
		}
	}
	return nil
}

// memberAt is the member that has the address of a node; nil: none has.
func (v *view) memberAt(address string) *member {
	for i := range v.members {
		if slices.Contains(v.members[i].PeerURLs, members.PeerURL(address)) {
			return &v.members[i]
		}
	}
	return nil
}

// unhealthy are the names of members that do not answer, and of those that were never started.
func (v *view) unhealthy() []string {
	var names []string
	for _, m := range v.members {
		if !m.healthy && !m.IsLearner {
			names = append(names, cmp.Or(m.Name, "NAME-PENDING"))
		}
	}
	return names
}

// voters are the members of Nodes that vote.
func (v *view) voters() []member {
	return slices.DeleteFunc(slices.Clone(v.members), func(m member) bool { return m.IsLearner || m.Name == members.BootstrapName })
}

func internalIP(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// client returns a client of one member.
func (o *Operator) client(url string) (*clientv3.Client, error) {
	if c := o.clients[url]; c != nil {
		return c, nil
	}
	c, err := o.options.Etcd.Client(url)
	if err != nil {
		return nil, err
	}
	o.clients[url] = c
	return c, nil
}

// forgetClients closes the clients of members that are no more.
func (o *Operator) forgetClients(kept []member) {
	maps.DeleteFunc(o.clients, func(url string, c *clientv3.Client) bool {
		if slices.ContainsFunc(kept, func(m member) bool { return slices.Contains(m.ClientURLs, url) }) {
			return false
		}
		// Nothing is lost with it.
		_ = c.Close()
		return true
	})
}
