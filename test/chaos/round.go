package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// managers are the managers of this repository, and accounts their ServiceAccounts.
var (
	managers = []string{env.Bootstrap, env.ControlPlane}
	accounts = map[string]string{
		env.Bootstrap:    "openshift-agent-bootstrap-system:openshift-agent-bootstrap-manager",
		env.ControlPlane: "openshift-agent-control-plane-system:openshift-agent-control-plane-manager",
	}
)

const (
	// stage is the duration of each stage of hosts and clusters: faults have to hit all of them.
	stage = 300 * time.Millisecond
	// hostJitter is the longest additional time of a host for each step of the Bare Metal Operator. The time
	// depends on name and namespace of the host, and so on the seed of the round.
	hostJitter = 2 * time.Second
	// flapping is how often the state of a cluster without hosts changes.
	flapping = 2 * time.Second
	// searchInterval is how often all objects are searched for secrets.
	searchInterval = 10 * time.Second
	// restart is the delay before a manager that ended is restarted.
	restart = time.Second
)

// chaos is a laboratory with faulty connections: of the managers to their API server and other servers, and of
// all clients to the clusters.
type chaos struct {
	options options
	out     io.Writer
	lab     *lab.Lab
	connections
	// audit follows the audit log of the API server.
	audit *audit.Follower
	// logs are the read offsets of the managers' logs, which continue from round to round.
	logs     map[string]int64
	follower *follower
	report   *report
}

// runAll runs all rounds.
func runAll(ctx context.Context, o options, out io.Writer) (*report, error) {
	operator, err := lab.ParseBackend("Bare Metal Operator", o.operator)
	if err != nil {
		return nil, err
	}
	c := &chaos{options: o, out: out, connections: newConnections(), logs: map[string]int64{}, report: newReport(o)}
	dir := o.dir
	if dir == "" {
		dir = filepath.Join("_artifacts", "chaos-"+time.Now().Format("20060102-150405"))
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use the folder for logs: %w", err)
	}
	defer c.closeConnections()
	if err := c.openConnections(ctx, dir); err != nil {
		return nil, err
	}
	c.lab, err = lab.New(ctx, lab.Options{
		Dir: dir, Out: out, LeaveSignals: true, BareMetal: operator, StageDelay: stage, Auth: assistedsim.AuthLocal,
		HTTPS: true, HostJitter: hostJitter, BootDelay: hosts.BootTime, Flapping: flapping,
		Bootstrap: c.manager(env.Bootstrap), ControlPlane: c.manager(env.ControlPlane), Core: c.manager(env.Core), Metal3: c.manager(env.Metal3),
		BeforeRegistry: c.beforeRegistry, BeforeDownload: c.beforeDownload,
	})
	if err != nil {
		return nil, err
	}
	defer c.lab.Stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	c.follower, c.audit = newFollower(c.lab), audit.Follow(c.lab.Env.AuditLog())
	c.follower.onViolation = func(v violation) { c.sayf("BROKEN: %s: %s", v.Rule, v.What) }
	if err := c.follower.start(ctx); err != nil {
		return nil, err
	}
	for i := range o.rounds {
		if err := c.play(ctx, o.seed+uint64(i)); err != nil {
			return c.report, fmt.Errorf("%w\nlogs: %s", err, c.lab.Dir())
		}
	}
	c.report.end()
	return c.report, nil
}

// round is one storm, and the calm after it.
type round struct {
	*chaos
	plan

	// toClusters are the connections to the API servers of the clusters, by namespace.
	toClusters map[string]*faultproxy.Connection

	mu              sync.Mutex
	active          []*activeJourney
	strangers       []*hosts.Host
	userKubeconfigs map[string]bool
}

// play runs a round. It returns errors of the laboratory only: violations are reported.
func (c *chaos) play(ctx context.Context, seed uint64) error {
	r := &round{
		chaos: c, plan: newPlan(seed, c.options.clusters, c.options.storm, c.options.wants),
		toClusters: map[string]*faultproxy.Connection{}, userKubeconfigs: map[string]bool{},
	}
	for _, j := range r.journeys {
		r.toClusters[j.namespace] = faultproxy.NewConnection()
	}
	c.sayf("round with seed %d: %d clusters, storm of at most %s", seed, len(r.journeys), c.options.storm)
	watching, leave := context.WithCancel(ctx)
	defer leave()
	var background sync.WaitGroup
	for _, act := range []func(context.Context){r.observe, r.search, r.watchMembers, r.keepRunning, r.followAdvice} {
		background.Go(func() { act(watching) })
	}
	ended := make(chan struct{})
	storm, calm := context.WithCancel(ctx)
	defer calm()
	bounded, cancel := context.WithTimeoutCause(ctx, c.options.storm+c.options.bound,
		fmt.Errorf("not within %s after the faults stopped", c.options.bound))
	defer cancel()
	r.storm()
	var acting sync.WaitGroup
	acting.Go(func() { r.act(storm) })
	var travelling sync.WaitGroup
	for _, j := range r.journeys {
		travelling.Go(func() {
			if err := r.travel(bounded, j); err != nil && ctx.Err() == nil { // an interrupted run is no violation
				c.follower.fail(endRule, err.Error())
			}
		})
	}
	go func() { travelling.Wait(); close(ended) }()
	begin := time.Now()
	select {
	case <-ended:
	case <-time.After(c.options.storm):
	}
	calm()
	acting.Wait()
	r.calm()
	c.sayf("calm after %s", time.Since(begin).Round(time.Second))
	<-ended
	for _, stranger := range r.strangers {
		stranger.PowerOff()
	}
	leave()
	background.Wait()
	return r.close(ctx, time.Since(begin))
}

// close runs the last checks, and records the figures of the round.
func (r *round) close(ctx context.Context, took time.Duration) error {
	r.follower.judge(true)
	err := errors.Join(r.judgeDeletions(), r.follower.searchSecrets(ctx))
	r.report.close(r, took)
	return errors.Join(err, r.lab.Failure())
}

// act runs the planned acts, each in the background of the following ones.
func (r *round) act(storm context.Context) {
	begin := time.Now()
	var acting sync.WaitGroup
	for _, p := range r.acts {
		wait(storm, p.at-time.Since(begin))
		if storm.Err() != nil {
			break
		}
		acting.Go(func() { r.hit(storm, p) })
	}
	acting.Wait()
}

// hit repeats an act until it hits.
func (r *round) hit(storm context.Context, p planned) {
	r.report.planned(p.act)
	for {
		hit, err := acts[p.act](r, storm, p.dice)
		if err != nil && storm.Err() == nil {
			r.sayf("act %s: %v", p.act, err)
		}
		if hit {
			r.report.hit(p.act)
			return
		}
		wait(storm, poll)
		if storm.Err() != nil {
			return
		}
	}
}

// observe checks the rules continuously.
func (r *round) observe(ctx context.Context) {
	loads := newLoads(ctx, r)
	for ctx.Err() == nil {
		wait(ctx, poll)
		r.follower.judge(false)
		if err := r.judgeDeletions(); err != nil {
			r.sayf("%v", err)
		}
		loads.observe(ctx, false)
		for _, name := range managers {
			path := r.lab.Env.Manager(name).LogPath
			end, err := r.follower.readLog(path, r.logs[path])
			if err != nil {
				r.sayf("%v", err)
			}
			r.logs[path] = end
		}
	}
	loads.observe(context.WithoutCancel(ctx), true)
}

// search searches all objects for secrets. That takes too long for the loop of look.
func (r *round) search(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, searchInterval)
		if err := r.follower.searchSecrets(ctx); err != nil && ctx.Err() == nil {
			r.sayf("%v", err)
		}
	}
}

// watchMembers reads the members of the clusters' etcds. An etcd that does not answer, or has no quorum, is
// skipped.
func (r *round) watchMembers(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, 2*poll)
		for _, t := range r.activeJourneys() {
			if t.cluster.Etcd() == nil {
				continue
			}
			if members, err := t.cluster.EtcdMembers(ctx); err == nil && len(members) > 0 {
				r.follower.recordMembers(t.namespace, members)
			}
		}
	}
}

// keepRunning restarts managers that ended, as a kubelet does.
func (r *round) keepRunning(ctx context.Context) {
	var keeping sync.WaitGroup
	for _, name := range managers {
		manager := r.lab.Env.Manager(name)
		keeping.Go(func() {
			for ctx.Err() == nil {
				wait(ctx, restart)
				if !manager.Running() && ctx.Err() == nil {
					r.report.restarted(name)
					_ = manager.Start(ctx) // a failed start is repeated
				}
			}
		})
	}
	keeping.Wait()
}

// second prepares another process of a manager, without leader election.
func (r *round) second(name string) (*process.Process, error) {
	first, group := r.lab.Env.Manager(name), r.lab.Env.Group()
	var ports [3]string
	for i := range ports {
		port, err := group.Port()
		if err != nil {
			return nil, err
		}
		ports[i] = strconv.Itoa(port)
	}
	args := slices.Concat(first.Args, []string{"--diagnostics-address=127.0.0.1:" + ports[0], "--health-addr=127.0.0.1:" + ports[1]})
	if slices.ContainsFunc(first.Args, func(arg string) bool { return strings.HasPrefix(arg, "--webhook-port=") }) {
		args = append(args, "--webhook-port="+ports[2])
	}
	second := group.New(secondOf(name), process.Clients, first.Path, args...)
	second.LogPath = first.LogPath // for the rules on logs
	second.Env, second.User = slices.Concat(first.Env, r.kubeconfig(secondOf(name))), first.User
	second.Ready = func(context.Context) error { return nil }
	return second, nil
}

// followAdvice acts as a user who follows the advice of conditions, and does nothing else.
func (r *round) followAdvice(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, 4*poll)
		for _, t := range r.activeJourneys() {
			state, err := t.cluster.State(ctx)
			if err != nil || state.Cluster == nil || !state.Cluster.DeletionTimestamp.IsZero() {
				continue
			}
			for _, m := range state.Machines {
				if m.Config != nil && m.DeletionTimestamp.IsZero() && hasReason(m.Config.Status.Conditions,
					bootstrapv1.DataSecretAvailableCondition, bootstrapv1.BootImageOutdatedReason) {
					r.follower.requestDeletion(m.Machine)
					r.countAdvice(t.cluster.DeleteMachine(ctx, m), bootstrapv1.BootImageOutdatedReason)
				}
			}
			if state.ControlPlane != nil && hasReason(state.ControlPlane.Status.Conditions, controlplanev1.InstalledCondition,
				controlplanev1.InstallationFailedReason) {
				r.retry(ctx, t, state)
			}
			r.letImport(ctx, t, state)
			r.giveKubeconfig(ctx, t, state)
			r.takeKubeconfig(ctx, t, state)
		}
	}
}

func hasReason(conditions []metav1.Condition, kind, reason string) bool {
	c := lab.Condition(conditions, kind)
	return c.Status == metav1.ConditionFalse && c.Reason == reason
}

// retry requests another attempt at a failed installation, once for each AgentClusterInstall.
func (r *round) retry(ctx context.Context, t *activeJourney, state *lab.State) {
	if state.Installation == nil || t.retried == state.Installation.UID {
		return
	}
	t.retried = state.Installation.UID
	r.follower.requestRetry(t.namespace)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, controlplanev1.RetryInstallationAnnotation, string(t.retried))
	r.countAdvice(r.lab.Client().Patch(ctx, state.ControlPlane, client.RawPatch(types.MergePatchType, patch)),
		controlplanev1.InstallationFailedReason)
}

// nodeTimeout is how long a user waits for the Node of an approved Machine before assuming that none exists.
const nodeTimeout = 30 * time.Second

// letImport deletes the Machine without a Node that blocks the import of an installed cluster: the condition
// advises that.
func (r *round) letImport(ctx context.Context, t *activeJourney, state *lab.State) {
	if state.ControlPlane == nil {
		return
	}
	registered := lab.Condition(state.ControlPlane.Status.Conditions, controlplanev1.RegistrationHealthyCondition)
	if registered.Reason != controlplanev1.WaitingForImportReason || !strings.Contains(registered.Message,
		"If it has no Node, delete the Machine") {
		return
	}
	for _, m := range state.Machines {
		if !strings.Contains(registered.Message, "Machine "+m.Name+",") || !m.DeletionTimestamp.IsZero() || m.Status.NodeRef.IsDefined() {
			continue
		}
		if t.nodeMissingSince.IsZero() {
			t.nodeMissingSince = time.Now()
		}
		if time.Since(t.nodeMissingSince) > nodeTimeout {
			t.nodeMissingSince = time.Time{}
			r.follower.requestDeletion(m.Machine)
			r.countAdvice(t.cluster.DeleteMachine(ctx, m), registered.Reason)
		}
	}
}

// giveKubeconfig creates the kubeconfig of an installed cluster from the user's copy: the condition advises that
// if none is left on the hub.
func (r *round) giveKubeconfig(ctx context.Context, t *activeJourney, state *lab.State) {
	if state.ControlPlane == nil {
		return
	}
	available := lab.Condition(state.ControlPlane.Status.Conditions, controlplanev1.KubeconfigAvailableCondition)
	if available.Reason != controlplanev1.WaitingForKubeconfigReason || !strings.Contains(available.Message, "create it") {
		return
	}
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: t.namespace, Name: secret.Name(t.cluster.Name, secret.Kubeconfig),
		Labels: map[string]string{clusterv1.ClusterNameLabel: t.cluster.Name},
	}, Type: clusterv1.ClusterSecretType, Data: map[string][]byte{secret.KubeconfigDataName: t.cluster.Server().Kubeconfig()}}
	if err := r.lab.Client().Create(ctx, kubeconfig); !apierrors.IsAlreadyExists(err) {
		r.setUserKubeconfig(t.namespace, err == nil)
		r.countAdvice(err, available.Reason)
	}
}

// takeKubeconfig deletes the kubeconfig that the user created for a former cluster of this name: the condition
// advises that.
func (r *round) takeKubeconfig(ctx context.Context, t *activeJourney, state *lab.State) {
	if state.ControlPlane == nil || !hasReason(state.ControlPlane.Status.Conditions, controlplanev1.KubeconfigAvailableCondition,
		controlplanev1.KubeconfigNotOursReason) {
		return
	}
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: secret.Name(t.cluster.Name, secret.Kubeconfig)}}
	if err := r.lab.Client().Delete(ctx, kubeconfig); !apierrors.IsNotFound(err) {
		r.setUserKubeconfig(t.namespace, err != nil)
		r.countAdvice(err, controlplanev1.KubeconfigNotOursReason)
	}
}

func (r *round) countAdvice(err error, reason string) {
	if err != nil {
		r.sayf("%v", err)
		return
	}
	r.report.countAdvice(reason)
}

// begin adds a cluster to the active ones, leave removes it.
func (r *round) begin(j journey, cluster *lab.Cluster, hosts int) *activeJourney {
	t := &activeJourney{round: r, journey: j, cluster: cluster, hosts: hosts, workers: workersOf[j.sample], forged: map[string]string{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active = append(r.active, t)
	slices.SortFunc(r.active, func(a, b *activeJourney) int { return strings.Compare(a.namespace, b.namespace) })
	return t
}

func (r *round) recordDeletion(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active = slices.DeleteFunc(r.active, func(t *activeJourney) bool { return t.namespace == namespace })
}

func (r *round) activeJourneys() []*activeJourney {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.active)
}

// setUserKubeconfig records whether a namespace has a kubeconfig that the user created, hasUserKubeconfig returns it.
func (r *round) setUserKubeconfig(namespace string, exists bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.userKubeconfigs[namespace] = exists
}

func (r *round) hasUserKubeconfig(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.userKubeconfigs[namespace]
}

func (r *round) addStranger(host *hosts.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers = append(r.strangers, host)
}

func (c *chaos) sayf(format string, args ...any) {
	// Progress messages; errors do not matter.
	_, _ = fmt.Fprintf(c.out, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
