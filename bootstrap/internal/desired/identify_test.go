package desired

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestSeveralAgentsOfOneHost(t *testing.T) {
	ours := &aiv1beta1.ClusterReference{Namespace: sample.Namespace, Name: "cp"}
	connected := conditionsv1.Condition{Type: aiv1beta1.ConnectedCondition, Status: corev1.ConditionTrue}
	for situation, tc := range map[string]struct {
		change func(first, second *aiv1beta1.Agent)
		known  *corev1.LocalObjectReference
		wanted string
	}{
		"both are equal": {func(_, _ *aiv1beta1.Agent) {}, nil, "a"},
		"one is connected": {func(_, second *aiv1beta1.Agent) {
			second.Status.Conditions = append(second.Status.Conditions, connected)
		}, nil, "b"},
		"one is recorded, the other connected": {func(first, _ *aiv1beta1.Agent) {
			first.Status.Conditions = append(first.Status.Conditions, connected)
		}, &corev1.LocalObjectReference{Name: "b"}, "b"},
		"one is recorded, and was bound a moment ago": {func(_, second *aiv1beta1.Agent) {
			second.Status.Inventory, second.Spec.ClusterDeploymentName = aiv1beta1.HostInventory{}, ours
		}, &corev1.LocalObjectReference{Name: "b"}, "b"},
		"one is approved, the record is lost": {func(first, second *aiv1beta1.Agent) {
			first.Status.Conditions = append(first.Status.Conditions, connected)
			second.Spec.ClusterDeploymentName, second.Spec.Approved = ours, true
		}, nil, "b"},
	} {
		t.Run(situation, func(t *testing.T) {
			first, second := sample.Agent("a", "m", sample.BootMAC), sample.Agent("b", "m", sample.BootMAC)
			tc.change(first, second)
			config := &bootstrapv1.OpenshiftAssistedConfig{Status: bootstrapv1.OpenshiftAssistedConfigStatus{AgentRef: tc.known}}
			found := Identify(
				&facts.Facts{
					Config:       config,
					InfraMachine: sample.Metal3Machine("live-iso"),
					Host:         sample.BareMetalHost(),
					Agents:       []*aiv1beta1.Agent{first, second},
				},
				nil,
			)
			g := NewWithT(t)
			g.Expect(found.Agent).To(HaveField("Name", tc.wanted))
			g.Expect(found.Others).To(HaveLen(1))
			g.Expect(found.Others[0]).NotTo(BeIdenticalTo(found.Agent))
		})
	}
}

// Without a BareMetalHost only the image of a Machine is known: a single Agent that booted it is its host.
func TestWithoutABareMetalHost(t *testing.T) {
	bind := func(agent *aiv1beta1.Agent, approved bool) {
		agent.Spec.ClusterDeploymentName, agent.Spec.Approved = &aiv1beta1.ClusterReference{Namespace: sample.Namespace, Name: "cp"}, approved
	}
	silent := func(agent *aiv1beta1.Agent) { agent.Status.Inventory = aiv1beta1.HostInventory{} }
	const both = "Agents a, b booted the discovery image of this Machine, and nothing shows which of them is its host. Delete the Agents " +
		"of the other servers: what runs on these is not wiped, but an Agent that is bound is removed from its cluster and reinstalled"
	for situation, tc := range map[string]struct {
		agents                  int
		change                  func(first, second *aiv1beta1.Agent)
		wanted, reason, message string
		refusals                []string
	}{
		"no Agent": {
			agents: 0, reason: bootstrapv1.WaitingForHostReason, message: "waiting for the host to boot the discovery image",
		},
		"one": {agents: 1, wanted: "a"},
		"one without inventory": {
			agents:  1,
			change:  func(first, _ *aiv1beta1.Agent) { silent(first) },
			reason:  bootstrapv1.WaitingForHostIdentityReason,
			message: "waiting for Agent a to report its hardware",
		},
		"one that was bound just now": {
			agents: 1, change: func(first, _ *aiv1beta1.Agent) { silent(first); bind(first, false) }, wanted: "a",
		},
		"two": {agents: 2, reason: bootstrapv1.HostRefusedReason, message: both, refusals: []string{both}},
		"two, one of them without inventory": {
			agents:   2,
			change:   func(_, second *aiv1beta1.Agent) { silent(second) },
			reason:   bootstrapv1.HostRefusedReason,
			message:  both,
			refusals: []string{both},
		},
		"two, one of them is bound": {
			agents:   2,
			change:   func(_, second *aiv1beta1.Agent) { bind(second, false) },
			reason:   bootstrapv1.HostRefusedReason,
			message:  both,
			refusals: []string{both},
		},
		"two, one of them approved by another client": {
			agents:   2,
			change:   func(_, second *aiv1beta1.Agent) { second.Spec.Approved = true },
			reason:   bootstrapv1.HostRefusedReason,
			message:  both,
			refusals: []string{both},
		},
		"two, one of them is approved": {
			agents:   2,
			change:   func(_, second *aiv1beta1.Agent) { bind(second, true) },
			wanted:   "b",
			refusals: []string{"2 Agents booted the discovery image of this Machine"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			first, second := sample.Agent("a", "m", sample.BootMAC), sample.Agent("b", "m", "02:00:00:00:00:66")
			if tc.change != nil {
				tc.change(first, second)
			}
			h := newIdentified()
			withoutHost(h)
			h.DataSecret = &metav1.PartialObjectMetadata{}
			h.Agents = []*aiv1beta1.Agent{first, second}[:tc.agents]
			found := Identify(h.Facts, nil)
			g := NewWithT(t)
			name := ""
			if found.Agent != nil {
				name = found.Agent.Name
			}
			g.Expect(name).To(Equal(tc.wanted))
			g.Expect(found.Reason).To(Equal(tc.reason))
			g.Expect(found.Message).To(Equal(tc.message))
			g.Expect(found.Refusals).To(Equal(tc.refusals))
			g.Expect(found.Others).To(BeEmpty())
		})
	}
}

// Without a BareMetalHost the bootstrap data is all that identifies a host.
func TestAgentsAndTheAgeOfTheData(t *testing.T) {
	created := metav1.NewTime(time.Unix(1000, 0))
	ours := &aiv1beta1.ClusterReference{Namespace: sample.Namespace, Name: "cp"}
	for situation, tc := range map[string]struct {
		registered time.Time
		noSecret   bool
		change     func(h *identified)
		reason     string
	}{
		"later":                 {registered: created.Add(time.Second)},
		"in the same second":    {registered: created.Time},
		"before":                {registered: created.Add(-time.Second), reason: bootstrapv1.HostRefusedReason},
		"the Secret is missing": {registered: created.Add(time.Hour), noSecret: true, reason: bootstrapv1.WaitingForHostIdentityReason},
		"before, and recorded": {
			registered: created.Add(-time.Second),
			change:     func(h *identified) { h.Config.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"} },
		},
		"recorded, and no Secret": {
			noSecret: true, change: func(h *identified) { h.Config.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"} },
		},
		"before, and bound by us": {registered: created.Add(-time.Second), change: func(h *identified) {
			h.agent.Spec.ClusterDeploymentName, h.agent.Spec.IgnitionConfigOverrides = ours, "{}"
		}},
		"before, and bound by another client": {
			registered: created.Add(-time.Second),
			change:     func(h *identified) { h.agent.Spec.ClusterDeploymentName = ours },
			reason:     bootstrapv1.HostRefusedReason,
		},
		"before, and approved by another client": {
			registered: created.Add(-time.Second),
			change:     func(h *identified) { h.agent.Spec.Approved = true },
			reason:     bootstrapv1.HostRefusedReason,
		},
		"before, its record lost": {
			registered: created.Add(-time.Second),
			change:     func(h *identified) { h.agent.Spec.ClusterDeploymentName, h.agent.Spec.Approved = ours, true },
		},
		"before, and another registered later": {
			registered: created.Add(-time.Second),
			change:     func(h *identified) { h.Agents = append(h.Agents, sample.Agent("b", "m", "02:00:00:00:00:66")) },
			reason:     bootstrapv1.HostRefusedReason,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newIdentified()
			withoutHost(h)
			h.agent.CreationTimestamp = metav1.NewTime(tc.registered)
			h.Agents = []*aiv1beta1.Agent{h.agent}
			if !tc.noSecret {
				h.DataSecret = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}}
			}
			if tc.change != nil {
				tc.change(h)
			}
			found := Identify(h.Facts, nil)
			g := NewWithT(t)
			g.Expect(found.Reason).To(Equal(tc.reason), found.Message)
			g.Expect(found.Agent != nil).To(Equal(tc.reason == ""))
		})
	}
}
