package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/move"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
)

// recovery returns the Secret with the copy of assisted-service's kubeconfig.
func (h *hub) recovery() *corev1.Secret {
	h.t.Helper()
	kept := &corev1.Secret{}
	h.get("c1-recovery-credentials", kept)
	return kept
}

func (h *hub) expectNoRecovery() {
	h.t.Helper()
	err := h.Get(h.t.Context(), client.ObjectKey{Namespace: lab, Name: "c1-recovery-credentials"}, &corev1.Secret{})
	h.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

// The cluster was moved to a hub that was off for longer than the lifetime of a token. assisted-service's
// Secret does not exist there.
func TestMovedClusterWithExpiredTokenReconnects(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.forget()
	h.Expect(h.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1-admin-kubeconfig"}})).To(Succeed())
	connected := h.workloads.facts
	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity + time.Hour) }
	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("assisted-service")))
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")

	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigUnauthorizedReason, "put a kubeconfig that works into Secret cluster1-kubeconfig")

	h.workloads.facts = connected
	h.reconcile()
	h.expectToken("token-2")
	h.Expect(h.recovery().Data["kubeconfig"]).To(Equal(kubeconfigOf("assisted-service")), "the copy is kept for the next time")
}

func TestCopyOfAssistedServicesKubeconfigIsUpdated(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.giveKubeconfig("assisted-service")
	h.reconcile()
	h.expectNoRecovery() // a cluster is not moved during its installation
	h.install()
	kept := h.recovery()
	h.Expect(kept.Data["kubeconfig"]).To(Equal(kubeconfigOf("assisted-service")))
	h.Expect(kept.Type).To(Equal(clusterv1.ClusterSecretType))
	h.Expect(metav1.IsControlledBy(kept, h.controlPlane())).To(
		BeTrue(), "clusterctl moves what the Cluster's objects own, and it is deleted with them",
	)

	writes := len(h.writes)
	admin := &corev1.Secret{}
	h.get("c1-admin-kubeconfig", admin)
	admin.Labels = map[string]string{"touched": "yes"}
	h.Expect(h.Update(t.Context(), admin)).To(Succeed())
	live := &liveReader{Reader: h.Client}
	h.live.Reader = live
	h.reconcile()
	reads := live.secrets
	h.reconcile()
	h.Expect(live.secrets).To(Equal(reads), "each version is read once")
	h.Expect(h.writes[writes:]).NotTo(ContainElement(ContainSubstring("recovery")))

	h.giveKubeconfig("another")
	h.reconcile()
	h.Expect(h.recovery().Data["kubeconfig"]).To(Equal(kubeconfigOf("another")))
	h.Expect(h.Delete(t.Context(), h.recovery())).To(Succeed())
	h.reconcile()
	h.Expect(h.recovery().Data["kubeconfig"]).To(Equal(kubeconfigOf("another")))

	h.forget() // the cluster was moved: here the copy is the user's to delete
	h.Expect(h.Delete(t.Context(), h.recovery())).To(Succeed())
	h.reconcile()
	h.expectNoRecovery()
}

// Backup tools drop owner references.
func TestRestoredCopyIsAdopted(t *testing.T) {
	for _, moved := range []bool{false, true} {
		h := newHub(t, world(nil)...).withTime()
		h.install()
		if moved {
			h.forget()
		}
		kept := h.recovery()
		kept.OwnerReferences = nil
		h.Expect(h.Update(t.Context(), kept)).To(Succeed())
		h.reconcile()
		h.Expect(metav1.IsControlledBy(h.recovery(), h.controlPlane())).To(BeTrue(), "else it would stay when the cluster is deleted")
		h.Expect(h.recovery().Data).To(Equal(kept.Data))
	}
}

// On an OpenShift hub without openshift-hub.yaml, after a restore: all work that does not depend on the owner
// continues.
func TestKubeconfigsWhoseOwnersTheHubRefusesAreReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.editPublished(func(s *corev1.Secret) { s.OwnerReferences = nil })
	kept := h.recovery()
	kept.OwnerReferences = nil
	h.Expect(h.Update(t.Context(), kept)).To(Succeed())
	h.undeletable = kubetest.Undeletable{"Secret"}
	h.reconcile()
	h.expectToken("token-1")
	h.endDeferral()
	h.reconcile()
	c := h.condition(controlplanev1.KubeconfigAvailableCondition)
	h.Expect(c.Status).To(Equal(metav1.ConditionTrue))
	h.Expect(c.Message).To(And(ContainSubstring("keeps its owner references"), ContainSubstring("Apply openshift-hub.yaml")))
	writes := len(h.writes)
	h.reconcile()
	h.Expect(h.writes[writes:]).To(BeEmpty(), "the refused write is not repeated at once")

	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
	h.reconcile()
	h.expectToken("token-2")
	h.Expect(h.published().OwnerReferences).To(BeEmpty())
	h.giveKubeconfig("another")
	h.reconcile()
	h.Expect(h.recovery().Data["kubeconfig"]).To(Equal(kubeconfigOf("another")))

	h.undeletable = nil
	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + 2*time.Hour) }
	h.reconcile()
	h.Expect(metav1.IsControlledBy(h.published(), h.controlPlane())).To(BeTrue())
	h.Expect(metav1.IsControlledBy(h.recovery(), h.controlPlane())).To(BeTrue())
	h.endDeferral()
	h.reconcile()
	h.Expect(h.condition(controlplanev1.KubeconfigAvailableCondition).Message).NotTo(ContainSubstring("owner references"))
}

// The labels that decide are not cached: a foreign Secret is read once for each of its versions.
func TestForeignCopyIsReadOnce(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	foreign := h.recovery()
	foreign.OwnerReferences, foreign.Labels, foreign.Annotations = nil, nil, nil
	h.Expect(h.Update(t.Context(), foreign)).To(Succeed())
	reads := 0
	h.live.Reader = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key.Name == foreign.Name {
				reads++
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	for range 3 {
		h.reconcile()
	}
	h.Expect(reads).To(Equal(1))
	h.endDeferral()
	h.reconcile()
	h.Expect(h.condition(controlplanev1.KubeconfigAvailableCondition).Message).To(
		ContainSubstring("c1-recovery-credentials does not belong to this cluster"),
	)

	ours := h.recovery()
	h.gather().Owner().Mark(ours)
	h.Expect(h.Update(t.Context(), ours)).To(Succeed())
	h.reconcile()
	h.Expect(metav1.IsControlledBy(h.recovery(), h.controlPlane())).To(BeTrue(), "another version is read again")
}

func TestForeignCopyIsNeitherUsedNorChanged(t *testing.T) {
	for whose, change := range map[string]func(*corev1.Secret){
		"the user's": func(s *corev1.Secret) { s.OwnerReferences, s.Labels, s.Annotations = nil, nil, nil },
		"of a former cluster of this name": func(s *corev1.Secret) {
			s.OwnerReferences, s.Annotations[contract.ClusterUIDAnnotation] = nil, "former"
		},
		"with another owner": func(s *corev1.Secret) { s.OwnerReferences[0].UID = "another" },
	} {
		t.Run(whose, func(t *testing.T) {
			for _, moved := range []bool{false, true} {
				h := newHub(t, world(nil)...).withTime()
				h.install()
				if moved {
					h.forget()
				}
				foreign := h.recovery()
				change(foreign)
				foreign.Data["kubeconfig"] = kubeconfigOf("foreign")
				h.Expect(h.Update(t.Context(), foreign)).To(Succeed())
				h.workloads.facts = h.unauthorized()
				h.reconcile()
				h.Expect(h.published().Data["value"]).NotTo(Equal(kubeconfigOf("foreign")))
				h.Expect(h.recovery().ResourceVersion).To(Equal(foreign.ResourceVersion))
				h.workloads.facts = workload.State{}
				h.endDeferral()
				h.reconcile()
				h.Expect(h.condition(controlplanev1.KubeconfigAvailableCondition).Message).To(
					ContainSubstring("c1-recovery-credentials does not belong to this cluster"),
				)
			}
		})
	}
}

func TestUsersOwnKubeconfigGetsNoCopy(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	own := &corev1.Secret{}
	own.Namespace, own.Name, own.Data = lab, "cluster1-kubeconfig", map[string][]byte{"value": kubeconfigOf("user")}
	h.Expect(h.Create(t.Context(), own)).To(Succeed())
	h.install()
	h.expectNoRecovery()
}

func TestNoMoveWithoutTheCopy(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.Expect(h.Delete(t.Context(), h.recovery())).To(Succeed())
	h.annotate(clusterctlv1.BlockMoveAnnotation, move.Installing)
	h.applyFails = errors.New("no room")
	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(MatchError(ContainSubstring("cannot keep a copy of assisted-service's kubeconfig in Secret c1-recovery-credentials")))
	h.Expect(err).To(MatchError(ContainSubstring("cannot publish the renewed kubeconfig")), "the renewal is tried nevertheless")
	h.Expect(h.controlPlane().Annotations).To(HaveKey(clusterctlv1.BlockMoveAnnotation))
}

func TestExpirationOfTheTokenIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.giveKubeconfig("assisted-service")
	h.reconcile()
	h.Expect(h.controlPlane().Status.KubeconfigExpirationTime).To(BeNil())
	h.install()
	h.Expect(h.controlPlane().Status.KubeconfigExpirationTime).NotTo(BeNil(), "with the status that reports the installed cluster")
	h.Expect(h.controlPlane().Status.KubeconfigExpirationTime.Time).To(BeTemporally("~", time.Now().Add(tokens.Validity), time.Minute))

	h.editPublished(func(s *corev1.Secret) { s.OwnerReferences = nil }) // as a restore leaves it
	h.reconcile()
	h.Expect(h.published().Annotations).To(HaveKey(facts.KubeconfigExpirationAnnotation))
	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.reconcile()
	h.Expect(h.controlPlane().Status.KubeconfigExpirationTime).To(BeNil(), "assisted-service's certificate does not end soon")
}
