package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// metal3Machine is one that wants hosts with certain labels; a higher age is older.
func metal3Machine(name string, age int, wanted map[string]any) *unstructured.Unstructured {
	machine := sample.Metal3Machine("live-iso")
	machine.SetName(name)
	machine.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(1000-age), 0)))
	if wanted != nil {
		machine.Object["spec"] = map[string]any{"hostSelector": map[string]any{"matchLabels": wanted}}
	}
	return machine
}

func free(name string, labels map[string]string) *metal3.Host {
	host := &metal3.Host{ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: name, Labels: labels}}
	host.Status.Provisioning.State = "available"
	return host
}

func taken(name string) *metal3.Host {
	host := free(name, nil)
	host.Spec.ConsumerRef = &metal3.Consumer{Kind: "Metal3Machine", Name: "other"}
	return host
}

// waiting are the facts of the Machine whose Metal3Machine is the first one.
func waiting(hosts []*metal3.Host, machines ...*unstructured.Unstructured) *facts.Facts {
	f := &facts.Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, Machine: &clusterv1.Machine{}, InfraMachine: machines[0], Hosts: hosts, Waiting: machines}
	return f
}

var zoneA, zoneB = map[string]string{"zone": "a"}, map[string]string{"zone": "b"}

func TestHostsBeforeOneIsChosen(t *testing.T) {
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	inspecting, broken := free("i", zoneA), free("e", zoneA)
	inspecting.Status.Provisioning.State = "inspecting"
	broken.Status.ErrorType, broken.Status.ErrorMessage = "registration error", "cannot reach https://user:secret@bmc/redfish"
	for name, tc := range map[string]struct {
		hosts           []*metal3.Host
		reason, message string
	}{
		"not even their API": {nil, bootstrapv1.NoHostFitsReason, "this hub does not serve BareMetalHosts: install the Bare Metal Operator"},
		"none at all":        {[]*metal3.Host{}, bootstrapv1.NoHostFitsReason, "namespace lab has no BareMetalHost: create one for each Machine"},
		"one fits":           {[]*metal3.Host{free("a", zoneA), free("b", zoneB)}, bootstrapv1.HostsFitReason, "BareMetalHosts that fit: a"},
		"two fit":            {[]*metal3.Host{free("a", zoneA), free("b", zoneA), taken("c")}, bootstrapv1.HostsFitReason, "BareMetalHosts that fit: a, b"},
		"none fits": {
			[]*metal3.Host{taken("c"), taken("d"), inspecting, free("b", zoneB)},
			bootstrapv1.NoHostFitsReason,
			"of the BareMetalHosts of namespace lab none fits: i (inspecting); b (labels do not match hostSelector zone=a); c, d (in use)",
		},
		"one is broken": {[]*metal3.Host{broken}, bootstrapv1.NoHostFitsReason, "of the BareMetalHosts of namespace lab none fits: e (registration error: cannot reach https://bmc/...)"},
	} {
		told := Host(waiting(tc.hosts, own))
		g := NewWithT(t)
		g.Expect(told.Type).To(Equal(bootstrapv1.HostAvailableCondition), name)
		g.Expect(told.Reason).To(Equal(tc.reason), name)
		wanted := metav1.ConditionFalse
		if tc.reason == bootstrapv1.HostsFitReason {
			wanted = metav1.ConditionTrue
		}
		g.Expect(told.Status).To(Equal(wanted), name)
		g.Expect(told.Message).To(Equal(tc.message), name)
	}
}

// assisted-service refuses hostnames beyond 63 characters once the host is bound: a BareMetalHost that would get one is no candidate.
func TestHostnameIsCheckedBeforePowerOn(t *testing.T) {
	long := strings.Repeat("r", 64)
	annotated := free("a", nil)
	annotated.Annotations = map[string]string{metal3.HostnameAnnotation: long}
	named := free(long, nil)
	named.Annotations = map[string]string{metal3.HostnameAnnotation: "r1"}
	for name, tc := range map[string]struct {
		host *metal3.Host
		node string
		fits bool
	}{
		"63 characters":                         {free(strings.Repeat("r", 63), nil), "", true},
		"64 characters":                         {free(long, nil), "", false},
		"64 characters in the annotation":       {annotated, "", false},
		"the annotation gives a shorter name":   {named, "", true},
		"the config gives a shorter name":       {free(long, nil), "node", true},
		"the config appends too much":           {free(strings.Repeat("r", 60), nil), "$METADATA_NAME-node", false},
		"the config appends what is not known":  {free("r", nil), "$METADATA_RACK-node", true},
		"the config gives what is no host name": {free("r", nil), "${METADATA_NAME}..node", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := waiting([]*metal3.Host{tc.host}, metal3Machine("m", 0, nil))
			if tc.node != "" {
				f.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{Name: tc.node}
			}
			before := Host(f)
			f.Host = tc.host
			after := Host(f)
			if tc.fits {
				g.Expect(before.Reason).To(Equal(bootstrapv1.HostsFitReason), before.Message)
				g.Expect(after.Reason).To(Equal(bootstrapv1.HostChosenReason), after.Message)
				return
			}
			g.Expect(before.Reason).To(Equal(bootstrapv1.NoHostFitsReason), before.Message)
			g.Expect(after.Reason).To(Equal(bootstrapv1.NoHostFitsReason), after.Message)
			g.Expect(before.Message).To(ContainSubstring("cannot be the name of a Node"))
			g.Expect(after.Message).To(MatchRegexp("cannot be the name of a Node.*Set (spec.nodeRegistration.name|the annotation)"))
		})
	}
}

// TestCostOfManyMachinesAndHosts: hosts are compared with each template once, not with each Machine, and the search for rivals does not begin again for each Machine that gets no host.
func TestCostOfManyMachinesAndHosts(t *testing.T) {
	const hosts, machines = 2000, 600
	for name, tc := range map[string]struct {
		free, visits int
		short        bool
	}{
		"a host for each":   {hosts, 0, false},
		"half of them":      {machines / 2, 10 * machines * machines, true},
		"a single free one": {1, 10 * machines, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var all []*metal3.Host
			for i := range hosts {
				host := free(fmt.Sprintf("h%d", i), zoneA)
				if i >= tc.free {
					host.Spec.ConsumerRef = &metal3.Consumer{Kind: "Metal3Machine", Name: "other"}
				}
				all = append(all, host)
			}
			own := metal3Machine("own", 0, map[string]any{"zone": "a"})
			f := waiting(all, own)
			for i := range machines - 1 {
				f.Waiting = append(f.Waiting, metal3Machine(fmt.Sprintf("m%d", i), i+1, map[string]any{"zone": "a"}))
			}
			sortByAge(f.Waiting)
			search := newSearch(f)
			fits := search.fittingOwn()
			g.Expect(fits).To(HaveLen(tc.free))
			if tc.short {
				g.Expect(search.rivals(f.Waiting[:machines-1], fits)).To(HaveLen(tc.free))
			}
			g.Expect(search.compared).To(Equal(hosts), "one template")
			g.Expect(search.visited).To(BeNumerically("<=", tc.visits))
			if tc.short {
				g.Expect(Host(f).Reason).To(Equal(bootstrapv1.TooFewHostsReason))
			} else {
				g.Expect(Host(f).Reason).NotTo(Equal(bootstrapv1.TooFewHostsReason))
			}
		})
	}
}

func TestHostSelectorThatCannotBeUsedIsTold(t *testing.T) {
	own := metal3Machine("m", 0, map[string]any{"zone": "a b"})
	told := Host(waiting([]*metal3.Host{free("a", zoneA)}, own))
	g := NewWithT(t)
	g.Expect(told.Reason).To(Equal(bootstrapv1.NoHostFitsReason))
	g.Expect(told.Message).To(HavePrefix("Metal3Machine m: spec.hostSelector: "))
}

// TestHostsAreGivenToTheOlderFirst has Machines that compete: what matters is whether all that are older and this one could have a host at once.
func TestHostsAreGivenToTheOlderFirst(t *testing.T) {
	whichever, zoned := map[string]any(nil), map[string]any{"zone": "a"}
	for name, tc := range map[string]struct {
		hosts    []*metal3.Host
		own      map[string]any
		others   []*unstructured.Unstructured
		tooFew   bool
		mentions string
	}{
		"as many as Machines":                   {[]*metal3.Host{free("a", zoneA), free("b", zoneB)}, whichever, []*unstructured.Unstructured{metal3Machine("o", 1, whichever)}, false, ""},
		"one for two, the other is older":       {[]*metal3.Host{free("a", zoneA)}, whichever, []*unstructured.Unstructured{metal3Machine("o", 1, whichever)}, true, "wait for hosts as well: o. "},
		"one for two, the other is younger":     {[]*metal3.Host{free("a", zoneA)}, whichever, []*unstructured.Unstructured{metal3Machine("o", -1, whichever)}, false, ""},
		"the older one wants others":            {[]*metal3.Host{free("a", zoneA)}, whichever, []*unstructured.Unstructured{metal3Machine("o", 1, map[string]any{"zone": "b"})}, false, ""},
		"the older one may have another":        {[]*metal3.Host{free("a", zoneA), free("b", zoneB)}, zoned, []*unstructured.Unstructured{metal3Machine("o", 1, whichever)}, false, ""},
		"two older ones need both":              {[]*metal3.Host{free("a", zoneA), free("b", zoneB)}, zoned, []*unstructured.Unstructured{metal3Machine("o", 1, whichever), metal3Machine("p", 2, whichever)}, true, "as well: p, o. "},
		"the older one cannot have any":         {[]*metal3.Host{free("a", zoneA)}, whichever, []*unstructured.Unstructured{metal3Machine("o", 1, map[string]any{"zone": "a b"})}, false, ""},
		"of the others it is told why they are": {[]*metal3.Host{free("a", zoneA), taken("t")}, whichever, []*unstructured.Unstructured{metal3Machine("o", 1, whichever)}, true, "none fits: t (in use)"},
	} {
		own := metal3Machine("m", 0, tc.own)
		f := waiting(tc.hosts, append([]*unstructured.Unstructured{own}, tc.others...)...)
		sortByAge(f.Waiting)
		told := Host(f)
		g := NewWithT(t)
		if tc.tooFew {
			g.Expect(told.Reason).To(Equal(bootstrapv1.TooFewHostsReason), name)
			g.Expect(told.Status).To(Equal(metav1.ConditionFalse), name)
			g.Expect(told.Message).To(ContainSubstring(tc.mentions), name)
		} else {
			g.Expect(told.Reason).To(Equal(bootstrapv1.HostsFitReason), name+": "+told.Message)
		}
	}
}

// TestAMachineThatDoesNotWait is about one that two hosts name: nothing tells which it has.
func TestAMachineThatDoesNotWait(t *testing.T) {
	f := waiting([]*metal3.Host{free("a", zoneA)}, metal3Machine("m", 0, nil))
	f.Waiting = []*unstructured.Unstructured{metal3Machine("o", 1, nil), metal3Machine("p", 1, nil)}
	NewWithT(t).Expect(Host(f).Reason).To(Equal(bootstrapv1.HostsFitReason))
}

func sortByAge(machines []*unstructured.Unstructured) {
	slices.SortFunc(machines, func(a, b *unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
}

func TestHardwareIsComparedBeforehand(t *testing.T) {
	small, large, unknown := free("small", nil), free("large", nil), free("unknown", nil)
	small.Status.HardwareDetails = &metal3.Hardware{CPU: metal3.CPU{Count: 8}, RAMMebibytes: 16 << 10, Storage: []metal3.Disk{{SizeBytes: 100 << 30}}}
	large.Status.HardwareDetails = &metal3.Hardware{CPU: metal3.CPU{Count: 16}, RAMMebibytes: 32 << 10, Storage: []metal3.Disk{{SizeBytes: 200 << 30}}}
	unknown.Status.HardwareDetails = &metal3.Hardware{}
	f := waiting([]*metal3.Host{large, small, unknown, free("none", nil)}, metal3Machine("m", 0, nil))
	f.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 16, MinMemory: ptr.To(resource.MustParse("32Gi")), MinDiskSize: ptr.To(resource.MustParse("120Gi"))}
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: large, unknown, none"))

	f.Hosts = []*metal3.Host{small}
	g.Expect(Host(f).Message).To(HaveSuffix("none fits: small (below spec.hostRequirements: 8 CPU cores, not 16, 16384 MiB of memory, not 32Gi, no disk above 100 GiB, not 120Gi)"))

	f.Hosts, f.Waiting = []*metal3.Host{small, large}, append(f.Waiting, metal3Machine("o", 1, nil), metal3Machine("p", 2, nil))
	sortByAge(f.Waiting)
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.TooFewHostsReason), "the others may be given the small one, but there are two")
	f.Waiting = f.Waiting[1:]
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostsFitReason), "the other takes the small one")
	large.Labels = zoneA
	f.Waiting[0] = metal3Machine("o", 1, map[string]any{"zone": "a"})
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.TooFewHostsReason), "the other needs the large one, and the small one does not fit this one")
}

// TestHostsThatAreKept has hosts with Metal3's label of node reuse: those that are kept for the Machine come before all others, and are waited for.
func TestHostsThatAreKept(t *testing.T) {
	label := func(host *metal3.Host, keptFor, state string) *metal3.Host {
		host.Labels = map[string]string{metal3.NodeReuseLabel: keptFor, "zone": "a"}
		host.Status.Provisioning.State = state
		return host
	}
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	own.SetLabels(map[string]string{clusterv1.MachineDeploymentNameLabel: "0"})
	other := metal3Machine("o", 1, map[string]any{"zone": "a"})
	f := waiting([]*metal3.Host{free("free", zoneA), label(free("kept", nil), "md-0", "available"), label(free("others", nil), "md-1", "available")}, own, other)
	sortByAge(f.Waiting)
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: kept"), "the older one takes the free one: it is given none that is kept")

	f.Hosts[1].Status.Provisioning.State = "deprovisioning"
	g.Expect(*Host(f)).To(And(HaveField("Reason", bootstrapv1.NoHostFitsReason), HaveField("Message",
		"Metal3 waits for BareMetalHost kept (deprovisioning), which the label infrastructure.cluster.x-k8s.io/node-reuse keeps for the Machine, and gives it no other meanwhile")))
	f.Hosts[1].Labels["zone"] = "b"
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.TooFewHostsReason), "one that is kept and does not match is nothing to CAPM3, and the older one is before this one")
	f.Waiting = []*unstructured.Unstructured{own}
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: free"))

	f.Hosts = []*metal3.Host{free("free", zoneA), label(free("kept", nil), "md-0", "available")}
	f.Hosts[1].Status.HardwareDetails = &metal3.Hardware{CPU: metal3.CPU{Count: 1}}
	f.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 2}
	g.Expect(Host(f).Message).To(HaveSuffix("none fits: kept (below spec.hostRequirements: 1 CPU core, not 2); free (others come first, which the label infrastructure.cluster.x-k8s.io/node-reuse keeps for the Machine)"))
}

func TestHostsOfTheFailureDomainComeFirst(t *testing.T) {
	own := metal3Machine("m", 0, nil)
	own.Object["spec"] = map[string]any{"failureDomain": "rack1"}
	f := waiting([]*metal3.Host{free("here", map[string]string{metal3.FailureDomainLabel: "rack1"}), free("there", map[string]string{metal3.FailureDomainLabel: "rack2"})}, own)
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: here"))
	f.Hosts[0].Spec.ConsumerRef = &metal3.Consumer{Kind: "Metal3Machine", Name: "other"}
	g.Expect(*Host(f)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", "BareMetalHosts that fit: there; none has the failure domain rack1 of the Machine "+
		"(label infrastructure.cluster.x-k8s.io/failure-domain): Metal3 takes any of them")))

	own.SetLabels(map[string]string{"cluster.x-k8s.io/deployment-name": "0"})
	f.Hosts = nil
	for name, domain := range map[string]string{"here": "rack1", "there": "rack2"} {
		f.Hosts = append(f.Hosts, free(name, map[string]string{metal3.FailureDomainLabel: domain, metal3.NodeReuseLabel: "md-0"}))
	}
	g.Expect(Host(f).Message).To(HavePrefix("BareMetalHosts that fit: "))
	g.Expect(Host(f).Message).To(And(ContainSubstring("here"), ContainSubstring("there")), "of the hosts that are kept for it CAPM3 takes any")
}

// TestTheBMCOfAHostThatIsToBeFenced: what is wrong with its address is told before it is switched on.
func TestTheBMCOfAHostThatIsToBeFenced(t *testing.T) {
	ipmi, redfish, secret := free("ipmi", nil), free("redfish", nil), free("secret", nil)
	ipmi.Spec.BMC = metal3.BMC{Address: "ipmi://10.0.0.1", CredentialsName: "bmc"}
	redfish.Spec.BMC = metal3.BMC{Address: "redfish://10.0.0.2/redfish/v1/Systems/1", CredentialsName: "bmc"}
	secret.Spec.BMC, secret.Annotations = ipmi.Spec.BMC, map[string]string{metal3.FencingCredentialsAnnotation: "own"}
	f := waiting([]*metal3.Host{ipmi, redfish, secret}, metal3Machine("m", 0, nil))
	f.Install = &hiveext.AgentClusterInstall{}
	f.Install.Spec.ProvisionRequirements.ControlPlaneAgents = 3
	f.Machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: ipmi, redfish, secret"), "nobody is fenced")
	f.Install.Spec.ProvisionRequirements.ControlPlaneAgents = 2
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: redfish, secret"))
	f.Hosts = []*metal3.Host{ipmi}
	g.Expect(*Host(f)).To(And(HaveField("Reason", bootstrapv1.NoHostFitsReason), HaveField("Message", ContainSubstring(`(spec.bmc.address of BareMetalHost ipmi, by which the other node fences it, has the driver "ipmi"`))))

	f.Host = ipmi
	g.Expect(*Host(f)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", bootstrapv1.FencingCredentialsUnusableReason), HaveField("Message", ContainSubstring(`has the driver "ipmi"`))))
	f.Host = redfish
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostChosenReason))
	redfish.Spec.BMC.CredentialsName = ""
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.FencingCredentialsUnusableReason))
	agent := sample.Agent("a", "m", sample.BootMAC)
	agent.Spec.Approved, agent.Spec.ClusterDeploymentName = true, &aiv1beta1.ClusterReference{}
	f.Agents, f.Config.Status.AgentRef = []*aiv1beta1.Agent{agent}, &corev1.LocalObjectReference{Name: "a"}
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostChosenReason), "nothing can be done about it any more")
}

func TestStaticNetworksAreComparedBeforehand(t *testing.T) {
	one, other, silent := free("one", nil), free("other", nil), free("silent", nil)
	one.Spec.BootMACAddress, other.Spec.BootMACAddress = "02:00:00:00:00:01", "02:00:00:00:00:02"
	f := waiting([]*metal3.Host{one, other, silent}, metal3Machine("m", 0, nil))
	f.Config.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"net": "lab"}}
	network := &aiv1beta1.NMStateConfig{}
	network.Spec.Interfaces = []*aiv1beta1.Interface{{MacAddress: "02:00:00:00:00:01"}}
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: one, other, silent"), "that there is no NMStateConfig at all is told elsewhere")

	f.Networks = []*aiv1beta1.NMStateConfig{network}
	told := Host(f)
	g.Expect(told.Status).To(Equal(metav1.ConditionTrue))
	g.Expect(told.Message).To(Equal("BareMetalHosts that fit: one, other, silent; no NMStateConfig that matches net=lab has a MAC address of: other"))

	f.Hosts = []*metal3.Host{other}
	told = Host(f)
	g.Expect(told.Reason).To(Equal(bootstrapv1.NMStateConfigMismatchReason))
	g.Expect(told.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(told.Message).To(ContainSubstring("(other)"))
}

func TestTheChosenHost(t *testing.T) {
	f := waiting(nil, metal3Machine("m", 0, nil))
	f.Host = sample.BareMetalHost()
	g := NewWithT(t)
	g.Expect(*Host(f)).To(Equal(*yes(bootstrapv1.HostChosenReason, "BareMetalHost lab/rack1-u7")))

	f.Host.Annotations = map[string]string{"baremetalhost.metal3.io/detached": ""}
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostUnmanagedReason))
	g.Expect(Host(f).Message).To(ContainSubstring("baremetalhost.metal3.io/detached"))

	f.Host.Status.ErrorType, f.Host.Status.ErrorMessage = "power management error", "no answer from https://root:calvin@10.0.0.1/redfish"
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostFailedReason), "an error says more than that it is left alone")
	g.Expect(Host(f).Message).To(And(HavePrefix("BareMetalHost lab/rack1-u7: power management error: "), Not(ContainSubstring("calvin"))))

	f.Machine.Status.NodeRef.Name = "n"
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostFailedReason), "of an installed host, too: whoever deletes the Machine waits for it")
	f.Host.Status.ErrorType, f.Host.Status.ErrorMessage = "", ""
	g.Expect(Host(f)).To(BeNil(), "the host is installed, and the annotation somebody's intention")
	now := metav1.Now()
	f.InfraMachine.SetDeletionTimestamp(&now)
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostUnmanagedReason), "the Machine goes, and nobody deprovisions its host")
	f.Host.Annotations = nil
	g.Expect(*Host(f)).To(Equal(*yes(bootstrapv1.HostChosenReason, "BareMetalHost lab/rack1-u7 is being deprovisioned")))
	f.Host = nil
	g.Expect(Host(f)).To(BeNil(), "the host is not the Machine's any more")
}

// TestAHostThatSomebodyElseTook, after it was given to the Machine.
func TestAHostThatSomebodyElseTook(t *testing.T) {
	f := waiting(nil, metal3Machine("m", 0, nil))
	f.InfraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/rack1-u7"})
	f.TakenHost = sample.BareMetalHost()
	g := NewWithT(t)
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.NoHostFitsReason))
	g.Expect(Host(f).Message).To(HavePrefix("BareMetalHost lab/rack1-u7, which was given to Metal3Machine m, says by spec.consumerRef that it is another's"))
	now := metav1.Now()
	f.InfraMachine.SetDeletionTimestamp(&now)
	g.Expect(Host(f)).To(BeNil(), "it was given back, and to somebody else")
	f.InfraMachine.SetDeletionTimestamp(nil)
	f.Machine.Status.NodeRef.Name = "n"
	g.Expect(Host(f)).To(BeNil(), "it is installed")
}

func TestOthersAreNotAskedForBareMetalHosts(t *testing.T) {
	f := waiting([]*metal3.Host{free("a", nil)}, metal3Machine("m", 0, nil))
	g := NewWithT(t)
	f.InfraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/gone"})
	g.Expect(Host(f)).To(BeNil(), "it was given one, which cannot be read")
	f.InfraMachine.SetKind("MetalStackMachine")
	g.Expect(Host(f)).To(BeNil())
	f.InfraMachine = nil
	g.Expect(Host(f)).To(BeNil())
}

func TestLongMessagesAreCut(t *testing.T) {
	var many []*metal3.Host
	for i := range 200 {
		host := free(fmt.Sprintf("host-%03d", i), nil)
		host.Status.ErrorMessage = fmt.Sprintf("failure %03d %s", i, strings.Repeat("x", 8000))
		many = append(many, host)
	}
	told := Host(waiting(many, metal3Machine("m", 0, nil)))
	g := NewWithT(t)
	g.Expect(told.Message).To(HaveSuffix("; 197 more reasons"))
	g.Expect(len(told.Message)).To(BeNumerically("<=", bound.MessageBytes))
	f := waiting(nil, metal3Machine("m", 0, nil))
	f.Host = many[0]
	g.Expect(len(Host(f).Message)).To(BeNumerically("<", 1024))
	for _, host := range many {
		host.Status.ErrorMessage = ""
	}
	g.Expect(Host(waiting(many, metal3Machine("m", 0, nil))).Message).To(HaveSuffix("host-002 and 197 more"))
}
