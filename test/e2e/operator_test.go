package e2e

import (
	"context"
	"path"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// diskImage makes the hosts of a sample boot a disk image.
var diskImage = edits(
	edit("OpenshiftAssistedControlPlane", "DiskImage", "spec", "openshiftAssistedConfigSpec", "bootMode"),
	edit("Metal3MachineTemplate", map[string]any{
		"url": "https://images.lab.example.com/rhcos.qcow2", "checksum": "https://images.lab.example.com/rhcos.qcow2.sha256sum",
		"checksumType": "sha256", "diskFormat": "qcow2",
	}, "spec", "template", "spec", "image"),
)

// The assumptions of the other specs hold for the real Bare Metal Operator. Both clusters are installed, and
// deleted, at the same time.
var _ = Describe("The Bare Metal Operator", Label("bmo"), func() {
	It("boots hosts from live ISO and disk image, wipes a removed one, reinstalls it, and leaves no host running",
		func(ctx SpecContext) {
			if laboratoryOptions.BareMetal != lab.Real {
				Skip("needs the operator itself: " + operatorVariable + "=" + string(lab.Real))
			}
			laboratory.Rack.Prepare(path.Join("bmo-disk", nameOf("disk", 0)),
				func(host *hosts.Host) { host.FailTask(hosts.Provisioning, "the image cannot be downloaded") })
			iso := apply(ctx, "ha", lab.Mutations{Namespace: "bmo-iso", ClusterName: "iso", LightAPI: lightly()})
			disk := apply(ctx, "sno", lab.Mutations{Namespace: "bmo-disk", ClusterName: "disk", LightAPI: lightly(), Edit: diskImage})

			By("reporting an image that cannot be written, and continuing once it can")
			s := wait(ctx, disk, "reporting that the host fails", func(s *lab.State) bool { return configHas(s, bootstrapv1.HostFailedReason) })
			Expect(s.Machines[0].Config.Status.Conditions).To(ContainElement(And(HaveField("Type", bootstrapv1.ReadyCondition),
				HaveField("Message", ContainSubstring("the image cannot be downloaded")))))
			repair(ctx, disk.Hosts[0], hosts.Provisioning)

			waitAvailable(ctx, iso, disk)
			expectInstalled(ctx, iso, 0)
			expectInstalled(ctx, disk, 0)

			By("rejecting changes with its admission webhook, which proves that it runs")
			taken := state(ctx, disk).Machines[0].Host.DeepCopy()
			taken.Spec.BMC.Address = "redfish-virtualmedia+http://other.invalid/redfish/v1/Systems/1"
			Expect(laboratory.Client().Update(ctx, taken)).To(MatchError(apierrors.IsForbidden, "is forbidden"))

			By("removing a worker: its host is wiped")
			before := state(ctx, iso).Machines
			for _, host := range iso.Hosts {
				rackHostOf(host).FailTask(hosts.Deprovisioning, "cleaning failed")
			}
			Expect(iso.Scale(ctx, 1)).To(Succeed())
			s = wait(ctx, iso, "reporting that a host cannot be cleaned",
				func(s *lab.State) bool { return slices.ContainsFunc(s.Machines, cannotBeCleaned) })
			deleting := s.Machines[slices.IndexFunc(s.Machines, cannotBeCleaned)]
			Expect(deleting.DeletionTimestamp).NotTo(BeNil())
			for _, host := range iso.Hosts {
				repair(ctx, host, hosts.Deprovisioning)
			}
			s = wait(ctx, iso, "without one of its workers", func(s *lab.State) bool { return len(s.Machines) == len(before)-1 })
			removed := missing(before, s)
			Eventually(ctx, hostState).WithArguments(removed.Host).WithTimeout(soon).Should(Equal(metal3api.StateAvailable))
			Expect(rackHost(removed).PoweredOn()).To(BeFalse())
			Expect(rackHost(removed).Losses()).To(HaveLen(1), "the node on the disk is lost")

			By("using the host again, the only free one")
			Expect(iso.Scale(ctx, 2)).To(Succeed())
			s = wait(ctx, iso, "complete again", func(s *lab.State) bool { return len(s.Machines) == len(before) && s.Available() })
			again := missing(s.Machines, &lab.State{Machines: before})
			Expect(again.Host.Name).To(Equal(removed.Host.Name))
			expectNode(ctx, workloadOf(iso), again)
			expectAgent(again)
			Expect(rackHost(again).Boots()).To(HaveExactElements(
				HaveField("System", hosts.Discovery), HaveField("System", hosts.Installed), HaveField("System", hosts.Discovery),
				HaveField("System", hosts.Installed)))

			By("deleting the clusters")
			expectDeleted(ctx, iso, disk)
		}, NodeTimeout(3*installTimeout))
})

// rackHostOf returns the machine of a BareMetalHost, once the operator has seen it.
func rackHostOf(host *metal3api.BareMetalHost) *hosts.Host {
	GinkgoHelper()
	var found *hosts.Host
	Eventually(func() *hosts.Host {
		found = laboratory.Rack.Host(path.Join(host.Namespace, host.Name))
		return found
	}).ShouldNot(BeNil())
	return found
}

// repair makes a task of a host succeed, and triggers it at once: otherwise the operator would retry after some
// minutes.
func repair(ctx context.Context, host *metal3api.BareMetalHost, task hosts.Task) {
	GinkgoHelper()
	rackHostOf(host).FailTask(task, "")
	patch(ctx, host.DeepCopy(), `{"metadata":{"annotations":{"e2e.example.com/repaired":"`+string(task)+`"}}}`)
}

func cannotBeCleaned(m lab.Machine) bool {
	return m.Config != nil && strings.Contains(lab.Condition(m.Config.Status.Conditions, bootstrapv1.HostAvailableCondition).Message,
		"cleaning failed")
}

// missing returns the first of some Machines that is not in a state.
func missing(machines []lab.Machine, s *lab.State) lab.Machine {
	GinkgoHelper()
	for _, m := range machines {
		if !has(s, m) {
			return m
		}
	}
	Fail("no Machine is missing")
	return lab.Machine{}
}

// hostState returns the provisioning state of a BareMetalHost.
func hostState(ctx context.Context, host *metal3api.BareMetalHost) metal3api.ProvisioningState {
	GinkgoHelper()
	return hostOfLab(ctx, host).Status.Provisioning.State
}
