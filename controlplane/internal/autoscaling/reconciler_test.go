package autoscaling

import (
	"context"
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/capacity"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const ofSmall, ofLarge, of32GiB = "7500m", "63180m", "27548Mi"

var templateKind = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "Metal3MachineTemplate"}

// hub is a management cluster with a Reconciler that reads as from the cache of its manager.
type hub struct {
	client.Client

	r      *Reconciler
	events *record.FakeRecorder
	clock  *testingclock.FakeClock
	// writes counts the apply requests.
	writes int
}

// newHub returns a hub with a cluster, a MachineDeployment "w" that requests its capacity, and its template, without
// hosts.
func newHub(t *testing.T, more ...client.Object) *hub {
	t.Helper()
	g := NewWithT(t)
	scheme := newScheme(g)
	objects := append([]client.Object{
		machineDeployment(), cluster(), template(), definition("metal3machinetemplates.infrastructure.cluster.x-k8s.io"),
		definition(metal3.HardwareDataCRD),
	}, more...)
	h := &hub{events: record.NewFakeRecorder(10), clock: testingclock.NewFakeClock(sample.Noon)}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields()
	for _, index := range append(informer.Indexes(), informer.AllOf(&metal3.Host{}), informer.AllOf(&metal3.HardwareData{})) {
		builder = builder.WithIndex(index.Object, index.Field, index.Values)
	}
	c := interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			h.writes++
			return c.Apply(ctx, obj, opts...)
		},
	})
	h.Client = c
	h.r = New(Options{
		Client:   kubetest.ListByFieldOnly(kubetest.Cached(c, informer.Cached(), informer.TrimInfra)),
		Recorder: h.events, Clock: h.clock, Selected: func(client.Object) bool { return true },
	})
	h.r.watchTemplate = func(client.Object) error { return nil }
	return h
}

func newScheme(g Gomega) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		metav1.AddMetaToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme, metal3.AddToScheme, hivev1.AddToScheme,
		hiveext.AddToScheme, aiv1beta1.AddToScheme, bootstrapv1.AddToScheme, corev1.AddToScheme,
	} {
		g.Expect(add(scheme)).To(Succeed())
	}
	return scheme
}

func machineDeployment() *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "w", UID: "w-uid"}}
	d.Annotations = map[string]string{
		controlplanev1.AutoscalingCapacityAnnotation: controlplanev1.AutoscalingCapacityFromHardwareData, "other": "x",
	}
	d.Spec.ClusterName, d.Spec.Replicas = "cluster1", ptr.To[int32](0)
	d.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: templateKind.Group, Kind: templateKind.Kind, Name: "workers",
	}
	return d
}

func cluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "cluster1"}}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: controlplanev1.GroupVersion.Group, Kind: facts.ControlPlaneKind, Name: "c1",
	}
	return c
}

func template() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"hostSelector": map[string]any{"matchLabels": map[string]any{"pool": "gpu"}},
	}}}}}
	u.SetGroupVersionKind(templateKind)
	u.SetNamespace(sample.Namespace)
	u.SetName("workers")
	return u
}

// definition returns a CustomResourceDefinition whose kind has version v1beta1 for the contract.
func definition(name string) client.Object {
	crd := kube.MetadataOf(kube.CustomResourceDefinition)
	crd.Name, crd.Labels = name, map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1"}
	return crd
}

// host returns an inspected host with 32 GiB, and its HardwareData.
func host(name string, cpus int) []client.Object {
	h := &metal3.Host{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name, Labels: map[string]string{"pool": "gpu"}}}
	h.Status.Provisioning.State = "available"
	data := &metal3.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name}}
	data.Spec.Hardware = &metal3.Hardware{CPU: metal3.CPU{Count: cpus}, RAMMebibytes: 32 << 10}
	return []client.Object{h, data}
}

// reconcile reconciles twice: the second time must write nothing. It returns the annotations that the autoscaler reads.
func (h *hub) reconcile(ctx context.Context, g Gomega) map[string]string {
	_, err := h.r.Reconcile(ctx, own)
	g.Expect(err).NotTo(HaveOccurred())
	h.clock.Step(2 * reconcile.CacheLag)
	before := h.writes
	_, err = h.r.Reconcile(ctx, own)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.writes).To(Equal(before), "nothing changed")
	d := h.deployment(ctx, g)
	g.Expect(d.Annotations).To(HaveKeyWithValue("other", "x"), "foreign annotations stay")
	stated := maps.Clone(d.Annotations)
	maps.DeleteFunc(stated, func(key, _ string) bool { return key != capacity.CPUAnnotation && key != capacity.MemoryAnnotation })
	return stated
}

func (h *hub) deployment(ctx context.Context, g Gomega) *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{}
	g.Expect(h.Get(ctx, client.ObjectKey{Namespace: sample.Namespace, Name: "w"}, d)).To(Succeed())
	return d
}

// annotate changes annotations as another client does with kubectl annotate; "" removes one.
func (h *hub) annotate(ctx context.Context, g Gomega, annotations map[string]string) {
	d := h.deployment(ctx, g)
	for key, value := range annotations {
		if value == "" {
			delete(d.Annotations, key)
		} else {
			d.Annotations[key] = value
		}
	}
	g.Expect(h.Update(ctx, d, client.FieldOwner("kubectl-annotate"))).To(Succeed())
}

// record returns the record of the stated annotations; "" without one.
func (h *hub) record(ctx context.Context, g Gomega) string {
	return h.deployment(ctx, g).Annotations[controlplanev1.StatedCapacityAnnotation]
}

// applyAs applies annotations as another client that takes over their ownership.
func (h *hub) applyAs(ctx context.Context, g Gomega, owner client.FieldOwner, annotations map[string]string) {
	applied := &unstructured.Unstructured{}
	applied.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineDeployment"))
	applied.SetNamespace(sample.Namespace)
	applied.SetName("w")
	applied.SetAnnotations(annotations)
	g.Expect(h.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), owner, client.ForceOwnership)).To(Succeed())
}

func (h *hub) event() string {
	select {
	case e := <-h.events.Events:
		return e
	default:
		return ""
	}
}

func TestCapacityFollowsTheSmallestHost(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	h := newHub(t, host("large", 64)...)
	g.Expect(h.reconcile(ctx, g)).To(Equal(map[string]string{capacity.CPUAnnotation: ofLarge, capacity.MemoryAnnotation: of32GiB}))
	g.Expect(h.event()).To(HavePrefix("Normal CapacityStated Stated 63180m CPUs"))
	g.Expect(h.event()).To(BeEmpty(), "one Event for a result")

	for _, object := range host("small", 8) {
		g.Expect(h.Create(ctx, object)).To(Succeed())
	}
	g.Expect(h.reconcile(ctx, g)).To(HaveKeyWithValue(capacity.CPUAnnotation, ofSmall))
	g.Expect(h.event()).To(HavePrefix("Normal CapacityStated Stated 7500m CPUs"))

	h.annotate(ctx, g, map[string]string{controlplanev1.AutoscalingCapacityAnnotation: ""})
	g.Expect(h.reconcile(ctx, g)).To(BeEmpty(), "no longer requested")
	g.Expect(h.event()).To(BeEmpty())
}

func TestNothingIsStatedWithoutHosts(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	h := newHub(t)
	g.Expect(h.reconcile(ctx, g)).To(BeEmpty())
	g.Expect(h.writes).To(BeZero())
	g.Expect(h.event()).To(HavePrefix("Warning CapacityUnknown Capacity unknown: no BareMetalHost of namespace lab matches"))

	small := host("small", 8)
	for _, object := range small {
		g.Expect(h.Create(ctx, object)).To(Succeed())
	}
	g.Expect(h.reconcile(ctx, g)).To(HaveLen(2))
	g.Expect(h.event()).To(HavePrefix("Normal CapacityStated"))
	g.Expect(h.Delete(ctx, small[1])).To(Succeed())
	g.Expect(h.reconcile(ctx, g)).To(BeEmpty(), "withdrawn: the host could be smaller")
	g.Expect(h.event()).To(ContainSubstring("lab/small"))
}

// The user's own value counts, whenever it is set and however it is written.
func TestUsersAnnotationIsKept(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	h := newHub(t, host("large", 64)...)
	h.annotate(ctx, g, map[string]string{capacity.CPUAnnotation: "12"})
	g.Expect(h.reconcile(ctx, g)).To(Equal(map[string]string{capacity.CPUAnnotation: "12", capacity.MemoryAnnotation: of32GiB}))
	g.Expect(h.event()).To(HaveSuffix("Not changed, because another client set it: annotation " + capacity.CPUAnnotation))

	h.annotate(ctx, g, map[string]string{capacity.MemoryAnnotation: "1Gi"})
	both := map[string]string{capacity.CPUAnnotation: "12", capacity.MemoryAnnotation: "1Gi"}
	g.Expect(h.reconcile(ctx, g)).To(Equal(both), "also an annotation that this provider had stated")
	g.Expect(h.record(ctx, g)).To(BeEmpty(), "no annotation is left that this provider stated")
	h.annotate(ctx, g, map[string]string{controlplanev1.AutoscalingCapacityAnnotation: ""})
	g.Expect(h.reconcile(ctx, g)).To(Equal(both), "also when the request ends")

	h.annotate(ctx, g, map[string]string{
		controlplanev1.AutoscalingCapacityAnnotation: controlplanev1.AutoscalingCapacityFromHardwareData, capacity.CPUAnnotation: "",
	})
	g.Expect(h.reconcile(ctx, g)).To(HaveKeyWithValue(capacity.CPUAnnotation, ofLarge), "the user removed the own value")
}

// A user who applies the same value owns it together with this provider. A later change is not forced on the user.
func TestSharedAnnotationIsKept(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	h := newHub(t, host("large", 64)...)
	g.Expect(h.reconcile(ctx, g)).To(HaveKeyWithValue(capacity.CPUAnnotation, ofLarge))
	h.applyAs(ctx, g, "argocd", map[string]string{capacity.CPUAnnotation: ofLarge})

	for _, object := range host("small", 8) {
		g.Expect(h.Create(ctx, object)).To(Succeed())
	}
	g.Expect(h.reconcile(ctx, g)).To(HaveKeyWithValue(capacity.CPUAnnotation, ofLarge))
}

// The record lists exactly the values that this provider stated. After a restore, others are the user's.
func TestRecordFollowsTheStatedAnnotations(t *testing.T) {
	const ofBoth = `{"` + capacity.CPUAnnotation + `":"` + ofLarge + `","` + capacity.MemoryAnnotation + `":"` + of32GiB + `"}`
	for situation, tc := range map[string]struct {
		change map[string]string
		want   string
	}{
		"the user removes the record": {map[string]string{controlplanev1.StatedCapacityAnnotation: ""}, ofBoth},
		"the user changes the record": {map[string]string{controlplanev1.StatedCapacityAnnotation: "{}"}, ofBoth},
		"the user sets one value": {
			map[string]string{capacity.CPUAnnotation: "12"}, `{"` + capacity.MemoryAnnotation + `":"` + of32GiB + `"}`,
		},
		"the user sets both values": {map[string]string{capacity.CPUAnnotation: "12", capacity.MemoryAnnotation: "1Gi"}, ""},
		"the request ends":          {map[string]string{controlplanev1.AutoscalingCapacityAnnotation: ""}, ""},
		"the request ends, and the user sets both values": {map[string]string{
			controlplanev1.AutoscalingCapacityAnnotation: "", capacity.CPUAnnotation: "12", capacity.MemoryAnnotation: "1Gi",
		}, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			h := newHub(t, host("large", 64)...)
			g.Expect(h.reconcile(ctx, g)).To(HaveLen(2))
			g.Expect(h.record(ctx, g)).To(Equal(ofBoth))
			h.annotate(ctx, g, tc.change)
			h.reconcile(ctx, g)
			g.Expect(h.record(ctx, g)).To(Equal(tc.want))
		})
	}
}

// A manifest in Git may be an export of the object, with the record. The record must not block later capacities.
func TestRecordOfAnotherClientIsReplaced(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	h := newHub(t, host("large", 64)...)
	g.Expect(h.reconcile(ctx, g)).To(HaveLen(2))
	h.event()
	exported := map[string]string{controlplanev1.StatedCapacityAnnotation: h.record(ctx, g)}
	h.applyAs(ctx, g, "argocd", exported)
	for _, object := range host("small", 8) {
		g.Expect(h.Create(ctx, object)).To(Succeed())
	}
	g.Expect(h.reconcile(ctx, g)).To(Equal(map[string]string{capacity.CPUAnnotation: ofSmall, capacity.MemoryAnnotation: of32GiB}))
	g.Expect(h.record(ctx, g)).To(ContainSubstring(ofSmall))
	g.Expect(h.event()).NotTo(ContainSubstring("another client"), "the record is no value of the user")

	h.applyAs(ctx, g, "argocd", exported)
	g.Expect(h.reconcile(ctx, g)).To(HaveLen(2), "the tool restores the record")
	g.Expect(h.record(ctx, g)).To(ContainSubstring(ofSmall))
}

// Two other clients may own the same annotation.
func TestAnnotationInConflictIsNamedOnce(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	h := newHub(t, host("large", 64)...)
	g.Expect(h.reconcile(ctx, g)).To(HaveLen(2))
	h.event()
	for _, tool := range []client.FieldOwner{"argocd", "flux"} {
		h.applyAs(ctx, g, tool, map[string]string{capacity.CPUAnnotation: ofLarge})
	}
	for _, object := range host("small", 8) {
		g.Expect(h.Create(ctx, object)).To(Succeed())
	}
	_, err := h.r.Reconcile(ctx, own)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.event()).To(HaveSuffix("Not changed, because another client set it: annotation " + capacity.CPUAnnotation))
}

// clusterctl move and backups create the object again, with all annotations and another field owner.
func TestCapacityFollowsAfterMoveOrRestore(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*clusterv1.MachineDeployment)
		want   map[string]string
	}{
		"as it was": {func(*clusterv1.MachineDeployment) {}, map[string]string{
			capacity.CPUAnnotation: ofSmall, capacity.MemoryAnnotation: of32GiB,
		}},
		"no longer requested": {func(d *clusterv1.MachineDeployment) {
			delete(d.Annotations, controlplanev1.AutoscalingCapacityAnnotation)
		}, map[string]string{}},
		"with a value of the user": {func(d *clusterv1.MachineDeployment) { d.Annotations[capacity.CPUAnnotation] = "12" }, map[string]string{
			capacity.CPUAnnotation: "12", capacity.MemoryAnnotation: of32GiB,
		}},
		"with a record that is no JSON": {func(d *clusterv1.MachineDeployment) {
			d.Annotations[controlplanev1.StatedCapacityAnnotation] = "{"
		}, map[string]string{capacity.CPUAnnotation: ofLarge, capacity.MemoryAnnotation: of32GiB}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			h := newHub(t, host("large", 64)...)
			g.Expect(h.reconcile(ctx, g)).To(HaveKeyWithValue(capacity.CPUAnnotation, ofLarge))
			moved := h.deployment(ctx, g)
			g.Expect(h.Delete(ctx, moved)).To(Succeed())
			moved.UID, moved.ResourceVersion, moved.ManagedFields = "moved", "", nil
			tc.change(moved)
			g.Expect(h.Create(ctx, moved, client.FieldOwner("clusterctl"))).To(Succeed())
			for _, object := range host("small", 8) {
				g.Expect(h.Create(ctx, object)).To(Succeed())
			}
			_, err := h.r.Reconcile(ctx, own) // the event of its write requests the next one
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(h.reconcile(ctx, g)).To(Equal(tc.want))
		})
	}
}

// The topology controller applies its own annotations, by server-side apply. Those of this provider stay.
func TestTopologyKeepsTheCapacity(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	h := newHub(t, host("large", 64)...)
	g.Expect(h.reconcile(ctx, g)).To(HaveLen(2))
	for range 2 {
		h.applyAs(ctx, g, "capi-topology", map[string]string{
			controlplanev1.AutoscalingCapacityAnnotation: controlplanev1.AutoscalingCapacityFromHardwareData, "class": "gpu",
		})
		g.Expect(h.reconcile(ctx, g)).To(HaveLen(2))
	}
}

func TestOtherMachineDeploymentsAreLeftAlone(t *testing.T) {
	for situation, change := range map[string]func(*hub, *clusterv1.MachineDeployment, *clusterv1.Cluster){
		"no request": func(_ *hub, d *clusterv1.MachineDeployment, _ *clusterv1.Cluster) {
			delete(d.Annotations, controlplanev1.AutoscalingCapacityAnnotation)
		},
		"another provider's cluster": func(_ *hub, _ *clusterv1.MachineDeployment, c *clusterv1.Cluster) {
			c.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane"
		},
		"a paused Cluster": func(_ *hub, _ *clusterv1.MachineDeployment, c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) },
		"paused": func(_ *hub, d *clusterv1.MachineDeployment, _ *clusterv1.Cluster) {
			d.Annotations[clusterv1.PausedAnnotation] = ""
		},
		"not selected": func(h *hub, _ *clusterv1.MachineDeployment, _ *clusterv1.Cluster) {
			h.r.Selected = func(o client.Object) bool { return o.GetLabels()[clusterv1.WatchLabel] == "mine" }
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			ctx := t.Context()
			h := newHub(t, host("large", 64)...)
			d, c := h.deployment(ctx, g), cluster()
			g.Expect(h.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
			change(h, d, c)
			g.Expect(h.Update(ctx, d)).To(Succeed())
			g.Expect(h.Update(ctx, c)).To(Succeed())
			g.Expect(h.reconcile(ctx, g)).To(BeEmpty())
			g.Expect(h.event()).To(BeEmpty())
		})
	}
}

func TestSelectedMachineDeploymentStatesItsCapacity(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, host("large", 64)...)
	h.r.Selected = func(o client.Object) bool { return o.GetLabels()[clusterv1.WatchLabel] == "mine" }
	d := h.deployment(t.Context(), g)
	d.Labels = map[string]string{clusterv1.WatchLabel: "mine"}
	g.Expect(h.Update(t.Context(), d)).To(Succeed())
	g.Expect(h.reconcile(t.Context(), g)).To(HaveLen(2))
}

func TestProblemIsReported(t *testing.T) {
	for want, change := range map[string]func(context.Context, Gomega, *hub){
		`has the value "yes"`: func(ctx context.Context, g Gomega, h *hub) {
			h.annotate(ctx, g, map[string]string{controlplanev1.AutoscalingCapacityAnnotation: "yes"})
		},
		"is a PlainMetalMachineTemplate": func(ctx context.Context, g Gomega, h *hub) {
			d := h.deployment(ctx, g)
			d.Spec.Template.Spec.InfrastructureRef.Kind = "PlainMetalMachineTemplate"
			g.Expect(h.Update(ctx, d)).To(Succeed())
		},
		"Metal3MachineTemplate workers does not exist": func(ctx context.Context, g Gomega, h *hub) {
			g.Expect(h.Delete(ctx, template())).To(Succeed())
		},
		"Install the Bare Metal Operator": func(ctx context.Context, g Gomega, h *hub) {
			h.r.hostWatches = kube.NewSteps(func(context.Context) error { return nil })
			g.Expect(h.Delete(ctx, definition(metal3.HardwareDataCRD))).To(Succeed())
		},
	} {
		g := NewWithT(t)
		h := newHub(t, host("large", 64)...)
		change(t.Context(), g, h)
		g.Expect(h.reconcile(t.Context(), g)).To(BeEmpty(), want)
		g.Expect(h.event()).To(And(HavePrefix("Warning CapacityUnknown "), ContainSubstring(want)))
	}
}
