package preflight

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// miswired is a host with the BMC address of another server, as the inspection shows.
func miswired(name string, labels map[string]string) *metal3.Host {
	host := free(name, labels)
	host.Spec.BootMACAddress = sample.BootMAC
	host.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: "02:00:00:00:00:77"}}}
	return host
}

// A miswired host fits in no boot mode.
func TestMiswiredHostDoesNotFit(t *testing.T) {
	g := NewWithT(t)
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	condition := Host(waiting([]*metal3.Host{miswired("a", zoneA)}, own))
	g.Expect(condition.Reason).To(Equal(bootstrapv1.NoHostFitsReason))
	g.Expect(condition.Message).To(And(ContainSubstring("02:00:00:00:00:77"), ContainSubstring(sample.BootMAC)))
	condition = Host(waiting([]*metal3.Host{miswired("a", zoneA), free("b", zoneA)}, own))
	g.Expect(condition.Message).To(Equal("BareMetalHosts that fit: b"))

	f := waiting(nil, own)
	f.Host = miswired("a", zoneA)
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.BMCOfAnotherServerReason))
}

func TestDataIsWithheld(t *testing.T) {
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	kept := miswired("a", map[string]string{"zone": "a", metal3.NodeReuseLabel: "md-0"})
	for situation, tc := range map[string]struct {
		hosts  []*metal3.Host
		change func(*facts.Facts)
		// disk and live are the reasons in boot modes DiskImage and LiveISO.
		disk, live string
	}{
		"a host that fits": {hosts: []*metal3.Host{free("a", zoneA)}},
		"no host":          {},
		"a miswired host": {
			hosts: []*metal3.Host{free("b", zoneA), miswired("a", zoneA)}, disk: bootstrapv1.BMCOfAnotherServerReason,
		},
		"a miswired host, being prepared": {
			hosts: []*metal3.Host{preparing(miswired("a", zoneA))}, disk: bootstrapv1.BMCOfAnotherServerReason,
		},
		"a miswired host that the selector excludes":   {hosts: []*metal3.Host{miswired("a", zoneB)}},
		"a miswired host reserved for another Machine": {hosts: []*metal3.Host{kept}},
		"the data were handed out": {
			hosts: []*metal3.Host{miswired("a", zoneA)}, change: func(f *facts.Facts) { f.Machine.Spec.Bootstrap.DataSecretName = ptr.To("m") },
		},
		"the miswired host is chosen": {
			change: func(f *facts.Facts) { f.Host = miswired("a", zoneA) }, disk: bootstrapv1.BMCOfAnotherServerReason,
		},
		"a host in use": {
			hosts: []*metal3.Host{inUse("a")}, change: claimedBySite, disk: bootstrapv1.ServerInUseReason, live: bootstrapv1.ServerInUseReason,
		},
		"the host in use is chosen": {
			change: func(f *facts.Facts) { f.Host = inUse("a"); claimedBySite(f) },
			disk:   bootstrapv1.ServerInUseReason,
			live:   bootstrapv1.ServerInUseReason,
		},
		"a host in use and a miswired host": {
			hosts:  []*metal3.Host{miswired("b", zoneA), inUse("a")},
			change: claimedBySite,
			disk:   bootstrapv1.ServerInUseReason,
			live:   bootstrapv1.ServerInUseReason,
		},
		"other infrastructure": {change: func(f *facts.Facts) {
			f.InfraMachine = f.InfraMachine.DeepCopy()
			f.InfraMachine.SetKind("PlainMetalMachine")
		}},
	} {
		t.Run(situation, func(t *testing.T) {
			f := waiting(tc.hosts, own)
			if tc.change != nil {
				tc.change(f)
			}
			g := NewWithT(t)
			disk, message := Withheld(f, true)
			g.Expect(disk).To(Equal(tc.disk), message)
			live, _ := Withheld(f, false)
			g.Expect(live).To(Equal(tc.live))
			if disk != "" {
				g.Expect(message).
					To(And(ContainSubstring("BareMetalHost lab/a"), ContainSubstring("baremetalhost.metal3.io/detached"), ContainSubstring("wipe")))
			}
		})
	}
}

// CAPM3 chooses a host as soon as the selector is corrected. If the data were handed out before, no check of
// the hosts would follow.
func TestInvalidHostSelectorWithholdsData(t *testing.T) {
	invalid := func() *facts.Facts {
		own := metal3Machine("m", 0, nil)
		own.Object["spec"] = map[string]any{
			"hostSelector": map[string]any{
				"matchExpressions": []any{map[string]any{"key": "zone", "operator": "Inn", "values": []any{strings.Repeat("a", 2000)}}},
			},
		}
		f := waiting([]*metal3.Host{inUse("a")}, own)
		claimedBySite(f)
		return f
	}
	for _, writesDisk := range []bool{true, false} {
		g := NewWithT(t)
		reason, message := Withheld(invalid(), writesDisk)
		g.Expect(reason).To(Equal(bootstrapv1.InvalidConfigurationReason))
		g.Expect(message).To(And(ContainSubstring("Metal3Machine m"), ContainSubstring("spec.hostSelector"), ContainSubstring(`"inn"`)))
		g.Expect(len(message)).To(BeNumerically("<", 1024))

		f := invalid()
		f.Host, f.Claimants = free("a", zoneA), nil
		reason, _ = Withheld(f, writesDisk)
		g.Expect(reason).To(BeEmpty(), "the host is chosen")
		f = invalid()
		f.Machine.Spec.Bootstrap.DataSecretName = ptr.To("m")
		reason, _ = Withheld(f, writesDisk)
		g.Expect(reason).To(BeEmpty(), "the data were handed out")
	}
}

// CAPM3 waits for a reserved host that is not available yet.
func TestReservedHostWithholdsData(t *testing.T) {
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	own.SetLabels(map[string]string{"cluster.x-k8s.io/deployment-name": "0"})
	kept := miswired("a", map[string]string{"zone": "a", metal3.NodeReuseLabel: "md-0"})
	kept.Status.Provisioning.State = "deprovisioning"
	reason, _ := Withheld(waiting([]*metal3.Host{kept, free("b", zoneA)}, own), true)
	NewWithT(t).Expect(reason).To(Equal(bootstrapv1.BMCOfAnotherServerReason))
}

// The length of conditions is limited.
func TestMessageOfManyHostsIsBounded(t *testing.T) {
	var hosts []*metal3.Host
	f := waiting(nil, metal3Machine("m", 0, map[string]any{"zone": "a"}))
	f.Claimants = map[string][]*metal3.Host{}
	for i := range 50 {
		host := inUse(fmt.Sprintf("rack-%d", i))
		hosts = append(hosts, host)
		for j := range 50 {
			f.Claimants[host.Name] = append(f.Claimants[host.Name], claimant(fmt.Sprintf("other-%d", j)))
		}
	}
	f.Hosts = hosts
	_, message := Withheld(f, true)
	NewWithT(t).Expect(len(message)).To(BeNumerically("<", 1024), message)
	f.Claimants = nil
	for _, host := range hosts {
		host.Status.HardwareDetails = &metal3.Hardware{}
		for i := range 200 {
			host.Status.HardwareDetails.NIC = append(host.Status.HardwareDetails.NIC, metal3.NIC{MAC: fmt.Sprintf("02:00:00:00:01:%02x", i)})
		}
	}
	_, message = Withheld(f, true)
	NewWithT(t).Expect(len(message)).To(BeNumerically("<", 1024), message)
}

func preparing(host *metal3.Host) *metal3.Host {
	host.Status.Provisioning.State = "preparing"
	return host
}

func inUse(name string) *metal3.Host {
	host := free(name, zoneA)
	host.Spec.BootMACAddress = sample.BootMAC
	return host
}

func claimant(name string) *metal3.Host {
	host := inUse(name)
	host.Namespace, host.Status.Provisioning.State = "site-7", "provisioned"
	return host
}

func claimedBySite(f *facts.Facts) {
	f.Claimants = map[string][]*metal3.Host{"a": {claimant("node-0")}}
}
