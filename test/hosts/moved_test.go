package hosts

import (
	"encoding/json"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
)

// A BareMetalHost that was moved to this hub with its machine has no status, and the machine continues to run.
func TestMovedHostIsNotChanged(t *testing.T) {
	from, to := newLab(t), newLab(t)
	from.hosts(1)
	from.bootISO("host-0", testInfraEnv)
	from.Eventually(func() int { return from.rack.Host("host-0").Registrations() }).Should(Equal(1))
	machine := from.rack.Host("host-0")
	from.Eventually(from.state("host-0")).Should(Equal(metal3api.StateProvisioned))
	// Hosts are paused during a move. Otherwise the operator would take it for a new one.
	from.change("host-0", func(bmh *metal3api.BareMetalHost) {
		bmh.Annotations = map[string]string{metal3api.PausedAnnotation: ""}
	})
	bmh := from.get("host-0")
	status, err := json.Marshal(bmh.Status)
	from.Expect(err).NotTo(HaveOccurred())

	from.rack.HandOver(to.rack, labNamespace)
	from.Expect(from.rack.Host("host-0")).To(BeNil())
	bmh.ResourceVersion, bmh.Status = "", metal3api.BareMetalHostStatus{}
	bmh.Annotations = map[string]string{metal3api.StatusAnnotation: string(status)}
	to.Expect(to.hub.Create(to.ctx, bmh)).To(Succeed())
	to.Eventually(func() map[string]string { return to.get("host-0").Annotations }).ShouldNot(HaveKey(metal3api.StatusAnnotation))
	to.Expect(to.get("host-0").Status.Provisioning.State).To(Equal(metal3api.StateProvisioned))
	to.Expect(to.rack.Host("host-0")).To(BeIdenticalTo(machine))
	to.Expect(machine.Boots()).To(HaveLen(1))
	to.Expect(machine.PoweredOn()).To(BeTrue())
}
