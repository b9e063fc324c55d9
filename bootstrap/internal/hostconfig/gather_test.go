package hostconfig

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestFormerMachineOfSameNameIsIgnored: the next Machine of a control plane takes the name of the replaced
// one. An outdated cache still shows the former Machine, whose installed host must not count for the next
// one.
func TestFormerMachineOfSameNameIsIgnored(t *testing.T) {
	for name, owners := range map[string]func(next *clusterv1.Machine) []metav1.OwnerReference{
		"before Cluster API adopted the config": func(*clusterv1.Machine) []metav1.OwnerReference { return nil },
		"after Cluster API adopted the config":  ownedBy,
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
			w.Expect(w.config().Status.Conditions).NotTo(ContainElement(And(HaveField("Type", bootstrapv1.HostInstalledCondition),
				HaveField("Status", metav1.ConditionTrue))))

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

// TestConfigInUseIsKept: a config that a user deletes is in use while a Machine refers to it, independent of
// its owner.
func TestConfigInUseIsKept(t *testing.T) {
	w := booted(t)
	config := w.config()
	w.change(config, func() { config.OwnerReferences = nil })
	w.remove(config)
	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.WaitingForMachineReason)
}

// gone returns a config that is released, before the cache contains the deletion.
func gone(config *bootstrapv1.OpenshiftAssistedConfig) *bootstrapv1.OpenshiftAssistedConfig {
	former := config.DeepCopy()
	former.UID, former.ResourceVersion = "former-uid", "7"
	former.Finalizers, former.DeletionTimestamp = []string{bootstrapv1.OpenshiftAssistedConfigFinalizer}, ptr.To(metav1.NewTime(time.Now()))
	former.Status.Conditions = []metav1.Condition{{
		Type: bootstrapv1.HostInstalledCondition, Status: metav1.ConditionTrue,
		Reason: bootstrapv1.HostInstalledReason,
	}}
	return former
}

// TestStatusOfFormerConfigIsNotWrittenToNext: the cache still contains a former config with its host. Its
// status must not be written into the next config of the same name, which would be installed forever.
func TestStatusOfFormerConfigIsNotWrittenToNext(t *testing.T) {
	w := newWorld(t, values(lab())...)
	former := gone(w.config())
	w.cache.Client = interceptor.NewClient(w.cached(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if config, ok := obj.(*bootstrapv1.OpenshiftAssistedConfig); ok {
				former.DeepCopyInto(config)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(former)})
	w.Expect(err).To(MatchError(apierrors.IsConflict, "is a conflict"))
	w.Expect(w.config().Status).To(BeZero())
}

// TestFormerInfraMachineIsIgnored: the boot mode of a Machine is set once, from its infrastructure machine. A
// former infrastructure machine, of another template, must not count.
func TestFormerInfraMachineIsIgnored(t *testing.T) {
	objects := lab()
	former := metal3Machine("qcow2")
	owners := former.GetOwnerReferences()
	owners[0].UID = "former-uid"
	former.SetOwnerReferences(owners)
	objects["metal3"] = former
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForInfraMachineReason)

	w.remove(former)
	w.create(metal3Machine("live-iso"))
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.Expect(w.config().Status.BootMode).To(Equal(bootstrapv1.BootModeLiveISO))
}

// TestDeletedInfraEnvBootsNoHost: no host boots the image of an InfraEnv that is being deleted.
func TestDeletedInfraEnvBootsNoHost(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.remove(w.takeInfraEnvIn())
	w.makeImage()
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
	w.Expect(w.config().Status.DataSecretName).To(BeEmpty())

	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() { infraEnv.Finalizers = nil })
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
}

// TestInfraEnvMissingInCacheIsDeleted: a Machine may be deleted before the cache contains its new InfraEnv.
func TestInfraEnvMissingInCacheIsDeleted(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.cache.Client = interceptor.NewClient(w.cached(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, hidden := obj.(*aiv1beta1.InfraEnv); hidden {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "infraenvs"}, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, hidden := list.(*aiv1beta1.InfraEnvList); hidden {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	w.reconcile()
	read(w, "m", &aiv1beta1.InfraEnv{})
	w.clock = w.clock.Add(time.Minute)
	w.remove(read(w, "m", &clusterv1.Machine{}))
	config := w.config()
	w.remove(config)
	w.reconcile()
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(config), &aiv1beta1.InfraEnv{})).To(MatchError(apierrors.IsNotFound, "not found"))
	w.reconcile()
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(config), config)).To(MatchError(apierrors.IsNotFound, "not found"))
}

// TestInfraMachineOfAnotherGroupIsNotRead: the real cache, and its worker, wait without end for a kind that
// the manager must not read.
func TestInfraMachineOfAnotherGroupIsNotRead(t *testing.T) {
	objects := lab()
	objects["machine"].(*clusterv1.Machine).Spec.InfrastructureRef.APIGroup = "controlplane.cluster.x-k8s.io"
	w := newWorld(t, values(objects)...)
	w.cache.Client = interceptor.NewClient(w.cached(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			w.Expect(obj.GetObjectKind().GroupVersionKind().Group).NotTo(Equal("controlplane.cluster.x-k8s.io"))
			w.Expect(key.Name).NotTo(Equal("metal3machines.controlplane.cluster.x-k8s.io"), "nor its CustomResourceDefinition")
			return c.Get(ctx, key, obj, opts...)
		},
	})
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForInfraMachineReason)
}
