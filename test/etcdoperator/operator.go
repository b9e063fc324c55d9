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
)

// memberLabels are those of the Nodes that etcd has members on.
var memberLabels = []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/arbiter"}

const (
	namespace    = "openshift-etcd"
	etcdOperator = "etcd"

	defaultInterval = 500 * time.Millisecond
	// defaultRestart is the first back-off of a kubelet for a container that ends at once.
	defaultRestart = 10 * time.Second
	// defaultRollout is how long a pod of etcd is away for a new revision: here all goes faster.
	defaultRollout = 300 * time.Millisecond
	// answer is how long a healthy member may take, on a busy machine. looking and acting bound what is done at a time:
	// an API that lost its quorum would hold the operator up for a minute.
	answer  = 2 * time.Second
	looking = 2 * answer
	acting  = 5 * answer
	// grace is how long a member may take to be well again when it was restarted for a revision.
	grace = 3 * answer
)

// Step is something that an Operator can be held from.
type Step string

// The steps. A learner that is not promoted goes on learning; of a roll-out that does not go on a revision is on its
// way to a node, and that is all.
const (
	Promotion Step = "promotion"
	Rollout   Step = "roll-out"
)

// Options of an Operator.
type Options struct {
	// Etcd is the etcd of the cluster.
	Etcd *members.Cluster
	// Interval is how often the operator looks: etcd tells nobody that a member came or went. Default: 500 ms.
	Interval time.Duration
	// Rollout is how long the member of a node is away for a new revision. Default: 300 ms.
	Rollout time.Duration
	// Restart is how long the container of a removed member is away. Default: 10 s.
	Restart time.Duration
	// Log receives what the operator does. The zero value discards it.
	Log logr.Logger
}

// Operator is the etcd operator of one workload cluster.
type Operator struct {
	options Options
	api     client.Client
	clients map[string]*clientv3.Client
	rollout rollout
	// written is what was written last, by object.
	written map[string]string
	problem string

	mu   sync.Mutex
	held map[Step]bool
	// ended is when the members of nodes ended by themselves, removed tells which of them others removed.
	ended   map[string]time.Time
	removed map[string]bool
}

// New prepares an operator. Nothing is done before Run.
func New(options Options) *Operator {
	options.Interval = cmp.Or(options.Interval, defaultInterval)
	options.Restart = cmp.Or(options.Restart, defaultRestart)
	options.Rollout = cmp.Or(options.Rollout, defaultRollout)
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	return &Operator{
		options: options, clients: map[string]*clientv3.Client{}, ended: map[string]time.Time{},
		removed: map[string]bool{}, written: map[string]string{}, held: map[Step]bool{},
		rollout: rollout{nodes: map[string]*nodeRevision{}},
	}
}

// Run works until ctx ends, with an administrator's client of the workload cluster. It returns when nothing is done any more.
func (o *Operator) Run(ctx context.Context, api client.Client) {
	o.api = api
	defer o.forgetClients(nil)
	var running sync.WaitGroup
	// What kubelets do goes on while the API does not answer.
	running.Go(func() { o.each(ctx, o.restart) })
	running.Go(func() { o.each(ctx, func(ctx context.Context) { o.tell(ctx, o.sync(ctx)) }) })
	running.Wait()
}

// each does something again and again.
func (o *Operator) each(ctx context.Context, act func(context.Context)) {
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

// Hold keeps the operator from a step until Release.
func (o *Operator) Hold(step Step) { o.hold(step, true) }

// Release see [Operator.Hold].
func (o *Operator) Release(step Step) { o.hold(step, false) }

func (o *Operator) hold(step Step, held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held[step] = held
}

func (o *Operator) holds(step Step) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held[step]
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
	// guards are the guard Pods by the names of their Nodes.
	guards map[string]*corev1.Pod
}

type member struct {
	*etcdserverpb.Member
	healthy bool
}

// sync looks, and does what is to be done now. Without quorum there is nothing to be seen, and nothing is done.
func (o *Operator) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, acting)
	defer cancel()
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
	ctx, cancel := context.WithTimeout(ctx, looking)
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
		if p := &pods.Items[i]; p.Labels["app"] == guardLabel {
			v.guards[p.Spec.NodeName] = p
		} else {
			v.pods[p.Name] = p
		}
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

// tolerant reports whether one member can be away without harm.
func (v *view) tolerant() bool { return len(v.unhealthy()) == 0 && len(v.voters()) >= controlPlaneSize }

// well reports whether the member of a node answers, or there is none.
func (v *view) well(name string) bool {
	node := v.node(name)
	if node == nil {
		return true
	}
	m := v.memberAt(internalIP(node))
	return m == nil || m.healthy
}

// voting are the names of all members that vote.
func (v *view) voting() []string {
	var names []string
	for _, m := range v.members {
		if !m.IsLearner {
			names = append(names, m.Name)
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
