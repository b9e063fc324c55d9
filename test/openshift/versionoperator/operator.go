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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

const (
	// GatesNamespace has the ConfigMap Gates: the gates that an administrator has to acknowledge.
	GatesNamespace = "openshift-config-managed"
	// Gates is in GatesNamespace.
	Gates = "admin-gates"
	// AcksNamespace has the ConfigMap Acks: the gates that an administrator acknowledged.
	AcksNamespace = "openshift-config"
	// Acks is in AcksNamespace.
	Acks = "admin-acks"

	// VersionName is the name of the ClusterVersion.
	VersionName = "version"

	defaultLoad     = 100 * time.Millisecond
	defaultRetry    = 2 * time.Second
	defaultOperator = 250 * time.Millisecond
	defaultDrain    = 100 * time.Millisecond
	defaultAway     = 500 * time.Millisecond

	// settle is the time for which events are collected before a sync. retry is the time until the next sync after an
	// error, and pollInterval the interval of checks of one Node.
	settle       = 20 * time.Millisecond
	retry        = time.Second
	pollInterval = 100 * time.Millisecond
	// requestTimeout bounds a sync and each step of the update of a Node.
	requestTimeout = 10 * time.Second
)

// Options of an Operator.
type Options struct {
	// Releases are the releases of the update graph, and the releases that can be retrieved by their images.
	Releases []Release
	// Payload returns the version of any other release image; empty if the image cannot be pulled. Nil: none can.
	Payload func(image string) (version string)
	// Serve, if not nil, is called when the API servers of the cluster have another version of Kubernetes.
	Serve func(kubernetes string)
	// Load is the time to retrieve a payload. Default: 100 ms; in OpenShift almost a minute.
	Load time.Duration
	// Retry is the time until a refused request is judged again. Default: 2 s; in OpenShift 2 to 4 minutes.
	Retry time.Duration
	// Operator is the time until a ClusterOperator reports its new version. Default: 250 ms.
	Operator time.Duration
	// Drain is the time between cordon and reboot of a Node. Default: 100 ms.
	Drain time.Duration
	// Reboot reboots the host of a Node, and returns when the host is on. Nil: the Node is not Ready for the time Away.
	Reboot func(ctx context.Context, node string) error
	// Away is the downtime of a Node without Reboot. Default: 500 ms.
	Away time.Duration
	// Log is the log of the operator. The zero value discards it.
	Log logr.Logger
}

// Operator is the cluster-version-operator and the machine-config-operator of one workload cluster.
type Operator struct {
	options Options
	api     client.WithWatch
	wakeUps chan struct{}
	updates sync.WaitGroup
	problem openshift.Problems
	life    context.Context //nolint:containedctx // the context of Run, because updates of Nodes outlast a sync

	// Only sync uses these fields. next is the time until the next sync; 0: only an event starts it.
	state   state
	written openshift.Written
	next    time.Duration
	started metav1.Time

	mu sync.Mutex
	settings
	// updating are the Nodes that are being updated.
	updating map[string]bool
}

// settings are the values that tests change while the operator runs, and the function that reads other payloads.
type settings struct {
	// versionOf is [Options.Payload].
	versionOf    func(image string) string
	releases     []Release
	disconnected bool
	recordsRisks bool
	faults       map[string]fault
	broken       map[string]string
	salt         map[string]int
}

// fault blocks the version of a ClusterOperator.
type fault struct {
	kind    faultKind
	message string
	// fixedBy is the version with the fix, or empty.
	fixedBy string
}

type faultKind string

const (
	blocked  faultKind = "blocked"
	slow     faultKind = "slow"
	degraded faultKind = "degraded"
	// unavailable means that no static Pod of the operand serves.
	unavailable faultKind = "unavailable"
	// fixed means that the conditions of the fault are reverted next.
	fixed faultKind = "fixed"
	// notUpgradeable means that only upgrades to another minor version are blocked.
	notUpgradeable faultKind = "notUpgradeable"
)

// New returns an operator that does nothing before Run.
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
		options: options, wakeUps: make(chan struct{}, 1), written: openshift.Written{}, started: metav1.Now(), updating: map[string]bool{},
		problem: openshift.Problems{Log: options.Log},
		settings: settings{
			versionOf: options.Payload, releases: slices.Clone(options.Releases), faults: map[string]fault{}, broken: map[string]string{},
			salt: map[string]int{},
		},
	}
}

// Run runs the operator until ctx ends, with an administrator's client of the workload cluster.
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
		o.await(ctx, o.sync(ctx))
	}
	watching.Wait()
	o.updates.Wait()
}

// await waits for an event, or for a duration; 0: only for an event.
func (o *Operator) await(ctx context.Context, d time.Duration) {
	var timer <-chan time.Time
	if d > 0 {
		timer = time.After(d)
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-o.wakeUps:
		openshift.Pause(ctx, settle)
	}
}

// wakeUp starts a sync.
func (o *Operator) wakeUp() {
	select {
	case o.wakeUps <- struct{}{}:
	default:
	}
}

// change changes settings, and starts a sync.
func (o *Operator) change(change func(s *settings)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.settings)
	o.wakeUp()
}

// snapshot returns a copy of the settings.
func (o *Operator) snapshot() *settings {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.settings
	s.releases, s.faults = slices.Clone(s.releases), maps.Clone(s.faults)
	s.broken, s.salt = maps.Clone(s.broken), maps.Clone(s.salt)
	return &s
}

// Offer adds releases, or replaces releases with the same image.
func (o *Operator) Offer(releases ...Release) {
	o.change(func(s *settings) {
		for _, r := range releases {
			s.releases = append(slices.DeleteFunc(s.releases, func(old Release) bool { return old.Image == r.Image }), r)
		}
	})
}

// Disconnect disconnects the update service, or connects it again.
func (o *Operator) Disconnect(disconnected bool) {
	o.change(func(s *settings) { s.disconnected = disconnected })
}

// RecordRisks turns the feature gate ClusterUpdateAcceptRisks on, which is off in the default feature set, or off again.
func (o *Operator) RecordRisks(on bool) { o.change(func(s *settings) { s.recordsRisks = on }) }

// Block blocks the new version of a ClusterOperator until Recover. The update waits, and no condition reports a failure.
func (o *Operator) Block(operator string) { o.fault(operator, fault{kind: blocked}) }

// Slow blocks the new version of a ClusterOperator until Recover. Failing is Unknown, because it is slower than expected.
func (o *Operator) Slow(operator string) { o.fault(operator, fault{kind: slow}) }

// Fail makes a ClusterOperator degraded until Recover. The update fails at it.
func (o *Operator) Fail(operator, message string) {
	o.fault(operator, fault{kind: degraded, message: message})
}

// FailUntil makes a ClusterOperator degraded until the update to the release that fixes it.
func (o *Operator) FailUntil(operator, message, release string) {
	o.fault(operator, fault{kind: degraded, message: message, fixedBy: release})
}

// Interrupt makes a ClusterOperator unavailable until Recover, like those of static Pods after the restart of the
// only host. An update does not wait for the operator.
func (o *Operator) Interrupt(operator string) { o.fault(operator, fault{kind: unavailable}) }

// Refuse makes a ClusterOperator block minor upgrades until Recover.
func (o *Operator) Refuse(operator, message string) {
	o.fault(operator, fault{kind: notUpgradeable, message: message})
}

// Recover ends the fault of a ClusterOperator.
func (o *Operator) Recover(operator string) {
	o.change(func(s *settings) {
		switch s.faults[operator].kind {
		case degraded, notUpgradeable, unavailable:
			s.faults[operator] = fault{kind: fixed}
		default:
			delete(s.faults, operator)
		}
	})
}

func (o *Operator) fault(operator string, f fault) {
	o.change(func(s *settings) { s.faults[operator] = f })
}

// Break makes updates of a Node fail until Repair. The Node and its pool are degraded after the first attempt.
func (o *Operator) Break(node, reason string) {
	o.change(func(s *settings) { s.broken[node] = reason })
}

// Repair ends [Operator.Break].
func (o *Operator) Repair(node string) { o.change(func(s *settings) { delete(s.broken, node) }) }

// Reconfigure renders another configuration of the same release for a pool, as after a change of a MachineConfig.
func (o *Operator) Reconfigure(pool string) { o.change(func(s *settings) { s.salt[pool]++ }) }

// view has the objects of one sync.
type view struct {
	*settings

	version   *configv1.ClusterVersion
	operators []configv1.ClusterOperator
	nodes     []corev1.Node
	pools     map[string]*machineconfigv1.MachineConfigPool
	// rendered are the versions of rendered configurations by name.
	rendered    map[string]string
	gates, acks map[string]string
}

// sync gathers the view and acts on it. It returns the time until the next sync; 0: only an event starts it.
func (o *Operator) sync(ctx context.Context) (next time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o.next = 0
	err := o.act(ctx)
	o.problem.Report(ctx, err)
	if err != nil {
		return retry
	}
	return o.next
}

func (o *Operator) act(ctx context.Context) error {
	v, err := o.gather(ctx)
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

// after starts the next sync after at most a duration.
func (o *Operator) after(d time.Duration) {
	d = max(d, time.Millisecond)
	if o.next == 0 || d < o.next {
		o.next = d
	}
}

// gather reads all objects. It returns nil for a cluster that is not installed.
func (o *Operator) gather(ctx context.Context) (*view, error) {
	v := &view{
		settings: o.snapshot(), version: &configv1.ClusterVersion{}, pools: map[string]*machineconfigv1.MachineConfigPool{},
		rendered: map[string]string{},
	}
	if err := o.api.Get(ctx, client.ObjectKey{Name: VersionName}, v.version); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil // the installation did not create it yet
		}
		return nil, fmt.Errorf("cannot read the ClusterVersion: %w", err)
	}
	if !o.state.adopted && !slices.ContainsFunc(v.version.Status.History, completed) {
		return nil, nil // the installation did not complete
	}
	operators, nodes, pools, configs := &configv1.ClusterOperatorList{}, &corev1.NodeList{},
		&machineconfigv1.MachineConfigPoolList{}, &machineconfigv1.MachineConfigList{}
	for _, list := range []client.ObjectList{operators, nodes, pools, configs} {
		if err := o.api.List(ctx, list); err != nil {
			return nil, fmt.Errorf("cannot list operators, Nodes, pools and configurations: %w", err)
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

// inOrder orders ClusterOperators by their updates: etcd and the kube-apiserver first, machine-config last.
func inOrder(a, b string) int {
	rank := map[string]int{openshift.Etcd: -2, openshift.KubeAPIServer: -1, openshift.MachineConfig: 1}
	return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
}
