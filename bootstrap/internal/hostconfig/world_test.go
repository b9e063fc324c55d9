package hostconfig

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	namespace = sample.Namespace
	isoURL    = "http://img.example/byid/988939b3/4.19/x86_64/full.iso"
	bootMAC   = sample.BootMAC
)

var metal3Machine, bareMetalHost, discovered = sample.Metal3Machine, sample.BareMetalHost, sample.Agent

// world contains one Machine with all objects around it, and a reconciler. Tests change the defaults.
type world struct {
	*WithT
	t *testing.T
	client.WithWatch
	reconciler *Reconciler
	// cache and metadata are the readers of the reconciler and of all its steps.
	cache    *replaceableClient
	metadata *replaceableReader
	events   *record.FakeRecorder
	// writes counts the writing requests, reports those that write the status.
	writes, reports int
	// refusal is the API server's error for all applied objects; nil: it accepts them.
	refusal error
	// undeletable are the kinds whose owner references the API server does not let the manager change.
	undeletable kubetest.Undeletable
	// clock is the time of the reconciler.
	clock time.Time
	// authorities verify assisted-service for all hosts; restart applies them.
	authorities *bootmode.Authorities
	// outdated is the only Agent of an outdated cache.
	outdated *aiv1beta1.Agent
	// listing is called after Agents are listed; unordered reverses the list.
	listing   func()
	unordered bool
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme,
		aiv1beta1.AddToScheme, hiveext.AddToScheme, hivev1.AddToScheme, metal3.AddToScheme,
	} {
		NewWithT(t).Expect(add(scheme)).To(Succeed())
	}
	return scheme
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, events: record.NewFakeRecorder(100), clock: time.Now()}
	scheme := newScheme(t)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&bootstrapv1.OpenshiftAssistedConfig{}).
		WithReturnManagedFields()
	for _, i := range append(informer.Indexes(), informer.HostIndex()) {
		builder = builder.WithIndex(i.Object, i.Field, i.Values)
	}
	w.WithWatch = kubetest.BuildClient(builder, scheme, w.counting())
	w.restart()
	return w
}

// worldClock is the clock of a world. Tests set its time.
type worldClock struct {
	clock.RealClock

	world *world
}

// Now returns the time of the world.
func (c worldClock) Now() time.Time { return c.world.clock }

// replaceableClient is a client that a test replaces after the reconciler was created: the steps keep the client that
// New received.
type replaceableClient struct{ client.Client }

// replaceableReader is the same for a reader.
type replaceableReader struct{ client.Reader }

// restart creates a reconciler without memory, which reads the trimmed objects of the manager's cache.
func (w *world) restart() {
	cached := w.cached()
	w.cache, w.metadata = &replaceableClient{cached}, &replaceableReader{cached}
	w.reconciler = New(Options{
		Client: w.cache, Metadata: w.metadata, Live: w, Recorder: w.events, Selected: func(client.Object) bool { return true },
		Authorities: w.authorities, Clock: worldClock{world: w},
	})
	w.reconciler.metal3.Store(true)
}

// cached returns a client that reads the trimmed objects of the manager's cache.
func (w *world) cached() client.WithWatch {
	return kubetest.Cached(w, informer.Cached(), informer.TrimInfrastructure)
}

func (w *world) counting() interceptor.Funcs {
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			if agents, ok := list.(*aiv1beta1.AgentList); ok && w.outdated != nil {
				agents.Items = []aiv1beta1.Agent{*w.outdated.DeepCopy()}
			}
			w.listed(list)
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes++
			if err := w.undeletable.Patch(ctx, c, o, p); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			w.writes++
			if w.refusal != nil {
				return w.refusal
			}
			if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 { // the fake client would store it
				return nil
			}
			if err := w.undeletable.Apply(ctx, c, o); err != nil {
				return err
			}
			if err := w.precondition(ctx, c, o); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			w.writes++
			w.reports++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.writes++
			return c.Delete(ctx, o, opts...)
		},
	}
}

// listed applies the side effects of a list request.
func (w *world) listed(list client.ObjectList) {
	agents, ok := list.(*aiv1beta1.AgentList)
	if ok && w.unordered {
		slices.Reverse(agents.Items)
	}
	if ok && w.listing != nil {
		w.listing()
	}
}

// precondition rejects an outdated resource version, or the UID of another object. The API server does so,
// the fake client does not.
func (w *world) precondition(ctx context.Context, c client.Client, applied runtime.ApplyConfiguration) error {
	w.t.Helper()
	raw, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	wanted, current := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(raw); err != nil || wanted.GetResourceVersion() == "" && wanted.GetUID() == "" {
		return err
	}
	current.SetGroupVersionKind(wanted.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), current); err != nil {
		return err
	}
	if wanted.GetUID() != "" && current.GetUID() != wanted.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: wanted.GetKind()}, wanted.GetName(), errors.New("another uid"))
	}
	if wanted.GetResourceVersion() != "" && current.GetResourceVersion() != wanted.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: wanted.GetKind()}, wanted.GetName(), errors.New("outdated"))
	}
	return nil
}

// lab returns a Machine whose infrastructure waits for bootstrap data, with the objects around it.
func lab() map[string]client.Object {
	labels := map[string]string{clusterv1.ClusterNameLabel: "c"}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name:   "metal3machines.infrastructure.cluster.x-k8s.io",
		Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"},
	}}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", UID: sample.MachineUID, Labels: labels},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c",
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "bootstrap.cluster.x-k8s.io",
				Kind:     "OpenshiftAssistedConfig", Name: "m",
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "Metal3Machine",
				Name: "m",
			},
		},
	}
	return map[string]client.Object{
		"crd": crd,
		"cluster": &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c", UID: "cluster-uid"},
			Spec: clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "controlplane.cluster.x-k8s.io",
				Kind:     "OpenshiftAssistedControlPlane", Name: "cp",
			}},
			Status: clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)}},
		},
		"machine": machine,
		"config": &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "m", UID: "config-uid", Generation: 1, Labels: labels, OwnerReferences: ownedBy(machine),
		}},
		"metal3": metal3Machine("live-iso"),
		"deployment": &hivev1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "cp", Labels: ownerOf().Labels(),
				Annotations: map[string]string{assisted.OpenShiftVersionAnnotation: "4.19.3", contract.ClusterUIDAnnotation: "cluster-uid"},
			},
			Spec: hivev1.ClusterDeploymentSpec{PullSecretRef: &corev1.LocalObjectReference{Name: "pull-secret"}},
		},
		"install": &hiveext.AgentClusterInstall{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "cp", Labels: ownerOf().Labels(),
				Annotations: map[string]string{contract.ClusterUIDAnnotation: "cluster-uid"},
			},
			Spec: hiveext.AgentClusterInstallSpec{ProvisionRequirements: hiveext.ProvisionRequirements{
				ControlPlaneAgents: 3,
				WorkerAgents:       2,
			}},
			Status: hiveext.AgentClusterInstallStatus{DebugInfo: hiveext.DebugInfo{State: "insufficient"}},
		},
		"pullSecret": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull-secret"}},
	}
}

// ownerOf returns the owner of the cluster's objects in assisted-service.
func ownerOf() contract.Owner {
	return contract.Owner{Namespace: namespace, Cluster: "c", ControlPlane: "cp", UID: "cluster-uid"}
}

// ownedBy returns the owner references that Cluster API sets on the objects of a Machine.
func ownedBy(machine *clusterv1.Machine) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))}
}

func values(objects map[string]client.Object) []client.Object {
	result := make([]client.Object, 0, len(objects))
	for _, o := range objects {
		result = append(result, o)
	}
	return result
}

func (w *world) reconcile() ctrl.Result {
	w.t.Helper()
	result, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "m"}})
	w.Expect(err).NotTo(HaveOccurred())
	return result
}

func read[T client.Object](w *world, name string, obj T) T {
	w.t.Helper()
	w.Expect(w.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, obj)).To(Succeed())
	return obj
}

func (w *world) config() *bootstrapv1.OpenshiftAssistedConfig {
	w.t.Helper()
	return read(w, "m", &bootstrapv1.OpenshiftAssistedConfig{})
}

func (w *world) agent(name string) *aiv1beta1.Agent {
	w.t.Helper()
	return read(w, name, &aiv1beta1.Agent{})
}

func (w *world) infraMachine() *unstructured.Unstructured {
	w.t.Helper()
	return read(w, "m", metal3Machine("").DeepCopy())
}

// change edits an object as another client.
func (w *world) change(obj client.Object, mutate func()) {
	w.t.Helper()
	mutate()
	w.Expect(w.Update(w.t.Context(), obj)).To(Succeed())
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.Expect(w.Create(w.t.Context(), o)).To(Succeed())
	}
}

func (w *world) remove(obj client.Object) {
	w.t.Helper()
	w.Expect(w.Delete(w.t.Context(), obj)).To(Succeed())
}

// takeInfraEnvIn adds the finalizer of assisted-service to the InfraEnv, which blocks its deletion.
func (w *world) takeInfraEnvIn() *aiv1beta1.InfraEnv {
	w.t.Helper()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() { infraEnv.Finalizers = []string{"infraenv.agent-install.openshift.io/ai-deprovision"} })
	return infraEnv
}

// makeImage creates the discovery image, as assisted-service does.
func (w *world) makeImage() {
	w.t.Helper()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() {
		infraEnv.Status.ISODownloadURL = isoURL
		infraEnv.Status.Conditions = []conditionsv1.Condition{{
			Type: aiv1beta1.ImageCreatedCondition, Status: corev1.ConditionTrue,
			Reason: "InfraEnvAvailable",
		}}
	})
}

// lasts expects a condition that is reported once it lasts.
func (w *world) lasts(conditionType string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.wants(conditionType, status, reason)
}

// wants expects the status and reason of a condition.
func (w *world) wants(conditionType string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.config().Status.Conditions, conditionType)
	w.Expect(c).NotTo(BeNil(), "condition %s exists: %+v", conditionType, w.config().Status.Conditions)
	w.Expect(c).To(And(HaveField("Status", status), HaveField("Reason", reason)), "condition %s: %s", conditionType, c.Message)
}

// event returns the next event, or an empty string. It skips the Events about NoHostFits: in most worlds the BareMetalHost
// is created after the bootstrap data.
func (w *world) event() string {
	for {
		select {
		case e := <-w.events.Events:
			if !strings.Contains(e, bootstrapv1.NoHostFitsReason) {
				return e
			}
		default:
			return ""
		}
	}
}
