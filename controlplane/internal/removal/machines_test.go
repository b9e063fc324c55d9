package removal

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func factsOf(m *clusterv1.Machine) *facts.Facts {
	return &facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}, Machines: []*clusterv1.Machine{m}}
}

// proven sets the Agent that the config of a Machine records, in the Machine's InfraEnv.
func proven(f *facts.Facts, m *clusterv1.Machine, spec aiv1beta1.AgentSpec) {
	f.Agents = []aiv1beta1.Agent{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "a", Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: m.Name}},
			Spec:       spec,
		},
	}
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"}
	f.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{m.Name: config}
}

func TestMachineWaitsForOurHook(t *testing.T) {
	for situation, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		held, waits bool
	}{
		"at our hook": {
			clusterv1.MachineDeletingWaitingForPreTerminateHookReason, map[string]string{controlplanev1.EtcdMemberHookAnnotation: ""}, true, true,
		},
		"it is drained": {
			clusterv1.MachineDeletingDrainingNodeReason, map[string]string{controlplanev1.EtcdMemberHookAnnotation: ""}, true, false,
		},
		"at our hook and a foreign one": {
			clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
			map[string]string{controlplanev1.EtcdMemberHookAnnotation: "", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/storage": ""},
			true, false,
		},
		"only at a foreign hook": {
			clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
			map[string]string{clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/storage": ""},
			false,
			false,
		},
		"no condition yet": {"", map[string]string{controlplanev1.EtcdMemberHookAnnotation: ""}, true, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			deleted := metav1.NewTime(noon)
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m0", Annotations: tc.annotations, DeletionTimestamp: &deleted}}
			if tc.reason != "" {
				conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: tc.reason})
			}
			situation, err := Of(factsOf(m))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(situation.Machines).To(HaveLen(1))
			situation.Machines[0].Blocker = ""
			g.Expect(situation.Machines).To(Equal([]quorum.Machine{{Name: "m0", Deleted: noon, HasHook: tc.held, Waits: tc.waits}}))
		})
	}
}

func TestBlockerOfADrainIsReported(t *testing.T) {
	const hook = controlplanev1.EtcdMemberHookAnnotation
	for situation, tc := range map[string]struct {
		reason, message, expected string
	}{
		"a Pod that cannot be evicted: named": {
			clusterv1.MachineDeletingDrainingNodeReason,
			"Drain not completed yet:\n* Pod apps/db-0: cannot evict pod as it would violate the pod's disruption budget.",
			"waiting for Cluster API (condition Deleting of the Machine: DrainingNode): Drain not completed yet: * Pod apps/db-0: cannot evict " +
				"pod as it would violate the pod's disruption budget.",
		},
		"a long text: its beginning": {
			clusterv1.MachineDeletingWaitingForVolumeDetachReason, strings.Repeat("v", 5000),
			"waiting for Cluster API (condition Deleting of the Machine: WaitingForVolumeDetach): " + strings.Repeat("v", 400) + "...",
		},
		"it waits for our hook: no blocker":               {reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason},
		"its infrastructure is being deleted: no blocker": {reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Name: "m0", Annotations: map[string]string{hook: ""}, DeletionTimestamp: ptr.To(metav1.NewTime(noon))},
			}
			conditions.Set(
				m,
				metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: tc.reason, Message: tc.message},
			)
			situation, err := Of(factsOf(m))
			g.Expect(err).NotTo(HaveOccurred())
			step := situation.Draining()
			if tc.expected == "" {
				g.Expect(step).To(BeNil())
				return
			}
			g.Expect(*step).
				To(
					And(
						HaveField("Reason", controlplanev1.WaitingForDrainReason),
						HaveField("Message", "the host of Machine m0 is not touched: "+tc.expected),
						HaveField("Watched", true),
					),
				)
		})
	}
}

func TestNodeOfAMachine(t *testing.T) {
	for situation, change := range map[string]func(f *facts.Facts, m *clusterv1.Machine){
		"by its nodeRef": func(_ *facts.Facts, m *clusterv1.Machine) { m.Status.NodeRef.Name = "n0" },
		"it has the same providerID, and the status was lost": func(f *facts.Facts, m *clusterv1.Machine) {
			m.Spec.ProviderID = "metal3://h0"
			f.Workload.Nodes = []workload.Node{{Name: "n1"}, {Name: "n0", ProviderID: "metal3://h0"}}
		},
		"by its Agent": func(f *facts.Facts, m *clusterv1.Machine) {
			proven(f, m, aiv1beta1.AgentSpec{Hostname: "n0"})
			f.Workload.Nodes = []workload.Node{{Name: "n1"}, {Name: "n0"}}
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}
			f := factsOf(m)
			g.Expect(nodeOf(f, m)).To(BeEmpty(), "unknown")
			change(f, m)
			g.Expect(nodeOf(f, m)).To(Equal("n0"))
		})
	}
}

func TestReleasedHostsAreRecorded(t *testing.T) {
	g := NewWithT(t)
	hosts := []ReleasedHost{
		{Node: "n0", UID: "u", Addresses: []string{"192.168.111.20"}, Members: []string{"8e9e05c52164694d"}}, {Node: "n1"},
	}
	recorded, err := Record(hosts)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(recorded).To(Equal(`[{"node":"n0","uid":"u","addresses":["192.168.111.20"],"members":["8e9e05c52164694d"]},{"node":"n1"}]`))
	f := factsOf(&clusterv1.Machine{})
	f.ControlPlane.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: recorded}
	situation, err := Of(f)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(situation.ReleasedHosts).To(Equal(hosts))
	g.Expect(situation.Machines[0].Deleted).To(Equal(time.Time{}))

	recorded, err = Record([]ReleasedHost{{Machine: "m3", ProviderID: "metal3://h3", HostUID: "u3"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(recorded).To(Equal(`[{"machine":"m3","providerID":"metal3://h3","hostUID":"u3"}]`))
	f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] = recorded
	f.Workload.Nodes = []workload.Node{{Name: "n3", UID: "of n3", HostUID: "u3"}}
	situation, err = Of(f)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(situation.ReleasedHosts).
		To(Equal([]ReleasedHost{
			{Machine: "m3", ProviderID: "metal3://h3", HostUID: "u3", Node: "n3", UID: "of n3"},
		}), "it has registered a Node since")

	f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] = "n0"
	_, err = Of(f)
	g.Expect(err).To(MatchError(ContainSubstring(controlplanev1.ReleasedHostsAnnotation)))
	g.Expect(Record(nil)).To(BeEmpty())
}

func TestHostsOfMachines(t *testing.T) {
	g := NewWithT(t)
	f := factsOf(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m0"}, Spec: clusterv1.MachineSpec{ProviderID: "metal3://h0"}})
	proven(f, f.Machines[0], aiv1beta1.AgentSpec{NodeLabels: map[string]string{metal3.HostUIDLabel: "u"}})
	deleted := metav1.NewTime(noon)
	f.Workers = []*clusterv1.Machine{
		{ObjectMeta: metav1.ObjectMeta{Name: "w0", DeletionTimestamp: &deleted}, Spec: clusterv1.MachineSpec{ProviderID: "metal3://h1"}},
	}
	f.Workers[0].Status.NodeRef.Name = "n1"
	f.Workload.Nodes = []workload.Node{{Name: "n1"}}
	situation, err := Of(f)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(situation.Machines).To(Equal([]quorum.Machine{{Name: "m0", ProviderID: "metal3://h0", HostUID: "u"}}))
	g.Expect(situation.Others).To(Equal([]quorum.Machine{{Name: "w0", ProviderID: "metal3://h1", Node: "n1", Deleted: noon}}))
	g.Expect(situation.Registered).To(Equal(f.Workload.Nodes))
}

// An Agent that is not confirmed as the Machine's must not provide its Node and host: the member of a healthy
// host would be removed.
func TestForeignAgentProvidesNoHost(t *testing.T) {
	for situation, change := range map[string]func(*aiv1beta1.Agent){
		"of another namespace":                 func(a *aiv1beta1.Agent) { a.Namespace = "tenant" },
		"a stranger in the Machine's InfraEnv": func(a *aiv1beta1.Agent) { a.Name = "stranger" },
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m0", UID: "uid-m0"}})
			proven(f, f.Machines[0], aiv1beta1.AgentSpec{NodeLabels: map[string]string{metal3.HostUIDLabel: "healthy"}})
			f.Workload.Nodes = []workload.Node{{Name: "n1", HostUID: "healthy"}}
			situation, err := Of(f)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(situation.Machines).To(
				Equal([]quorum.Machine{{Name: "m0", UID: "uid-m0", Node: "n1", HostUID: "healthy"}}), "the host of the Machine",
			)
			change(&f.Agents[0])
			situation, err = Of(f)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(situation.Machines).To(Equal([]quorum.Machine{{Name: "m0", UID: "uid-m0"}}))
		})
	}
}

func TestConcerned(t *testing.T) {
	g := NewWithT(t)
	f := factsOf(&clusterv1.Machine{})
	g.Expect(Needed(f)).To(BeFalse())
	f.ControlPlane.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: "[]"}
	g.Expect(Needed(f)).To(BeTrue())
	deleted := metav1.NewTime(noon)
	g.Expect(Needed(factsOf(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}))).To(BeTrue())
}
