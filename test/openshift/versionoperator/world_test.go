package versionoperator_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

const (
	patience = 2 * time.Minute
	// quiet is the time for which no change is observed.
	quiet = 300 * time.Millisecond

	current                  = "machineconfiguration.openshift.io/currentConfig"
	desired, stateAnnotation = "machineconfiguration.openshift.io/desiredConfig", "machineconfiguration.openshift.io/state"
	releaseAnnotation        = "machineconfiguration.openshift.io/release-image-version"
)

// environment has the API server of all tests, which run one after the other.
var environment struct {
	sync.Once
	env     *env.Env
	cluster *env.WorkloadCluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if environment.env != nil {
		environment.env.Stop()
	}
	os.Exit(code)
}

func apiServer(t *testing.T) *env.WorkloadCluster {
	t.Helper()
	environment.Do(func() {
		ctrl.SetLogger(logr.Discard())
		klog.SetLogger(logr.Discard())            // of closed watches
		ctx := context.WithoutCancel(t.Context()) // the server outlives the first test
		environment.env, environment.err = env.Start(ctx, env.Options{NoManagers: true, LeaveSignals: true})
		if environment.err == nil {
			environment.cluster, environment.err = environment.env.NewWorkloadCluster(ctx, "upgraded")
		}
	})
	if environment.err != nil {
		t.Fatal(environment.err)
	}
	return environment.cluster
}

// world is an empty workload cluster with an operator.
type world struct {
	*WithT
	t        *testing.T
	ctx      context.Context
	server   *env.WorkloadCluster
	api      client.WithWatch
	operator *versionoperator.Operator
	stop     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, ctx: t.Context(), server: apiServer(t)}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	w.SetDefaultConsistentlyDuration(quiet)
	var err error
	w.api, err = client.NewWithWatch(w.server.Config(), client.Options{Scheme: environment.env.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	for _, kind := range []client.Object{
		&configv1.ClusterVersion{}, &configv1.ClusterOperator{}, &machineconfigv1.MachineConfigPool{},
		&machineconfigv1.MachineConfig{}, &corev1.Node{},
	} {
		w.Expect(w.api.DeleteAllOf(w.ctx, kind)).To(Succeed())
	}
	for _, namespace := range []string{versionoperator.GatesNamespace, versionoperator.AcksNamespace, "openshift-etcd"} {
		w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))).To(Succeed())
		w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}))).To(Succeed())
		w.Expect(w.api.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace(namespace))).To(Succeed())
		w.Expect(w.api.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0))).To(Succeed())
		w.Expect(w.api.DeleteAllOf(w.ctx, &policyv1.PodDisruptionBudget{}, client.InNamespace(namespace))).To(Succeed())
	}
	return w
}

// image returns the pull spec of a version.
func image(version string) string {
	return "quay.io/openshift-release-dev/ocp-release@sha256:" + fmt.Sprintf("%064x", []byte(version))
}

// release returns a release in channels.
func release(version string, channels ...string) versionoperator.Release {
	return versionoperator.Release{Version: version, Image: image(version), Channels: channels}
}

const (
	stable, next = "stable-4.20", "stable-4.21"
)

// releases returns the releases for the clusters of the tests, which have 4.20.1.
func releases() []versionoperator.Release {
	risky, harmless, unsigned, patched := release("4.20.4", stable), release("4.20.5", next), release("4.20.6"),
		release("4.20.2", stable, next)
	risky.Risks = []versionoperator.Risk{{Name: "SlowBoot", Message: "Hosts boot slowly."}}
	harmless.Risks = []versionoperator.Risk{{Name: "OnlyElsewhere", Message: "Only elsewhere.", Exposure: metav1.ConditionFalse}}
	unsigned.Unsigned = true
	patched.Kubernetes = "1.33.9"
	return []versionoperator.Release{
		release("4.20.0", stable, next), release("4.20.1", stable, next), patched, release("4.20.3", stable, next), risky, harmless, unsigned,
		release("4.21.0", next), release("4.21.1", next), release("4.22.0", next), release("5.0.0"),
	}
}

func fast() versionoperator.Options {
	ms := time.Millisecond
	return versionoperator.Options{Releases: releases(), Load: 5 * ms, Retry: 100 * ms, Operator: 5 * ms, Drain: 5 * ms, Away: 20 * ms}
}

// install creates a cluster with 4.20.1, and starts its operator.
func (w *world) install(masters, workers int, change ...func(*versionoperator.Options)) {
	w.t.Helper()
	w.create("4.20.1", configv1.CompletedUpdate)
	for i := range masters {
		w.node("master", i)
	}
	for i := range workers {
		w.node("worker", i)
	}
	w.start(change...)
	w.Eventually(w.version).Should(HaveField("Status.ObservedGeneration", Not(BeZero())))
	w.Eventually(w.pool).WithArguments("worker").Should(HaveField("Status.Configuration.Name", Not(BeEmpty())))
	for _, node := range w.nodes() {
		w.Eventually(func() map[string]string { return w.annotations(node.Name) }).Should(HaveKeyWithValue(stateAnnotation, "Done"))
	}
}

func (w *world) start(change ...func(*versionoperator.Options)) {
	w.t.Helper()
	options := fast()
	options.Log = testr.New(w.t)
	for _, f := range change {
		f(&options)
	}
	w.operator = versionoperator.New(options)
	ctx, cancel := context.WithCancel(context.Background()) // ends before the test, to which the operator logs
	var running sync.WaitGroup
	operator, api := w.operator, w.api
	running.Go(func() { operator.Run(ctx, api) })
	w.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	w.t.Cleanup(w.stop)
}

// create creates the objects of an installation.
func (w *world) create(version string, state configv1.UpdateState) {
	w.t.Helper()
	now := metav1.Now()
	history := configv1.UpdateHistory{State: state, StartedTime: now, Version: version, Image: image(version)}
	if state == configv1.CompletedUpdate {
		history.CompletionTime = &now
	}
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID, cv.Spec.Channel = "11111111-2222-4333-8444-555555555555", stable
	cv.Spec.SignatureStores = []configv1.SignatureStore{}
	w.Expect(w.api.Create(w.ctx, cv)).To(Succeed())
	cv.Status = configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: version, Image: image(version)},
		History: []configv1.UpdateHistory{history}, VersionHash: "simulated",
	}
	w.Expect(w.api.Status().Update(w.ctx, cv)).To(Succeed())
	for _, name := range []string{"ingress", "etcd", "kube-apiserver"} {
		operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.Expect(w.api.Create(w.ctx, operator)).To(Succeed())
		operator.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}}
		w.Expect(w.api.Status().Update(w.ctx, operator)).To(Succeed())
	}
}

func (w *world) node(role string, i int) string {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   fmt.Sprintf("%s-%d", role, i),
		Labels: map[string]string{"node-role.kubernetes.io/" + role: ""},
	}}
	w.Expect(w.api.Create(w.ctx, node)).To(Succeed())
	node.Status.NodeInfo.KubeletVersion = "v1.33.0"
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	w.Expect(w.api.Status().Update(w.ctx, node)).To(Succeed())
	return node.Name
}

func (w *world) version() *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{}
	w.Expect(w.api.Get(w.ctx, client.ObjectKey{Name: "version"}, cv)).To(Succeed())
	return cv
}

// pool returns a pool, without name if it does not exist.
func (w *world) pool(name string) *machineconfigv1.MachineConfigPool {
	pool := &machineconfigv1.MachineConfigPool{}
	w.Expect(client.IgnoreNotFound(w.api.Get(w.ctx, client.ObjectKey{Name: name}, pool))).To(Succeed())
	return pool
}

// poolIs returns the conditions Updated, Updating and Degraded of a pool.
func (w *world) poolIs(name string) map[string]string {
	is := map[string]string{}
	for _, c := range w.pool(name).Status.Conditions {
		if c.Type == machineconfigv1.MachineConfigPoolUpdated || c.Type == machineconfigv1.MachineConfigPoolUpdating ||
			c.Type == machineconfigv1.MachineConfigPoolDegraded {
			is[string(c.Type)] = string(c.Status)
		}
	}
	return is
}

func (w *world) nodes() []corev1.Node {
	list := &corev1.NodeList{}
	w.Expect(w.api.List(w.ctx, list)).To(Succeed())
	return list.Items
}

func (w *world) annotations(node string) map[string]string {
	found := &corev1.Node{}
	w.Expect(w.api.Get(w.ctx, client.ObjectKey{Name: node}, found)).To(Succeed())
	return found.Annotations
}

// releaseOf returns the release of the configuration of a Node.
func (w *world) releaseOf(node string) string {
	config := &machineconfigv1.MachineConfig{}
	if err := w.api.Get(w.ctx, client.ObjectKey{Name: w.annotations(node)[current]}, config); err != nil {
		return err.Error()
	}
	return config.Annotations[releaseAnnotation]
}

// condition returns status, reason and message of a condition of the ClusterVersion, or an empty string.
func (w *world) condition(kind string) string {
	for _, c := range w.version().Status.Conditions {
		if string(c.Type) == kind {
			return strings.Join([]string{string(c.Status), c.Reason, c.Message}, "|")
		}
	}
	return ""
}

func (w *world) operatorCondition(name, kind string) string {
	operator := &configv1.ClusterOperator{}
	w.Expect(w.api.Get(w.ctx, client.ObjectKey{Name: name}, operator)).To(Succeed())
	for _, c := range operator.Status.Conditions {
		if string(c.Type) == kind {
			return strings.Join([]string{string(c.Status), c.Reason, c.Message}, "|")
		}
	}
	return ""
}

// patch changes an object.
func (w *world) patch(object client.Object, name, content string) {
	w.t.Helper()
	object.SetName(name)
	w.Expect(w.api.Patch(w.ctx, object, client.RawPatch(types.MergePatchType, []byte(content)))).To(Succeed())
}

// request replaces the requested update.
func (w *world) request(update string) {
	w.t.Helper()
	w.patch(&configv1.ClusterVersion{}, "version", `{"spec":{"desiredUpdate":null}}`)
	w.patch(&configv1.ClusterVersion{}, "version", `{"spec":{"desiredUpdate":`+update+`}}`)
}

func (w *world) channel(name string) {
	w.t.Helper()
	w.patch(&configv1.ClusterVersion{}, "version", fmt.Sprintf(`{"spec":{"channel":%q}}`, name))
}

func (w *world) pause(pool string, paused bool) {
	w.t.Helper()
	w.patch(&machineconfigv1.MachineConfigPool{}, pool, fmt.Sprintf(`{"spec":{"paused":%t}}`, paused))
}

// gate creates a gate that an administrator has to acknowledge.
func (w *world) gate(name, description string) {
	w.t.Helper()
	gates := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: versionoperator.GatesNamespace, Name: versionoperator.Gates},
		Data:       map[string]string{name: description},
	}
	w.Expect(w.api.Create(w.ctx, gates)).To(Succeed())
}

// available returns the available versions in the status.
func (w *world) available() []string {
	var versions []string
	for _, r := range w.version().Status.AvailableUpdates {
		versions = append(versions, r.Version)
	}
	return versions
}

// last returns version and state of the newest entry of the history.
func (w *world) last() string {
	entry := w.version().Status.History[0]
	return entry.Version + " " + string(entry.State)
}
