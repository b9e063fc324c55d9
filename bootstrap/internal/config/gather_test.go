package config

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// The next Machine of a control plane takes the name of the one that it replaces. What a cache that is behind still says of the former one was held for its own: that its host was installed.
func TestAFormerMachineOfTheNameTellsNothing(t *testing.T) {
	for name, owners := range map[string]func(next *clusterv1.Machine) []metav1.OwnerReference{
		"before Cluster API adopted the config": func(*clusterv1.Machine) []metav1.OwnerReference { return nil },
		"after it did":                          ownedBy,
	} {
		t.Run(name, func(t *testing.T) {
			objects := lab()
			next, config := objects["machine"].(*clusterv1.Machine), objects["config"]
			former := next.DeepCopy()
			former.UID = "former-uid"
			former.Finalizers, former.DeletionTimestamp = []string{clusterv1.MachineFinalizer}, ptr.To(metav1.NewTime(time.Now()))
			former.Spec.Bootstrap.DataSecretName, former.Spec.ProviderID = ptr.To("m"), "metal3://lab/rack1-u7/m"
			former.Status.NodeRef.Name = "rack1-u7"
			objects["machine"] = former
			config.SetOwnerReferences(owners(next))
			w := newWorld(t, values(objects)...)
			w.reconcile()
			w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForMachineReason)
			w.Expect(w.config().Status.DataSecretName).To(BeEmpty())
			w.Expect(w.config().Status.Conditions).NotTo(ContainElement(And(HaveField("Type", bootstrapv1.HostInstalledCondition), HaveField("Status", metav1.ConditionTrue))))

			w.change(former, func() { former.Finalizers = nil })
			next.ResourceVersion = ""
			w.create(next)
			adopted := w.config()
			w.change(adopted, func() { adopted.OwnerReferences = ownedBy(next) })
			w.reconcile()
			w.makeImage()
			w.reconcile()
			w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
			w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
		})
	}
}

// A config that somebody deletes is in use as long as a Machine refers to it, whoever its owner is.
func TestAConfigInUseIsKeptWhoeverOwnsIt(t *testing.T) {
	w := booted(t)
	config := w.config()
	w.change(config, func() { config.OwnerReferences = nil })
	w.remove(config)
	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.WaitingForMachineReason)
}
