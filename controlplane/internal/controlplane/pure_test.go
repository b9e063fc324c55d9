package controlplane

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func factsOf(change func(*controlplanev1.OpenshiftAssistedControlPlane)) *Facts {
	return &Facts{ControlPlane: controlPlane(change), Cluster: cluster()}
}

// viewOf is what the conditions are computed from when no phase has found anything.
func viewOf(f *Facts) view {
	f.Decide()
	return view{Facts: f, found: FindingsOf(f)}
}

func TestMachineNames(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	three, err := freeSlots(s, 3)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := freeSlots(s, 3)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(three), "a stale cache gives the same names")
	for _, slot := range three {
		g.Expect(slot.name).To(MatchRegexp(`^c1-[a-z0-9]{5}$`))
	}
	s.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: three[1].name}}}
	two, err := freeSlots(s, 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two).To(Equal([]slot{three[0], three[2]}), "a cache that has seen one of three")

	long := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Name = strings.Repeat("x", 100) })
	slots, err := freeSlots(long, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slots[0].name).To(HaveLen(63))
}

func TestMachineNamingTemplate(t *testing.T) {
	for template, wanted := range map[string]string{
		"{{ .cluster.name }}-cp-{{ .random }}":          `^cluster1-cp-[a-z0-9]{5}$`,
		"{{ .kubeadmControlPlane.name }}-{{ .random }}": `^c1-[a-z0-9]{5}$`,
		"{{ .nothing.name }}-{{ .random }}":             "",
		"UPPER-{{ .random }}":                           "",
		strings.Repeat("x", 60) + "-{{ .random }}":      "",
	} {
		g := NewWithT(t)
		s := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.MachineNaming.Template = template })
		slots, err := freeSlots(s, 1)
		if wanted == "" {
			g.Expect(err).To(HaveOccurred(), template)
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(slots[0].name).To(MatchRegexp(wanted))
	}
}

func TestCountWorkers(t *testing.T) {
	template := func(kind string) clusterv1.MachineTemplateSpec {
		return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: kind}}}}
	}
	deployment := func(replicas *int32, kind string, change func(*clusterv1.MachineDeployment)) clusterv1.MachineDeployment {
		d := clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Replicas: replicas, Template: template(kind)}}
		if change != nil {
			change(&d)
		}
		return d
	}
	set := clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Replicas: ptr.To[int32](4), Template: template(configTemplateKind)}}
	ownedSet := *set.DeepCopy()
	ownedSet.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment"}}
	machine := &clusterv1.Machine{Spec: template(configKind).Spec}
	ownedMachine := machine.DeepCopy()
	ownedMachine.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet"}}
	stray := machine.DeepCopy()
	stray.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	topology := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{Workers: clusterv1.WorkersTopology{
		MachineDeployments: []clusterv1.MachineDeploymentTopology{{Name: "a", Replicas: ptr.To[int32](2)}, {Name: "b", Replicas: ptr.To[int32](3)}},
	}}}}
	ofTopology := func(d *clusterv1.MachineDeployment) {
		d.Labels = map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "b"}
	}
	for situation, tc := range map[string]struct {
		cluster     *clusterv1.Cluster
		deployments []clusterv1.MachineDeployment
		sets        []clusterv1.MachineSet
		machines    []*clusterv1.Machine
		count       int32
	}{
		"none": {},
		"MachineDeployments add up": {deployments: []clusterv1.MachineDeployment{
			deployment(ptr.To[int32](2), configTemplateKind, nil), deployment(ptr.To[int32](3), configTemplateKind, nil),
		}, count: 5},
		"no replicas means one": {deployments: []clusterv1.MachineDeployment{deployment(nil, configTemplateKind, nil)}, count: 1},
		"a topology that has made one of its MachineDeployments": {
			cluster: topology, deployments: []clusterv1.MachineDeployment{deployment(ptr.To[int32](3), configTemplateKind, ofTopology)}, count: 5,
		},
		"another bootstrap":   {deployments: []clusterv1.MachineDeployment{deployment(ptr.To[int32](2), "KubeadmConfigTemplate", nil)}},
		"one that is deleted": {deployments: []clusterv1.MachineDeployment{deployment(ptr.To[int32](2), configTemplateKind, func(d *clusterv1.MachineDeployment) { d.DeletionTimestamp = ptr.To(metav1.Now()) })}},
		"a MachineSet that stands alone, and one of a MachineDeployment":               {sets: []clusterv1.MachineSet{set, ownedSet}, count: 4},
		"a Machine that stands alone, one of a MachineSet, and one of a control plane": {machines: []*clusterv1.Machine{machine, ownedMachine, stray}, count: 1},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(CountWorkers(tc.cluster, tc.deployments, tc.sets, tc.machines)).To(Equal(tc.count))
		})
	}
}

// installOf returns an AgentClusterInstall in a state, with conditions as type=status/reason/message.
func installOf(state string, conditions ...hivev1.ClusterInstallCondition) *hiveext.AgentClusterInstall {
	aci := &hiveext.AgentClusterInstall{}
	aci.Status.DebugInfo = hiveext.DebugInfo{State: state, StateInfo: "info of " + state, EventsURL: "https://svc/events?cluster_id=1&api_key=hush"}
	aci.Status.Progress.TotalPercentage = 42
	aci.Status.Conditions = conditions
	return aci
}

func agentIn(name, state, info string) aiv1beta1.Agent {
	a := aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name + "-uuid"}, Spec: aiv1beta1.AgentSpec{Hostname: name}}
	a.Status.DebugInfo.State, a.Status.DebugInfo.StateInfo = state, info
	return a
}

func TestInstalledCondition(t *testing.T) {
	condition := func(t hivev1.ClusterInstallConditionType, status corev1.ConditionStatus, reason, message string) hivev1.ClusterInstallCondition {
		return hivev1.ClusterInstallCondition{Type: t, Status: status, Reason: reason, Message: message}
	}
	inProgress := condition(hiveext.ClusterCompletedCondition, "False", hiveext.ClusterInstallationInProgressReason, "")
	three := []aiv1beta1.Agent{agentIn("m0", "known", ""), agentIn("m1", "known", ""), agentIn("m2", "known", "")}
	for situation, tc := range map[string]struct {
		install *hiveext.AgentClusterInstall
		agents  []aiv1beta1.Agent
		reason  string
		message string
	}{
		"not taken in": {install: installOf(""), reason: "WaitingForAssistedService", message: "take in"},
		"refused input": {
			install: installOf("", condition(hiveext.ClusterSpecSyncedCondition, "False", hiveext.ClusterInputErrorReason, "bad pull secret")),
			reason:  "InvalidConfiguration", message: "bad pull secret",
		},
		"hosts are missing":   {install: installOf("insufficient"), agents: three[:1], reason: "WaitingForHosts", message: "1 of 3 hosts"},
		"hosts are all bound": {install: installOf("ready"), agents: three, reason: "WaitingForHosts", message: "known and approved"},
		"validations fail": {
			install: installOf("insufficient", condition(hiveext.ClusterValidatedCondition, "False", "ValidationsFailing", "The cluster's validations are failing: ntp")),
			agents:  append([]aiv1beta1.Agent{agentIn("m9", "insufficient", "no NTP")}, three[:2]...), reason: "ValidationFailed", message: "host m9: no NTP",
		},
		"on hold": {
			install: installOf("ready", condition(hiveext.ClusterCompletedCondition, "False", hiveext.ClusterInstallationOnHoldReason, "")),
			agents:  three, reason: "InstallationOnHold", message: "holdInstallation",
		},
		"preparation failed": {
			install: installOf("ready", condition(hiveext.ClusterLastInstallationPreparationFailedCondition, "True", "The last installation preparation failed", "no ignition")),
			agents:  three, reason: "PreparationFailed", message: "no ignition",
		},
		"a host cannot be prepared": {
			install: installOf("preparing-for-installation", inProgress),
			agents:  []aiv1beta1.Agent{agentIn("m1", "preparing-failed", "cannot pull the image")}, reason: "PreparationFailed", message: "host m1: cannot pull the image",
		},
		"preparing":            {install: installOf("preparing-for-installation", inProgress), agents: three, reason: "Preparing", message: "events: https://svc/events?cluster_id=1"},
		"installing":           {install: installOf("installing", inProgress), agents: three, reason: "Installing", message: "40%: info of installing"},
		"a host boots wrongly": {install: installOf("installing-pending-user-action", inProgress), agents: []aiv1beta1.Agent{agentIn("m1", "installing-pending-user-action", "booted the ISO")}, reason: "UserActionRequired", message: "host m1: booted the ISO"},
		"finalizing":           {install: installOf("finalizing", inProgress), agents: three, reason: "Finalizing", message: "40%"},
		"failed":               {install: installOf("error", condition(hiveext.ClusterCompletedCondition, "False", hiveext.ClusterInstallationFailedReason, "")), agents: []aiv1beta1.Agent{agentIn("m1", "error", "disk on fire")}, reason: "InstallationFailed", message: "host m1: disk on fire"},
		"installed":            {install: installOf("adding-hosts", condition(hiveext.ClusterCompletedCondition, "True", hiveext.ClusterInstalledReason, "")), reason: "Installed"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := factsOf(nil)
			s.Install, s.Progress, s.Agents = tc.install, assisted.Observe(tc.install), tc.agents
			c := viewOf(s).installedCondition()
			g.Expect(c.Reason).To(Equal(tc.reason))
			g.Expect(c.Message).To(ContainSubstring(tc.message))
			g.Expect(c.Message).NotTo(ContainSubstring("hush"))
		})
	}
}

func TestPhaseWhileAssistedServiceDoesNotTell(t *testing.T) {
	for situation, tc := range map[string]struct {
		recorded controlplanev1.InstallationPhase
		install  *hiveext.AgentClusterInstall
		wanted   controlplanev1.InstallationPhase
	}{
		"it never began":                      {"", installOf(""), controlplanev1.InstallationPending},
		"it is going on":                      {controlplanev1.InstallationInstalling, installOf(""), controlplanev1.InstallationInstalling},
		"it has ended":                        {controlplanev1.InstallationInstalled, installOf(""), controlplanev1.InstallationInstalled},
		"it has ended, and another state":     {controlplanev1.InstallationInstalled, installOf("insufficient"), controlplanev1.InstallationInstalled},
		"it is going on, and a further state": {controlplanev1.InstallationInstalling, installOf("finalizing"), controlplanev1.InstallationFinalizing},
		"it began, and nothing is recorded (moved here in the middle)": {"", installOf(""), controlplanev1.InstallationPending},
		"it had ended, and its object is gone":                         {controlplanev1.InstallationInstalled, nil, controlplanev1.InstallationInstalled},
	} {
		t.Run(situation, func(t *testing.T) {
			s := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.Installation.Phase = tc.recorded })
			s.Install, s.Progress = tc.install, assisted.Observe(tc.install)
			s.Decide()
			NewWithT(t).Expect(s.Phase).To(Equal(tc.wanted))
		})
	}
}

func TestNothingIsChangedWhileAssistedServiceDoesNotTell(t *testing.T) {
	for situation, tc := range map[string]struct {
		recorded controlplanev1.InstallationPhase
		state    string
		frozen   bool
	}{
		"before the registration":                 {"", "", false},
		"registered":                              {controlplanev1.InstallationPending, "insufficient", false},
		"installing":                              {controlplanev1.InstallationInstalling, "installing", true},
		"installing, and the database is away":    {controlplanev1.InstallationInstalling, "", true},
		"installed, and the database is away":     {controlplanev1.InstallationInstalled, "", true},
		"pending, and the database is away":       {controlplanev1.InstallationPending, "", false},
		"a preparation failed, and can be mended": {controlplanev1.InstallationPreparing, "ready", false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.Installation.Phase = tc.recorded })
			s.Install, s.DayOneWorkers = installOf(tc.state), 7
			s.Install.Spec.ProvisionRequirements.WorkerAgents = 2
			s.Progress = assisted.Observe(s.Install)
			s.Decide()
			g.Expect(s.Begun).To(Equal(tc.frozen))
			if tc.frozen {
				g.Expect(s.WorkerReplicas()).To(BeEquivalentTo(2), "the number that is installed")
			}
		})
	}
}

func TestFailedHostsAreNamedByTheirCause(t *testing.T) {
	s := factsOf(nil)
	s.Agents = []aiv1beta1.Agent{agentIn("a", "error", consequence), agentIn("b", "error", "disk is read-only")}
	g := NewWithT(t)
	g.Expect(viewOf(s).ofHosts("failed", failingStates)).To(Equal("failed; host b: disk is read-only"))
	s.Agents = s.Agents[:1]
	g.Expect(viewOf(s).ofHosts("failed", failingStates)).To(ContainSubstring(consequence))
}

func TestFailedPreparationStaysReportedWhileItIsTriedAgain(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	s.Agents = []aiv1beta1.Agent{agentIn("m0", "known", ""), agentIn("m1", "known", ""), agentIn("m2", "known", "")}
	s.ControlPlane.Status.Conditions = []metav1.Condition{no(controlplanev1.InstalledCondition, controlplanev1.PreparationFailedReason, "host m1: cannot pull the image")}
	reported := func(state string) metav1.Condition {
		s.Install = installOf(state)
		s.Progress = assisted.Observe(s.Install)
		return viewOf(s).installedCondition()
	}
	for _, state := range []string{"ready", "insufficient", "preparing-for-installation"} {
		g.Expect(reported(state).Message).To(ContainSubstring("cannot pull the image"), state)
	}
	g.Expect(reported("installing").Reason).To(Equal(controlplanev1.InstallingReason), "it succeeded")
	s.Agents = s.Agents[:2]
	g.Expect(reported("insufficient").Reason).To(Equal(controlplanev1.WaitingForHostsReason), "a host was taken away")
}

func TestNodeOf(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}
	agent := agentIn("host0", "installed", "")
	agent.Labels = map[string]string{infraEnvLabel: "m0"}
	labelled := *agent.DeepCopy()
	labelled.Spec.NodeLabels = map[string]string{metal3.HostUIDLabel: "bmh"}
	for situation, tc := range map[string]struct {
		agent aiv1beta1.Agent
		node  workload.Node
		found bool
	}{
		"by name":                     {agent, workload.Node{Name: "host0"}, true},
		"another name":                {agent, workload.Node{Name: "host1"}, false},
		"by the label of the host":    {labelled, workload.Node{Name: "any", Labels: map[string]string{metal3.HostUIDLabel: "bmh"}}, true},
		"the label is not there yet":  {labelled, workload.Node{Name: "host0"}, false},
		"it is linked already":        {agent, workload.Node{Name: "host0", ProviderID: "metal3://x"}, false},
		"an Agent of another Machine": {agentIn("host0", "installed", ""), workload.Node{Name: "host0"}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(nodeOf(m, []aiv1beta1.Agent{tc.agent}, []workload.Node{tc.node}) != nil).To(Equal(tc.found))
		})
	}
}

func TestRegistrationFollowsTheWorkersAndTheSingleNode(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	s.DayOneWorkers = 2
	g.Expect(s.WorkerReplicas()).To(BeEquivalentTo(2))
	single := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Replicas = nil })
	single.DayOneWorkers = 2
	g.Expect(single.WorkerReplicas()).To(BeZero(), "they join afterwards")
	s.Install = installOf("installing", hivev1.ClusterInstallCondition{Type: hiveext.ClusterCompletedCondition, Status: "False", Reason: hiveext.ClusterInstallationInProgressReason})
	s.Install.Spec.ProvisionRequirements.WorkerAgents = 2
	s.Progress, s.DayOneWorkers = assisted.Observe(s.Install), 5
	s.Decide()
	g.Expect(s.WorkerReplicas()).To(BeEquivalentTo(2), "frozen")
}
