package conformance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	moveNamespace = "move"
	// filterValue is the watch filter of the target hub.
	filterValue = "conformance"
	// blockMove is the annotation of clusterctl on objects that must not be moved yet.
	blockMove = clusterctlLabel + "/block-move"
)

// moveRules move a cluster to another hub and back. The managers of the target hub are restricted to one
// namespace and to labeled objects.
func (s *suite) moveRules() {
	var target world
	var arrived, kept map[string]string

	s.before(func(ctx SpecContext) {
		s.moved(ctx)
		s.doomed(ctx)
		hub, err := s.Start(ctx, HubOptions{Namespace: moveNamespace, WatchFilter: filterValue, Bare: true})
		Expect(err).NotTo(HaveOccurred())
		target = newWorld(ctx, hub, s.Kinds)
		for _, w := range []world{s.world, target} {
			w.labelLikeClusterctl(ctx)
			if s.RestoreMoved != nil {
				Expect(s.RestoreMoved(s.ctx, w.hub, moveNamespace)).To(Succeed())
			}
		}
	}, startTimeout)
	s.after(func() {
		if target.hub != nil {
			target.hub.Stop()
		}
	})

	s.rule("B24", "several instances: --namespace and --watch-filter", should,
		func(ctx SpecContext) { s.expectFiltered(ctx, target) }, NodeTimeout(soon))
	s.rule("C23", "no move while the cluster installs", info, func(ctx SpecContext) {
		installing := s.doomed(ctx)
		Eventually(func() []clusterv1.Machine {
			machines, _ := s.machines(ctx, installing)
			return machines
		}).ShouldNot(BeEmpty())
		out, err := s.move(ctx, installing.namespace, s.world, target)
		expectRefusedMove(fmt.Sprint(err, string(out)))
		Expect(target.list(ctx, clusterKind, installing.namespace)).To(BeEmpty())
		Expect(ptr.Deref(s.cluster(ctx, installing).Spec.Paused, false)).To(BeFalse())
		s.expectUninitialized(installing)
		installing.Release()
	}, NodeTimeout(3*soon))

	// The managers of this hub crash at each of their writes: from C18 to I8, and again from C19 to I14.
	var live func() int // nil: this hub cannot crash managers
	s.after(func() {
		if live != nil {
			live()
		}
	})
	expectDeaths := func(least int) {
		GinkgoHelper()
		if live != nil {
			died := live()
			s.addNote("the managers crashed %d times", died)
			Expect(died).To(BeNumerically(">=", least), "otherwise nothing was tested")
		}
	}
	s.rule("C18", "move", must, func(ctx SpecContext) {
		s.await(ctx, s.moved(ctx))
		s.calm(ctx, moveNamespace)
		arrived, kept = s.essence(ctx, s.world), s.registered(ctx)
		live = s.hub.Crash(moveNamespace)
		s.expectMove(ctx, target)
		s.expectArrived(ctx, target, arrived)
	}, NodeTimeout(installTimeout+2*soon))

	s.rule("C22", "delete-for-move", must, func(ctx SpecContext) {
		s.expectRegistrationKept(ctx, kept)
	}, NodeTimeout(soon))

	s.rule("I8", "a moved cluster is healthy, though the managers of the source hub crash at their writes", invariant,
		func(ctx SpecContext) {
			s.expectHealthy(ctx, target, s.moved(ctx))
			expectDeaths(2) // the writes that report control plane and config as paused
		}, NodeTimeout(3*soon))

	s.rule("C19", "what is labeled to be moved, and what it owns, is moved with a cluster, and nothing else", may, func(ctx SpecContext) {
		s.createStrays(ctx, target)
		live = s.hub.Crash(moveNamespace)
		out, err := s.move(ctx, moveNamespace, target, s.world)
		Expect(err).NotTo(HaveOccurred(), string(out))
		arrivals := strays(s.all(ctx, moveNamespace))
		expectCarried(arrivals, strays(target.all(ctx, moveNamespace)))
		for _, o := range arrivals {
			Expect(client.IgnoreNotFound(s.client.Delete(ctx, &o))).To(Succeed())
		}
	}, NodeTimeout(2*soon))

	s.rule("I14", "a cluster that is moved back is healthy, though managers crash at their writes", invariant, func(ctx SpecContext) {
		s.expectReturned(ctx, arrived, kept)
		expectDeaths(4)
	}, NodeTimeout(3*soon))

	s.rule("I11", "deletion of a cluster of which objects are missing", invariant, func(ctx SpecContext) {
		s.expectDeletedWithout(ctx, s.moved(ctx))
	}, NodeTimeout(soon+deleteTimeout))
}

// expectMove moves the cluster, and checks that the annotation block-move on its control plane delays the move.
func (s *suite) expectMove(ctx context.Context, target world) {
	GinkgoHelper()
	moved, controlPlane := s.moved(ctx), s.controlPlane(ctx, s.moved(ctx))
	s.patch(ctx, controlPlane, `{"metadata":{"annotations":{%q:""}}}`, blockMove)
	done := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		_, err := s.move(ctx, moveNamespace, s.world, target)
		done <- err
	}()
	Eventually(func() bool { return ptr.Deref(s.cluster(ctx, moved).Spec.Paused, false) }).Should(BeTrue(),
		"clusterctl pauses the Cluster first")
	Consistently(func() []object { return target.list(ctx, clusterKind, moveNamespace) }).Should(BeEmpty(), "clusterctl waits then")
	s.patch(ctx, controlPlane, `{"metadata":{"annotations":{%q:null}}}`, blockMove)
	Eventually(done).WithTimeout(2 * soon).Should(Receive(BeNil()))
}

// expectArrived expects that a cluster with all its objects is on the target hub, and no longer on this one.
func (s *suite) expectArrived(ctx context.Context, target world, wanted map[string]string) {
	GinkgoHelper()
	Expect(s.list(ctx, clusterKind, moveNamespace)).To(BeEmpty(), "the cluster is no longer on this hub")
	Expect(s.essence(ctx, target)).To(Equal(wanted), "objects on the target hub")
}

// expectRegistrationKept expects that the move changed none of the objects that stand for the installed cluster.
func (s *suite) expectRegistrationKept(ctx context.Context, wanted map[string]string) {
	GinkgoHelper()
	Consistently(func() map[string]string { return s.registered(ctx) }).Should(Equal(wanted))
}

// expectReturned expects that a cluster is healthy after its return, and that its objects are the former ones.
func (s *suite) expectReturned(ctx context.Context, arrived, kept map[string]string) {
	GinkgoHelper()
	s.expectHealthy(ctx, s.world, s.moved(ctx))
	Expect(s.essence(ctx, s.world)).To(Equal(arrived))
	Expect(s.registered(ctx)).To(Equal(kept))
}

// strayLabel marks objects that belong to no cluster.
const strayLabel = "conformance/stray"

// createStrays creates objects in the namespace of a cluster that do not belong to it. One has the label for the
// move, one the label for a move with all that it owns, and one neither.
func (s *suite) createStrays(ctx context.Context, w world) {
	GinkgoHelper()
	for name, move := range map[string]string{
		"carried": clusterctlLabel + "/move", "parent": clusterctlLabel + "/move-hierarchy",
		"left": strayLabel,
	} {
		spec := s.Bootstrap.Example
		if spec == nil {
			spec = map[string]any{}
		}
		template := &object{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
		template.SetGroupVersionKind(s.Bootstrap.Template)
		template.SetNamespace(moveNamespace)
		template.SetName(name)
		template.SetLabels(map[string]string{strayLabel: "", move: ""})
		Expect(w.client.Create(ctx, template)).To(Succeed())
		if name == "parent" {
			owner := *metav1.NewControllerRef(template, template.GroupVersionKind())
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: moveNamespace, Name: "child",
				Labels: map[string]string{strayLabel: ""}, OwnerReferences: []metav1.OwnerReference{owner},
			}}
			Expect(w.client.Create(ctx, child)).To(Succeed())
		}
	}
}

// strays returns the objects that createStrays created.
func strays(objects []object) []object {
	return slices.DeleteFunc(slices.Clone(objects), func(o object) bool {
		_, found := o.GetLabels()[strayLabel]
		return !found
	})
}

// expectCarried expects that a move took the objects with a label for it, and no others.
func expectCarried(arrived, stayed []object) {
	GinkgoHelper()
	names := func(objects []object) (names []string) {
		for _, o := range objects {
			names = append(names, o.GetName())
		}
		return names
	}
	Expect(names(arrived)).To(ConsistOf("carried", "parent", "child"))
	Expect(names(stayed)).To(ConsistOf("left"))
}

// expectRefusedMove expects that clusterctl refused to move a cluster during its installation, before any
// change.
func expectRefusedMove(message string) {
	GinkgoHelper()
	Expect(message).To(MatchRegexp(`cannot start the move operation while (the control plane for .+ is not yet ` +
		`initialized|.+ is still provisioning the (infrastructure|node))`))
}

// filtered labels the objects that the managers of the target hub reconcile.
func (s *suite) filtered(o *object) {
	if o.GroupVersionKind() != s.ControlPlane.Kind {
		return
	}
	label(o.Object["metadata"].(map[string]any))
	template := o.Object["spec"].(map[string]any)["machineTemplate"].(map[string]any)
	metadata := map[string]any{}
	label(metadata)
	template["metadata"] = metadata
}

// label adds the label of the watch filter to metadata.
func label(metadata map[string]any) {
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	labels[clusterv1.WatchLabel] = filterValue
	metadata["labels"] = labels
}

// labelLikeClusterctl labels the CRDs as "clusterctl init" does: objects of labeled CRDs are moved. The
// documentation of Metal3 advises to label BareMetalHosts too.
func (w world) labelLikeClusterctl(ctx context.Context) {
	GinkgoHelper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(w.client.List(ctx, list)).To(Succeed())
	for i := range list.Items {
		crd := &list.Items[i]
		group := crd.Spec.Group
		if group == capiGroup || strings.HasSuffix(group, "."+capiGroup) || crd.Name == "baremetalhosts.metal3.io" {
			w.patch(ctx, crd, `{"metadata":{"labels":{%q:""}}}`, clusterctlLabel)
		}
	}
}

func (s *suite) move(ctx context.Context, namespace string, from, to world) ([]byte, error) {
	GinkgoHelper()
	return s.clusterctl(ctx, nil, "move", "--namespace", namespace, "--kubeconfig", from.hub.Kubeconfig(), "--to-kubeconfig",
		to.hub.Kubeconfig())
}

// essence returns the objects that have to arrive: those of Cluster API, and the data of the Secrets that belong
// to them.
func (s *suite) essence(ctx context.Context, w world) map[string]string {
	GinkgoHelper()
	result := map[string]string{}
	for _, o := range w.all(ctx, moveNamespace) {
		group := o.GroupVersionKind().Group
		switch {
		case group == capiGroup || strings.HasSuffix(group, "."+capiGroup):
			result[title(&o)] = ""
		case o.GetKind() == "Secret" && o.GetLabels()[clusterv1.ClusterNameLabel] != "" && len(o.GetOwnerReferences()) > 0:
			result[title(&o)] = fmt.Sprintf("%x", sha256.Sum256([]byte(text(&o, "data", "value"))))[:12]
		}
	}
	return result
}

// registered returns the objects on the first hub that stand for the installed cluster, with their UIDs. A move
// must not change them.
func (s *suite) registered(ctx context.Context) map[string]string {
	GinkgoHelper()
	result := map[string]string{}
	for _, k := range s.Kinds {
		for _, o := range s.list(ctx, k, moveNamespace) {
			result[title(&o)] = string(o.GetUID())
			if o.GetDeletionTimestamp() != nil {
				result[title(&o)] = "is deleted"
			}
		}
	}
	return result
}

// expectHealthy checks that all conditions of a moved cluster and the decisive fields of its status are rebuilt.
// Changes in place have to be applied. Whether Machines are ready depends on their infrastructure provider as
// well: CAPM3 v1.13 reports an unknown state for hosts that it finds installed.
func (s *suite) expectHealthy(ctx context.Context, w world, f *fixture) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		controlPlane := w.controlPlane(ctx, f)
		g.Expect(condition(controlPlane, clusterv1.AvailableCondition)).To(HaveField("Status", metav1.ConditionTrue))
		g.Expect(at(controlPlane, "status", "replicas")).To(Equal(at(controlPlane, "spec", "replicas")))
		g.Expect(at(controlPlane, "status", "initialization", "controlPlaneInitialized")).To(BeTrue())
		machines, workers := w.machines(ctx, f)
		g.Expect(at(controlPlane, "status", "readyReplicas")).To(BeEquivalentTo(len(ready(machines))))
		for _, config := range w.configs(ctx, slices.Concat(machines, workers)) {
			g.Expect(condition(config, clusterv1.ReadyCondition)).To(HaveField("Status", metav1.ConditionTrue))
			g.Expect(text(config, "status", "dataSecretName")).NotTo(BeEmpty())
		}
		g.Expect(find(w.cluster(ctx, f).Status.Conditions, clusterv1.ClusterAvailableCondition)).To(HaveField("Status", metav1.ConditionTrue))
	}).WithTimeout(2 * soon).Should(Succeed())
	s.patchMetadata(ctx, w, f, `"moved"`)
	Eventually(func(g Gomega) {
		machines, _ := w.machines(ctx, f)
		for _, m := range machines {
			g.Expect(m.Annotations).To(HaveKeyWithValue("conformance/place", "moved"), "changes in place are applied")
		}
	}).Should(Succeed())
	s.patchMetadata(ctx, w, f, `null`)
	expectAdopted(ctx, w, f)
}

func ready(machines []clusterv1.Machine) []clusterv1.Machine {
	return slices.DeleteFunc(slices.Clone(machines), func(m clusterv1.Machine) bool {
		return find(m.Status.Conditions, clusterv1.MachineReadyCondition).Status != metav1.ConditionTrue
	})
}

// expectAdopted removes the owner references of the Machines of a control plane, and expects it to adopt them
// again.
func expectAdopted(ctx context.Context, w world, f *fixture) {
	GinkgoHelper()
	before, _ := w.machines(ctx, f)
	for _, m := range before {
		w.patch(ctx, &m, `{"metadata":{"ownerReferences":null}}`)
	}
	Eventually(func(g Gomega) {
		after, _ := w.machines(ctx, f)
		g.Expect(after).To(HaveLen(len(before)), "Machines of the control plane")
		for i := range after {
			g.Expect(after[i].UID).To(Equal(before[i].UID))
			g.Expect(after[i].OwnerReferences).To(ConsistOf(before[i].OwnerReferences))
		}
	}).Should(Succeed(), "Machines without an owner are adopted")
}

func (s *suite) patchMetadata(ctx context.Context, w world, f *fixture, value string) {
	GinkgoHelper()
	w.patch(ctx, w.controlPlane(ctx, f), `{"spec":{"machineTemplate":{"metadata":{"annotations":{"conformance/place":%s}}}}}`, value)
}

// expectFiltered checks that managers with a namespace and a filter change no other objects.
func (s *suite) expectFiltered(ctx context.Context, w world) {
	GinkgoHelper()
	controlPlane := s.controlPlane(ctx, s.fixtures.small)
	var theirs, others []*object
	for _, place := range []string{moveNamespace, "others"} {
		w.createNamespace(ctx, place)
		for _, name := range []string{"labeled", "unlabeled"} {
			alone := &object{Object: map[string]any{"spec": controlPlane.Object["spec"]}}
			alone.SetGroupVersionKind(s.ControlPlane.Kind)
			alone.SetNamespace(place)
			alone.SetName(name)
			for _, o := range []*object{s.newConfig(place, name), alone} {
				if name == "labeled" {
					o.SetLabels(map[string]string{clusterv1.WatchLabel: filterValue})
				}
				Expect(w.client.Create(ctx, o)).To(Succeed())
				if place == moveNamespace && name == "labeled" {
					theirs = append(theirs, o)
				} else {
					others = append(others, o)
				}
			}
		}
	}
	for _, o := range theirs {
		Eventually(func() any { return at(w.again(ctx, o), "status") }).ShouldNot(BeNil(), title(o))
	}
	Consistently(func(g Gomega) {
		for _, o := range others {
			g.Expect(at(w.again(ctx, o), "status")).To(BeNil(), title(o))
		}
	}).Should(Succeed())
	for _, o := range append(theirs, others...) {
		Expect(w.client.Delete(ctx, o)).To(Succeed())
		Eventually(func() *object { return w.get(ctx, o.GroupVersionKind(), client.ObjectKeyFromObject(o)) }).Should(BeNil(), title(o))
	}
}
