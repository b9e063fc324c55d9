package hostconfig

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

func TestErrorBeforeFirstConditionOfStage(t *testing.T) {
	denied := apierrors.NewForbidden(corev1.Resource("secrets"), "m", errors.New("User system:serviceaccount:other-namespace:x"))
	for name, tc := range map[string]struct {
		failure error
		message string
	}{
		"an error of the provider":             {errors.New("https://img/?api_key=top-secret"), "see the log of the manager"},
		"a refusal":                            {fmt.Errorf("cannot write the bootstrap data: %w", denied), "Forbidden (secrets)"},
		"one of several, after another report": {errors.Join(denied, errors.New("also other-namespace")), "Forbidden (secrets)"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &bootstrapv1.OpenshiftAssistedConfig{}
			s := scope.New(&facts.Facts{Config: config})
			s.Pass(bootstrapv1.DiscoveryImageReadyCondition, "")
			ready := meta.FindStatusCondition(status.Summarize(s.Facts, &s.Findings, tc.failure), bootstrapv1.ReadyCondition)
			g := NewWithT(t)
			g.Expect(ready.Status).To(Equal(metav1.ConditionUnknown))
			g.Expect(ready.Reason).To(Equal(bootstrapv1.InternalErrorReason))
			g.Expect(ready.Message).To(And(ContainSubstring(tc.message), ContainSubstring(bootstrapv1.DataSecretAvailableCondition)))
			for _, secret := range []string{"top-secret", "other-namespace"} {
				g.Expect(ready.Message).NotTo(ContainSubstring(secret), "the message leaks nothing")
			}
		})
	}
}

// TestForeignOwnerOfReplacedSecretStays: another client deleted the Secret that the cache still shows, and
// created one of its own with the same name.
func TestForeignOwnerOfReplacedSecretStays(t *testing.T) {
	foreign := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "foreign"}}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", OwnerReferences: foreign}}
	w := newWorld(t, append(values(lab()), theirs)...)
	machine, _ := lab()["machine"].(*clusterv1.Machine)
	ours := kube.MetadataOf(kube.Secret)
	ours.Namespace, ours.Name, ours.UID, ours.ResourceVersion, ours.Annotations = namespace, "m", "ours", "1", map[string]string{
		desired.SourceAnnotation: "x",
	}
	s := scope.New(&facts.Facts{Config: w.config(), Machine: machine, DataSecret: ours})
	w.Expect(apierrors.IsConflict(w.reconciler.writer.KeepOwner(t.Context(), s, ours))).To(BeTrue())
	w.Expect(read(w, "m", &corev1.Secret{}).OwnerReferences).To(Equal(foreign))
}

// TestDeletedSecretsInCache: the cache still shows Secrets that are deleted.
func TestDeletedSecretsInCache(t *testing.T) {
	w := newWorld(t, values(lab())...)
	machine, _ := lab()["machine"].(*clusterv1.Machine)
	secret := kube.MetadataOf(kube.Secret)
	secret.Namespace, secret.Name, secret.Annotations = namespace, "m", map[string]string{desired.SourceAnnotation: "x"}
	s := scope.New(&facts.Facts{Config: w.config(), Machine: machine, DataSecret: secret})
	w.Expect(w.reconciler.writer.KeepOwner(t.Context(), s, s.DataSecret)).To(Succeed(), "no owner is required")
}
