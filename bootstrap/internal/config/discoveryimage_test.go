package config

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

func TestWhoFreezesTheDiscoverySettings(t *testing.T) {
	for name, tc := range map[string]struct {
		agent  func() *aiv1beta1.Agent
		before func(w *world)
		frozen bool
	}{
		"the Machine's host": {agent: func() *aiv1beta1.Agent { return discovered("a", "m", bootMAC) }, frozen: true},
		"a stranger":         {agent: func() *aiv1beta1.Agent { return discovered("a", "m", "02:00:00:00:00:66") }},
		"one that says not what it is": {agent: func() *aiv1beta1.Agent {
			agent := discovered("a", "m", bootMAC)
			agent.Status.Inventory = aiv1beta1.HostInventory{}
			return agent
		}, frozen: true},
		"one that was proven before": {agent: func() *aiv1beta1.Agent { return discovered("a", "m", "02:00:00:00:00:66") }, before: func(w *world) {
			config := w.config()
			config.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"}
			w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
		}, frozen: true},
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
