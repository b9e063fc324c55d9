package apply

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
)

const (
	us   = client.FieldOwner("us")
	them = client.FieldOwner("them")
)

// pod has labels (owned one by one), a node selector and tolerations (owned as a whole), and containers (a
// list that several writers share).
func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: "pod", Labels: map[string]string{"a": "1", "b": "2"}, Finalizers: []string{"us/kept", "us/removed"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "first", UID: "1"}},
		},
		Spec: corev1.PodSpec{
			Hostname:     "h",
			NodeSelector: map[string]string{"disk": "ssd", "rack": "7"},
			Tolerations:  []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
			Containers: []corev1.Container{
				{Name: "c", Image: "i", ImagePullPolicy: corev1.PullAlways, Ports: []corev1.ContainerPort{{ContainerPort: 80}}},
				{Name: "d", Image: "i"},
			},
		},
	}
}

// restarted is a manager with empty memory. It observes the Pod as its cache keeps it.
type restarted struct {
	*WithT
	client.Client
	t      *testing.T
	writes int
}

func restart(t *testing.T, objects ...client.Object) *restarted {
	t.Helper()
	r := &restarted{WithT: NewWithT(t), t: t}
	builder := fake.NewClientBuilder().WithReturnManagedFields().WithObjects(objects...)
	r.Client = kubetest.BuildClient(builder, scheme.Scheme, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			r.writes++
			return c.Apply(ctx, obj, opts...)
		},
	})
	return r
}

func (r *restarted) stored() *corev1.Pod {
	p := &corev1.Pod{}
	r.Expect(r.Get(r.t.Context(), types.NamespacedName{Namespace: "lab", Name: "pod"}, p)).To(Succeed())
	return p
}

func (r *restarted) observed() *corev1.Pod {
	p, err := KeepOwn(us)(r.stored())
	r.Expect(err).NotTo(HaveOccurred())
	return p.(*corev1.Pod)
}

// countApplies returns how many requests Applier a sends to apply wanted.
func (r *restarted) countApplies(a *Applier, wanted *corev1.Pod) int {
	before := r.writes
	_, err := a.Apply(r.t.Context(), wanted, r.observed())
	r.Expect(err).NotTo(HaveOccurred())
	return r.writes - before
}

// edit is an update by another client, without server-side apply.
func (r *restarted) edit(change func(*corev1.Pod)) {
	p := r.stored()
	change(p)
	r.Expect(r.Update(r.t.Context(), p, them)).To(Succeed())
}

func TestApplyAfterARestart(t *testing.T) {
	for situation, c := range map[string]struct {
		// meanwhile is what other clients do while no manager runs.
		meanwhile func(*restarted)
		wanted    func(*corev1.Pod)
		// writes is the number of requests, and then checks their effect.
		writes int
		then   func(*WithT, *corev1.Pod)
	}{
		"nothing has changed": {},
		"a label is withdrawn": {
			wanted: func(p *corev1.Pod) { delete(p.Labels, "b") },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Labels).To(Equal(map[string]string{"a": "1"})) },
		},
		"all labels are withdrawn": {
			wanted: func(p *corev1.Pod) { p.Labels = nil },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Labels).To(BeEmpty()) },
		},
		"a value is withdrawn": {
			wanted: func(p *corev1.Pod) { p.Spec.Hostname = "" },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Spec.Hostname).To(BeEmpty()) },
		},
		"a finalizer is withdrawn": {
			wanted: func(p *corev1.Pod) { p.Finalizers = []string{"us/kept"} },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Finalizers).To(Equal([]string{"us/kept"})) },
		},
		"an entry of what is owned as a whole is withdrawn": {
			wanted: func(p *corev1.Pod) { delete(p.Spec.NodeSelector, "rack") },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Spec.NodeSelector).To(HaveLen(1)) },
		},
		"a field of a list is withdrawn that is owned as a whole": {
			wanted: func(p *corev1.Pod) { p.Spec.Tolerations[0].Effect = "" },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Spec.Tolerations[0].Effect).To(BeEmpty()) },
		},
		"a field of an item of a shared list is withdrawn": {
			wanted: func(p *corev1.Pod) { p.Spec.Containers[0].ImagePullPolicy = "" },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Spec.Containers[0].ImagePullPolicy).To(BeEmpty()) },
		},
		"an item of a shared list is withdrawn": {
			wanted: func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] },
			writes: 1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Spec.Containers).To(HaveLen(1)) },
		},
		"an additional field is desired and already has this value": {
			meanwhile: func(r *restarted) { r.edit(func(p *corev1.Pod) { p.Labels["c"] = "3" }) },
			wanted:    func(p *corev1.Pod) { p.Labels["c"] = "3" },
			writes:    1,
		},
		"an additional finalizer is desired that another client has added": {
			meanwhile: func(r *restarted) { r.edit(func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "us/more") }) },
			wanted:    func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "us/more") },
			writes:    1,
		},
		"a finalizer is replaced by one that another client has added": {
			meanwhile: func(r *restarted) { r.edit(func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "us/more") }) },
			wanted:    func(p *corev1.Pod) { p.Finalizers[1] = "us/more" },
			writes:    1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Finalizers).To(ConsistOf("us/kept", "us/more")) },
		},
		"another client changes a value": {
			meanwhile: func(r *restarted) { r.edit(func(p *corev1.Pod) { p.Labels["a"] = "theirs" }) },
			writes:    1, then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Labels).To(HaveKeyWithValue("a", "1")) },
		},
		"another client changes a value and changes it back": {
			meanwhile: func(r *restarted) {
				r.edit(func(p *corev1.Pod) { p.Labels["a"] = "theirs" })
				r.edit(func(p *corev1.Pod) { p.Labels["a"] = "1" })
			},
			writes: 1,
		},
		"another client adds its own fields": {
			meanwhile: func(r *restarted) {
				r.edit(func(p *corev1.Pod) {
					p.Labels["theirs"], p.Spec.Subdomain = "", "s"
					p.Finalizers = append(p.Finalizers, "them/finalizer")
					p.Spec.Containers[1].Stdin = true
				})
			},
			then: func(g *WithT, p *corev1.Pod) { g.Expect(p.Labels).To(HaveKey("theirs")) },
		},
		"another client removes the finalizers and owner references": {
			meanwhile: func(r *restarted) { r.edit(func(p *corev1.Pod) { p.Finalizers, p.OwnerReferences = nil, nil }) },
			writes:    1, then: func(g *WithT, p *corev1.Pod) {
				g.Expect(p.Finalizers).To(HaveLen(2))
				g.Expect(p.OwnerReferences).To(HaveLen(1))
			},
		},
		"another client removes the owner references and restores them": {
			meanwhile: func(r *restarted) {
				r.edit(func(p *corev1.Pod) { p.OwnerReferences = nil })
				r.edit(func(p *corev1.Pod) { p.OwnerReferences = pod().OwnerReferences })
			},
		},
		"an owner reference is no longer desired": {
			wanted: func(p *corev1.Pod) { p.OwnerReferences = nil },
		},
		"another client replaces the owner reference": {
			meanwhile: func(r *restarted) {
				r.edit(func(p *corev1.Pod) { p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "second", "2" })
			},
			wanted: func(p *corev1.Pod) { p.OwnerReferences = nil },
		},
		"the object is recreated by another client, as by a move or a restore": {
			meanwhile: func(r *restarted) {
				moved := r.stored()
				r.edit(func(p *corev1.Pod) { p.Finalizers = nil })
				r.Expect(r.Delete(r.t.Context(), moved)).To(Succeed())
				moved.ResourceVersion, moved.ManagedFields = "", nil
				r.Expect(r.Create(r.t.Context(), moved, them)).To(Succeed())
			},
			writes: 1,
		},
		"another client applies the same": {
			meanwhile: func(r *restarted) {
				_, err := New(r, them).Apply(r.t.Context(), pod(), nil)
				r.Expect(err).NotTo(HaveOccurred())
				r.writes = 0
			},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			r := restart(t)
			_, err := New(r, us).Apply(t.Context(), pod(), nil)
			r.Expect(err).NotTo(HaveOccurred())
			if c.meanwhile != nil {
				c.meanwhile(r)
			}
			wanted := func() *corev1.Pod {
				p := pod()
				if c.wanted != nil {
					c.wanted(p)
				}
				return p
			}
			a := New(r, us)
			r.Expect(r.countApplies(a, wanted())).To(Equal(c.writes))
			if c.then != nil {
				c.then(r.WithT, r.stored())
			}
			r.Expect(r.countApplies(a, wanted())).To(BeZero(), "the same again")
			r.Expect(r.countApplies(New(r, us), wanted())).To(BeZero(), "after one more restart")
		})
	}
}

// Fields that another client owns were never applied by this manager. The first apply takes them over, so
// that they can be withdrawn later.
func TestFieldTakenOverCanBeWithdrawn(t *testing.T) {
	theirs := pod()
	theirs.Labels["c"] = "3"
	r := restart(t, theirs)
	r.Expect(r.countApplies(New(r, us), pod())).To(Equal(1))
	without := pod()
	delete(without.Labels, "b")
	r.Expect(r.countApplies(New(r, us), without)).To(Equal(1))
}

func TestFieldsOfAnotherVersionAreAppliedAgain(t *testing.T) {
	r := restart(t)
	_, err := New(r, us).Apply(t.Context(), pod(), nil)
	r.Expect(err).NotTo(HaveOccurred())
	before := r.observed()
	before.ManagedFields[0].APIVersion = "v1beta1"
	written, err := New(r, us).Apply(t.Context(), pod(), before)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(written).To(BeTrue(), "the other version may name fields differently")
}

func TestObjectWithoutManagedFieldsIsWrittenOnce(t *testing.T) {
	r := restart(t)
	a := New(r, us)
	_, err := a.Apply(t.Context(), pod(), nil)
	r.Expect(err).NotTo(HaveOccurred())
	b := New(r, us)
	for range 3 {
		bare := r.stored()
		bare.ManagedFields = nil
		_, err = b.Apply(t.Context(), pod(), bare)
		r.Expect(err).NotTo(HaveOccurred())
	}
	r.Expect(r.writes).To(Equal(2), "once by each manager")
}

func TestRecreatedObjectIsAppliedAgain(t *testing.T) {
	theirs := pod()
	theirs.UID = "one"
	r := restart(t, theirs)
	a := New(r, us)
	r.Expect(r.countApplies(a, pod())).To(Equal(1))
	r.edit(func(p *corev1.Pod) { p.Finalizers = nil })
	recreated := r.stored()
	r.Expect(r.Delete(t.Context(), recreated)).To(Succeed())
	recreated = pod()
	recreated.UID = "two"
	r.Expect(r.Create(t.Context(), recreated, them)).To(Succeed())
	r.Expect(r.countApplies(a, pod())).To(Equal(1), "no field of the recreated object is owned")
}

func TestOwns(t *testing.T) {
	r := restart(t)
	ours, theirs := New(r.Client, us), New(r.Client, them)
	_, err := ours.Apply(t.Context(), pod(), nil)
	r.Expect(err).NotTo(HaveOccurred())
	stored := &corev1.Pod{}
	r.Expect(r.Get(t.Context(), client.ObjectKeyFromObject(pod()), stored)).To(Succeed())
	for _, field := range [][]string{{"spec"}, {"spec", "hostname"}, {"spec", "nodeSelector"}, {"metadata", "labels", "a"}} {
		r.Expect(ours.Owns(stored, field...)).To(BeTrue(), "%v", field)
		r.Expect(theirs.Owns(stored, field...)).To(BeFalse(), "%v", field)
	}
	for _, field := range [][]string{{"spec", "nodeName"}, {"spec", "hostname", "x"}, {"metadata", "labels", "c"}, {"hostname"}} {
		r.Expect(ours.Owns(stored, field...)).To(BeFalse(), "%v", field)
	}
}

func TestManagers(t *testing.T) {
	g := NewWithT(t)
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("value", `{"f:spec":{"f:paused":{}}}`),
		entry("below", `{"f:spec":{"f:update":{"f:version":{}}}}`),
		entry("item", `{"f:spec":{"f:update":{"f:risks":{"k:{\"name\":\"A\"}":{".":{},"f:name":{}}}}}}`),
		{Manager: "nothing"},
		entry("value", `{"f:spec":{"f:replicas":{}}}`), // one entry for each operation and API version
	}
	managers, err := ManagersOf(entries)
	g.Expect(err).NotTo(HaveOccurred())
	for situation, tc := range map[string]struct {
		path []any
		want []string
	}{
		"a value":              {[]any{"spec", "paused"}, []string{"value"}},
		"an object":            {[]any{"spec", "update"}, []string{"below", "item"}},
		"an item of a list":    {[]any{"spec", "update", "risks", fieldpath.KeyByFields("name", "A")}, []string{"item"}},
		"another item":         {[]any{"spec", "update", "risks", fieldpath.KeyByFields("name", "B")}, nil},
		"below a value":        {[]any{"spec", "paused", "more"}, nil},
		"a field of that name": {[]any{"paused"}, nil},
	} {
		g.Expect(managers.Of(tc.path...).UnsortedList()).To(ConsistOf(tc.want), situation)
	}
	_, err = ManagersOf(append(entries, entry("broken", `{"f:spec":`)))
	g.Expect(err).To(MatchError(ContainSubstring("cannot decode the managed fields of broken")))
}
