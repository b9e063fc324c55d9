package hostconfig

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestSettingsUnknownToAssistedService: a condition reports an assisted-service that is too old for a field.
// The request is repeated, since assisted-service may be upgraded.
func TestSettingsUnknownToAssistedService(t *testing.T) {
	w := newWorld(t, values(lab())...)
	config := w.config()
	w.change(config, func() { config.Spec.NTPSources = []string{"ntp.example"} })
	w.refusal = errors.New("failed to create typed patch object (lab/m; agent-install.openshift.io/v1beta1, Kind=InfraEnv): " +
		".spec.ntpSources: field not declared in schema")
	w.reconcile()
	result := w.reconcile()
	w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
	w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.DiscoveryImageReadyCondition).Message).To(
		Equal("assisted-service of this hub does not support this setting: its InfraEnvs have no spec.ntpSources. Remove the field, or " +
			"upgrade assisted-service"))
	w.Expect(result.RequeueAfter).To(Equal(time.Minute))
	w.Expect(w.reconcile().RequeueAfter).To(Equal(time.Minute), "an event meanwhile does not delay the next request")
	for _, after := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute} {
		w.Expect(result.RequeueAfter).To(Equal(after))
		w.clock = w.clock.Add(after)
		result = w.reconcile()
	}
	w.Expect(result.RequeueAfter).To(Equal(10 * time.Minute))
	config = w.config()
	w.change(config, func() { config.Generation++; config.Spec.NTPSources = []string{"ntp.example", "other.example"} })
	w.Expect(w.reconcile().RequeueAfter).To(Equal(time.Minute), "another setting is rejected now")
	w.refusal = nil
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.NTPSources).To(ConsistOf("ntp.example", "other.example"))
}

func TestAgentsThatFreezeDiscoverySettings(t *testing.T) {
	for name, tc := range map[string]struct {
		agent  func() *aiv1beta1.Agent
		before func(w *world)
		frozen bool
	}{
		"the Machine's host": {agent: func() *aiv1beta1.Agent { return discovered("a", "m", bootMAC) }, frozen: true},
		"a foreign Agent":    {agent: func() *aiv1beta1.Agent { return discovered("a", "m", "02:00:00:00:00:66") }},
		"an Agent without inventory": {agent: func() *aiv1beta1.Agent {
			agent := discovered("a", "m", bootMAC)
			agent.Status.Inventory = aiv1beta1.HostInventory{}
			return agent
		}, frozen: true},
		"an Agent identified before": {
			agent: func() *aiv1beta1.Agent { return discovered("a", "m", "02:00:00:00:00:66") },
			before: func(w *world) {
				config := w.config()
				config.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"}
				w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
			}, frozen: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			if tc.before != nil {
				tc.before(w)
			}
			w.create(tc.agent())
			config := w.config()
			w.change(config, func() { config.Spec.AdditionalNTPSources = []string{"ntp.example"} })
			w.reconcile()
			sources := []string{"ntp.example"}
			if tc.frozen {
				sources = nil
			}
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.AdditionalNTPSources).To(ConsistOf(sources))
		})
	}
}
