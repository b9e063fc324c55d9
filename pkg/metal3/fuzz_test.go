package metal3

import (
	"net"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// An Agent only matches a BareMetalHost if they share a valid address. If the user set a boot MAC address,
// that address must be among the shared ones. The message never holds credentials of the BMC.
func FuzzMismatch(f *testing.F) {
	f.Add("52:54:00:00:00:02", "52:54:00:00:00:02", "52-54-00-00-00-02", "redfish://u:top-s3cret@bmc/redfish/v1", "S1", "s1")
	f.Add("", "52:54:00:00:00:02", "52:54:00:00:00:02 ", "bmc?password=top-s3cret", "", "0")
	f.Add("52:54:00:00:00:0g", "", "", "u:top-s3cret@bmc", "None", "None")
	f.Add("52:54:00:00:00:02", "52:54:00:00:00:03", "52:54:00:00:00:03", "ipmi://u:p@h:top-s3cret@bmc#top-s3cret", "a", "b")
	f.Add("52:54:00:00:00:02", "52:54:00:00:00:03", "52:54:00:00:00:03", "ipmi://u:p@h:top-s3cret@bmc", "a", "a")
	f.Fuzz(func(t *testing.T, boot, inspected, reported, bmc, serial, otherSerial string) {
		g := NewWithT(t)
		host := &Host{Spec: HostSpec{BootMACAddress: boot}}
		host.Spec.BMC.Address = bmc
		host.Status.HardwareDetails = &Hardware{NIC: []NIC{{MAC: inspected}}}
		host.Status.HardwareDetails.SystemVendor.SerialNumber = serial
		agent := &aiv1beta1.Agent{}
		agent.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{{MacAddress: reported}}
		agent.Status.Inventory.SystemVendor.SerialNumber = otherSerial
		mismatch := IdentityOf(host).Mismatch(AgentIdentity(agent))
		if _, authority, _ := strings.Cut(bmc, "://"); !strings.ContainsAny(authority, "/?#") {
			g.Expect(mismatch).NotTo(ContainSubstring("top-s3cret@"))
		}
		if mismatch != "" {
			return
		}
		same := func(a, b string) bool {
			one, err := net.ParseMAC(strings.TrimSpace(a))
			other, otherErr := net.ParseMAC(strings.TrimSpace(b))
			return err == nil && otherErr == nil && one.String() == other.String()
		}
		g.Expect(same(reported, boot) || same(reported, inspected)).To(BeTrue())
		if _, err := net.ParseMAC(strings.TrimSpace(boot)); err == nil {
			g.Expect(same(reported, boot) || same(inspected, boot)).To(BeTrue())
		}
	})
}
