package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// metal3Machine returns a Metal3Machine that selects hosts by labels; a higher age is older.
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

// waiting returns the facts of the Machine whose Metal3Machine is the first one.
func waiting(hosts []*metal3.Host, machines ...*unstructured.Unstructured) *facts.Facts {
	f := &facts.Facts{
		Config:       &bootstrapv1.OpenshiftAssistedConfig{},
		Machine:      &clusterv1.Machine{},
		InfraMachine: machines[0],
		Hosts:        hosts,
		Waiting:      machines,
	}
	return f
}

var zoneA, zoneB = map[string]string{"zone": "a"}, map[string]string{"zone": "b"}

func TestHostsAreStillBeingPrepared(t *testing.T) {
	g := NewWithT(t)
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	in := func(state string, labels map[string]string) *metal3.Host {
		host := free(state, labels)
		host.Status.Provisioning.State = state
		return host
	}
	for _, state := range []string{"", "registering", "match profile", "inspecting", "preparing"} {
		g.Expect(Pending(waiting([]*metal3.Host{free("b", zoneB), in(state, zoneA)}, own))).To(BeTrue(), state)
	}
	for _, state := range []string{"ready", "available", "provisioned", "deprovisioning", "unmanaged"} {
		g.Expect(Pending(waiting([]*metal3.Host{in(state, zoneA)}, own))).To(BeFalse(), state)
	}
	g.Expect(Pending(waiting([]*metal3.Host{in("inspecting", zoneB)}, own))).To(BeFalse(), "for other Machines")
	g.Expect(Pending(waiting(nil, own))).To(BeFalse(), "no hosts")

	broken, used := in("inspecting", zoneA), in("preparing", zoneA)
	broken.Status.ErrorMessage, used.Spec.ConsumerRef = "no answer", &metal3.Consumer{Name: "other"}
	g.Expect(Pending(waiting([]*metal3.Host{broken, used}, own))).To(BeFalse(), "the user has to act")

	chosen := waiting([]*metal3.Host{in("inspecting", zoneA)}, own)
	chosen.TakenHost = free("t", zoneA)
	g.Expect(Pending(chosen)).To(BeFalse(), "another consumer has the host")
	g.Expect(Pending(&facts.Facts{Config: chosen.Config})).To(BeFalse(), "no infra machine")
}

func TestPossibleHosts(t *testing.T) {
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	inspecting, broken := free("i", zoneA), free("e", zoneA)
	inspecting.Status.Provisioning.State = "inspecting"
	broken.Status.ErrorType, broken.Status.ErrorMessage = "registration error", "cannot reach https://user:secret@bmc/redfish"
	for name, tc := range map[string]struct {
		hosts           []*metal3.Host
		reason, message string
	}{
		"no API":   {nil, bootstrapv1.NoHostFitsReason, "this hub does not serve BareMetalHosts: install the Bare Metal Operator"},
		"no hosts": {[]*metal3.Host{}, bootstrapv1.NoHostFitsReason, "namespace lab has no BareMetalHost: create one for each Machine"},
		"one fits": {[]*metal3.Host{free("a", zoneA), free("b", zoneB)}, bootstrapv1.HostsFitReason, "BareMetalHosts that fit: a"},
		"two fit":  {[]*metal3.Host{free("a", zoneA), free("b", zoneA), taken("c")}, bootstrapv1.HostsFitReason, "BareMetalHosts that fit: a, b"},
		"none fits": {
			[]*metal3.Host{taken("c"), taken("d"), inspecting, free("b", zoneB)},
			bootstrapv1.NoHostFitsReason,
			"no BareMetalHost in namespace lab fits: i (inspecting); b (labels do not match hostSelector zone=a); c, d (in use)",
		},
		"one is broken": {
			[]*metal3.Host{broken},
			bootstrapv1.NoHostFitsReason,
			"no BareMetalHost in namespace lab fits: e (registration error: cannot reach https://bmc/...)",
		},
	} {
		condition := Host(waiting(tc.hosts, own))
		g := NewWithT(t)
		g.Expect(condition.Type).To(Equal(bootstrapv1.HostAvailableCondition), name)
		g.Expect(condition.Reason).To(Equal(tc.reason), name)
		wanted := metav1.ConditionFalse
		if tc.reason == bootstrapv1.HostsFitReason {
			wanted = metav1.ConditionTrue
		}
		g.Expect(condition.Status).To(Equal(wanted), name)
		g.Expect(condition.Message).To(Equal(tc.message), name)
	}
}

// CAPM3 does not read the health that the BMC reports. A critical error is reported until the host is installed; a
// warning, such as the loss of a redundant power supply, excludes no host.
func TestHealthOfHosts(t *testing.T) {
	unhealthy := func(name, reason string) *metal3.Host {
		host := free(name, nil)
		host.Status.Conditions = []metal3.Condition{{Type: "Healthy", Status: "False", Reason: reason}}
		return host
	}
	for situation, tc := range map[string]struct {
		hosts                   []*metal3.Host
		before, message         string
		after, messageOfTheHost string
		status                  metav1.ConditionStatus
	}{
		"critical error": {
			[]*metal3.Host{unhealthy("a", "CriticalError")},
			bootstrapv1.NoHostFitsReason,
			"no BareMetalHost in namespace lab fits: a (its BMC reports a critical error (condition Healthy))",
			bootstrapv1.HostUnhealthyReason, "BareMetalHost lab/a: its BMC reports a critical error (condition Healthy). Repair its server.",
			metav1.ConditionFalse,
		},
		"critical error of another host": {
			[]*metal3.Host{free("b", nil), unhealthy("a", "CriticalError")},
			bootstrapv1.HostsFitReason, "BareMetalHosts that fit: b",
			bootstrapv1.HostChosenReason, "BareMetalHost lab/b", metav1.ConditionTrue,
		},
		"warning": {
			[]*metal3.Host{unhealthy("a", "Warning"), free("b", nil)},
			bootstrapv1.HostsFitReason,
			"BareMetalHosts that fit: a, b; the BMC reports a warning (condition Healthy) of: a",
			bootstrapv1.HostChosenReason, "BareMetalHost lab/a: its BMC reports a warning (condition Healthy)",
			metav1.ConditionTrue,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), waiting(tc.hosts, metal3Machine("m", 0, nil))
			before := Host(f)
			f.Host = tc.hosts[0]
			after := Host(f)
			g.Expect(before.Reason).To(Equal(tc.before))
			g.Expect(before.Message).To(Equal(tc.message))
			g.Expect(after.Reason).To(Equal(tc.after))
			g.Expect(after.Message).To(HavePrefix(tc.messageOfTheHost))
			g.Expect(after.Status).To(Equal(tc.status))
		})
	}
}

// assisted-service refuses hostnames of more than 63 characters once the host is bound. A BareMetalHost that
// would get such a hostname does not fit.
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
		"63 characters":                          {free(strings.Repeat("r", 63), nil), "", true},
		"64 characters":                          {free(long, nil), "", false},
		"64 characters in the annotation":        {annotated, "", false},
		"the annotation gives a shorter name":    {named, "", true},
		"the config gives a shorter name":        {free(long, nil), "node", true},
		"the config appends too much":            {free(strings.Repeat("r", 60), nil), "$METADATA_NAME-node", false},
		"the config appends an unknown variable": {free("r", nil), "$METADATA_RACK-node", true},
		"the config gives an invalid hostname":   {free("r", nil), "${METADATA_NAME}..node", false},
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

// Hosts are compared with each template once, not with each Machine. The search for competing Machines does not start
// again for each Machine without a host.
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
				g.Expect(search.competingMachines(f.Waiting[:machines-1], fits)).To(HaveLen(tc.free))
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

func TestInvalidHostSelectorIsReported(t *testing.T) {
	own := metal3Machine("m", 0, map[string]any{"zone": "a b"})
	condition := Host(waiting([]*metal3.Host{free("a", zoneA)}, own))
	g := NewWithT(t)
	g.Expect(condition.Reason).To(Equal(bootstrapv1.NoHostFitsReason))
	g.Expect(condition.Message).To(HavePrefix("Metal3Machine m: spec.hostSelector: "))
}

// Machines compete for hosts. Only the number of hosts for all older Machines and this one matters.
func TestOlderMachinesGetHostsFirst(t *testing.T) {
	anyHost, zoned := map[string]any(nil), map[string]any{"zone": "a"}
	for name, tc := range map[string]struct {
		hosts    []*metal3.Host
		own      map[string]any
		others   []*unstructured.Unstructured
		tooFew   bool
		mentions string
	}{
		"as many as Machines": {
			[]*metal3.Host{free("a", zoneA), free("b", zoneB)}, anyHost, []*unstructured.Unstructured{metal3Machine("o", 1, anyHost)}, false, "",
		},
		"one for two, the other is older": {
			[]*metal3.Host{free("a", zoneA)},
			anyHost,
			[]*unstructured.Unstructured{metal3Machine("o", 1, anyHost)},
			true,
			"wait for hosts as well: o. ",
		},
		"one for two, the other is younger": {
			[]*metal3.Host{free("a", zoneA)}, anyHost, []*unstructured.Unstructured{metal3Machine("o", -1, anyHost)}, false, "",
		},
		"the older one wants others": {
			[]*metal3.Host{free("a", zoneA)}, anyHost, []*unstructured.Unstructured{metal3Machine("o", 1, map[string]any{"zone": "b"})}, false, "",
		},
		"the older one may have another": {
			[]*metal3.Host{free("a", zoneA), free("b", zoneB)}, zoned, []*unstructured.Unstructured{metal3Machine("o", 1, anyHost)}, false, "",
		},
		"two older ones need both": {
			[]*metal3.Host{free("a", zoneA), free("b", zoneB)},
			zoned,
			[]*unstructured.Unstructured{metal3Machine("o", 1, anyHost), metal3Machine("p", 2, anyHost)},
			true,
			"as well: p, o. ",
		},
		"the older one cannot have any": {
			[]*metal3.Host{free("a", zoneA)}, anyHost, []*unstructured.Unstructured{metal3Machine("o", 1, map[string]any{"zone": "a b"})}, false, "",
		},
		"the other hosts are listed with their reason": {
			[]*metal3.Host{free("a", zoneA), taken("t")},
			anyHost,
			[]*unstructured.Unstructured{metal3Machine("o", 1, anyHost)},
			true,
			"no other host fits: t (in use)",
		},
	} {
		own := metal3Machine("m", 0, tc.own)
		f := waiting(tc.hosts, append([]*unstructured.Unstructured{own}, tc.others...)...)
		sortByAge(f.Waiting)
		condition := Host(f)
		g := NewWithT(t)
		if tc.tooFew {
			g.Expect(condition.Reason).To(Equal(bootstrapv1.TooFewHostsReason), name)
			g.Expect(condition.Status).To(Equal(metav1.ConditionFalse), name)
			g.Expect(condition.Message).To(ContainSubstring(tc.mentions), name)
		} else {
			g.Expect(condition.Reason).To(Equal(bootstrapv1.HostsFitReason), name+": "+condition.Message)
		}
	}
}

// Two hosts name the Machine, so that its host is unknown.
func TestMachineWithoutWaitingMetal3Machine(t *testing.T) {
	f := waiting([]*metal3.Host{free("a", zoneA)}, metal3Machine("m", 0, nil))
	f.Waiting = []*unstructured.Unstructured{metal3Machine("o", 1, nil), metal3Machine("p", 1, nil)}
	NewWithT(t).Expect(Host(f).Reason).To(Equal(bootstrapv1.HostsFitReason))
}

func sortByAge(machines []*unstructured.Unstructured) {
	slices.SortFunc(machines, func(a, b *unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
}

func TestInspectedHardwareIsCompared(t *testing.T) {
	small, large, unknown := free("small", nil), free("large", nil), free("unknown", nil)
	small.Status.HardwareDetails = &metal3.Hardware{
		CPU:          metal3.CPU{Count: 8},
		RAMMebibytes: 16 << 10,
		Storage:      []metal3.Disk{{SizeBytes: 100 << 30}},
	}
	large.Status.HardwareDetails = &metal3.Hardware{
		CPU:          metal3.CPU{Count: 16},
		RAMMebibytes: 32 << 10,
		Storage:      []metal3.Disk{{SizeBytes: 200 << 30}},
	}
	unknown.Status.HardwareDetails = &metal3.Hardware{}
	f := waiting([]*metal3.Host{large, small, unknown, free("none", nil)}, metal3Machine("m", 0, nil))
	f.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{
		MinCPUCores: 16,
		MinMemory:   ptr.To(resource.MustParse("32Gi")),
		MinDiskSize: ptr.To(resource.MustParse("120Gi")),
	}
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: large, unknown, none"))

	f.Hosts = []*metal3.Host{small}
	g.Expect(Host(f).Message).
		To(
			HaveSuffix(
				"lab fits: small (below spec.hostRequirements: 8 CPU cores (needs 16), 16Gi memory (needs 32Gi), no disk above " +
					"100Gi (needs 120Gi))",
			),
		)

	f.Hosts, f.Waiting = []*metal3.Host{small, large}, append(f.Waiting, metal3Machine("o", 1, nil), metal3Machine("p", 2, nil))
	sortByAge(f.Waiting)
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.TooFewHostsReason), "the others may be given the small one, but there are two")
	f.Waiting = f.Waiting[1:]
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostsFitReason), "the other takes the small one")
	large.Labels = zoneA
	f.Waiting[0] = metal3Machine("o", 1, map[string]any{"zone": "a"})
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.TooFewHostsReason), "the other needs the large one, and the small one does not fit this one")
}

// Hosts that Metal3's label of node reuse reserves for the Machine have precedence over all others, even
// before they are available.
func TestReservedHosts(t *testing.T) {
	label := func(host *metal3.Host, keptFor, state string) *metal3.Host {
		host.Labels = map[string]string{metal3.NodeReuseLabel: keptFor, "zone": "a"}
		host.Status.Provisioning.State = state
		return host
	}
	own := metal3Machine("m", 0, map[string]any{"zone": "a"})
	own.SetLabels(map[string]string{clusterv1.MachineDeploymentNameLabel: "0"})
	other := metal3Machine("o", 1, map[string]any{"zone": "a"})
	f := waiting(
		[]*metal3.Host{free("free", zoneA), label(free("kept", nil), "md-0", "available"), label(free("others", nil), "md-1", "available")},
		own,
		other,
	)
	sortByAge(f.Waiting)
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: kept"), "the older one gets the free host, not a reserved one")

	f.Hosts[1].Status.Provisioning.State = "deprovisioning"
	g.Expect(*Host(f)).To(And(HaveField("Reason", bootstrapv1.NoHostFitsReason), HaveField(
		"Message",
		"Metal3 waits for BareMetalHost kept (deprovisioning), which the label infrastructure.cluster.x-k8s.io/node-reuse reserves for the "+
			"Machine, and uses no other host meanwhile",
	)))
	f.Hosts[1].Labels["zone"] = "b"
	g.Expect(Host(f).Reason).
		To(Equal(bootstrapv1.TooFewHostsReason), "CAPM3 ignores a reserved host that the selector excludes, and the older Machine is first")
	f.Waiting = []*unstructured.Unstructured{own}
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: free"))

	f.Hosts = []*metal3.Host{free("free", zoneA), label(free("kept", nil), "md-0", "available")}
	f.Hosts[1].Status.HardwareDetails = &metal3.Hardware{CPU: metal3.CPU{Count: 1}}
	f.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 2}
	g.Expect(Host(f).Message).
		To(
			HaveSuffix(
				"lab fits: kept (below spec.hostRequirements: 1 CPU core (needs 2)); free (not considered: Metal3 first uses hosts that the " +
					"label infrastructure.cluster.x-k8s.io/node-reuse reserves for the Machine)",
			),
		)
}

func TestHostsOfTheFailureDomainArePreferred(t *testing.T) {
	own := metal3Machine("m", 0, nil)
	own.Object["spec"] = map[string]any{"failureDomain": "rack1"}
	f := waiting(
		[]*metal3.Host{
			free("here", map[string]string{metal3.FailureDomainLabel: "rack1"}),
			free("there", map[string]string{metal3.FailureDomainLabel: "rack2"}),
		},
		own,
	)
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: here"))
	f.Hosts[0].Spec.ConsumerRef = &metal3.Consumer{Kind: "Metal3Machine", Name: "other"}
	g.Expect(*Host(f)).
		To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", "BareMetalHosts that fit: there; none has the failure domain "+
			"rack1 of the Machine "+
			"(label infrastructure.cluster.x-k8s.io/failure-domain): Metal3 takes any of them")))

	own.SetLabels(map[string]string{"cluster.x-k8s.io/deployment-name": "0"})
	f.Hosts = nil
	for name, domain := range map[string]string{"here": "rack1", "there": "rack2"} {
		f.Hosts = append(f.Hosts, free(name, map[string]string{metal3.FailureDomainLabel: domain, metal3.NodeReuseLabel: "md-0"}))
	}
	g.Expect(Host(f).Message).To(HavePrefix("BareMetalHosts that fit: "))
	g.Expect(Host(f).Message).To(And(ContainSubstring("here"), ContainSubstring("there")), "CAPM3 takes any reserved host")
}

// An unusable BMC address is reported before the host is started.
func TestFencingNeedsAUsableBMC(t *testing.T) {
	ipmi, redfish, secret := free("ipmi", nil), free("redfish", nil), free("secret", nil)
	ipmi.Spec.BMC = metal3.BMC{Address: "ipmi://10.0.0.1", CredentialsName: "bmc"}
	redfish.Spec.BMC = metal3.BMC{Address: "redfish://10.0.0.2/redfish/v1/Systems/1", CredentialsName: "bmc"}
	secret.Spec.BMC, secret.Annotations = ipmi.Spec.BMC, map[string]string{metal3.FencingCredentialsAnnotation: "own"}
	f := waiting([]*metal3.Host{ipmi, redfish, secret}, metal3Machine("m", 0, nil))
	f.Install = &hiveext.AgentClusterInstall{}
	f.Install.Spec.ProvisionRequirements.ControlPlaneAgents = 3
	f.Machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	g := NewWithT(t)
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: ipmi, redfish, secret"), "no fencing")
	f.Install.Spec.ProvisionRequirements.ControlPlaneAgents = 2
	g.Expect(Host(f).Message).To(Equal("BareMetalHosts that fit: redfish, secret"))
	f.Hosts = []*metal3.Host{ipmi}
	g.Expect(*Host(f)).
		To(
			And(
				HaveField("Reason", bootstrapv1.NoHostFitsReason),
				HaveField(
					"Message", ContainSubstring(`(spec.bmc.address of BareMetalHost ipmi, by which the other node fences it, has the driver "ipmi"`),
				),
			),
		)

	f.Host = ipmi
	g.Expect(*Host(f)).
		To(
			And(
				HaveField("Status", metav1.ConditionFalse),
				HaveField("Reason", bootstrapv1.FencingCredentialsUnusableReason),
				HaveField("Message", ContainSubstring(`has the driver "ipmi"`)),
			),
		)
	f.Host = redfish
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostChosenReason))
	redfish.Spec.BMC.CredentialsName = ""
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.FencingCredentialsUnusableReason))
	agent := sample.Agent("a", "m", sample.BootMAC)
	agent.Spec.Approved, agent.Spec.ClusterDeploymentName = true, &aiv1beta1.ClusterReference{}
	f.Agents, f.Config.Status.AgentRef = []*aiv1beta1.Agent{agent}, &corev1.LocalObjectReference{Name: "a"}
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostChosenReason), "the host is approved already")
}

func TestStaticNetworksAreCompared(t *testing.T) {
	one, other, silent := free("one", nil), free("other", nil), free("silent", nil)
	one.Spec.BootMACAddress, other.Spec.BootMACAddress = "02:00:00:00:00:01", "02:00:00:00:00:02"
	f := waiting([]*metal3.Host{one, other, silent}, metal3Machine("m", 0, nil))
	f.Config.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"net": "lab"}}
	network := &aiv1beta1.NMStateConfig{}
	network.Spec.Interfaces = []*aiv1beta1.Interface{{MacAddress: "02:00:00:00:00:01"}}
	g := NewWithT(t)
	g.Expect(Host(f).Message).
		To(Equal("BareMetalHosts that fit: one, other, silent"), "missing NMStateConfigs are reported by another condition")

	f.Networks = []*aiv1beta1.NMStateConfig{network}
	condition := Host(f)
	g.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
	g.Expect(condition.Message).
		To(Equal("BareMetalHosts that fit: one, other, silent; no NMStateConfig that matches net=lab has a MAC address of: other"))
	one.Status.Conditions = []metal3.Condition{{Type: "Healthy", Status: "False", Reason: "Warning"}}
	g.Expect(Host(f).Message).To(HaveSuffix("has a MAC address of: other; the BMC reports a warning (condition Healthy) of: one"))

	f.Hosts = []*metal3.Host{other}
	condition = Host(f)
	g.Expect(condition.Reason).To(Equal(bootstrapv1.NMStateConfigMismatchReason))
	g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(condition.Message).To(ContainSubstring("(other)"))
}

func TestChosenHost(t *testing.T) {
	f := waiting(nil, metal3Machine("m", 0, nil))
	f.Host = sample.BareMetalHost()
	g := NewWithT(t)
	g.Expect(*Host(f)).To(Equal(*available(bootstrapv1.HostChosenReason, "BareMetalHost lab/rack1-u7")))

	f.Host.Annotations = map[string]string{"baremetalhost.metal3.io/detached": ""}
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostUnmanagedReason))
	g.Expect(Host(f).Message).To(ContainSubstring("baremetalhost.metal3.io/detached"))

	f.Host.Status.ErrorType, f.Host.Status.ErrorMessage = "power management error", "no answer from https://root:calvin@10.0.0.1/redfish"
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostFailedReason), "an error has precedence over the annotation")
	g.Expect(Host(f).Message).To(And(HavePrefix("BareMetalHost lab/rack1-u7: power management error: "), Not(ContainSubstring("calvin"))))

	f.Machine.Status.NodeRef.Name = "n"
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostFailedReason), "also of an installed host, because its deletion waits for it")
	f.Host.Status.ErrorType, f.Host.Status.ErrorMessage = "", ""
	g.Expect(Host(f)).To(BeNil(), "the host is installed, and the user set the annotation")
	now := metav1.Now()
	f.InfraMachine.SetDeletionTimestamp(&now)
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.HostUnmanagedReason), "the Machine is being deleted, and its host is not deprovisioned")
	f.Host.Annotations = nil
	g.Expect(*Host(f)).To(Equal(*available(bootstrapv1.HostChosenReason, "BareMetalHost lab/rack1-u7 is being deprovisioned")))
	f.Host = nil
	g.Expect(Host(f)).To(BeNil(), "the host no longer belongs to the Machine")
}

// The host was given to the Machine before.
func TestHostTakenByAnotherConsumer(t *testing.T) {
	f := waiting(nil, metal3Machine("m", 0, nil))
	f.InfraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/rack1-u7"})
	f.TakenHost = sample.BareMetalHost()
	g := NewWithT(t)
	g.Expect(Host(f).Reason).To(Equal(bootstrapv1.NoHostFitsReason))
	g.Expect(Host(f).Message).
		To(HavePrefix("BareMetalHost lab/rack1-u7, which was assigned to Metal3Machine m, names another consumer in spec.consumerRef"))
	now := metav1.Now()
	f.InfraMachine.SetDeletionTimestamp(&now)
	g.Expect(Host(f)).To(BeNil(), "the host was released, and given to another consumer")
	f.InfraMachine.SetDeletionTimestamp(nil)
	f.Machine.Status.NodeRef.Name = "n"
	g.Expect(Host(f)).To(BeNil(), "the host is installed")
}

func TestOtherProvidersNeedNoBareMetalHost(t *testing.T) {
	f := waiting([]*metal3.Host{free("a", nil)}, metal3Machine("m", 0, nil))
	g := NewWithT(t)
	f.InfraMachine.SetAnnotations(map[string]string{metal3.HostAnnotation: "lab/gone"})
	g.Expect(Host(f)).To(BeNil(), "its host cannot be read")
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
	condition := Host(waiting(many, metal3Machine("m", 0, nil)))
	g := NewWithT(t)
	g.Expect(condition.Message).To(HaveSuffix("; 197 more reasons"))
	g.Expect(len(condition.Message)).To(BeNumerically("<=", bound.MessageBytes))
	f := waiting(nil, metal3Machine("m", 0, nil))
	f.Host = many[0]
	g.Expect(len(Host(f).Message)).To(BeNumerically("<", 1024))
	for _, host := range many {
		host.Status.ErrorMessage = ""
	}
	g.Expect(Host(waiting(many, metal3Machine("m", 0, nil))).Message).To(HaveSuffix("host-002 and 197 more"))
}
