package hostconfig

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// TestStatusBoundsLongSerialNumber: the CRD accepts 32,768 characters, and the Agent reports its own serial
// number.
func TestStatusBoundsLongSerialNumber(t *testing.T) {
	w := booted(t)
	host := read(w, "rack1-u7", bareMetalHost())
	w.change(host, func() {
		host.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: bootMAC}}, SystemVendor: metal3.Vendor{SerialNumber: "S7"}}
	})
	rogue := discovered("a", "m", bootMAC)
	rogue.Status.Inventory.SystemVendor.SerialNumber = strings.Repeat("x", 40000) + "\x1b[31m"
	w.create(rogue)
	w.reconcile()
	message := w.message(bootstrapv1.HostIdentifiedCondition)
	w.Expect(len(message)).To(BeNumerically("<=", bound.MessageBytes))
	w.Expect(message).To(And(ContainSubstring("serial number xxx"), ContainSubstring("…, not S7"),
		ContainSubstring("If BareMetalHost lab/rack1-u7 has the BMC address of another server")), "cause and action stay")
	w.Expect(w.message(bootstrapv1.ReadyCondition)).To(Equal(message))
}

// TestStatusBoundsManyRefusedAgents also checks that later reconciles do not report the Agents again.
func TestStatusBoundsManyRefusedAgents(t *testing.T) {
	w := booted(t)
	for i := range 200 {
		w.create(discovered(fmt.Sprintf("aaaaaaaa-0000-0000-0000-%012d", i), "m", fmt.Sprintf("02:00:00:00:01:%02x", i)))
	}
	w.reconcile()
	message := w.message(bootstrapv1.HostIdentifiedCondition)
	w.Expect(len(message)).To(BeNumerically("<=", bound.MessageBytes))
	w.Expect(message).To(And(ContainSubstring("000000000002"), Not(ContainSubstring("000000000003")), ContainSubstring("197 more Agents"),
		ContainSubstring("If BareMetalHost lab/rack1-u7 has the BMC address of another server")))
	event := w.event()
	for event != "" && !strings.Contains(event, bootstrapv1.HostRefusedReason) {
		event = w.event()
	}
	w.Expect(event).To(ContainSubstring("197 more Agents"))
	w.Expect(len(event)).To(BeNumerically("<=", bound.MessageBytes), "an Event's note has 1,024 bytes at most")
	w.reconcile()
	w.Expect(w.event()).To(BeEmpty(), "the refusals are the same as before")
}
