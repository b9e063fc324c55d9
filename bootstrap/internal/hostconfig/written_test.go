package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// TestOwnWritesAreNotRepeated is a reconcile on a cache that is behind our own status.
func TestOwnWritesAreNotRepeated(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	before := w.config()
	w.reconcile()
	stale := before.DeepCopy()
	w.reconciler.overlay(stale)
	w.Expect(stale.Status.DataSecretName).To(Equal("m"))
	w.Expect(stale.Status.Conditions).NotTo(BeEmpty())
	foreign := before.DeepCopy()
	foreign.ResourceVersion = "12345"
	w.reconciler.overlay(foreign)
	w.Expect(foreign.Status.DataSecretName).To(BeEmpty(), "a version that we know nothing of is taken as it is")
}

// TestInfraEnvIsMadeOnce is a reconcile on a cache that does not hold our InfraEnv yet.
func TestInfraEnvIsMadeOnce(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	before := w.writes
	w.cache.Client = kubetest.EmptyCacheOf[*assisted.InfraEnv, *assisted.InfraEnvList](w)
	w.Expect(w.reconcile().RequeueAfter).To(Equal(reconcile.CacheLag))
	w.Expect(w.writes).To(Equal(before))
	w.remove(read(w, "m", &assisted.InfraEnv{}))
	w.clock = w.clock.Add(reconcile.CacheLag)
	w.reconcile()
	read(w, "m", &assisted.InfraEnv{}) // made again: it was not behind the cache, it was gone
}

// TestInfraEnvThatTheCacheDoesNotKnowIsDeleted is a deletion right after the InfraEnv was made, by this manager or by one before it.
func TestInfraEnvThatTheCacheDoesNotKnowIsDeleted(t *testing.T) {
	for maker, change := range map[string]func(w *world){"this manager": func(*world) {}, "another": (*world).restart} {
		t.Run(maker, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			w.reconcile()
			w.takeInfraEnvIn()
			change(w)
			w.cache.Client = kubetest.EmptyCacheOf[*assisted.InfraEnv, *assisted.InfraEnvList](w)
			w.remove(read(w, "m", &clusterv1.Machine{}))
			w.remove(w.config())
			w.Expect(w.reconcile().RequeueAfter).To(BeNumerically("<=", reconcile.CacheLag), "nobody tells when it is gone")
			w.Expect(read(w, "m", &assisted.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
			w.clock = w.clock.Add(time.Minute)
			w.reconcile()
			w.Expect(w.config().Finalizers).NotTo(BeEmpty(), "it waits for it")
			w.letGo("m", &assisted.InfraEnv{})
			w.reconcile()
			w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue())
		})
	}
}

// TestInfraEnvOfASuccessorIsNotDeleted is a cache that has a config which was deleted, and in whose place there is
// another one of its name by now.
func TestInfraEnvOfASuccessorIsNotDeleted(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.restart()
	gone := w.config()
	gone.UID, gone.DeletionTimestamp = "former", ptr.To(metav1.Now())
	w.cache.Client = kubetest.StaleCacheOf(kubetest.EmptyCacheOf[*assisted.InfraEnv, *assisted.InfraEnvList](w), gone, (*bootstrapv1.OpenshiftAssistedConfig).DeepCopyInto)
	before := w.writes
	w.reconcile()
	w.Expect(w.writes).To(Equal(before))
	read(w, "m", &assisted.InfraEnv{})
}

// TestInfraEnvThatVanishedIsMadeAgain needs no time once the cache has held the InfraEnv.
func TestInfraEnvThatVanishedIsMadeAgain(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.reconcile()
	w.remove(read(w, "m", &assisted.InfraEnv{}))
	w.reconcile()
	read(w, "m", &assisted.InfraEnv{})
}

// TestConfigOfTheSameNameIsAnother is one that is made right after another of its name is gone.
func TestConfigOfTheSameNameIsAnother(t *testing.T) {
	objects := lab()
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.remove(read(w, "m", &assisted.InfraEnv{}))
	former := w.config()
	w.change(former, func() { former.Finalizers = nil })
	w.remove(former)
	w.reconcile()
	objects["config"].SetResourceVersion("")
	w.create(objects["config"])
	w.reconcile()
	read(w, "m", &assisted.InfraEnv{}) // what was made for the former one is not waited for
}

// TestFinalizerIsAddedOnce is a reconcile on a cache that is behind our finalizer, of a config whose status is held back.
func TestFinalizerIsAddedOnce(t *testing.T) {
	w := newWorld(t, values(lab())...)
	stale := w.config()
	w.reconcile()
	w.Expect(w.reports).To(BeZero(), "a wait that has just begun is not reported")
	w.reconciler.overlay(stale)
	w.Expect(stale.Finalizers).To(HaveLen(1), "the finalizer is not added again")
}

// TestOthersAreNotCorrectedWithoutEnd is another process that sees the deletion differently, such as one with another
// clock, and says so each time.
func TestOthersAreNotCorrectedWithoutEnd(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.takeInfraEnvIn()
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	before := w.reports
	for range 100 {
		w.clock = w.clock.Add(10 * time.Millisecond)
		again := w.reconcile().RequeueAfter
		config := w.config()
		told := meta.FindStatusCondition(config.Status.Conditions, bootstrapv1.DeletingCondition)
		w.Expect(told).NotTo(BeNil())
		if told.Reason == bootstrapv1.AssistedServiceNotRespondingReason {
			w.Expect(again).To(BeNumerically("<=", 2*time.Second), "it is corrected in the end")
		}
		told.Reason = bootstrapv1.AssistedServiceNotRespondingReason
		w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
	}
	w.Expect(w.reports - before).To(And(BeNumerically(">", 10), BeNumerically("<", 30)))
}
