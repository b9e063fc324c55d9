package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// fakeWorkloads returns the facts that a test sets. It issues the tokens token-1, token-2..., bound to
// Secrets with these UIDs.
type fakeWorkloads struct {
	facts  workload.State
	issued int
	// tokens are the Secrets of the tokens in the cluster, independent of its cache. hasToken is the error of
	// HasToken.
	tokens   sets.Set[types.UID]
	hasToken error
	// issue is the error of IssueToken.
	issue error
	// hostsExpected is the last value of ExpectHosts.
	hostsExpected bool
	// poolsRequired is the last value of RequirePools.
	poolsRequired bool
	// authorities is the result of Authorities, or its error.
	authorities   authorities.Observed
	noAuthorities error
	// authoritiesRead is the number of calls of Authorities.
	authoritiesRead int
	// identify is the error of Identify.
	identify error
}

func (f *fakeWorkloads) IssueToken(context.Context, client.ObjectKey) (tokens.Token, error) {
	if f.issue != nil {
		return tokens.Token{}, f.issue
	}
	f.issued++
	value := fmt.Sprintf("token-%d", f.issued)
	f.tokens = f.tokens.Clone().Insert(types.UID(value))
	return tokens.Token{Value: value, Expires: time.Now().Add(tokens.Validity), BoundToUID: types.UID(value)}, nil
}

func (f *fakeWorkloads) RevokeToken(_ context.Context, _ client.ObjectKey, token tokens.Token) error {
	f.tokens = f.tokens.Clone().Delete(token.BoundToUID)
	return nil
}

func (f *fakeWorkloads) HasToken(_ context.Context, _ client.ObjectKey, boundTo types.UID) (bool, error) {
	return f.tokens.Has(boundTo), f.hasToken
}

func (f *fakeWorkloads) Authorities(context.Context, client.ObjectKey) (authorities.Observed, error) {
	f.authoritiesRead++
	return f.authorities, f.noAuthorities
}

func (f *fakeWorkloads) Identify(context.Context, client.ObjectKey) (workload.Identity, error) {
	return workload.Identity{ClusterID: "cluster-id", InfraID: "cluster1-x7k2p"}, f.identify
}

func (f *fakeWorkloads) Observe(client.ObjectKey) workload.State { return f.facts }
func (f *fakeWorkloads) Forget(client.ObjectKey)                 {}

func (f *fakeWorkloads) RequirePools(_ client.ObjectKey, required bool) { f.poolsRequired = required }

func (f *fakeWorkloads) ExpectHosts(_ client.ObjectKey, expected bool) { f.hostsExpected = expected }

type (
	switchedClient   struct{ client.Client }
	switchedReader   struct{ client.Reader }
	switchedRecorder struct{ record.EventRecorder }
)

// testClock is a clock whose time a test sets.
type testClock struct {
	clock.RealClock

	now func() time.Time
}

func (c *testClock) Now() time.Time { return c.now() }

// hub is a fake API server with a reconciler.
type hub struct {
	*WithT
	t *testing.T
	client.Client
	r     *Reconciler
	clock *testClock
	// The dependencies of the reconciler for reads, writes and Events. Tests replace their contents.
	cached    *switchedClient
	live      *switchedReader
	recorder  *switchedRecorder
	workloads *fakeWorkloads
	etcds     *fakeEtcds
	kubelets  *fakeKubelets
	versions  *fakeVersions
	dns       *fakeNames
	writing   sync.Mutex
	writes    []string
	// applyFails is the error of each server-side apply, except those of a status. With failing, only applies
	// whose JSON contains it fail.
	applyFails error
	failing    string
	// holdFails is the error of each hold of the installation.
	holdFails error
	// undeletable are the kinds whose owner references the API server does not let the manager change.
	undeletable kubetest.Undeletable
}

// recordWrite records a write. It is safe for concurrent use.
func (h *hub) recordWrite(what string) {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.writes = append(h.writes, what)
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	h := &hub{
		WithT:     NewWithT(t),
		t:         t,
		workloads: &fakeWorkloads{},
		etcds:     &fakeEtcds{},
		kubelets:  &fakeKubelets{},
		versions:  &fakeVersions{},
		dns:       dnsOf(controlPlane(nil)),
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
		hivev1.AddToScheme, hiveext.AddToScheme, aiv1beta1.AddToScheme, configv1.Install, apiextensionsv1.AddToScheme,
	} {
		h.Expect(add(scheme)).To(Succeed())
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().
		WithStatusSubresource(&controlplanev1.OpenshiftAssistedControlPlane{}, &clusterv1.Machine{}, &hiveext.AgentClusterInstall{})
	for _, i := range informer.Indexes() {
		builder = builder.WithIndex(i.Object, i.Field, i.Values)
	}
	stored := kubetest.BuildClient(builder, scheme, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			h.recordWrite("create " + obj.GetName())
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			h.recordWrite("patch " + obj.GetName())
			if err := h.undeletable.Patch(ctx, c, obj, patch); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if (&client.ApplyOptions{}).ApplyOptions(opts).FieldManager == string(writer.FieldOwner+"-hold") {
				h.recordWrite("hold")
				if h.holdFails != nil {
					return h.holdFails
				}
			}
			h.recordWrite("apply")
			if content, err := json.Marshal(obj); h.applyFails != nil && (err != nil || strings.Contains(string(content), h.failing)) {
				return h.applyFails
			}
			if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 { // the fake client would store it
				return nil
			}
			if err := h.undeletable.Apply(ctx, c, obj); err != nil {
				return err
			}
			if err := c.Apply(ctx, obj, opts...); err != nil {
				return err
			}
			return giveVersion(ctx, c, obj)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			h.recordWrite("patch status " + obj.GetName())
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, _ string, obj runtime.ApplyConfiguration,
			_ ...client.SubResourceApplyOption,
		) error {
			return h.setMachineCondition(ctx, c, obj)
		},
	})
	h.Client = stored
	cached := kubetest.ListByFieldOnly(kubetest.Cached(stored, informer.Cached(), informer.TrimInfra))
	h.clock, h.cached, h.live = &testClock{now: time.Now}, &switchedClient{cached}, &switchedReader{h.Client}
	h.recorder = &switchedRecorder{record.NewFakeRecorder(1000)}
	h.r = New(Options{
		Clock:        h.clock,
		Client:       h.cached,
		Metadata:     cached,
		Live:         h.live,
		Releases:     release.NewResolver(http.DefaultTransport, clock.RealClock{}),
		Repositories: versions.Repositories{OCP: versions.DefaultOCPRepository, OKD: versions.DefaultOKDRepository},
		Workloads:    h.workloads,
		Etcds:        h.etcds,
		Kubelets:     h.kubelets,
		Versions:     h.versions,
		Names:        h.dns,
		Recorder:     h.recorder,
		Selected:     func(client.Object) bool { return true },
	})
	return h
}

// giveVersion gives an applied Secret or AgentClusterInstall a new resource version. The fake client does
// not.
func giveVersion(ctx context.Context, c client.Client, applied runtime.ApplyConfiguration) error {
	obj, ok := applied.(interface {
		client.Object
		GetKind() string
	})
	if !ok {
		return nil
	}
	var stored client.Object
	switch obj.GetKind() {
	case "Secret":
		stored = &corev1.Secret{}
	case "AgentClusterInstall":
		stored = &hiveext.AgentClusterInstall{}
	default:
		return nil
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), stored); err != nil {
		return err
	}
	err := c.Update(ctx, stored)
	obj.SetResourceVersion(stored.GetResourceVersion())
	return err
}

// setMachineCondition replaces server-side apply of a status, for which the fake client drops the rest of the
// object.
func (h *hub) setMachineCondition(ctx context.Context, c client.Client, applied runtime.ApplyConfiguration) error {
	content, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	machine := &unstructured.Unstructured{}
	if err := machine.UnmarshalJSON(content); err != nil {
		return err
	}
	h.recordWrite("patch status " + machine.GetName())
	wanted, err := conditions.UnstructuredGetAll(machine)
	if err != nil {
		return err
	}
	m := &clusterv1.Machine{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(machine), m); err != nil {
		return err
	}
	// The API server stores the time that was applied; conditions.Set keeps the former one while the status stays.
	conditions.Delete(m, wanted[0].Type)
	conditions.Set(m, wanted[0])
	return c.Status().Update(ctx, m)
}

func (h *hub) reconcile() ctrl.Result {
	h.t.Helper()
	result, err := h.r.Reconcile(h.t.Context(), h.request())
	h.Expect(err).NotTo(HaveOccurred())
	return result
}

func (h *hub) gather() *scope.Scope {
	h.t.Helper()
	s, err := h.r.gather(h.t.Context(), h.controlPlane())
	h.Expect(err).NotTo(HaveOccurred())
	return s
}

func (h *hub) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}}
}

func (h *hub) get(name string, into client.Object) {
	h.t.Helper()
	h.Expect(h.Get(h.t.Context(), client.ObjectKey{Namespace: lab, Name: name}, into)).To(Succeed())
}

func (h *hub) machines() []clusterv1.Machine {
	h.t.Helper()
	list := &clusterv1.MachineList{}
	h.Expect(h.List(h.t.Context(), list, client.InNamespace(lab))).To(Succeed())
	return list.Items
}

// setState sets a state of assisted-service on the AgentClusterInstall.
func (h *hub) setState(state, completed string, percentage int64) {
	h.t.Helper()
	aci := &hiveext.AgentClusterInstall{}
	h.get("c1", aci)
	aci.Status.DebugInfo = hiveext.DebugInfo{
		State: state, StateInfo: "in state " + state, EventsURL: "https://svc/v2/events?cluster_id=1&api_key=secret",
	}
	aci.Status.Progress.TotalPercentage = percentage
	status := corev1.ConditionFalse
	if completed == hiveext.ClusterInstalledReason {
		status = corev1.ConditionTrue
	}
	aci.Status.Conditions = []hivev1.ClusterInstallCondition{{Type: hiveext.ClusterCompletedCondition, Status: status, Reason: completed}}
	h.Expect(h.Status().Update(h.t.Context(), aci)).To(Succeed())
}

func controlPlane(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *controlplanev1.OpenshiftAssistedControlPlane {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: lab, Name: "c1", UID: "cp-uid", Generation: 1,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "cluster1", UID: "cluster-uid"},
			},
		},
		Spec: controlplanev1.OpenshiftAssistedControlPlaneSpec{
			Replicas:            ptr.To[int32](3),
			DistributionVersion: "v4.19.3",
			Config: controlplanev1.InstallationConfig{
				BaseDomain: "example.com", ReleaseImage: digest, PullSecretRef: &corev1.LocalObjectReference{Name: "pull"},
				APIVIPs: []string{"192.168.111.5"}, IngressVIPs: []string{"192.168.111.4"},
			},
		},
	}
	cp.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infraGV.Group, Kind: "Metal3MachineTemplate", Name: "hosts",
	}
	if change != nil {
		change(cp)
	}
	return cp
}

// giveKubeconfig creates the kubeconfig as assisted-service does during the installation.
func (h *hub) giveKubeconfig(user string) {
	h.t.Helper()
	aci := &hiveext.AgentClusterInstall{}
	h.get("c1", aci)
	aci.Spec.ClusterMetadata = &hivev1.ClusterMetadata{AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "c1-admin-kubeconfig"}}
	h.Expect(h.Update(h.t.Context(), aci)).To(Succeed())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1-admin-kubeconfig", UID: "admin-uid"},
		Data:       map[string][]byte{"kubeconfig": kubeconfigOf(user)},
	}
	if err := h.Create(h.t.Context(), secret.DeepCopy()); apierrors.IsAlreadyExists(err) {
		h.Expect(h.Update(h.t.Context(), secret)).To(Succeed())
	} else {
		h.Expect(err).NotTo(HaveOccurred())
	}
}

// withTime lets time pass between reconciles, so that the cache has earlier writes.
func (h *hub) withTime() *hub {
	began, reads := time.Now(), atomic.Int64{}
	h.r.writer.Recent = reconcile.NewRecentWrites(&testClock{now: func() time.Time {
		return began.Add(time.Duration(reads.Add(1)) * reconcile.CacheLag)
	}})
	return h
}

// recordAgent records an Agent as that of a Machine's host, as the bootstrap provider does.
func (h *hub) recordAgent(m *clusterv1.Machine, agent string) {
	h.t.Helper()
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	h.get(m.Spec.Bootstrap.ConfigRef.Name, config)
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: agent}
	h.Expect(h.Update(h.t.Context(), config)).To(Succeed())
}

// createAgent creates an Agent of the BareMetalHost with the UID "host", bound to the cluster, and records it as that of a
// Machine's host.
func (h *hub) createAgent(m *clusterv1.Machine, name string) *aiv1beta1.Agent {
	h.t.Helper()
	agent := &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: name, Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: m.Name}},
		Spec: aiv1beta1.AgentSpec{
			ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: lab, Name: "c1"},
			NodeLabels:            map[string]string{metal3.HostUIDLabel: "host"},
		},
	}
	h.Expect(h.Create(h.t.Context(), agent)).To(Succeed())
	h.recordAgent(m, agent.Name)
	return agent
}

// install completes the installation of the cluster.
func (h *hub) install() {
	h.t.Helper()
	h.reconcile()
	h.giveKubeconfig("assisted-service")
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	h.workloads.facts = workload.State{Connected: true, LastSuccess: time.Now(), OpenShiftVersion: "4.19.3", KubernetesVersion: "v1.32.6"}
	h.reconcile()
}

// endDeferral makes the next reconcile write the deferred changes of the status.
func (h *hub) endDeferral() {
	h.t.Helper()
	now := time.Now()
	h.r.deferred = reconcile.NewStatusLimiter[types.UID](&testClock{now: func() time.Time { return now }})
	h.r.deferred.DeferrableDelay(h.controlPlane().UID)
	now = now.Add(reconcile.DeferralPeriod)
}

// occupyGate starts the maximum number of inspections of other clusters and sets the jitter to a millisecond.
// release ends the inspections.
func (h *hub) occupyGate() (release func()) {
	h.t.Helper()
	h.r.gate.Jitter = func(d time.Duration, factor float64) time.Duration {
		h.Expect(factor).To(Equal(1.0))
		return d + time.Millisecond
	}
	var begun []*etcdgate.Inspection
	for i := range etcdgate.MaxInspections {
		other := controlPlane(nil)
		other.UID = types.UID(fmt.Sprintf("other-%d", i))
		inspection := h.r.gate.Begin(scope.New(&facts.Facts{ControlPlane: other}), tasks.HostRelease)
		h.Expect(inspection).NotTo(BeNil())
		begun = append(begun, inspection)
	}
	return func() {
		for _, inspection := range begun {
			inspection.End()
		}
	}
}

// restartAt replaces the reconciler by one that was started at a time.
func (h *hub) restartAt(started time.Time) { h.r.started, h.r.conditions.Started = started, started }

// restart replaces the reconciler by one that has not inspected etcd yet.
func (h *hub) restart(started time.Time) {
	*h.r.gate = *etcdgate.New(h.etcds, h.clock)
	h.restartAt(started)
}
