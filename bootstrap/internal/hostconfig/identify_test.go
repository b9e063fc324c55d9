package hostconfig

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// message returns the message of a condition; empty without the condition.
func (w *world) message(conditionType string) string {
	w.t.Helper()
	if c := meta.FindStatusCondition(w.config().Status.Conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// TestBMCOfAnotherHost: a BareMetalHost has the BMC address of another server, which was inspected and boots
// the image.
func TestBMCOfAnotherHost(t *testing.T) {
	const otherMAC = "02:00:00:00:00:77"
	w := booted(t)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() {
		host.Spec.BMC.Address = "redfish://admin:secret@bmc-8.example/redfish/v1/Systems/8"
		host.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: otherMAC}}, SystemVendor: metal3.Vendor{SerialNumber: "S8"}}
	})
	agent := discovered("a", "m", otherMAC)
	agent.Status.Inventory.SystemVendor.SerialNumber = "S8"
	w.create(agent)
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "the wrong server is not bound")
	message := w.message(bootstrapv1.HostIdentifiedCondition)
	for _, wanted := range []string{
		bootMAC, otherMAC, "redfish://bmc-8.example/redfish/v1/Systems/8",
		"do not delete the Machine first, which would wipe that server",
	} {
		w.Expect(message).To(ContainSubstring(wanted), "reported")
	}
	w.Expect(message).NotTo(ContainSubstring("secret"))
	for w.event() != "" { // the refusal
	}
	w.reconcile()
	w.Expect(w.event()).To(BeEmpty(), "reported once")
}

// TestHostOfMetal3Machine: a user can edit the annotation of a Metal3Machine, so that the BareMetalHost must
// name the Metal3Machine as well.
func TestHostOfMetal3Machine(t *testing.T) {
	mine := metal3.Consumer{Kind: "Metal3Machine", Namespace: namespace, Name: "m"}
	for situation, tc := range map[string]struct {
		annotation, hostNamespace string
		consumer                  *metal3.Consumer
		taken                     bool
	}{
		"annotated, and it names the Metal3Machine":     {"lab/rack1-u7", namespace, &mine, true},
		"not annotated, and it names the Metal3Machine": {"", namespace, &mine, true},
		"the annotation has the wrong namespace":        {"tenant/rack1-u7", namespace, &mine, true},
		"of another tenant, annotated":                  {"tenant/rack1-u7", "tenant", nil, false},
		"of another tenant, with a consumer of the same name": {
			"tenant/rack1-u7", "tenant",
			&metal3.Consumer{Kind: "Metal3Machine", Namespace: "tenant", Name: "m"}, false,
		},
		"of another tenant, with this consumer": {"", "tenant", &mine, false},
		"without consumer":                      {"lab/rack1-u7", namespace, nil, false},
		"assigned to another Metal3Machine": {
			"lab/rack1-u7", namespace,
			&metal3.Consumer{Kind: "Metal3Machine", Namespace: namespace, Name: "other"}, false,
		},
		"assigned to another kind": {
			"lab/rack1-u7", namespace,
			&metal3.Consumer{Kind: "Host", Namespace: namespace, Name: "m"}, false,
		},
		"assigned to a Metal3Machine of another namespace": {
			"lab/rack1-u7", namespace,
			&metal3.Consumer{Kind: "Metal3Machine", Namespace: "tenant", Name: "m"}, false,
		},
		"not annotated, and assigned to a Metal3Machine of another namespace": {
			"", namespace,
			&metal3.Consumer{Kind: "Metal3Machine", Namespace: "tenant", Name: "m"}, false,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			host := bareMetalHost()
			host.Namespace, host.Spec.ConsumerRef = tc.hostNamespace, tc.consumer
			infraMachine := metal3Machine("live-iso")
			infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: tc.annotation})
			w := newWorld(t, host)
			f := &facts.Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, InfraMachine: infraMachine}
			w.Expect(w.reconciler.gatherer.Host(t.Context(), f)).To(Succeed())
			if tc.taken {
				w.Expect(f.Host).NotTo(BeNil(), "the host is used")
			} else {
				w.Expect(f.Host).To(BeNil(), "the host is not used")
			}
		})
	}
}

// TestTwoHostsOfOneMetal3Machine: only CAPM3 decides which of them is the Machine's host.
func TestTwoHostsOfOneMetal3Machine(t *testing.T) {
	second := bareMetalHost()
	second.Name = "rack1-u8"
	w := newWorld(t, bareMetalHost(), second)
	f := &facts.Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, InfraMachine: metal3Machine("live-iso")}
	w.Expect(w.reconciler.gatherer.Host(t.Context(), f)).To(Succeed())
	w.Expect(f.Host).To(BeNil())
	f.InfraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/rack1-u8"})
	w.Expect(w.reconciler.gatherer.Host(t.Context(), f)).To(Succeed())
	w.Expect(f.Host).To(HaveField("Name", "rack1-u8"))
}

// TestUnreadableHost: the error names the kind that users know, not the Go type.
func TestUnreadableHost(t *testing.T) {
	w := newWorld(t)
	w.cache.Client = interceptor.NewClient(w, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no")
		},
	})
	f := &facts.Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, InfraMachine: metal3Machine("live-iso")}
	f.InfraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/rack1-u7"})
	w.Expect(w.reconciler.gatherer.Host(t.Context(), f)).To(MatchError("cannot read BareMetalHost lab/rack1-u7: no"))
}

// TestAnnotationWithHostOfAnotherTenant: no message reports anything about that host.
func TestAnnotationWithHostOfAnotherTenant(t *testing.T) {
	w := booted(t)
	w.remove(read(w, "rack1-u7", bareMetalHost()))
	theirs := bareMetalHost()
	theirs.Namespace, theirs.Spec.BootMACAddress = "tenant", "02:00:00:00:00:77"
	w.create(theirs)
	infraMachine := w.infraMachine()
	w.change(infraMachine, func() { infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "tenant/rack1-u7"}) })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).NotTo(Or(ContainSubstring("tenant"), ContainSubstring("02:00")))
}

// TestUnusedAgentIsUnbound: assisted-service does not start an installation with one host too many. An
// installed Agent stays bound, because its host would be wiped.
func TestUnusedAgentIsUnbound(t *testing.T) {
	for state, unbound := range map[string]bool{
		"known": true, "disconnected": true, "installing-in-progress": false, "installed": false,
		"added-to-existing-cluster": false, "": false,
	} {
		w := booted(t)
		w.create(discovered("b", "m", bootMAC))
		w.reconcile()
		w.registerWithCluster("b", state)
		config := w.config()
		config.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"}
		w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		agent := w.agent("b")
		w.Expect(facts.Bound(agent)).To(Equal(!unbound), "%q: %+v", state, agent.Spec)
		if unbound {
			w.Expect(agent.Spec.Role).To(BeEquivalentTo("worker"), "%q", state)
		}
		w.Expect(facts.Bound(w.agent("a"))).To(BeTrue(), "%q: the recorded one is bound", state)
		before := w.writes
		w.reconcile()
		if unbound {
			w.Expect(w.writes).To(Equal(before), "%q: no further write", state)
		}
	}
}

func TestForeignHostIsRefused(t *testing.T) {
	w := booted(t)
	w.create(discovered("impostor", "m", "02:00:00:00:00:66"))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(w.agent("impostor").Spec).To(And(HaveField("Approved", BeFalse()), HaveField("ClusterDeploymentName", BeNil()),
		HaveField("Hostname", BeEmpty())), "the spec of the impostor is unchanged")
	w.Expect(w.event()).To(And(ContainSubstring("HostRefused"), ContainSubstring("02:00:00:00:00:66")))
	w.reconcile()
	w.Expect(w.event()).To(BeEmpty(), "reported once")

	w.create(discovered("right", "m", bootMAC))
	w.reconcile()
	w.Expect(w.agent("right").Spec.ClusterDeploymentName).NotTo(BeNil(), "the right host is bound")
	w.Expect(w.agent("impostor").Spec.ClusterDeploymentName).To(BeNil(), "no other Agent is bound")
}

// TestServersWithSharedMACAddress: without serial numbers each server would be taken for the other,
// independent of the consumer and of the state of the other host.
func TestServersWithSharedMACAddress(t *testing.T) {
	for name, is := range map[string]func(*metal3.Host){
		"free":                         func(*metal3.Host) {},
		"provisioned without consumer": func(other *metal3.Host) { other.Status.Provisioning.State = "provisioned" },
		"in error":                     func(other *metal3.Host) { other.Status.ErrorMessage = "no BMC" },
		"paused": func(other *metal3.Host) {
			metav1.SetMetaDataAnnotation(&other.ObjectMeta, metal3.BlockingAnnotations[0], "")
		},
		"of another kind of consumer": func(other *metal3.Host) { other.Spec.ConsumerRef = &metal3.Consumer{Kind: "HostClaim", Name: "c"} },
		"of another Metal3Machine": func(other *metal3.Host) {
			other.Spec.ConsumerRef = &metal3.Consumer{Kind: metal3.MachineKind, Name: "other"}
		},
	} {
		t.Run(name, func(t *testing.T) { refuseByASharedNIC(t, is) })
	}
}

func refuseByASharedNIC(t *testing.T, is func(*metal3.Host)) {
	t.Helper()
	const usb = "0a:ca:fe:f0:0d:04"
	w := booted(t)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() { host.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: bootMAC}, {MAC: usb}}} })
	other := freeHost("rack1-u8", "")
	other.Spec.BootMACAddress = "02:00:00:00:00:66"
	other.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: "02:00:00:00:00:66"}, {MAC: usb}}}
	is(other)
	w.create(other, withNIC(discovered("their-own", "elsewhere", "02:00:00:00:00:66"), usb))
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)

	w.create(withNIC(discovered("impostor", "m", "02:00:00:00:00:66"), usb))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).To(ContainSubstring("several BareMetalHosts have " + usb))
	w.create(withNIC(discovered("right", "m", bootMAC), usb))
	w.reconcile()
	w.Expect(w.agent("right").Spec.ClusterDeploymentName).NotTo(BeNil(), "the right host is bound")
	w.Expect(w.agent("impostor").Spec.ClusterDeploymentName).To(BeNil(), "no other Agent is bound")
}

// TestAgentOfAnotherServerIsUnboundAfterInspection: the inspection of the other server shows that the
// identification of the Agent was no proof. The cluster would have one host too many.
func TestAgentOfAnotherServerIsUnboundAfterInspection(t *testing.T) {
	const usb = "0a:ca:fe:f0:0d:04"
	for _, approved := range []string{"", "and known", "and its record lost"} {
		w := booted(t)
		host := read(w, "rack1-u7", bareMetalHost())
		w.change(host, func() { host.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: bootMAC}, {MAC: usb}}} })
		w.create(withNIC(discovered("a", "m", "02:00:00:00:00:66"), usb))
		w.reconcile()
		w.registerWithCluster("a", "known")
		if approved != "" {
			w.reconcile()
			w.Expect(w.agent("a").Spec.Approved).To(BeTrue())
		}
		if approved == "and its record lost" {
			config := w.config()
			config.Status.AgentRef = nil
			w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
		}
		other := freeHost("rack1-u8", "")
		other.Spec.BootMACAddress = "02:00:00:00:00:66"
		other.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: "02:00:00:00:00:66"}, {MAC: usb}}}
		w.create(other)
		w.reconcile()
		w.Expect(facts.Bound(w.agent("a"))).To(Equal(approved != ""), "approved: %q", approved)
		if approved == "" {
			w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
		}
		before := w.writes
		w.reconcile()
		w.Expect(w.writes).To(Equal(before), "no further write")
	}
}

// withNIC adds an address to the inventory of an Agent.
func withNIC(agent *aiv1beta1.Agent, mac string) *aiv1beta1.Agent {
	agent.Status.Inventory.Interfaces = append(agent.Status.Inventory.Interfaces, aiv1beta1.HostInterface{MacAddress: mac})
	return agent
}

// TestHostAssignedToAnotherMachine covers a change of the consumer between the choice of the host and its
// use.
func TestHostAssignedToAnotherMachine(t *testing.T) {
	w := booted(t)
	infraMachine := w.infraMachine()
	w.change(infraMachine, func() { infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/rack1-u7"}) })
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() { host.Spec.ConsumerRef.Name = "other" })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.NoHostFitsReason)
	w.Expect(w.message(bootstrapv1.ReadyCondition)).To(ContainSubstring("BareMetalHost lab/rack1-u7, which was assigned to Metal3Machine m, " +
		"names another consumer in spec.consumerRef"))
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "the host belongs to another Machine")

	w.change(host, func() { host.Spec.ConsumerRef.Name = "m" })
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "the host belongs to the Machine again")
}

func TestHostThatBootedAnotherImage(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "elsewhere", bootMAC))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil(), "not bound")
}

// TestRefusalsAreSorted: the cache lists in any order, and each change of a message is another write.
func TestRefusalsAreSorted(t *testing.T) {
	w := booted(t)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() {
		host.Status.HardwareDetails = &metal3.Hardware{SystemVendor: metal3.Vendor{SerialNumber: "S1"}}
	})
	other := discovered("d", "elsewhere", bootMAC)
	other.Status.Inventory.SystemVendor.SerialNumber = "S2"
	w.create(discovered("b", "elsewhere", bootMAC), discovered("a", "elsewhere", bootMAC), discovered("c", "elsewhere", "02:00:00:00:00:66"),
		other)
	w.unordered = true
	w.reconcile()
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).To(And(MatchRegexp("(?s)Agent a .*Agent b "), Not(ContainSubstring("Agent c ")),
		Not(ContainSubstring("Agent d "))))
}

// TestAgentOfAnotherImageWakesWaitingConfig while the config waits for its host.
func TestAgentOfAnotherImageWakesWaitingConfig(t *testing.T) {
	w := booted(t)
	wakes := func(agent *aiv1beta1.Agent) bool { return len(w.reconciler.ofAgent(t.Context(), agent)) > 0 }
	w.reconcile()
	theirs := discovered("a", "elsewhere", bootMAC)
	theirs.Namespace = "tenant"
	w.Expect(wakes(discovered("a", "elsewhere", bootMAC))).To(BeTrue(), "the Agent runs on the host")
	w.Expect(wakes(discovered("a", "elsewhere", "02:00:00:00:00:66"))).To(BeFalse(), "the Agent runs on another host")
	w.Expect(wakes(theirs)).To(BeFalse(), "Agents of other namespaces are ignored")
	w.restart()
	w.reconcile()
	w.Expect(wakes(discovered("a", "elsewhere", bootMAC))).To(BeTrue(), "after a restart")

	w.create(discovered("right", "m", bootMAC))
	w.reconcile()
	w.Expect(wakes(discovered("a", "elsewhere", bootMAC))).To(BeTrue(), "the host may be in use, and is not approved")
	w.approves("right", "it is the host")
	w.reconcile()
	w.Expect(wakes(discovered("a", "elsewhere", bootMAC))).To(BeFalse(), "the host is approved")
}

// TestAgentRegisteredDuringListWakesConfig: the list does not contain the Agent.
func TestAgentRegisteredDuringListWakesConfig(t *testing.T) {
	w := booted(t)
	woken := false
	w.listing = func() { woken = len(w.reconciler.ofAgent(t.Context(), discovered("a", "elsewhere", bootMAC))) > 0 }
	w.reconcile()
	w.Expect(woken).To(BeTrue())
}

func TestDeletedConfigDoesNotWait(t *testing.T) {
	w := booted(t)
	w.reconcile()
	config := w.config()
	w.change(config, func() { config.Finalizers = nil })
	w.remove(config)
	w.reconcile()
	w.Expect(w.reconciler.claims.WaitingForAgent(discovered("a", "elsewhere", bootMAC))).To(BeEmpty())
}

func TestBareMetalHostWithoutAddress(t *testing.T) {
	w := booted(t)
	host := bareMetalHost()
	read(w, host.Name, host)
	w.change(host, func() { host.Spec.BootMACAddress = "" })
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostIdentityReason)
}
