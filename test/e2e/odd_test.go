package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The peculiarities of the hosts of one cluster, by their numbers.
const (
	bootsSecondNIC   = iota // spec.bootMACAddress is not that of the first NIC of the Agent
	bonded                  // all NICs of the Agent have the MAC address of a NIC other than the boot NIC
	inspectedLate           // its hardware is unknown before a user sets it
	claimedElsewhere        // paused, and claimed by another client, after it was chosen
	bootsMedium             // the live ISO remains its first boot device
)

// poolLabel assigns hosts to the Machines of a template.
const poolLabel = "example.com/pool"

var _ = Describe("Odd hosts", Label("hosts"), func() {
	It("are identified, installed once and released, and the dependency of each is reported", func(ctx SpecContext) {
		const namespace, name = "odd", "odd"
		odd := installPeculiar(ctx, namespace, name)

		By("waiting for a host of the right pool")
		wait(ctx, odd, "reporting that a host is in no pool", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostAvailableCondition, bootstrapv1.NoHostFitsReason,
				"odd-4 (labels do not match hostSelector example.com/pool=workers)")
		})
		patch(ctx, odd.Hosts[bootsMedium].DeepCopy(), `{"metadata":{"labels":{"`+poolLabel+`":"workers"}}}`)

		if mayBeUnknown() {
			By("waiting for hardware details")
			wait(ctx, odd, "reporting that a host cannot be identified", func(s *lab.State) bool {
				return reports(s, bootstrapv1.HostIdentifiedCondition, bootstrapv1.WaitingForHostIdentityReason,
					"BareMetalHost odd/odd-2 has no MAC address to compare with")
			})
			details, err := json.Marshal(machineOf(namespace, inspectedLate).Details())
			Expect(err).NotTo(HaveOccurred())
			annotate(ctx, odd.Hosts[inspectedLate], metal3api.HardwareDetailsAnnotation, string(details))
		}

		By("not changing a host that is paused and claimed by another client")
		Eventually(ctx, hostState).WithArguments(odd.Hosts[claimedElsewhere]).WithTimeout(installTimeout).
			Should(Equal(metal3api.StateProvisioning))
		annotate(ctx, odd.Hosts[claimedElsewhere], metal3api.PausedAnnotation, "foreign")
		wait(ctx, odd, "reporting that a host is paused", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostAvailableCondition, bootstrapv1.HostUnmanagedReason, metal3api.PausedAnnotation)
		})
		patch(ctx, odd.Hosts[claimedElsewhere].DeepCopy(), `{"spec":{"consumerRef":{"name":"foreign"}}}`)
		paused := rackHostOf(odd.Hosts[claimedElsewhere])
		paused.SlowTask(hosts.Provisioning, 0)
		Eventually(func(g Gomega) {
			consumer := hostOfLab(ctx, odd.Hosts[claimedElsewhere]).Spec.ConsumerRef
			g.Expect(consumer).NotTo(BeNil())
			g.Expect(consumer.Name).NotTo(Equal("foreign"), "CAPM3 claims its host again")
		}).WithTimeout(installTimeout).Should(Succeed())
		Expect(paused.Boots()).To(BeEmpty())
		annotate(ctx, odd.Hosts[claimedElsewhere], metal3api.PausedAnnotation, "")

		By("reporting a host each time that it boots the discovery image again")
		wrong := rackHostOf(odd.Hosts[bootsMedium])
		booted := func() []hosts.Boot { return wrong.Boots() }
		wait(ctx, odd, "reporting the boot order", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostInstalledCondition, bootstrapv1.HostBootedDiscoveryAgainReason, "boot the host from the disk")
		})
		annotate(ctx, odd.Hosts[bootsMedium], metal3api.RebootAnnotationPrefix, "{}")
		Eventually(booted).Should(HaveLen(3))
		Eventually(wrong.Problem).Should(MatchError(ContainSubstring("required to be booted from disk")))
		wrong.BootMediumFirst(false)
		annotate(ctx, odd.Hosts[bootsMedium], metal3api.RebootAnnotationPrefix, "{}")

		waitAvailable(ctx, odd)
		expectInstalled(ctx, odd, 0, wrong, wrong)
		Expect(events(ctx, namespace, bootstrapv1.HostRefusedReason)).To(BeEmpty(),
			"though all have a NIC with the same address, and none has a serial number")

		By("releasing a worker whose host is not wiped at first, then slowly, then not at all")
		expectReleased(ctx, odd)
	}, NodeTimeout(3*installTimeout))

	It("that cannot be inspected, or switched on and off, are reported, and used once they can", Label("nightly"), func(ctx SpecContext) {
		laboratory.Rack.Prepare(path.Join("broken", nameOf("broken", 0)), func(host *hosts.Host) {
			host.FailTask(hosts.Inspecting, "its disks cannot be read")
			host.FailTask(hosts.Powering, "a power supply is missing")
		})
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: "broken", ClusterName: "broken", LightAPI: lightly()})
		host := cluster.Hosts[0]
		wait(ctx, cluster, "reporting that a host cannot be inspected", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostAvailableCondition, bootstrapv1.NoHostFitsReason, "inspection error: its disks cannot be read")
		})
		repair(ctx, host, hosts.Inspecting)
		wait(ctx, cluster, "reporting that a host cannot be switched on or off", func(s *lab.State) bool {
			const available, text = bootstrapv1.HostAvailableCondition, "error: a power supply is missing"
			// CAPM3 may choose the host before its power fails.
			return reports(s, available, bootstrapv1.NoHostFitsReason, "power management "+text) ||
				reports(s, available, bootstrapv1.HostFailedReason, text)
		})
		repair(ctx, host, hosts.Powering)
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(3*installTimeout))

	It("that take minutes for each task cause no writes meanwhile", Label("nightly"), func(ctx SpecContext) {
		random := rand.New(rand.NewPCG(laboratoryOptions.HostSeed, 0))
		laboratory.Rack.Prepare(path.Join("minutes", nameOf("slow", 0)), func(host *hosts.Host) {
			for _, task := range []hosts.Task{hosts.Inspecting, hosts.Preparing, hosts.Provisioning, hosts.Deprovisioning} {
				host.SlowTask(task, time.Minute+time.Duration(random.Int64N(int64(time.Minute))))
			}
		})
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: "minutes", ClusterName: "slow"})
		for _, state := range []metal3api.ProvisioningState{metal3api.StateInspecting, metal3api.StatePreparing} {
			wait(ctx, cluster, "reporting that the host is "+string(state), func(s *lab.State) bool {
				return reports(s, bootstrapv1.HostAvailableCondition, bootstrapv1.NoHostFitsReason, "slow-0 ("+string(state)+")")
			})
		}
		Eventually(ctx, hostState).WithArguments(cluster.Hosts[0]).WithTimeout(installTimeout).Should(Equal(metal3api.StateProvisioning))
		wait(ctx, cluster, "reporting the host", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostIdentifiedCondition, bootstrapv1.WaitingForHostReason,
				"waiting for BareMetalHost minutes/slow-0 to boot")
		})
		settled := state(ctx, cluster).Machines[0].Config.ResourceVersion
		Consistently(ctx, func() string {
			return state(ctx,
				cluster).Machines[0].Config.ResourceVersion
		}).WithTimeout(quiet).Should(Equal(settled))
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		expectDeleted(ctx, cluster)
	}, NodeTimeout(5*installTimeout))
})

// installPeculiar applies a cluster whose hosts have different peculiarities, in two pools.
func installPeculiar(ctx context.Context, namespace, name string) *lab.Cluster {
	GinkgoHelper()
	for i := range bootsMedium + 1 {
		laboratory.Rack.SetHardware(path.Join(namespace, nameOf(name, i)), machineOf(namespace, i))
	}
	laboratory.Rack.SwapHardware(path.Join(namespace, nameOf(name, bonded)), machineOf(namespace, bonded).Bonded("bond0", 1))
	laboratory.Rack.Prepare(path.Join(namespace, nameOf(name, claimedElsewhere)),
		func(host *hosts.Host) { host.SlowTask(hosts.Provisioning, time.Hour) })
	laboratory.Rack.Prepare(path.Join(namespace, nameOf(name, bootsMedium)), func(host *hosts.Host) { host.BootMediumFirst(true) })
	return apply(ctx, "ha", lab.Mutations{
		Namespace: namespace, ClusterName: name, LightAPI: lightly(), HostOptions: []hosts.HostOption{withPeculiarity},
		Edit: edits(fromPool("control-plane", "masters"), fromPool("worker", "workers")),
	})
}

// fromPool makes the Machines of a template use the hosts of a pool.
func fromPool(template, wanted string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if object.GetKind() != "Metal3MachineTemplate" || !strings.HasSuffix(object.GetName(), template) {
			return
		}
		selector := map[string]any{"matchLabels": map[string]any{poolLabel: wanted}}
		Expect(unstructured.SetNestedMap(object.Object, selector, "spec", "template", "spec", "hostSelector")).To(Succeed())
	}
}

func nameOf(cluster string, i int) string { return cluster + "-" + string(rune('0'+i)) }

// machineOf returns the machine of a BareMetalHost: a white box, whose NIC between system and management
// controller has the same address on each machine.
func machineOf(namespace string, i int) hosts.Hardware {
	machine := hosts.NewHardware(path.Join(namespace, nameOf(namespace, i)))
	machine.Serial = "To be filled by O.E.M."
	machine.NICs = append(machine.NICs, hosts.NIC{Name: "usb0", MAC: "0a:ca:fe:f0:0d:04"})
	return machine
}

func withPeculiarity(i int, host *metal3api.BareMetalHost) {
	host.Labels = map[string]string{poolLabel: "masters"}
	switch i {
	case bootsSecondNIC:
		hosts.WithBootNIC(1)(i, host)
	case inspectedLate:
		if mayBeUnknown() {
			hosts.WithoutMAC()(i, host)
		}
	case claimedElsewhere:
		host.Labels[poolLabel] = "workers"
	case bootsMedium:
		host.Labels[poolLabel] = "spare"
	}
}

// mayBeUnknown reports whether a host may have nothing that identifies it. The admission webhook of the Bare
// Metal Operator rejects a host without a boot MAC address and without inspection.
func mayBeUnknown() bool { return laboratoryOptions.BareMetal != lab.Real }

// expectReleased scales the workers down while their hosts are detached, cleaned slowly, and fail to be
// cleaned.
func expectReleased(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	before := state(ctx, cluster).Machines
	workers := cluster.Hosts[claimedElsewhere:]
	for _, host := range workers {
		annotate(ctx, host, metal3api.DetachedAnnotation, "foreign")
		rackHostOf(host).SlowTask(hosts.Deprovisioning, time.Hour)
	}
	Expect(cluster.Scale(ctx, 1)).To(Succeed())
	wait(ctx, cluster, "reporting that a host is detached", func(s *lab.State) bool {
		return reports(s, bootstrapv1.HostAvailableCondition, bootstrapv1.HostUnmanagedReason, metal3api.DetachedAnnotation)
	})
	for _, host := range workers {
		annotate(ctx, host, metal3api.DetachedAnnotation, "")
	}
	wait(ctx, cluster, "reporting that a host is deprovisioned", func(s *lab.State) bool {
		return reports(s, bootstrapv1.HostAvailableCondition, bootstrapv1.HostChosenReason, "is being deprovisioned")
	})
	for _, host := range workers {
		Expect(rackHostOf(host).Losses()).To(BeEmpty())
		rackHostOf(host).FailTask(hosts.Deprovisioning, "cleaning failed")
		rackHostOf(host).SlowTask(hosts.Deprovisioning, 0)
		annotate(ctx, host, "e2e.example.com/slow", "no more")
	}
	wait(ctx, cluster, "reporting that a host cannot be cleaned",
		func(s *lab.State) bool { return slices.ContainsFunc(s.Machines, cannotBeCleaned) })
	for _, host := range workers {
		repair(ctx, host, hosts.Deprovisioning)
	}
	s := wait(ctx, cluster, "without one of its workers", func(s *lab.State) bool { return len(s.Machines) == len(before)-1 })
	removed := missing(before, s)
	Eventually(ctx, hostState).WithArguments(removed.Host).WithTimeout(soon).Should(Equal(metal3api.StateAvailable))
	Expect(rackHost(removed).Losses()).To(HaveLen(1), "the node on the disk is lost")
}

// reports returns whether the condition of any config has the reason, with a message that contains the text.
func reports(s *lab.State, condition, reason, text string) bool {
	for _, m := range s.Machines {
		if m.Config == nil {
			continue
		}
		if c := lab.Condition(m.Config.Status.Conditions, condition); c.Reason == reason && strings.Contains(c.Message, text) {
			return true
		}
	}
	return false
}

// annotate sets an annotation of a BareMetalHost; an empty value removes it.
func annotate(ctx context.Context, host *metal3api.BareMetalHost, key, value string) {
	GinkgoHelper()
	annotations := map[string]any{key: value}
	if value == "" {
		annotations[key] = nil
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	Expect(err).NotTo(HaveOccurred())
	patch(ctx, host.DeepCopy(), string(change))
}

// hostOfLab reads a BareMetalHost.
func hostOfLab(ctx context.Context, host *metal3api.BareMetalHost) *metal3api.BareMetalHost {
	GinkgoHelper()
	found := &metal3api.BareMetalHost{}
	Expect(laboratory.Client().Get(ctx, keyOf(host), found)).To(Succeed(), path.Join(host.Namespace, host.Name))
	return found
}
