//go:build conformance

package conformance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	moveNamespace = "move"
	// filterValue is the watch filter of the hub that is moved to.
	filterValue = "conformance"
)

// moveRules move a cluster to another hub, whose managers are restricted to one namespace and to labelled objects, and back.
func (s *suite) moveRules() {
	var moved *fixture
	var target world
	var before, kept map[string]string

	BeforeAll(func(ctx SpecContext) {
		if s.Clusterctl == "" {
			return
		}
		moved = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: moveNamespace, Hold: true, Edit: s.filtered})
		hub, err := s.Start(ctx, HubOptions{Namespace: moveNamespace, WatchFilter: filterValue, Bare: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(hub.Stop)
		target = newWorld(hub)
		target.further = s.Kinds
		for _, w := range []world{s.world, target} {
			w.labelLikeClusterctl(ctx)
			if s.RestoreMoved != nil {
				Expect(s.RestoreMoved(s.life, w.hub, moveNamespace)).To(Succeed())
			}
		}
	}, NodeTimeout(startTimeout))

	s.rule("B24", "several instances: --namespace and --watch-filter", should, func(ctx SpecContext) { s.expectRestricted(ctx, target) }, NodeTimeout(soon))
	s.rule("C11", "flag --namespace", must, func() { s.note("the hub that is moved to runs with it, see B24") })
	s.rule("C23", "no move while the cluster installs", info, func(ctx SpecContext) {
		Eventually(func() []clusterv1.Machine {
			machines, _ := s.machines(ctx, moved)
			return machines
		}).ShouldNot(BeEmpty())
		_, err := s.move(ctx, s.world, target)
		Expect(err).To(HaveOccurred())
		Expect(ptr.Deref(s.cluster(ctx, moved).Spec.Paused, false)).To(BeFalse())
	}, NodeTimeout(2*soon))

	s.rule("C18", "move", must, func(ctx SpecContext) {
		moved.Release()
		s.await(ctx, moved)
		s.settled(ctx, moveNamespace)
		before, kept = s.essence(ctx, s.world), s.registered(ctx)
		out, err := s.move(ctx, s.world, target)
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(s.list(ctx, clusterKind, moveNamespace)).To(BeEmpty(), "the cluster is not here any more")
		Expect(s.essence(ctx, target)).To(Equal(before), "what has arrived")
	}, NodeTimeout(installTimeout+2*soon))

	s.rule("C22", "delete-for-move", must, func(ctx SpecContext) {
		Consistently(func() map[string]string { return s.registered(ctx) }).Should(Equal(kept), "what installs the cluster has not noticed anything")
	}, NodeTimeout(soon))

	s.rule("I8", "a moved cluster is as well as before", invariant, func(ctx SpecContext) {
		s.expectWell(ctx, target, moved)
	}, NodeTimeout(3*soon))

	s.rule("C19", "move back", may, func(ctx SpecContext) {
		out, err := s.move(ctx, target, s.world)
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(s.essence(ctx, s.world)).To(Equal(before))
		s.expectWell(ctx, s.world, moved)
		Expect(s.registered(ctx)).To(Equal(kept))
		s.expectDeleted(ctx, moved)
	}, NodeTimeout(3*soon+deleteTimeout))
}

// filtered labels what the managers of the other hub are to reconcile.
func (s *suite) filtered(o *object) {
	GinkgoHelper()
	if o.GroupVersionKind() != s.ControlPlane.Kind {
		return
	}
	label := func(labels map[string]any) map[string]any {
		if labels == nil {
			labels = map[string]any{}
		}
		labels[clusterv1.WatchLabel] = filterValue
		return labels
	}
	o.Object["metadata"].(map[string]any)["labels"] = label(nil)
	template := o.Object["spec"].(map[string]any)["machineTemplate"].(map[string]any)
	template["metadata"] = map[string]any{"labels": label(nil)}
}

// labelLikeClusterctl labels the CRDs as "clusterctl init" does: what is labelled is moved. Metal3's hosts are, by the advice of
// their documentation, too.
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

func (s *suite) move(ctx context.Context, from, to world) ([]byte, error) {
	GinkgoHelper()
	return s.clusterctl(ctx, nil, "move", "--namespace", moveNamespace, "--kubeconfig", from.hub.Kubeconfig(), "--to-kubeconfig", to.hub.Kubeconfig(), "-v", "5")
}

// essence is what has to arrive: the objects of Cluster API, and the data of the Secrets that belong to them.
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

// registered are the objects on the first hub that stand for the installed cluster, with their generations: nothing may happen
// to them.
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

// expectWell checks that all conditions of a moved cluster, and what counts of the status, are rebuilt, and that changes in place
// still arrive.
func (s *suite) expectWell(ctx context.Context, w world, f *fixture) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		controlPlane := w.controlPlane(ctx, f)
		g.Expect(condition(controlPlane, clusterv1.AvailableCondition)).To(HaveField("Status", metav1.ConditionTrue))
		g.Expect(at(controlPlane, "status", "readyReplicas")).To(Equal(at(controlPlane, "spec", "replicas")))
		g.Expect(at(controlPlane, "status", "initialization", "controlPlaneInitialized")).To(Equal(true))
		machines, workers := w.machines(ctx, f)
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
			g.Expect(m.Annotations).To(HaveKeyWithValue("conformance/place", "moved"), "changes in place arrive")
		}
	}).Should(Succeed())
	s.patchMetadata(ctx, w, f, `null`)
}

func (s *suite) patchMetadata(ctx context.Context, w world, f *fixture, value string) {
	GinkgoHelper()
	w.patch(ctx, w.controlPlane(ctx, f), `{"spec":{"machineTemplate":{"metadata":{"annotations":{"conformance/place":%s}}}}}`, value)
}

// expectRestricted checks that managers with a namespace and a filter leave everything else alone.
func (s *suite) expectRestricted(ctx context.Context, w world) {
	GinkgoHelper()
	objects := map[string]*object{}
	for _, place := range []string{moveNamespace, "others"} {
		w.createNamespace(ctx, place)
		for _, name := range []string{"labelled", "unlabelled"} {
			config := s.newConfig(place, name)
			if name == "labelled" {
				config.SetLabels(map[string]string{clusterv1.WatchLabel: filterValue})
			}
			Expect(w.client.Create(ctx, config)).To(Succeed())
			objects[place+"/"+name] = config
		}
	}
	status := func(name string) any {
		o := objects[name]
		return at(w.get(ctx, o.GroupVersionKind(), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}), "status")
	}
	Eventually(func() any { return status(moveNamespace + "/labelled") }).ShouldNot(BeNil())
	Consistently(func() []any {
		return []any{status(moveNamespace + "/unlabelled"), status("others/labelled"), status("others/unlabelled")}
	}).Should(HaveEach(BeNil()))
	for _, o := range objects {
		Expect(w.client.Delete(ctx, o)).To(Succeed())
	}
}
