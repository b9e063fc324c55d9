package e2e

import (
	"context"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const metal3Host = "BareMetalHost"

// backedUp are the kinds of a backup, in the order in which Velero restores them: by resource name, Clusters
// last.
var backedUp = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	metal3api.GroupVersion.WithKind(metal3Host),
	clusterv1.GroupVersion.WithKind("MachineDeployment"),
	clusterv1.GroupVersion.WithKind("Machine"),
	clusterv1.GroupVersion.WithKind("MachineSet"),
	infrastructure("Metal3Cluster"),
	infrastructure("Metal3Machine"),
	infrastructure("Metal3MachineTemplate"),
	bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfig"),
	bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfigTemplate"),
	controlplanev1.GroupVersion.WithKind("OpenshiftAssistedControlPlane"),
	clusterv1.GroupVersion.WithKind("Cluster"),
}

func infrastructure(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: kind}
}

// The Bare Metal Operator takes a BareMetalHost without status for a new server:
// docs/operations/backup-and-restore.md.
var _ = Describe("A backup of a cluster", Label("bmo"), func() {
	It("is rejected without the history of its hosts, and changes none in the supported order", func(ctx SpecContext) {
		if laboratoryOptions.BareMetal != lab.Real {
			Skip("needs the operator itself: " + operatorVariable + "=" + string(lab.Real))
		}
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: "restored", ClusterName: "restored", LightAPI: lightly(), Edit: oneWorker})
		hub := startHub(ctx, "restored")
		waitAvailable(ctx, cluster)
		before := state(ctx, cluster)

		By("backing it up while it is paused, and losing it on the first hub")
		patch(ctx, before.Cluster.DeepCopy(), `{"spec":{"paused":true}}`)
		for _, m := range before.Machines {
			Eventually(ctx, func() map[string]string { return hostOfLab(ctx, m.Host).Annotations }).WithTimeout(soon).
				Should(And(HaveKey(metal3api.PausedAnnotation), HaveKey(metal3api.StatusAnnotation)))
		}
		backup := backupOf(ctx, cluster)
		deleteBackedUp(ctx, backup)
		restored, err := hub.TakeOver(ctx, cluster)
		Expect(err).NotTo(HaveOccurred())
		boots, orders := bootsOf(hub, before), ordersOf(hub, before)

		By("rejecting a host without its history")
		for _, o := range backup {
			if o.GetKind() == metal3Host && hasConsumer(o) {
				bare := o.DeepCopy()
				bare.SetAnnotations(nil)
				Expect(hub.Client().Create(ctx, bare)).To(MatchError(apierrors.IsInvalid, "is refused"), o.GetName())
			}
		}

		By("restoring the backup, and ending the pause")
		for i := range backup {
			err := hub.Client().Create(ctx, backup[i].DeepCopy())
			Expect(client.IgnoreAlreadyExists(err)).To(Succeed(), "%s %s", backup[i].GetKind(), backup[i].GetName())
		}
		patchAt(ctx, hub.Client(), before.Cluster.DeepCopy(), `{"spec":{"paused":false}}`)
		s := wait(ctx, restored, "running on the other hub", func(s *lab.State) bool { return serves(s, len(before.Machines)) })
		for _, m := range before.Machines {
			Expect(machineNamed(s, m.Name).Spec.ProviderID).To(Equal(m.Spec.ProviderID), "Machine %s keeps its host", m.Name)
			host := &metal3api.BareMetalHost{}
			Eventually(ctx, func(g Gomega) {
				g.Expect(hub.Client().Get(ctx, client.ObjectKeyFromObject(m.Host), host)).To(Succeed())
				g.Expect(host.Status.Provisioning.State).To(Equal(metal3api.StateProvisioned))
				g.Expect(host.Annotations).NotTo(HaveKey(metal3api.PausedAnnotation))
			}).WithTimeout(soon).Should(Succeed())
			Expect(hub.Rack.Host(m.Host.Namespace + "/" + m.Host.Name).Losses()).To(BeEmpty())
		}
		Expect(s.InfraEnvs).To(BeEmpty(), "no image is created for running hosts")
		Expect(bootsOf(hub, s)).To(Equal(boots))
		Expect(ordersOf(hub, s)).To(Equal(orders), "the operator started no task of the hosts")
		Expect(hub.Failure()).NotTo(HaveOccurred())
	}, NodeTimeout(3*installTimeout))
})

// backupOf returns the content of a backup of the namespace of a cluster, as Velero restores it.
func backupOf(ctx context.Context, cluster *lab.Cluster) []*unstructured.Unstructured {
	GinkgoHelper()
	var backup []*unstructured.Unstructured
	for _, kind := range backedUp {
		for _, o := range listAt(ctx, laboratory, kind, cluster.Namespace) {
			if kind.Kind != "ConfigMap" || !strings.HasSuffix(o.GetName(), ".crt") { // each namespace has its own
				backup = append(backup, restorable(&o))
			}
		}
	}
	return backup
}

// deleteBackedUp deletes the backed-up objects on the first hub without any reaction of a controller, as when a hub is
// lost.
func deleteBackedUp(ctx context.Context, backup []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, o := range backup {
		if o.GetKind() == "Secret" || o.GetKind() == "ConfigMap" {
			continue
		}
		patch(ctx, o.DeepCopy(), `{"metadata":{"annotations":{"`+clusterctlv1.DeleteForMoveAnnotation+`":""}}}`)
		Expect(laboratory.Client().Delete(ctx, o.DeepCopy())).To(Succeed(), "%s %s", o.GetKind(), o.GetName())
		err := laboratory.Client().Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		Expect(client.IgnoreNotFound(err)).To(Succeed(), "%s %s", o.GetKind(), o.GetName())
	}
}

// restorable returns an object without its status, owners and identity.
func restorable(o *unstructured.Unstructured) *unstructured.Unstructured {
	kept := o.DeepCopy()
	unstructured.RemoveNestedField(kept.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences", "managedFields"} {
		unstructured.RemoveNestedField(kept.Object, "metadata", field)
	}
	return kept
}

func hasConsumer(host *unstructured.Unstructured) bool {
	_, has, _ := unstructured.NestedMap(host.Object, "spec", "consumerRef")
	return has
}

// ordersOf returns how often the Bare Metal Operator started each task that changes a server, by Machine.
func ordersOf(hub *lab.Lab, s *lab.State) map[string]map[hosts.Task]int {
	GinkgoHelper()
	orders := map[string]map[hosts.Task]int{}
	for _, m := range s.Machines {
		orders[m.Name] = hub.Rack.Host(m.Host.Namespace + "/" + m.Host.Name).Orders()
		delete(orders[m.Name], hosts.Registering) // reads the identity only
	}
	return orders
}
