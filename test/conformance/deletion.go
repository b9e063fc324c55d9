package conformance

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletionRules delete clusters in several ways.
func (s *suite) deletionRules() {
	// The cluster of I4 installs while the others are deleted.
	s.before(func(ctx SpecContext) { s.doomed(ctx).Release() }, soon)

	s.rule("P36", "deletion", info, func(ctx SpecContext) {
		full := s.fixtures.full
		s.await(ctx, full)
		s.expectWaitForWorkers(ctx, full)
		s.expectDeletedInOrder(ctx, full)
	}, NodeTimeout(installTimeout+deleteTimeout+soon))

	s.rule("I3", "deletion while paused", invariant, func(ctx SpecContext) {
		small := s.fixtures.small
		s.await(ctx, small)
		controlPlane := s.controlPlane(ctx, small)
		machines, _ := s.machines(ctx, small)
		configs := s.configs(ctx, machines)
		s.patch(ctx, controlPlane, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
		s.patch(ctx, s.cluster(ctx, small), `{"spec":{"paused":true}}`)
		s.awaitPaused(ctx, metav1.ConditionTrue, append(configs, controlPlane)...)
		before := s.all(ctx, "small")
		Expect(s.client.Delete(ctx, controlPlane)).To(Succeed())
		for _, config := range configs {
			Expect(s.client.Delete(ctx, config)).To(Succeed())
		}
		s.calm(ctx, "small")
		s.expectNoWrites(ctx, "small")
		expectUntouched(before, s.all(ctx, "small"), s.ControlPlane.Kind, s.Bootstrap.Kind)
		s.patch(ctx, controlPlane, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
		s.patch(ctx, s.cluster(ctx, small), `{"spec":{"paused":false}}`)
		s.expectDeleted(ctx, small)
	}, NodeTimeout(installTimeout+deleteTimeout))

	s.rule("I4", "deletion of everything at once", invariant, func(ctx SpecContext) {
		doomed := s.doomed(ctx)
		s.await(ctx, doomed)
		order := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		order.Shuffle(len(doomed.applied), reflect.Swapper(doomed.applied))
		for _, o := range doomed.applied {
			Expect(client.IgnoreNotFound(s.client.Delete(ctx, o))).To(Succeed())
		}
		s.expectObjectsDeleted(ctx, doomed)
	}, NodeTimeout(installTimeout+deleteTimeout))
}

// expectUntouched expects that all former objects still exist, and that none of them is being deleted. Kinds in
// deleted are excluded: the test itself deletes those.
func expectUntouched(before, after []object, deleted ...kind) {
	GinkgoHelper()
	left := map[types.UID]object{}
	for _, o := range after {
		left[o.GetUID()] = o
	}
	for _, o := range before {
		now, found := left[o.GetUID()]
		Expect(found).To(BeTrue(), "%s is deleted", title(&o))
		if !slices.Contains(deleted, o.GroupVersionKind()) {
			Expect(now.GetDeletionTimestamp()).To(BeNil(), title(&o))
		}
	}
}

// expectWaitForWorkers deletes the control plane of a cluster, but not its workers. The control plane has to
// wait for the workers and to report so. When a Cluster is deleted, core deletes its workers first.
func (s *suite) expectWaitForWorkers(ctx context.Context, f *fixture) {
	GinkgoHelper()
	before := s.machineUIDs(ctx, f)
	controlPlane := s.controlPlane(ctx, f)
	Expect(s.client.Delete(ctx, controlPlane)).To(Succeed())
	Eventually(func() string {
		return condition(s.again(ctx, controlPlane),
			clusterv1.DeletingCondition).Message
	}).Should(ContainSubstring("worker"))
	Consistently(func(g Gomega) {
		g.Expect(s.machineUIDs(ctx, f)).To(Equal(before))
		machines, _ := s.machines(ctx, f)
		for _, m := range machines {
			expectNotDeleted(g, &m)
		}
	}).WithTimeout(held).Should(Succeed())
}

// expectNotDeleted expects that a control-plane Machine is not being deleted while workers exist.
func expectNotDeleted(g Gomega, m *clusterv1.Machine) {
	GinkgoHelper()
	g.Expect(m.DeletionTimestamp).To(BeNil(), "Machine %s is deleted while workers exist", m.Name)
}

// expectDeletedInOrder deletes a cluster, and checks the order in which its objects were deleted.
func (s *suite) expectDeletedInOrder(ctx context.Context, f *fixture) {
	GinkgoHelper()
	left := s.machineUIDs(ctx, f) // other Machines may have been replaced before
	s.expectDeleted(ctx, f)
	s.expectOrder(f, left)
}

// expectOrder checks the order in which the objects of a deleted cluster were deleted. left are the UIDs of its
// last Machines.
func (s *suite) expectOrder(f *fixture, left []string) {
	GinkgoHelper()
	isWorker := func(e entry) bool {
		_, controlPlane := e.GetLabels()[clusterv1.MachineControlPlaneLabel]
		return !controlPlane
	}
	isControlPlane := func(e entry) bool { return !isWorker(e) && slices.Contains(left, string(e.GetUID())) }
	lastWorker := last(f.seen.of(machineKind), func(e entry) bool { return e.deleted && isWorker(e) })
	firstMachine := f.seen.first(machineKind, func(e entry) bool { return isControlPlane(e) && e.GetDeletionTimestamp() != nil })
	Expect(firstMachine).NotTo(BeNil(), "deleted Machines of the control plane")
	lastMachine := last(f.seen.of(machineKind), func(e entry) bool { return e.deleted && isControlPlane(e) })
	Expect(lastWorker.version).To(BeNumerically("<=", firstMachine.version), "workers first")
	if !s.Registration.Empty() {
		registration := f.seen.first(s.Registration, func(e entry) bool { return e.GetDeletionTimestamp() != nil })
		Expect(registration).NotTo(BeNil(), "deleted %s", s.Registration.Kind)
		Expect(lastMachine.version).To(BeNumerically("<=", registration.version), "then the Machines of the control plane, then %s",
			s.Registration.Kind)
	}
	released := f.seen.first(s.ControlPlane.Kind, func(e entry) bool { return e.deleted })
	Expect(released).NotTo(BeNil())
	Expect(released.version).To(BeNumerically(">=", lastMachine.version), "the control plane is deleted after its last Machine")
	var reported []string
	for _, e := range f.seen.of(s.ControlPlane.Kind) {
		if c := condition(e.object, clusterv1.DeletingCondition); c.Status == metav1.ConditionTrue && !slices.Contains(reported, c.Reason) {
			Expect(c.Message).NotTo(BeEmpty(), c.Reason)
			reported = append(reported, c.Reason)
		}
	}
	Expect(reported).NotTo(BeEmpty(), "the blockers of the deletion")
	s.addNote("reported: %s", strings.Join(reported, ", "))
}

func last(entries []entry, is func(entry) bool) *entry {
	GinkgoHelper()
	for i := len(entries) - 1; i >= 0; i-- {
		if is(entries[i]) {
			return &entries[i]
		}
	}
	Fail("no such entry was seen")
	return nil
}

// expectDeleted deletes a Cluster and waits until none of its objects is left.
func (s *suite) expectDeleted(ctx context.Context, f *fixture) {
	GinkgoHelper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.Key().Name}}
	Expect(client.IgnoreNotFound(s.client.Delete(ctx, cluster))).To(Succeed())
	s.expectObjectsDeleted(ctx, f)
}

// expectDeletedWithout deletes a Cluster after many of its objects were removed by force. Removed are Machines
// with their infra machines, all templates, and the objects for which the provider waits. The rest must not wait
// for them.
func (s *suite) expectDeletedWithout(ctx context.Context, f *fixture) {
	GinkgoHelper()
	machines, workers := s.machines(ctx, f)
	var victims []*object
	for _, m := range slices.Concat(machines, workers) {
		victims = append(victims, s.get(ctx, machineKind, client.ObjectKeyFromObject(&m)), s.resolve(ctx, m.Spec.InfrastructureRef, f.namespace))
	}
	for _, o := range s.all(ctx, f.namespace) {
		if slices.Contains(s.Kinds, o.GroupVersionKind()) && o.GroupVersionKind() != s.Registration ||
			strings.HasSuffix(o.GetKind(), "Template") {
			victims = append(victims, &o)
		}
		if o.GetKind() == "Secret" && text(&o, "type") != string(clusterv1.ClusterSecretType) {
			f.applied = append(f.applied, &o) // of a host, which its deleted infra machine cannot release
		}
	}
	s.patch(ctx, s.cluster(ctx, f), `{"spec":{"paused":true}}`)
	s.awaitPaused(ctx, metav1.ConditionTrue, append(s.configs(ctx, machines), s.controlPlane(ctx, f))...)
	for _, victim := range victims {
		s.overrideDeletion(ctx, victim)
		Expect(client.IgnoreNotFound(s.client.Delete(ctx, victim))).To(Succeed(), title(victim))
		Eventually(func() *object { // its controller may add a finalizer again
			if found := s.get(ctx, victim.GroupVersionKind(), client.ObjectKeyFromObject(victim)); found == nil ||
				found.GetUID() != victim.GetUID() {
				return nil
			}
			free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(s.client.Patch(ctx, victim.DeepCopy(), free))).To(Succeed(), title(victim))
			return victim
		}).Should(BeNil(), title(victim))
	}
	Expect(s.client.Delete(ctx, s.cluster(ctx, f))).To(Succeed())
	s.patch(ctx, s.cluster(ctx, f), `{"spec":{"paused":false}}`)
	s.expectObjectsDeleted(ctx, f)
	s.addNote("removed before: %d objects", len(victims))
}

// overrideDeletion allows, as a user does, the deletion of an object that is in use.
func (s *suite) overrideDeletion(ctx context.Context, o *object) {
	GinkgoHelper()
	if len(s.DeletionOverride) == 0 {
		return
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": s.DeletionOverride}})
	Expect(err).NotTo(HaveOccurred())
	Expect(client.IgnoreNotFound(s.client.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, change)))).To(Succeed(), title(o))
}

// expectObjectsDeleted waits until the objects of a cluster are deleted. The objects of its hosts stay, and those of its
// user that a Cluster does not delete.
func (s *suite) expectObjectsDeleted(ctx context.Context, f *fixture) {
	GinkgoHelper()
	Eventually(func() []string {
		var names []string
		for _, o := range s.all(ctx, f.namespace) {
			if !f.users(&o) && !s.ofHosts(ctx, &o) {
				names = append(names, title(&o))
			}
		}
		return names
	}).WithContext(ctx).WithTimeout(deleteTimeout).WithPolling(still/4).Should(BeEmpty(), "remaining objects of %s", f.Key())
	f.Forget()
}

// ofHosts reports whether an object belongs to a host, and stays when its cluster is deleted.
func (s *suite) ofHosts(ctx context.Context, o *object) bool {
	GinkgoHelper()
	if s.OfHosts == nil {
		return false
	}
	is, err := s.OfHosts(ctx, s.hub, o)
	Expect(err).NotTo(HaveOccurred(), title(o))
	return is
}

// users reports whether an object stays because its user applied it, and a Cluster does not delete it. Secrets
// without owner and label stay as well.
func (f *fixture) users(o *object) bool {
	lasting := strings.HasSuffix(o.GetKind(), "Template") || slices.Contains([]string{"Secret", "ClusterClass"}, o.GetKind())
	if lasting && slices.ContainsFunc(f.applied, func(a client.Object) bool { return a.GetName() == o.GetName() }) {
		return true
	}
	return o.GetKind() == "Secret" && len(o.GetOwnerReferences()) == 0 && o.GetLabels()[clusterv1.ClusterNameLabel] == ""
}
