package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
)

func TestHasInventory(t *testing.T) {
	g := NewWithT(t)
	agent := &aiv1beta1.Agent{}
	g.Expect(HasInventory(agent)).To(BeFalse())
	agent.Status.Inventory.Interfaces = []aiv1beta1.HostInterface{{Name: "eno1"}}
	g.Expect(HasInventory(agent)).To(BeTrue())
}
