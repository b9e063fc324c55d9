package etcdoperator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// memberLabels are the labels of Nodes with members.
var memberLabels = []string{openshift.RoleLabel + "master", openshift.RoleLabel + "arbiter"}

const (
	namespace = openshift.EtcdNamespace

	defaultInterval = 500 * time.Millisecond
	// defaultRestart is the first backoff of a kubelet for a container that exits at once.
	defaultRestart = 10 * time.Second
	// defaultRollout is the downtime of a Pod of etcd for a new revision. It is shorter than in OpenShift.
	defaultRollout = 300 * time.Millisecond
	// answerTimeout is the longest response time of a healthy member, on a busy machine. gatherTimeout and syncTimeout
	// bound a sync: an API that lost its quorum would block the operator for a minute.
	answerTimeout = 2 * time.Second
	gatherTimeout = 2 * answerTimeout
	syncTimeout   = 5 * answerTimeout
	// grace is the longest time until a member is healthy after its restart for a revision.
	grace = 3 * answerTimeout
)

// Step is a step that a test can block.
type Step string

// The steps. While Promotion is blocked, a learner stays a learner. While Rollout is blocked, the next Node has a target
// revision, and its member is not restarted.
const (
	Promotion Step = "promotion"
	Rollout   Step = "roll-out"
)

// Options of an Operator.
type Options struct {
	// Etcd is the etcd of the cluster.
	Etcd *members.Cluster
	// Interval is the time between syncs, because etcd does not report added and removed members. Default: 500 ms.
	Interval time.Duration
	// Rollout is the downtime of a member for a new revision. Default: 300 ms.
	Rollout time.Duration
	// Restart is the downtime of the container of a removed member. Default: 10 s.
	Restart time.Duration
	// Log is the log of the operator. The zero value discards it.
	Log logr.Logger
}

// Operator is the etcd operator of one workload cluster.
type Operator struct {
	options Options
	api     client.Client
	clients map[string]*clientv3.Client
	rollout rollout
	written openshift.Written
	problem openshift.Problems

	mu      sync.Mutex
	blocked map[Step]bool
	// exited is when the containers of Nodes exited. removed are the Nodes whose members other clients removed.
	exited  map[string]time.Time
	removed map[string]bool
}

// New returns an operator that does nothing before Run.
func New(options Options) *Operator {
	options.Interval = cmp.Or(options.Interval, defaultInterval)
	options.Restart = cmp.Or(options.Restart, defaultRestart)
	options.Rollout = cmp.Or(options.Rollout, defaultRollout)
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	return &Operator{
		options: options, clients: map[string]*clientv3.Client{}, exited: map[string]time.Time{},
		removed: map[string]bool{}, written: openshift.Written{}, blocked: map[Step]bool{},
		problem: openshift.Problems{Log: options.Log},
		rollout: rollout{nodes: map[string]*nodeRevision{}},
	}
}

// Run runs the operator until ctx ends, with an administrator's client of the workload cluster.
func (o *Operator) Run(ctx context.Context, api client.Client) {
	o.api = api
	defer o.forgetClients(nil)
	var running sync.WaitGroup
	// Kubelets restart containers without the API.
	running.Go(func() { o.repeat(ctx, o.restart) })
	running.Go(func() { o.repeat(ctx, func(ctx context.Context) { o.problem.Report(ctx, o.sync(ctx)) }) })
	running.Wait()
}

// repeat calls act at each interval.
func (o *Operator) repeat(ctx context.Context, act func(context.Context)) {
	tick := time.NewTicker(o.options.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		act(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// Block blocks a step until Unblock.
func (o *Operator) Block(step Step) { o.block(step, true) }

// Unblock ends [Operator.Block].
func (o *Operator) Unblock(step Step) { o.block(step, false) }

func (o *Operator) block(step Step, blocked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blocked[step] = blocked
}

func (o *Operator) blocks(step Step) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.blocked[step]
}

// view has the objects and members of one sync.
type view struct {
	// nodes are the control-plane Nodes, sorted by name.
	nodes   []corev1.Node
	members []member
	secrets map[string]*corev1.Secret
	pods    map[string]*corev1.Pod
	// guards are the guard Pods by the names of their Nodes.
	guards map[string]*corev1.Pod
}

type member struct {
	*etcdserverpb.Member
	healthy bool
}

// sync gathers the view and acts on it. Without quorum it returns an error and does nothing.
func (o *Operator) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	v, err := o.gather(ctx)
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

func (o *Operator) gather(ctx context.Context) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	v := &view{secrets: map[string]*corev1.Secret{}, pods: map[string]*corev1.Pod{}, guards: map[string]*corev1.Pod{}}
	secrets, pods := &corev1.SecretList{}, &corev1.PodList{}
	for _, label := range memberLabels {
		nodes := &corev1.NodeList{}
		if err := o.api.List(ctx, nodes, client.HasLabels{label}); err != nil {
			return nil, fmt.Errorf("cannot list the Nodes: %w", err)
		}
		v.nodes = append(v.nodes, nodes.Items...)
	}
	if err := o.api.List(ctx, secrets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the Secrets: %w", err)
	}
	if err := o.api.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the pods: %w", err)
	}
	slices.SortFunc(v.nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range secrets.Items {
		v.secrets[secrets.Items[i].Name] = &secrets.Items[i]
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Labels["app"] == guardApp {
			v.guards[p.Spec.NodeName] = p
		} else {
			v.pods[p.Name] = p
		}
	}
	return v, o.gatherMembers(ctx, v)
}

func (v *view) node(name string) *corev1.Node {
	for i := range v.nodes {
		if v.nodes[i].Name == name {
			return &v.nodes[i]
		}
	}
	return nil
}

// memberAt returns the member with the address of a Node, or nil.
func (v *view) memberAt(address string) *member {
	for i := range v.members {
		if slices.Contains(v.members[i].PeerURLs, members.PeerURL(address)) {
			return &v.members[i]
		}
	}
	return nil
}

// unhealthy returns the names of voters that do not answer. A member that never started has no name.
func (v *view) unhealthy() []string {
	var names []string
	for _, m := range v.members {
		if !m.healthy && !m.IsLearner {
			names = append(names, cmp.Or(m.Name, "NAME-PENDING"))
		}
	}
	return names
}

// tolerant reports whether one member can fail without harm.
func (v *view) tolerant() bool { return len(v.unhealthy()) == 0 && len(v.voters()) >= controlPlaneSize }

// healthyAt reports whether the member of a Node answers, or the Node has none.
func (v *view) healthyAt(name string) bool {
	node := v.node(name)
	if node == nil {
		return true
	}
	m := v.memberAt(openshift.InternalIP(node))
	return m == nil || m.healthy
}

// voterNames returns the names of all voters.
func (v *view) voterNames() []string {
	var names []string
	for _, m := range v.members {
		if !m.IsLearner {
			names = append(names, m.Name)
		}
	}
	return names
}

// voters returns the voters of Nodes.
func (v *view) voters() []member {
	return slices.DeleteFunc(slices.Clone(v.members), func(m member) bool { return m.IsLearner || m.Name == members.BootstrapName })
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

// forgetClients closes the clients of removed members.
func (o *Operator) forgetClients(kept []member) {
	maps.DeleteFunc(o.clients, func(url string, c *clientv3.Client) bool {
		if slices.ContainsFunc(kept, func(m member) bool { return slices.Contains(m.ClientURLs, url) }) {
			return false
		}
		_ = c.Close() // no request is pending
		return true
	})
}
