package config

import (
	"strings"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// message returns the message of a condition; empty when there is none.
func (w *world) message(conditionType string) string {
	w.Helper()
	if c := meta.FindStatusCondition(w.config().Status.Conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

// TestBMCOfAnotherHost is a BareMetalHost with the BMC address of another server: that one was inspected, and boots the image.
func TestBMCOfAnotherHost(t *testing.T) {
	const otherMAC = "02:00:00:00:00:77"
	w := booted(t)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() {
		host.Spec.BMC.Address = "redfish://admin:secret@bmc-8.example/redfish/v1/Systems/8"
		host.Status.HardwareDetails = &metal3api.HardwareDetails{NIC: []metal3api.NIC{{MAC: otherMAC}}, SystemVendor: metal3api.HardwareSystemVendor{SerialNumber: "S8"}}
	})
	agent := discovered("a", "m", otherMAC)
	agent.Status.Inventory.SystemVendor.SerialNumber = "S8"
	w.create(agent)
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	if w.agent("a").Spec.ClusterDeploymentName != nil {
		t.Fatal("the wrong server was bound")
	}
	message := w.message(bootstrapv1.HostIdentifiedCondition)
	for _, wanted := range []string{bootMAC, otherMAC, "redfish://bmc-8.example/redfish/v1/Systems/8", "delete the Machine and make the BareMetalHost anew"} {
		if !strings.Contains(message, wanted) {
			t.Errorf("%s is not told: %s", wanted, message)
		}
	}
	if strings.Contains(message, "secret") {
		t.Errorf("told: %s", message)
	}
	for w.event() != "" { // the refusal
	}
	w.reconcile()
	if e := w.event(); e != "" {
		t.Errorf("told twice: %s", e)
	}
}

// TestHostOfTheMetal3Machine is which BareMetalHost is taken for the Machine's. The annotation of a Metal3Machine can be edited by its user.
func TestHostOfTheMetal3Machine(t *testing.T) {
	mine := corev1.ObjectReference{Kind: "Metal3Machine", Namespace: namespace, Name: "m"}
	for situation, tc := range map[string]struct {
		annotation, hostNamespace string
		consumer                  *corev1.ObjectReference
		taken                     bool
	}{
		"annotated, and it names the Metal3Machine":           {"lab/rack1-u7", namespace, &mine, true},
		"not annotated, and it names the Metal3Machine":       {"", namespace, &mine, true},
		"the annotation has the wrong namespace":              {"tenant/rack1-u7", namespace, &mine, true},
		"of another tenant, annotated":                        {"tenant/rack1-u7", "tenant", nil, false},
		"of another tenant, with a consumer of the same name": {"tenant/rack1-u7", "tenant", &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: "tenant", Name: "m"}, false},
		"of another tenant, with this consumer":               {"", "tenant", &mine, false},
		"not given to anybody":                                {"lab/rack1-u7", namespace, nil, false},
		"given to another":                                    {"lab/rack1-u7", namespace, &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: namespace, Name: "other"}, false},
		"given to another kind":                               {"lab/rack1-u7", namespace, &corev1.ObjectReference{Kind: "Host", Namespace: namespace, Name: "m"}, false},
		"given to a Metal3Machine of another namespace":       {"lab/rack1-u7", namespace, &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: "tenant", Name: "m"}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			host := bareMetalHost()
			host.Namespace, host.Spec.ConsumerRef = tc.hostNamespace, tc.consumer
			infraMachine := metal3Machine("live-iso")
			infraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: tc.annotation})
			w := newWorld(t, host)
			f := &facts.Facts{InfraMachine: infraMachine}
			if err := w.reconciler.gatherHost(t.Context(), f); err != nil || (f.Host != nil) != tc.taken {
				t.Fatalf("%v %v", f.Host, err)
			}
		})
	}
}

// TestAnnotationThatNamesAnotherTenantsHost: nothing of that host is told.
func TestAnnotationThatNamesAnotherTenantsHost(t *testing.T) {
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
	if message := w.message(bootstrapv1.HostIdentifiedCondition); strings.Contains(message, "tenant") || strings.Contains(message, "02:00") {
		t.Fatal(message)
	}
}

// TestAgentThatIsNotUsedIsUnbound: assisted-service does not start with one host too many. An installed one would be wiped.
func TestAgentThatIsNotUsedIsUnbound(t *testing.T) {
	for state, unbound := range map[string]bool{"known": true, "disconnected": true, "installing-in-progress": false, "installed": false, "added-to-existing-cluster": false, "": false} {
		w := booted(t)
		w.create(discovered("b", "m", bootMAC))
		w.reconcile()
		w.registerWithCluster("b", state)
		config := w.config()
		config.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"}
		if err := w.Status().Update(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		w.create(discovered("a", "m", bootMAC))
		w.reconcile()
		if agent := w.agent("b"); facts.Bound(agent) == unbound || unbound && agent.Spec.Role != "worker" {
			t.Errorf("%s: %+v", state, agent.Spec)
		}
		if !facts.Bound(w.agent("a")) {
			t.Errorf("%s: the recorded one is not bound", state)
		}
		before := w.writes
		w.reconcile()
		if unbound && w.writes != before {
			t.Errorf("%s: %d further writes", state, w.writes-before)
		}
	}
}

func TestForeignHostIsRefused(t *testing.T) {
	w := booted(t)
	w.create(discovered("impostor", "m", "02:00:00:00:00:66"))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	if spec := w.agent("impostor").Spec; spec.Approved || spec.ClusterDeploymentName != nil || spec.Hostname != "" {
		t.Fatalf("the impostor was told something: %+v", spec)
	}
	if e := w.event(); !strings.Contains(e, "HostRefused") || !strings.Contains(e, "02:00:00:00:00:66") {
		t.Fatalf("event: %s", e)
	}
	w.reconcile()
	if e := w.event(); e != "" {
		t.Fatalf("told twice: %s", e)
	}

	w.create(discovered("right", "m", bootMAC))
	w.reconcile()
	if w.agent("right").Spec.ClusterDeploymentName == nil || w.agent("impostor").Spec.ClusterDeploymentName != nil {
		t.Fatal("the right host must be bound, and no other")
	}
}

func TestHostThatBootedAnotherImage(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "elsewhere", bootMAC))
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	if w.agent("a").Spec.ClusterDeploymentName != nil {
		t.Fatal("bound")
	}
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
