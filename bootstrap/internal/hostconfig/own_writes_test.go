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
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// TestOwnWritesAreNotRepeated covers a cache that does not contain the last status write yet.
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
	w.Expect(foreign.Status.DataSecretName).To(BeEmpty(), "an unknown version is used unchanged")
}

// TestInfraEnvIsCreatedOnce covers a cache that does not contain the new InfraEnv yet.
func TestInfraEnvIsCreatedOnce(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	before := w.writes
	w.cache.Client = kubetest.EmptyCacheOf[*aiv1beta1.InfraEnv, *aiv1beta1.InfraEnvList](w)
	w.Expect(w.reconcile().RequeueAfter).To(Equal(reconcile.CacheLag))
	w.Expect(w.writes).To(Equal(before))
	w.remove(read(w, "m", &aiv1beta1.InfraEnv{}))
	w.clock = w.clock.Add(reconcile.CacheLag)
	w.reconcile()
	read(w, "m", &aiv1beta1.InfraEnv{}) // recreated: the cache was up to date, and the InfraEnv deleted
}

// TestUncachedInfraEnvIsDeleted covers a deletion right after this manager, or an earlier one, created the
// InfraEnv.
func TestUncachedInfraEnvIsDeleted(t *testing.T) {
	for maker, change := range map[string]func(w *world){"this manager": func(*world) {}, "another": (*world).restart} {
		t.Run(maker, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			w.reconcile()
			w.takeInfraEnvIn()
			change(w)
			w.cache.Client = kubetest.EmptyCacheOf[*aiv1beta1.InfraEnv, *aiv1beta1.InfraEnvList](w)
			w.remove(read(w, "m", &clusterv1.Machine{}))
			w.remove(w.config())
			w.Expect(w.reconcile().RequeueAfter).To(BeNumerically("<=", reconcile.CacheLag), "no event reports the end of the deletion")
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
			w.clock = w.clock.Add(time.Minute)
			w.reconcile()
			w.Expect(w.config().Finalizers).NotTo(BeEmpty(), "the config waits for the InfraEnv")
			w.removeFinalizers("m", &aiv1beta1.InfraEnv{})
			w.reconcile()
			w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue())
		})
	}
}

// TestInfraEnvOfSuccessorIsNotDeleted covers a cache that still contains a deleted config, while another
// config has its name.
func TestInfraEnvOfSuccessorIsNotDeleted(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.restart()
	gone := w.config()
	gone.UID, gone.DeletionTimestamp = "former", ptr.To(metav1.Now())
	w.cache.Client = kubetest.StaleCacheOf(kubetest.EmptyCacheOf[*aiv1beta1.InfraEnv, *aiv1beta1.InfraEnvList](w), gone,
		(*bootstrapv1.OpenshiftAssistedConfig).DeepCopyInto)
	before := w.writes
	w.reconcile()
	w.Expect(w.writes).To(Equal(before))
	read(w, "m", &aiv1beta1.InfraEnv{})
}

// TestDeletedInfraEnvIsRecreated without delay once the cache has contained the InfraEnv.
func TestDeletedInfraEnvIsRecreated(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.reconcile()
	w.remove(read(w, "m", &aiv1beta1.InfraEnv{}))
	w.reconcile()
	read(w, "m", &aiv1beta1.InfraEnv{})
}

// TestConfigOfSameNameIsAnother covers a config that is created right after the deletion of another one with
// its name.
func TestConfigOfSameNameIsAnother(t *testing.T) {
	objects := lab()
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.remove(read(w, "m", &aiv1beta1.InfraEnv{}))
	former := w.config()
	w.change(former, func() { former.Finalizers = nil })
	w.remove(former)
	w.reconcile()
	objects["config"].SetResourceVersion("")
	w.create(objects["config"])
	w.reconcile()
	read(w, "m", &aiv1beta1.InfraEnv{}) // the objects of the former config block nothing
}

// TestFinalizerIsAddedOnce covers a cache that does not contain the finalizer yet, and a delayed status.
func TestFinalizerIsAddedOnce(t *testing.T) {
	w := newWorld(t, values(lab())...)
	stale := w.config()
	w.reconcile()
	w.Expect(w.reports).To(BeZero(), "a wait that has just begun is not reported")
	w.reconciler.overlay(stale)
	w.Expect(stale.Finalizers).To(HaveLen(1), "the finalizer is not added again")
}

// TestOtherProcessIsNotCorrectedWithoutEnd covers another process that judges the deletion differently, for
// example with another clock, and writes its report each time.
func TestOtherProcessIsNotCorrectedWithoutEnd(t *testing.T) {
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
		deleting := meta.FindStatusCondition(config.Status.Conditions, bootstrapv1.DeletingCondition)
		w.Expect(deleting).NotTo(BeNil())
		if deleting.Reason == bootstrapv1.AssistedServiceNotRespondingReason {
			w.Expect(again).To(BeNumerically("<=", 2*time.Second), "corrected in the end")
		}
		deleting.Reason = bootstrapv1.AssistedServiceNotRespondingReason
		w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
	}
	w.Expect(w.reports - before).To(And(BeNumerically(">", 10), BeNumerically("<", 30)))
}
