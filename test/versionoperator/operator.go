package versionoperator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// GatesNamespace has the ConfigMap Gates: what an administrator has to acknowledge.
	GatesNamespace = "openshift-config-managed"
	// Gates see GatesNamespace.
	Gates = "admin-gates"
	// AcksNamespace has the ConfigMap Acks: what an administrator has acknowledged.
	AcksNamespace = "openshift-config"
	// Acks see AcksNamespace.
	Acks = "admin-acks"

	// VersionName is the name of the ClusterVersion.
	VersionName = "version"

	defaultLoad     = 100 * time.Millisecond
	defaultRetry    = 2 * time.Second
	defaultOperator = 250 * time.Millisecond
	defaultDrain    = 100 * time.Millisecond
	defaultAway     = 500 * time.Millisecond

	// settle is how long events are gathered, retry how long nothing is tried when something failed, step how often is
	// looked whether a Node is back. acting bounds what is done at a time.
	settle = 20 * time.Millisecond
	retry  = time.Second
	step   = 100 * time.Millisecond
	acting = 10 * time.Second
)

// Options of an Operator.
type Options struct {
	// Releases are those of the update graph, and those that can be had by their images.
	Releases []Release
	// Payload tells the version of a release image that is none of these; empty: it cannot be pulled. Nil: so are all.
	Payload func(image string) (version string)
	// Load is how long a payload takes to be retrieved. Default: 100 ms; in reality most of a minute.
	Load time.Duration
	// Retry is how long after a refusal the same is tried again. Default: 2 s; in reality 2 to 4 minutes.
	Retry time.Duration
	// Operator is how long each ClusterOperator takes. Default: 250 ms.
	Operator time.Duration
	// Drain is how long a Node is cordoned before it is rebooted. Default: 100 ms.
	Drain time.Duration
	// Reboot reboots the host of a Node, and returns when it is on again; the Node is Ready some time later. Nil: the
	// Node is not Ready for Away.
	Reboot func(ctx context.Context, node string) error
	// Away is how long a Node is not Ready where Reboot is nil. Default: 500 ms.
	Away time.Duration
	// Log receives what the operator does. The zero value discards it.
	Log logr.Logger
}

// Operator is the cluster-version-operator and the machine-config-operator of one workload cluster.
type Operator struct {
	options Options
	api     client.WithWatch
	pokes   chan struct{}
	updates sync.WaitGroup
	problem string
	life    context.Context //nolint:containedctx // That of Run: Nodes are updated for longer than one look takes.

	// The rest of what sync works with: nobody else does.
	state   state
	written map[string]string
	wake    time.Duration
	started metav1.Time

	mu sync.Mutex
	settings
	// updating are the Nodes that are given another configuration.
	updating map[string]bool
}

// settings are what tests change while the operator works.
type settings struct {
	options      Options
	releases     []Release
	disconnected bool
	faults       map[string]fault
	broken       map[string]string
	salt         map[string]int
}

// fault is what keeps a ClusterOperator from its version.
type fault struct {
	kind    faultKind
	message string
	// mendedBy is the version whose operator ends it; empty: none.
	mendedBy string
}

type faultKind string

const (
	held     faultKind = "held"
	slow     faultKind = "slow"
	degraded faultKind = "degraded"
	// unavailable: no static Pod of the operand serves.
	unavailable faultKind = "unavailable"
	// mended: what was written to the ClusterOperator is taken back.
	mended faultKind = "mended"
	// notUpgradeable: it goes on, and keeps the cluster at its minor version.
	notUpgradeable faultKind = "notUpgradeable"
)

// New prepares an operator. Nothing is done before Run.
func New(options Options) *Operator {
	options.Load = cmp.Or(options.Load, defaultLoad)
	options.Retry = cmp.Or(options.Retry, defaultRetry)
	options.Operator = cmp.Or(options.Operator, defaultOperator)
	options.Drain = cmp.Or(options.Drain, defaultDrain)
	options.Away = cmp.Or(options.Away, defaultAway)
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	return &Operator{
		options: options, pokes: make(chan struct{}, 1), written: map[string]string{}, started: metav1.Now(), updating: map[string]bool{},
		settings: settings{
			options: options, releases: slices.Clone(options.Releases), faults: map[string]fault{}, broken: map[string]string{},
			salt: map[string]int{},
		},
	}
}

// Run works until ctx ends, with an administrator's client of the workload cluster. It returns when nothing is done any more.
func (o *Operator) Run(ctx context.Context, api client.WithWatch) {
	o.api, o.life = api, ctx
	var watching sync.WaitGroup
	for _, list := range []client.ObjectList{
		&configv1.ClusterVersionList{}, &configv1.ClusterOperatorList{}, &machineconfigv1.MachineConfigPoolList{}, &corev1.NodeList{},
	} {
		watching.Go(func() { o.watch(ctx, list) })
	}
	for namespace, name := range map[string]string{GatesNamespace: Gates, AcksNamespace: Acks} {
		watching.Go(func() {
			o.watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
		})
	}
	for ctx.Err() == nil {
		again := o.sync(ctx)
		o.await(ctx, again)
	}
	watching.Wait()
	o.updates.Wait()
}

// await returns when something happened, or after a time; 0: no time is known.
func (o *Operator) await(ctx context.Context, again time.Duration) {
	var timer <-chan time.Time
	if again > 0 {
		timer = time.After(again)
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-o.pokes:
		pause(ctx, settle)
	}
}

// poke lets the operator look again.
func (o *Operator) poke() {
	select {
	case o.pokes <- struct{}{}:
	default:
	}
}

// pause waits for the duration, or less when ctx ends. It returns whether the whole of it passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// change changes settings, and lets the operator look.
func (o *Operator) change(change func(s *settings)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.settings)
	o.poke()
}

// snapshot is what is set now.
func (o *Operator) snapshot() *settings {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.settings
	s.releases, s.faults = slices.Clone(s.releases), maps.Clone(s.faults)
	s.broken, s.salt = maps.Clone(s.broken), maps.Clone(s.salt)
	return &s
}

// Offer adds releases, or replaces those of the same image.
func (o *Operator) Offer(releases ...Release) {
	o.change(func(s *settings) {
		for _, r := range releases {
			s.releases = append(slices.DeleteFunc(s.releases, func(old Release) bool { return old.Image == r.Image }), r)
		}
	})
}

// Disconnect takes the update service away, or brings it back.
func (o *Operator) Disconnect(disconnected bool) {
	o.change(func(s *settings) { s.disconnected = disconnected })
}

// Hold keeps a ClusterOperator from getting the version of a release until Recover: the update waits for it, and nothing else is told.
func (o *Operator) Hold(operator string) { o.fault(operator, fault{kind: held}) }

// Slow likewise, and it is told that it takes longer than expected, which is no failure.
func (o *Operator) Slow(operator string) { o.fault(operator, fault{kind: slow}) }

// Fail makes a ClusterOperator degraded until Recover: an update fails at it.
func (o *Operator) Fail(operator, message string) {
	o.fault(operator, fault{kind: degraded, message: message})
}

// FailUntil makes a ClusterOperator degraded until an update has come to it whose release fixes it.
func (o *Operator) FailUntil(operator, message, release string) {
	o.fault(operator, fault{kind: degraded, message: message, mendedBy: release})
}

// Interrupt makes a ClusterOperator unavailable until Recover, as those of static Pods are after the only host has
// restarted. An update does not wait for the operator.
func (o *Operator) Interrupt(operator string) { o.fault(operator, fault{kind: unavailable}) }

// Refuse makes a ClusterOperator keep the cluster at its minor version until Recover.
func (o *Operator) Refuse(operator, message string) {
	o.fault(operator, fault{kind: notUpgradeable, message: message})
}

// Recover ends what was done to a ClusterOperator.
func (o *Operator) Recover(operator string) {
	o.change(func(s *settings) {
		switch s.faults[operator].kind {
		case degraded, notUpgradeable, unavailable:
			s.faults[operator] = fault{kind: mended}
		default:
			delete(s.faults, operator)
		}
	})
}

func (o *Operator) fault(operator string, f fault) {
	o.change(func(s *settings) { s.faults[operator] = f })
}

// Break makes a Node fail to take another configuration, until Mend: it and its pool are degraded as soon as that is tried.
func (o *Operator) Break(node, reason string) {
	o.change(func(s *settings) { s.broken[node] = reason })
}

// Mend see [Operator.Break].
func (o *Operator) Mend(node string) { o.change(func(s *settings) { delete(s.broken, node) }) }

// Reconfigure renders another configuration for a pool, of the same release, as a MachineConfig of an administrator does.
func (o *Operator) Reconfigure(pool string) { o.change(func(s *settings) { s.salt[pool]++ }) }

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
	*settings

	version   *configv1.ClusterVersion
	operators []configv1.ClusterOperator
	nodes     []corev1.Node
	pools     map[string]*machineconfigv1.MachineConfigPool
	// rendered are the versions of the rendered configurations, by name.
	rendered    map[string]string
	gates, acks map[string]string
}

// sync looks, and does what is to be done now. It returns when there is more to do if nothing happens; 0: there is not.
func (o *Operator) sync(ctx context.Context) (again time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, acting)
	defer cancel()
	o.wake = 0
	err := o.act(ctx)
	o.tell(ctx, err)
	if err != nil {
		return retry
	}
	return o.wake
}

func (o *Operator) act(ctx context.Context) error {
	v, err := o.look(ctx)
	if v == nil || err != nil {
		return err
	}
	o.adopt(v)
	for _, act := range []func(context.Context, *view) error{o.prepare, o.takeRequest, o.configurePools, o.rollOut, o.updateNodes, o.report} {
		if err := act(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// after makes the operator look again after a time.
func (o *Operator) after(d time.Duration) {
	d = max(d, time.Millisecond)
	if o.wake == 0 || d < o.wake {
		o.wake = d
	}
}

// look reads everything once. A cluster that is not installed is left alone: nil.
func (o *Operator) look(ctx context.Context) (*view, error) {
	v := &view{
		settings: o.snapshot(), version: &configv1.ClusterVersion{}, pools: map[string]*machineconfigv1.MachineConfigPool{},
		rendered: map[string]string{},
	}
	if err := o.api.Get(ctx, client.ObjectKey{Name: VersionName}, v.version); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil // There is nothing to look at.
		}
		return nil, fmt.Errorf("cannot read the ClusterVersion: %w", err)
	}
	if !o.state.adopted && !slices.ContainsFunc(v.version.Status.History, completed) {
		return nil, nil // Likewise.
	}
	operators, nodes, pools, configs := &configv1.ClusterOperatorList{}, &corev1.NodeList{},
		&machineconfigv1.MachineConfigPoolList{}, &machineconfigv1.MachineConfigList{}
	for _, list := range []client.ObjectList{operators, nodes, pools, configs} {
		if err := o.api.List(ctx, list); err != nil {
			return nil, fmt.Errorf("cannot list what the cluster consists of: %w", err)
		}
	}
	v.operators, v.nodes = operators.Items, nodes.Items
	slices.SortFunc(v.operators, func(a, b configv1.ClusterOperator) int { return inOrder(a.Name, b.Name) })
	slices.SortFunc(v.nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for i := range pools.Items {
		v.pools[pools.Items[i].Name] = &pools.Items[i]
	}
	for i := range configs.Items {
		v.rendered[configs.Items[i].Name] = configs.Items[i].Annotations[releaseAnnotation]
	}
	var err error
	if v.gates, err = o.configMap(ctx, GatesNamespace, Gates); err != nil {
		return nil, err
	}
	v.acks, err = o.configMap(ctx, AcksNamespace, Acks)
	return v, err
}

func (o *Operator) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	found := &corev1.ConfigMap{}
	if err := o.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot read ConfigMap %s: %w", name, err)
	}
	return found.Data, nil
}

func completed(entry configv1.UpdateHistory) bool { return entry.State == configv1.CompletedUpdate }

// inOrder is the order in which ClusterOperators are updated: etcd and the kube-apiserver first, machine-config last.
func inOrder(a, b string) int {
	rank := map[string]int{"etcd": -2, "kube-apiserver": -1, machineConfig: 1}
	return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
}
