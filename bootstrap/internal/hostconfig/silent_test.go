package hostconfig

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/status"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// provisioned makes the Bare Metal Operator report that the host booted the discovery image.
func (w *world) provisioned() {
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() {
		host.Status.Provisioning.State, host.Status.PoweredOn = metal3.StateProvisioned, true
		host.Status.History.Provision.End = w.clock.Format(time.RFC3339)
	})
}

// TestSilentHostBecomesAProblem: the reconcile first waits for a host that does not contact assisted-service.
// Later the wait becomes a problem, with a Warning event and the state of the BareMetalHost.
func TestSilentHostBecomesAProblem(t *testing.T) {
	for situation, tc := range map[string]struct {
		begin           func(w *world)
		condition       string
		before, mention string
		respond         func(w *world)
	}{
		"provisioned, no Agent registers": {
			begin:     func(w *world) { w.provisioned() },
			condition: bootstrapv1.HostIdentifiedCondition, before: bootstrapv1.WaitingForHostReason,
			mention: "waiting for BareMetalHost lab/rack1-u7 to boot the discovery image; the host has not contacted assisted-service for more " +
				"than 30 minutes (BareMetalHost lab/rack1-u7 is provisioned and powered on)",
			respond: func(w *world) { w.create(discovered("a", "m", bootMAC)) },
		},
		"its BMC reports a critical error": {
			begin: func(w *world) {
				w.provisioned()
				host := read(w, "rack1-u7", bareMetalHost())
				w.change(host, func() {
					host.Status.Conditions = []metal3.Condition{{Type: "Healthy", Status: "False", Reason: "CriticalError"}}
				})
			},
			condition: bootstrapv1.HostIdentifiedCondition, before: bootstrapv1.HostUnhealthyReason,
			mention: "the host has not contacted assisted-service for more than 30 minutes",
			respond: func(w *world) { w.create(discovered("a", "m", bootMAC)) },
		},
		"bound, and powered off before it registers with the cluster": {
			begin: func(w *world) {
				w.create(discovered("a", "m", bootMAC))
				w.reconcile()
				agent := w.agent("a")
				w.change(agent, func() {
					agent.Status.Inventory = aiv1beta1.HostInventory{}
					agent.Status.DebugInfo.State = "binding"
				})
			},
			condition: bootstrapv1.HostBoundCondition, before: bootstrapv1.HostBindingReason, mention: "waiting for host rack1-u7 to register " +
				"with the cluster; the host has not contacted",
			respond: func(w *world) {
				agent := w.agent("a")
				w.change(agent, func() { agent.Status.Inventory = discovered("a", "m", bootMAC).Status.Inventory })
				w.registerWithCluster("a", "known")
			},
		},
		"powered off after the approval": {
			begin: func(w *world) {
				w.create(discovered("a", "m", bootMAC))
				w.reconcile()
				w.registerWithCluster("a", "known")
				w.reconcile()
				w.disconnect("a")
			},
			condition: bootstrapv1.HostInstalledCondition, before: bootstrapv1.WaitingForHostReason,
			mention: "host rack1-u7 has lost contact with assisted-service",
			respond: func(w *world) { w.enter("a", "installing") },
		},
		"the approved Agent is deleted": {
			begin: func(w *world) {
				w.create(discovered("a", "m", bootMAC))
				w.reconcile()
				w.registerWithCluster("a", "known")
				w.reconcile()
				w.enter("a", "installing-in-progress")
				w.reconcile()
				w.remove(w.agent("a"))
			},
			condition: bootstrapv1.HostIdentifiedCondition, before: bootstrapv1.WaitingForHostReason,
			mention: "Agent a of the host was deleted. If the installation of the host had begun, the host may be partly installed; the host has " +
				"not contacted",
			respond: func(w *world) { w.create(discovered("b", "m", bootMAC)) },
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			tc.begin(w)
			w.reconcile()
			w.clock = w.clock.Add(11 * time.Second)
			again := w.reconcile().RequeueAfter
			w.wants(tc.condition, metav1.ConditionFalse, tc.before)
			w.Expect(again).To(And(BeNumerically(">", 0), BeNumerically("<=", scope.SilenceLimit)))
			w.warnings()

			w.clock = w.clock.Add(scope.SilenceLimit)
			w.reconcile()
			w.wants(tc.condition, metav1.ConditionFalse, bootstrapv1.HostNotRespondingReason)
			w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostNotRespondingReason)
			w.Expect(w.message(tc.condition)).To(ContainSubstring(tc.mention))
			w.Expect(len(w.message(tc.condition))).To(BeNumerically("<", 1024))
			w.Expect(w.warnings()).To(ContainElement(ContainSubstring("HostNotResponding")))
			w.Expect(status.Problems(w.config().Status.Conditions, false)).To(ContainElement(HaveField("Type", tc.condition)))

			before := w.writes
			w.restart()
			w.reconcile()
			w.wants(tc.condition, metav1.ConditionFalse, bootstrapv1.HostNotRespondingReason)
			w.Expect(w.writes).To(Equal(before), "a restart changes nothing")
			w.Expect(w.warnings()).To(BeEmpty())

			tc.respond(w)
			w.reconcile()
			w.Expect(meta.FindStatusCondition(w.config().Status.Conditions,
				bootstrapv1.ReadyCondition).Reason).NotTo(Equal(bootstrapv1.HostNotRespondingReason))
		})
	}
}

// disconnect makes assisted-service lose contact with a host.
func (w *world) disconnect(name string) {
	agent := w.agent(name)
	w.change(agent, func() {
		agent.Status.DebugInfo.State = "disconnected"
		conditionsv1.SetStatusConditionNoHeartbeat(&agent.Status.Conditions,
			conditionsv1.Condition{Type: aiv1beta1.ConnectedCondition, Status: corev1.ConditionFalse, Reason: aiv1beta1.AgentDisconnectedReason})
		for i := range agent.Status.Conditions {
			if agent.Status.Conditions[i].Type == aiv1beta1.ConnectedCondition {
				agent.Status.Conditions[i].LastTransitionTime = metav1.NewTime(w.clock)
			}
		}
	})
}

// warnings returns the Warning events since the last call.
func (w *world) warnings() []string {
	var warnings []string
	for {
		select {
		case e := <-w.events.Events:
			if len(e) > 7 && e[:7] == "Warning" {
				warnings = append(warnings, e)
			}
		default:
			return warnings
		}
	}
}

// TestHostThatIsNotProvisionedIsNoProblem: the Bare Metal Operator is still provisioning the host, or reports
// the failure.
func TestHostThatIsNotProvisionedIsNoProblem(t *testing.T) {
	w := booted(t)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() {
		host.Status.Provisioning.State = "provisioning"
		host.Status.History.Provision.End = w.clock.Add(-24 * time.Hour).Format(time.RFC3339) // of its former Machine
	})
	w.reconcile()
	w.clock = w.clock.Add(5 * time.Hour)
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
}

// TestTwoServersWithOneSystemUUID: assisted-service treats them as one host, whose Agent moves to the InfraEnv of the
// server that registered last.
func TestTwoServersWithOneSystemUUID(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.Expect(w.config().Status.AgentRef.Name).To(Equal("a"))
	twin := bareMetalHost()
	twin.Name, twin.UID, twin.Spec.BootMACAddress = "rack1-u8", "twin", "52:54:00:00:00:99"
	twin.Spec.ConsumerRef.Name = "m2"
	w.create(twin)
	w.remove(w.agent("a"))
	w.create(discovered("a", "m2", "52:54:00:00:00:99"))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).To(And(ContainSubstring(
		"Agent a of BareMetalHost lab/rack1-u7 is now reported by BareMetalHost lab/rack1-u8, which booted the image of InfraEnv m2: two " +
			"servers have the same system UUID")))
	w.Expect(w.warnings()).To(ContainElement(ContainSubstring("two servers have the same system UUID")))
	w.reconcile()
	w.Expect(w.warnings()).To(BeEmpty(), "the event is emitted once")
}

// TestSilenceIsNotCutOffLongMessage: the cause and the action are appended to a long wait. The foreign text
// in front of them is cut.
func TestSilenceIsNotCutOffLongMessage(t *testing.T) {
	w := booted(t)
	now := w.clock
	s := &scope.Scope{Facts: &facts.Facts{Config: w.config()}}
	s.Block(bootstrapv1.HostIdentifiedCondition, bootstrapv1.WaitingForHostReason, strings.Repeat("x", 2*bound.MessageBytes))
	s.Silent(bootstrapv1.HostIdentifiedCondition, now, now.Add(-scope.SilenceLimit))
	message := s.Blocked(bootstrapv1.HostIdentifiedCondition).Message
	w.Expect(message).To(HaveSuffix("Check its power and its console: boot device, network, DNS, proxy, certificates"))
	w.Expect(len(message)).To(BeNumerically("<=", bound.MessageBytes))
}
