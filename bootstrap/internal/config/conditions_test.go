package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

func TestErrorBeforeTheFirstConditionOfAStage(t *testing.T) {
	denied := apierrors.NewForbidden(corev1.Resource("secrets"), "m", errors.New("User system:serviceaccount:other-namespace:x"))
	for name, tc := range map[string]struct {
		failure error
		message string
	}{
		"an error of ours":                     {fmt.Errorf("https://img/?api_key=top-secret"), "the manager's log says more"}, //nolint:err113,perfsprint // whatever comes
		"a refusal":                            {fmt.Errorf("cannot write the bootstrap data: %w", denied), "Forbidden (secrets)"},
		"one of several, after another report": {errors.Join(denied, errors.New("also other-namespace")), "Forbidden (secrets)"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &bootstrapv1.OpenshiftAssistedConfig{}
			s := newScope(&facts.Facts{Config: config})
			s.pass(bootstrapv1.DiscoveryImageReadyCondition, "")
			ready := meta.FindStatusCondition(summarise(s, tc.failure), bootstrapv1.ReadyCondition)
			if ready.Status != metav1.ConditionUnknown || ready.Reason != bootstrapv1.InternalErrorReason ||
				!strings.Contains(ready.Message, tc.message) || !strings.Contains(ready.Message, bootstrapv1.DataSecretAvailableCondition) {
				t.Errorf("%s %s: %s", ready.Status, ready.Reason, ready.Message)
			}
			for _, secret := range []string{"top-secret", "other-namespace"} {
				if strings.Contains(ready.Message, secret) {
					t.Errorf("the message leaks %s: %s", secret, ready.Message)
				}
			}
		})
	}
}

// TestSecretsThatVanish are behind the cache: what it still shows is gone.
func TestSecretsThatVanish(t *testing.T) {
	w := newWorld(t, values(lab())...)
	machine, _ := lab()["machine"].(*clusterv1.Machine)
	secret := kube.MetadataOf(kube.Secret)
	secret.Namespace, secret.Name, secret.Annotations = namespace, "m", map[string]string{SourceAnnotation: "x"}
	infraMachine := metal3Machine("live-iso")
	if err := unstructured.SetNestedField(infraMachine.Object, "m-metadata", "status", "metaData", "name"); err != nil {
		t.Fatal(err)
	}
	s := newScope(&facts.Facts{Config: w.config(), Machine: machine, DataSecret: secret, InfraMachine: infraMachine})
	if err := w.reconciler.keepOwner(t.Context(), s); err != nil {
		t.Errorf("nothing is to be owned: %v", err)
	}
	_, err := w.reconciler.metal3Metadata(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "m-metadata") || strings.Contains(err.Error(), "%!") {
		t.Errorf("metadata: %v", err)
	}
}
