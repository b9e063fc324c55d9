package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// world is a management cluster with Cluster lab/ha, which a test changes.
type world struct {
	Gomega
	client.Client
	clock    *clocktesting.FakeClock
	out, err bytes.Buffer
}

func newWorld(t *testing.T, funcs interceptor.Funcs) *world {
	t.Helper()
	g := NewWithT(t)
	scheme, err := reader.NewScheme()
	g.Expect(err).NotTo(HaveOccurred())
	infra := clusterv1.GroupVersionInfrastructure
	scheme.AddKnownTypeWithName(infra.WithKind(snapshot.KindInfraMachine), &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(infra.WithKind(snapshot.KindInfraMachine+"List"), &unstructured.UnstructuredList{})
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{clusterv1.GroupVersionInfrastructure})
	mapper.Add(infra.WithKind(snapshot.KindInfraMachine), meta.RESTScopeNamespace)
	created := metav1.NewTime(now.Add(-time.Hour))
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "ha", CreationTimestamp: created}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: controlplanev1.GroupVersion.Group, Kind: snapshot.KindControlPlane, Name: "ha",
	}
	cluster.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "Available", LastTransitionTime: created}}
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: cluster.ObjectMeta}
	controlPlane.Spec.DistributionVersion, controlPlane.Status.DistributionVersion = "4.19.3", "4.19.3"
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "m0", CreationTimestamp: created, Labels: map[string]string{clusterv1.ClusterNameLabel: "ha"},
	}}
	machine.Spec.ClusterName, machine.Status.NodeRef.Name = "ha", "n0"
	return &world{Gomega: g, clock: clocktesting.NewFakeClock(now), Client: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithObjects(cluster, controlPlane, machine).WithInterceptorFuncs(funcs).Build()}
}

// run runs a command line in namespace lab and returns its exit code.
func (w *world) run(ctx context.Context, args ...string) int {
	w.out.Reset()
	w.err.Reset()
	return run(ctx, &plugin{
		streams: genericiooptions.IOStreams{Out: &w.out, ErrOut: &w.err}, clock: w.clock, flags: genericclioptions.NewConfigFlags(true),
		connect: func() (*hub, error) { return &hub{API: w.Client, namespace: "lab"}, nil },
	}, args)
}

// report sets conditions of the control plane.
func (w *world) report(conditions ...metav1.Condition) {
	ctx := context.Background()
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
	w.Expect(w.Get(ctx, client.ObjectKey{Namespace: "lab", Name: "ha"}, controlPlane)).To(Succeed())
	controlPlane.Status.Conditions = nil
	for _, c := range conditions {
		c.LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
		controlPlane.Status.Conditions = append(controlPlane.Status.Conditions, c)
		if c.Reason == controlplanev1.InstallationFailedReason {
			controlPlane.Status.Installation.Phase = controlplanev1.InstallationFailed
		}
	}
	w.Expect(w.Update(ctx, controlPlane)).To(Succeed())
}

var (
	installing = notInstalled(controlplanev1.InstallingReason, "45%")
	failed     = notInstalled(controlplanev1.InstallationFailedReason, "Host m0 failed.")
	installed  = metav1.Condition{Type: controlplanev1.InstalledCondition, Status: "True", Reason: controlplanev1.InstalledReason}
	available  = metav1.Condition{Type: controlplanev1.AvailableCondition, Status: "True", Reason: controlplanev1.AvailableReason}
)

func notInstalled(reason, message string) metav1.Condition {
	return metav1.Condition{Type: controlplanev1.InstalledCondition, Status: "False", Reason: reason, Message: message}
}

func TestExitCodeOfWhy(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.Expect(w.run(t.Context(), "why", "ha")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(Equal("Cluster lab/ha is Ready\n\nRead from:  Cluster lab/ha\n"))

	w.report(installing)
	w.Expect(w.run(t.Context(), "why", "ha")).To(Equal(exitProgressing))

	w.report(failed)
	w.Expect(w.run(t.Context(), "why", "cluster/ha")).To(Equal(exitAttention))
	w.Expect(w.out.String()).To(And(
		HavePrefix("Cluster lab/ha is Failed: InstallationFailed\n  Host m0 failed.\n\nWhat to do:\n  The installation failed"),
		ContainSubstring("which wipes its hosts"),
		ContainSubstring("https://github.com/openshift-agent/cluster-api-provider-openshift-agent/blob/main/docs/operations/retrying-an-installation.md\n"),
		HaveSuffix("Condition:  Installed of OpenshiftAssistedControlPlane lab/ha\nRead from:  OpenshiftAssistedControlPlane lab/ha\n"),
	))
	w.Expect(w.run(t.Context(), "why", "m0")).To(Equal(exitDone), "the Machine has no problem of its own")
	w.Expect(w.out.String()).To(HavePrefix("Machine lab/m0 is Ready"))
}

func TestErrorsOfWhy(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.Expect(w.run(t.Context(), "why", "none")).To(Equal(exitError))
	w.Expect(w.err.String()).To(Equal("error: namespace lab has neither a Cluster nor a Machine none\n"))
	w.Expect(w.run(t.Context(), "why", "node/n0")).To(Equal(exitError))
	w.Expect(w.err.String()).To(ContainSubstring("node is not supported. Name a cluster or a machine"))
	w.Expect(w.run(t.Context(), "why")).To(Equal(exitError))
}

func TestHiddenControlPlaneIsNotReady(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "openshiftassistedcontrolplanes"}, "ha", errors.New("no"))
	w := newWorld(t, failing[*controlplanev1.OpenshiftAssistedControlPlane](forbidden))
	w.Expect(w.run(t.Context(), "why", "ha")).To(Equal(exitError))
	w.Expect(w.out.String()).To(ContainSubstring("OpenshiftAssistedControlPlanes are not readable (no permission)."))
	w.Expect(w.run(t.Context(), "status", "ha")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(ContainSubstring("? OpenshiftAssistedControlPlanes  not readable (no permission)"))
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=installed")).To(Equal(exitError))
}

func TestOutputForScripts(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.report(failed)
	w.Expect(w.run(t.Context(), "status", "ha", "-o", "json")).To(Equal(exitDone))
	status := map[string]any{}
	w.Expect(json.Unmarshal(w.out.Bytes(), &status)).To(Succeed())
	w.Expect(status).To(And(HaveKeyWithValue("kind", "ClusterStatus"), HaveKeyWithValue("state", "Failed"), HaveKeyWithValue("name", "ha")))

	w.Expect(w.run(t.Context(), "status", "-A", "-o", "jsonpath={.items[*].cause.reason}")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(Equal("InstallationFailed"))
	w.Expect(w.run(t.Context(), "why", "ha", "-o", "yaml")).To(Equal(exitAttention))
	w.Expect(w.out.String()).To(HavePrefix("advice: "))
	w.Expect(w.out.String()).To(And(ContainSubstring("kind: Cause\n"), ContainSubstring("\nreason: InstallationFailed\n")))
	w.Expect(w.run(t.Context(), "status", "ha", "-o", "wide")).To(Equal(exitError))
	w.Expect(w.run(t.Context(), "status", "ha", "-w", "-o", "json")).To(Equal(exitError))
}

func TestClustersOfANamespace(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.report(installing)
	w.Expect(w.run(t.Context(), "status")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(Equal("" +
		"NAMESPACE   NAME   STATE         RELEASE   PROGRESS   MACHINES   FOR   CAUSE\n" +
		"lab         ha     Progressing   4.19.3               0/1        60s   Installing: 45% (OpenshiftAssistedControlPlane ha)\n"))
	w.Expect(w.run(t.Context(), "status", "ha", "-A")).To(Equal(exitError))
}

// countClusterReads counts the reads of Clusters.
func countClusterReads(reads *atomic.Int32) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*clusterv1.Cluster); is {
				reads.Add(1)
			}
			return api.Get(ctx, key, object, options...)
		},
	}
}

func TestWaitEndsWithTheInstallation(t *testing.T) {
	reads := atomic.Int32{}
	w := newWorld(t, countClusterReads(&reads))
	w.report(installing)
	code := make(chan int)
	go func() { code <- w.run(t.Context(), "wait", "ha", "--for=installed") }()
	w.Eventually(func() int32 { w.clock.Step(interval); return reads.Load() }).Should(BeNumerically(">", 3))
	w.Expect(code).NotTo(Receive())
	w.report(installed, available)
	w.Eventually(func() chan int { w.clock.Step(interval); return code }).Should(Receive(Equal(exitDone)))
	w.Expect(w.out.String()).To(Equal("Cluster lab/ha is installed.\n"))
	w.Expect(w.err.String()).To(MatchRegexp(`^12:\d\d:\d\d Progressing: Installing: 45% \(OpenshiftAssistedControlPlane ha\)\n$`), "once")
}

func TestWaitEndsWithAFailure(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.report(failed)
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=installed")).To(Equal(exitAttention))
	w.Expect(w.err.String()).To(ContainSubstring("Cluster lab/ha is Failed: InstallationFailed\n  Host m0 failed."))
	w.Expect(w.out.String()).To(BeEmpty())
}

func TestWaitEndsWithAFailingUpgrade(t *testing.T) {
	reads := atomic.Int32{}
	w := newWorld(t, countClusterReads(&reads))
	failing := metav1.Condition{
		Type: controlplanev1.RollingOutCondition, Status: "True", Reason: controlplanev1.UpgradeFailingReason,
		Message: "upgrading to 4.20.8; failing: etcd is degraded",
	}
	rolling := failing
	rolling.Reason = clusterv1.RollingOutReason
	w.report(installed, available, failing)
	code := make(chan int)
	go func() { code <- w.run(t.Context(), "wait", "ha", "--for=upgraded", "--timeout=5h") }()
	// next lets a time pass until the command has evaluated the current state: a read that runs may have begun before.
	next := func(after time.Duration) {
		before := reads.Load()
		w.Eventually(func() int32 { w.clock.Step(after); return reads.Load() }).Should(BeNumerically(">", before+1))
	}
	next(interval)
	w.report(installed, available, rolling) // the operator recovers
	next(interval)
	next(failingTime)
	w.report(installed, available, failing)
	next(interval)
	w.Expect(code).NotTo(Receive(), "a failure of seconds")
	w.Eventually(func() chan int { w.clock.Step(time.Minute); return code }).Should(Receive(Equal(exitAttention)))
	w.Expect(w.err.String()).To(ContainSubstring(
		"Cluster lab/ha is Blocked: UpgradeFailing\n  upgrading to 4.20.8; failing: etcd is degraded\n"))
	w.Expect(w.err.String()).To(ContainSubstring("docs/conditions.md#UpgradeFailing"))
}

func TestWaitEndsAtItsTimeout(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=installed", "--timeout=10ms")).To(Equal(exitProgressing), "no problem, and not installed")
	w.report(installing)
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=installed", "--timeout=10ms")).To(Equal(exitProgressing))
	w.Expect(w.err.String()).To(ContainSubstring("Cluster lab/ha is not installed within 10ms."))
	blocked := installing
	blocked.Reason = controlplanev1.PullSecretMissingReason
	w.report(blocked)
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=installed", "--timeout=10ms")).To(Equal(exitAttention))
}

func TestWaitForDeletion(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.Expect(w.run(t.Context(), "wait", "none", "--for=deleted")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(Equal("Cluster lab/none does not exist.\n"), "the name may be wrong")
	w.Expect(w.run(t.Context(), "wait", "none", "--for=installed")).To(Equal(exitError))
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=deleted", "--timeout=10ms")).To(Equal(exitAttention))
	w.Expect(w.err.String()).To(ContainSubstring("The Cluster is not being deleted."))
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=gone")).To(Equal(exitError))
	w.Expect(w.run(t.Context(), "wait", "ha", "--for=deleted", "--timeout=0s")).To(Equal(exitError))
	w.Expect(w.err.String()).To(Equal("error: --timeout must be positive\n"))
}

func TestDeletionEndsBeforeAClusterOfTheSameName(t *testing.T) {
	reads := 0
	w := newWorld(t, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := api.Get(ctx, key, object, options...)
			if _, is := object.(*clusterv1.Cluster); is {
				reads++
				object.SetUID(types.UID([]string{"old", "new"}[min(reads, 2)-1]))
			}
			return err
		},
	})
	code := make(chan int)
	go func() { code <- w.run(t.Context(), "wait", "ha", "--for=deleted") }()
	w.Eventually(func() chan int { w.clock.Step(interval); return code }).Should(Receive(Equal(exitDone)))
	w.Expect(w.out.String()).To(Equal("Cluster lab/ha is deleted.\n"))
}

// failing returns an API that fails to read objects of one type.
func failing[T client.Object](err error) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(T); is {
				return err
			}
			return api.Get(ctx, key, object, options...)
		},
	}
}

// No failure of a request may look like the goal.
func TestFailedRequestsAreNoSuccess(t *testing.T) {
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: snapshot.KindCluster}}
	notServed := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "clusters"}, "ha", "", 0, true)
	refused := errors.New("connection refused")
	for situation, tc := range map[string]struct {
		funcs   interceptor.Funcs
		args    []string
		message string
	}{
		"kind not served, as by a proxy": {
			failing[*clusterv1.Cluster](notServed), []string{"wait", "ha", "--for=deleted", "--timeout=10ms"}, "warning: cannot read Cluster lab/ha",
		},
		"kind does not exist":     {failing[*clusterv1.Cluster](noKind), []string{"wait", "ha", "--for=deleted"}, "no matches for kind"},
		"why without Cluster API": {failing[*clusterv1.Cluster](noKind), []string{"why", "ha"}, "no matches for kind"},
		"hub without answer": {
			failing[*clusterv1.Cluster](refused), []string{"wait", "ha", "--for=deleted", "--timeout=10ms"}, "could not be read within 10ms",
		},
		"control plane without answer": {
			failing[*controlplanev1.OpenshiftAssistedControlPlane](refused),
			[]string{"wait", "ha", "--for=installed", "--timeout=10ms"},
			"Cluster lab/ha is not installed within 10ms.\nCluster lab/ha is Unknown\n  The cause is unknown: " +
				"OpenshiftAssistedControlPlanes are not readable (connection refused).",
		},
		"why with a control plane without answer": {
			failing[*controlplanev1.OpenshiftAssistedControlPlane](refused), []string{"why", "ha"}, "",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(t, tc.funcs)
			w.Expect(w.run(t.Context(), tc.args...)).To(Equal(exitError))
			w.Expect(w.err.String()).To(ContainSubstring(tc.message))
			w.Expect(w.out.String()).NotTo(Or(ContainSubstring("deleted"), ContainSubstring("Ready")))
		})
	}
}

// The state that was read before the hub became unreachable may not be the current one.
func TestOutdatedStateIsNotReportedAtTheTimeout(t *testing.T) {
	t.Parallel()
	reads := 0
	w := newWorld(t, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*clusterv1.Cluster); is {
				if reads++; reads > 1 {
					return errors.New("connection refused")
				}
			}
			return api.Get(ctx, key, object, options...)
		},
	})
	code := make(chan int)
	go func() { code <- w.run(t.Context(), "wait", "ha", "--for=installed", "--timeout=2s") }()
	w.Eventually(func() chan int { w.clock.Step(interval); return code }, time.Minute).Should(Receive(Equal(exitError)))
	w.Expect(w.err.String()).To(HaveSuffix(
		"error: cluster lab/ha is not known to be installed within 2s: cannot read Cluster lab/ha: connection refused\n"))
}

func TestWaitContinuesWhileTheHubRestarts(t *testing.T) {
	requests := 0
	w := newWorld(t, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if requests++; requests == 1 {
				return errors.New("connection refused")
			}
			return api.Get(ctx, key, object, options...)
		},
	})
	requests = 1
	w.report(installed, available)
	requests = 0
	code := make(chan int)
	go func() { code <- w.run(t.Context(), "wait", "ha", "--for=installed") }()
	w.Eventually(func() chan int { w.clock.Step(interval); return code }).Should(Receive(Equal(exitDone)))
	w.Expect(w.err.String()).To(ContainSubstring("warning: cannot read Cluster lab/ha: connection refused"))
}

func TestWatchWritesChanges(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	go func() { code <- w.run(ctx, "status", "-w") }()
	w.Eventually(w.clock.HasWaiters).Should(BeTrue())
	cancel()
	w.Eventually(code).Should(Receive(Equal(exitDone)), "an interrupt is no error")
	w.Expect(w.out.String()).To(ContainSubstring("Ready"))
}

func TestSlowReadsOfAWatchAreRare(t *testing.T) {
	var w *world
	reads := atomic.Int32{}
	slow := func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if _, isCluster := list.(*clusterv1.ClusterList); isCluster {
			reads.Add(1)
			w.clock.Step(10 * time.Second)
		}
		return c.List(ctx, list, o...)
	}
	w = newWorld(t, interceptor.Funcs{List: slow})
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	go func() { code <- w.run(ctx, "status", "-w") }()
	w.Eventually(w.clock.HasWaiters).Should(BeTrue())
	w.clock.Step(89 * time.Second)
	w.Consistently(reads.Load).WithTimeout(200 * time.Millisecond).Should(BeEquivalentTo(1))
	w.clock.Step(time.Second)
	w.Eventually(reads.Load).Should(BeEquivalentTo(2))
	cancel()
	w.Eventually(code).Should(Receive(Equal(exitDone)))
}

func TestInterruptedRequestOfAWatchIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		cancel()
		return errors.New("the request was canceled")
	}})
	w.Expect(w.run(ctx, "status", "-w")).To(Equal(exitDone))
	w.Expect(w.err.String()).To(BeEmpty())
}

func TestNamesAreCompleted(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	for _, command := range []string{"status", "why", "wait", "gather"} {
		args := []string{"__complete", command, ""}
		w.Expect(w.run(t.Context(), args...)).To(Equal(exitDone))
		w.Expect(w.out.String()).To(MatchRegexp(`(?m)^ha$`), "%v", args)
	}
	w.Expect(w.run(t.Context(), "__complete", "wait", "ha", "--for", "")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(HavePrefix("installed\nupgraded\ndeleted\n"))
}

func TestGatherWritesAnArchive(t *testing.T) {
	w, file := newWorld(t, interceptor.Funcs{}), filepath.Join(t.TempDir(), "ha.tar.gz")
	w.Expect(w.run(t.Context(), "gather", "ha", "--output", file)).To(Equal(exitDone), w.err.String())
	w.Expect(w.out.String()).To(Equal(file + "\n"))
	w.Expect(file).To(BeARegularFile())
	w.Expect(w.run(t.Context(), "gather", "ha", "--output", file)).To(Equal(exitError))
	w.Expect(w.err.String()).To(ContainSubstring("Name another file with --output"))
}

func TestErrorsOfGather(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	for _, flag := range []string{"--timeout=0s", "--since=-1h", "--log-bytes=0", "--log-bytes=1000000000", "--assisted-service-ca=/none"} {
		file := filepath.Join(t.TempDir(), "ha.tar.gz")
		w.Expect(w.run(t.Context(), "gather", "ha", flag, "--output", file)).To(Equal(exitError), flag)
		w.Expect(file).NotTo(BeAnExistingFile())
	}
	w.Expect(w.run(t.Context(), "gather", "none", "--output", filepath.Join(t.TempDir(), "none.tar.gz"))).To(Equal(exitError))
	w.Expect(w.err.String()).To(ContainSubstring("cannot read Cluster lab/none"))
}

func TestHelpNamesTheCommandOfTheUser(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.Expect(w.run(t.Context(), "wait", "--help")).To(Equal(exitDone))
	w.Expect(w.out.String()).To(ContainSubstring("kubectl openshift-agent wait CLUSTER --for installed|upgraded|deleted"))
}

func TestExitCodeOfEachState(t *testing.T) {
	g := NewWithT(t)
	for state, code := range map[judge.State]int{
		judge.Failed: exitAttention, judge.Blocked: exitAttention, judge.Slow: exitAttention, judge.Unknown: exitError,
		judge.Paused: exitAttention, judge.Progressing: exitProgressing,
	} {
		g.Expect(exitFor(state)).To(Equal(exitCodeError(code)), string(state))
	}
	g.Expect(exitFor(judge.Ready)).To(Succeed())
}
