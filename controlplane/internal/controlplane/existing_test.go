package controlplane

import (
	"context"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
)

// lacking is a cache that does not show a Secret yet.
type lacking struct {
	client.Reader

	name string
}

func (l lacking) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if secret, is := obj.(*metav1.PartialObjectMetadata); is && key.Name == l.name && secret.Kind == "Secret" {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

// The first write is forced and would overwrite the Secret.
func TestKubeconfigThatTheCacheLacksIsNotOverwritten(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "cluster1-kubeconfig"}, Data: map[string][]byte{"value": []byte("theirs")},
	}
	h.Expect(h.Create(t.Context(), theirs)).To(Succeed())
	h.r.Metadata = lacking{h.r.Metadata, theirs.Name}
	h.giveKubeconfig("assisted-service")
	h.reconcile()
	h.Expect(h.published().Data).To(HaveKeyWithValue("value", BeEquivalentTo("theirs")))
	h.Expect(h.published().OwnerReferences).To(BeEmpty())
}

func TestPlaceholderPullSecretThatTheCacheLacksIsUsed(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.DistributionVersion, cp.Spec.Config.PullSecretRef = "4.19.0-okd-scos.5", nil
	})...)
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1-placeholder-pull-secret"}, Data: map[string][]byte{"key": []byte("theirs")},
	}
	h.Expect(h.Create(t.Context(), theirs)).To(Succeed())
	h.r.Metadata = lacking{h.r.Metadata, theirs.Name}
	h.reconcile()
	kept := &corev1.Secret{}
	h.get(theirs.Name, kept)
	h.Expect(kept.Data).To(Equal(theirs.Data), "an existing Secret is used as it is")
	h.Expect(kept.OwnerReferences).To(BeEmpty())
}

// hiding is a cached client that does not show an object yet.
type hiding struct {
	client.Client

	hidden client.Object
}

func (c hiding) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if reflect.TypeOf(into) == reflect.TypeOf(c.hidden) && key == client.ObjectKeyFromObject(c.hidden) {
		return apierrors.NewNotFound(corev1.Resource("hidden"), key.Name)
	}
	return c.Client.Get(ctx, key, into, opts...)
}

// The first write of an object is forced. It would take over a foreign object of the name that the cache does
// not show yet, such as the AgentClusterInstall of a running cluster.
func TestForeignObjectThatTheCacheLacksIsNotTakenOver(t *testing.T) {
	slots, err := desired.FreeSlots(factsOf(nil), 1)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: lab, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "theirs"}}
	}
	for kind, tc := range map[string]struct {
		theirs            client.Object
		condition, reason string
	}{
		"ClusterDeployment": {
			&hivev1.ClusterDeployment{ObjectMeta: named("c1")},
			controlplanev1.InstalledCondition, controlplanev1.InstallationNotOursReason,
		},
		"AgentClusterInstall": {
			&hiveext.AgentClusterInstall{ObjectMeta: named("c1")},
			controlplanev1.InstalledCondition, controlplanev1.InstallationNotOursReason,
		},
		"OpenshiftAssistedConfig": {
			&bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: named(slots[0].Name)},
			controlplanev1.MachinesCreatedCondition, controlplanev1.MachineCreationFailedReason,
		},
		"Machine": {
			&clusterv1.Machine{ObjectMeta: named(slots[0].Name), Spec: clusterv1.MachineSpec{ClusterName: "theirs"}},
			controlplanev1.MachinesCreatedCondition, controlplanev1.MachineCreationFailedReason,
		},
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, append(world(nil), tc.theirs)...).withTime()
			before := h.stored(tc.theirs)
			h.cached.Client = hiding{h.cached.Client, tc.theirs}
			h.Expect(h.reconcile().RequeueAfter).To(BeNumerically(">", 0))
			h.Expect(h.stored(tc.theirs)).To(Equal(before), "the cache lags")

			h.cached.Client = h.cached.Client.(hiding).Client //nolint:forcetypeassert // set above
			_, _ = h.r.Reconcile(t.Context(), h.request())
			h.Expect(h.stored(tc.theirs)).To(Equal(before), "the cache shows it")
			reported := conditions.Get(h.controlPlane(), tc.condition)
			h.Expect(reported.Reason).To(Equal(tc.reason))
			h.Expect(reported.Message).To(ContainSubstring(kind + " " + tc.theirs.GetName() + " exists and was not created for this control plane"))
		})
	}
}

// stored returns an object as the API server has it.
func (h *hub) stored(obj client.Object) client.Object {
	h.t.Helper()
	found := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object) //nolint:forcetypeassert // it is of the type of obj
	h.get(obj.GetName(), found)
	return found
}
