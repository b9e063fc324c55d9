package config

import (
	"strings"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
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
	for _, wanted := range []string{bootMAC, otherMAC, "redfish://bmc-8.example/redfish/v1/Systems/8"} {
		if !strings.Contains(message, wanted) {
			t.Errorf("%s is not told: %s", wanted, message)
		}
	}
	if strings.Contains(message, "secret") {
		t.Errorf("told: %s", message)
	}
}
