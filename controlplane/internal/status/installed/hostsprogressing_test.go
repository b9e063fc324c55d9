package installed

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// noon is the time at which the hosts below are observed.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// workerIn returns a worker that entered a stage of its installation the given minutes before noon.
func workerIn(name string, stage aiv1beta1.HostStage, minutes int) aiv1beta1.Agent {
	a := agentIn(name, aiv1beta1.HostStatusInstallingInProgress, "")
	if stage == aiv1beta1.HostStageDone {
		a.Status.DebugInfo.State = aiv1beta1.HostStatusInstalled
	}
	since := metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute))
	a.Status.Role, a.Status.Progress.CurrentStage, a.Status.Progress.StageStartTime = aiv1beta1.HostRoleWorker, stage, &since
	a.Labels = map[string]string{aiv1beta1.InfraEnvNameLabel: "machine-" + name}
	return a
}

// joining returns a worker that joins an installed cluster and was approved, with all requirements met, the
// given minutes before noon.
func joining(name string, approved int, stage aiv1beta1.HostStage, minutes int) aiv1beta1.Agent {
	a := workerIn(name, stage, minutes)
	if stage == aiv1beta1.HostStageDone {
		a.Status.DebugInfo.State = aiv1beta1.HostStatusAddedToExistingCluster
	}
	a.Status.Conditions = []conditionsv1.Condition{{
		Type:               aiv1beta1.RequirementsMetCondition,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(noon.Add(-time.Duration(approved) * time.Minute)),
	}}
	return a
}

func changed(a aiv1beta1.Agent, change func(*aiv1beta1.Agent)) aiv1beta1.Agent {
	change(&a)
	return a
}

// progressOf returns the view of hosts at noon.
func progressOf(agents ...aiv1beta1.Agent) *View {
	f := factsOf(nil)
	f.Install, f.Agents = installOf("installing"), agents
	v := viewOf(f)
	v.Now = noon
	return v
}

// compose writes the condition into a control plane as the status does.
func compose(v *View, cp *controlplanev1.OpenshiftAssistedControlPlane) {
	if lagging := v.HostsProgressing(); lagging != nil {
		conditions.Set(cp, *lagging)
	} else {
		conditions.Delete(cp, controlplanev1.HostsProgressingCondition)
	}
}

func namesOf(hosts []*aiv1beta1.Agent) string {
	names := make([]string, 0, len(hosts))
	for _, host := range hosts {
		names = append(names, host.Spec.Hostname)
	}
	return strings.Join(names, " ")
}

func TestHostIsBehindWhenMostOthersLeftItsStage(t *testing.T) {
	const writing, rebooting, configuring, done = aiv1beta1.HostStageWritingImageToDisk, aiv1beta1.HostStageRebooting,
		aiv1beta1.HostStageConfiguring, aiv1beta1.HostStageDone
	for situation, tc := range map[string]struct {
		hosts []aiv1beta1.Agent
		// behind contains the names of hosts, left the minutes until another host is behind.
		behind string
		left   int
	}{
		"alone":                     {hosts: []aiv1beta1.Agent{workerIn("a", writing, 300)}},
		"all are in the same stage": {hosts: []aiv1beta1.Agent{workerIn("a", writing, 60), workerIn("b", writing, 60)}},
		"the other left long ago": {
			hosts: []aiv1beta1.Agent{workerIn("a", writing, 25), workerIn("b", rebooting, 10)}, behind: "a",
		},
		"the other left a moment ago": {
			hosts: []aiv1beta1.Agent{workerIn("a", writing, 25), workerIn("b", rebooting, 3)}, left: 7,
		},
		"entered its stage a moment ago": {
			hosts: []aiv1beta1.Agent{workerIn("a", rebooting, 4), workerIn("b", done, 30)}, left: 6,
		},
		"late, and long in its stage": {
			hosts: []aiv1beta1.Agent{workerIn("a", rebooting, 12), workerIn("b", done, 30)}, behind: "a",
		},
		"one of two others has left": {
			hosts: []aiv1beta1.Agent{workerIn("a", writing, 30), workerIn("b", writing, 30), workerIn("c", configuring, 20)},
		},
		"two of five are slow": {
			hosts: []aiv1beta1.Agent{
				workerIn("b", writing, 30), workerIn("a", writing, 30), workerIn("c", done, 20), workerIn("d", done, 20), workerIn("e", done, 20),
			},
			behind: "a b",
		},
		"most have left, the last a moment ago": {
			hosts: []aiv1beta1.Agent{workerIn("a", writing, 30), workerIn("b", done, 20), workerIn("c", done, 4)}, left: 6,
		},
		"one is behind, another will be": {
			hosts: []aiv1beta1.Agent{
				workerIn("a", writing, 30), workerIn("b", rebooting, 4), workerIn("c", done, 20), workerIn("d", done, 20), workerIn("e", done, 20),
			},
			behind: "a",
			left:   6,
		},
		"done": {hosts: []aiv1beta1.Agent{workerIn("a", done, 30), workerIn("b", done, 90)}},
		"stuck since before the others ended": {
			hosts: []aiv1beta1.Agent{workerIn("a", writing, 600), workerIn("b", done, 500)}, behind: "a",
		},
		"the others have another role": {
			hosts: []aiv1beta1.Agent{
				workerIn("a", writing, 30), changed(workerIn("b", done, 20), func(a *aiv1beta1.Agent) { a.Status.Role = aiv1beta1.HostRoleMaster }),
			},
		},
		"waits for the control plane": {
			hosts: []aiv1beta1.Agent{workerIn("a", aiv1beta1.HostStageWaitingForControlPlane, 60), workerIn("b", done, 20)},
		},
		"the others wait for the control plane": {
			hosts: []aiv1beta1.Agent{workerIn("a", writing, 20), workerIn("b", aiv1beta1.HostStageWaitingForControlPlane, 15)}, behind: "a",
		},
		"bootstrap host": {
			hosts: []aiv1beta1.Agent{
				changed(workerIn("a", writing, 60), func(a *aiv1beta1.Agent) { a.Status.Bootstrap = true }), workerIn("b", done, 20),
			},
		},
		"the other is the bootstrap host": {
			hosts: []aiv1beta1.Agent{
				workerIn("a", writing, 60), changed(workerIn("b", done, 20), func(a *aiv1beta1.Agent) { a.Status.Bootstrap = true }),
			},
		},
		"failed: reported by another condition": {
			hosts: []aiv1beta1.Agent{
				changed(workerIn("a", writing, 60), func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusError }),
				workerIn("b", done, 20),
			},
		},
		"needs the user: reported by another condition": {
			hosts: []aiv1beta1.Agent{
				changed(
					workerIn("a", rebooting, 60), func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusInstallingPendingUserAction },
				),
				workerIn("b", done, 20),
			},
		},
		"a failed host does not count": {
			hosts: []aiv1beta1.Agent{
				workerIn("a", writing, 60),
				changed(workerIn("b", writing, 20), func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusError }),
				workerIn("c", done, 20),
			},
			behind: "a",
		},
		"being deleted": {
			hosts: []aiv1beta1.Agent{
				changed(workerIn("a", writing, 60), func(a *aiv1beta1.Agent) { a.DeletionTimestamp = &metav1.Time{Time: noon} }),
				workerIn("b", done, 20),
			},
		},
		"start of the stage unknown": {
			hosts: []aiv1beta1.Agent{
				changed(workerIn("a", writing, 60), func(a *aiv1beta1.Agent) { a.Status.Progress.StageStartTime = nil }), workerIn("b", done, 20),
			},
		},
		"installation not begun": {hosts: []aiv1beta1.Agent{workerIn("a", "", 60), workerIn("b", done, 20)}},
		"unknown stage":          {hosts: []aiv1beta1.Agent{workerIn("a", "Dancing", 60), workerIn("b", done, 20)}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			hosts, left := progressOf(tc.hosts...).behind()
			g.Expect(namesOf(hosts)).To(Equal(tc.behind))
			g.Expect(left).To(Equal(time.Duration(tc.left) * time.Minute))
		})
	}
}

func TestJoiningHostsAreComparedWithHostsThatJoinTogether(t *testing.T) {
	const writing, rebooting, done = aiv1beta1.HostStageWritingImageToDisk, aiv1beta1.HostStageRebooting, aiv1beta1.HostStageDone
	for situation, tc := range map[string]struct {
		hosts  []aiv1beta1.Agent
		behind string
		left   int
	}{
		"the others were installed weeks ago": {hosts: []aiv1beta1.Agent{joining("a", 35, writing, 30), joining("b", 30040, done, 30000)}},
		"the cluster was installed half an hour ago": {
			hosts: []aiv1beta1.Agent{
				joining("a", 15, writing, 12),
				changed(joining("b", 70, done, 25), func(a *aiv1beta1.Agent) { a.Status.DebugInfo.State = aiv1beta1.HostStatusInstalled }),
			},
			left: 40,
		},
		"another was approved 15 minutes later": {
			hosts: []aiv1beta1.Agent{joining("a", 30, writing, 28), joining("b", 45, done, 16)}, left: 9,
		},
		"approved at the same time": {
			hosts: []aiv1beta1.Agent{joining("a", 45, writing, 28), joining("b", 45, done, 16)}, behind: "a",
		},
		"approved earlier than the other": {
			hosts: []aiv1beta1.Agent{joining("a", 50, writing, 28), joining("b", 45, done, 6)}, behind: "a",
		},
		"had the time of the other and ten minutes": {
			hosts: []aiv1beta1.Agent{joining("a", 45, writing, 28), joining("b", 60, done, 25)}, behind: "a",
		},
		"late, and entered its stage a moment ago": {
			hosts: []aiv1beta1.Agent{joining("a", 45, rebooting, 4), joining("b", 60, done, 30)}, left: 6,
		},
		"approved more than an hour apart": {hosts: []aiv1beta1.Agent{joining("a", 45, writing, 40), joining("b", 106, done, 60)}},
		"time of its requirements unknown": {
			hosts: []aiv1beta1.Agent{
				changed(joining("a", 45, writing, 40), func(a *aiv1beta1.Agent) { a.Status.Conditions = nil }), joining("b", 45, done, 25),
			},
		},
		"time of the other's requirements unknown": {
			hosts: []aiv1beta1.Agent{
				joining("a", 45, writing, 40), changed(joining("b", 45, done, 25), func(a *aiv1beta1.Agent) { a.Status.Conditions = nil }),
			},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := progressOf(tc.hosts...)
			v.Phase, v.Progress.DayTwo = controlplanev1.InstallationInstalled, true
			hosts, left := v.behind()
			g.Expect(namesOf(hosts)).To(Equal(tc.behind))
			g.Expect(left).To(Equal(time.Duration(tc.left) * time.Minute))
		})
	}
}

// TestHostStaysBehindWhenTheOthersProceed: assisted-service reports only the start of the present stage of a
// host. When the others proceed, the end of their earlier stages is no longer known.
func TestHostStaysBehindWhenTheOthersProceed(t *testing.T) {
	g := NewWithT(t)
	v := progressOf(workerIn("a", aiv1beta1.HostStageWritingImageToDisk, 25), workerIn("b", aiv1beta1.HostStageRebooting, 15))
	compose(v, v.ControlPlane)
	message := conditions.GetMessage(v.ControlPlane, controlplanev1.HostsProgressingCondition)
	g.Expect(message).NotTo(BeEmpty())

	v.Agents[1] = workerIn("b", aiv1beta1.HostStageConfiguring, 0)
	compose(v, v.ControlPlane)
	g.Expect(
		conditions.GetMessage(v.ControlPlane, controlplanev1.HostsProgressingCondition),
	).To(Equal(message), "independent of the stages of other hosts")

	v.Agents[0] = workerIn("a", aiv1beta1.HostStageRebooting, 0)
	compose(v, v.ControlPlane)
	g.Expect(conditions.Has(v.ControlPlane, controlplanev1.HostsProgressingCondition)).To(BeFalse(), "the host has left its stage")

	v.Agents = []aiv1beta1.Agent{workerIn("a", aiv1beta1.HostStageWritingImageToDisk, 25), workerIn("b", aiv1beta1.HostStageConfiguring, 0)}
	compose(v, v.ControlPlane)
	g.Expect(conditions.Has(v.ControlPlane, controlplanev1.HostsProgressingCondition)).To(BeFalse(), "the host was not reported before")
}

func TestHostsBehindAreNamed(t *testing.T) {
	g := NewWithT(t)
	v := progressOf(workerIn("a", aiv1beta1.HostStageWritingImageToDisk, 25), workerIn("b", aiv1beta1.HostStageDone, 15))
	v.Workers = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "machine-a"}}}
	cp := v.ControlPlane.DeepCopy()
	compose(v, cp)
	condition := conditions.Get(cp, controlplanev1.HostsProgressingCondition)
	g.Expect(condition).NotTo(BeNil())
	g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(condition.Message).To(
		HavePrefix(
			`host a (Machine machine-a) is in stage "Writing image to disk" since 2026-03-01T11:35:00Z; ` +
				`most of the others have left that stage more than 10 minutes ago. Check the console`,
		),
	)

	v.Now = noon.Add(5 * time.Minute)
	compose(v, cp)
	g.Expect(conditions.GetMessage(cp, controlplanev1.HostsProgressingCondition)).To(Equal(condition.Message), "unchanged by time alone")

	v.Agents[0] = workerIn("a", aiv1beta1.HostStageRebooting, 0)
	compose(v, cp)
	g.Expect(conditions.Has(cp, controlplanev1.HostsProgressingCondition)).To(BeFalse(), "the host has left its stage")
	g.Expect(v.UntilHostLags()).To(Equal(5*time.Minute), "until ten minutes after it entered the next stage")
}

func TestAtMostThreeHostsBehindAreNamed(t *testing.T) {
	g := NewWithT(t)
	var hosts []aiv1beta1.Agent
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		hosts = append(hosts, workerIn(name, aiv1beta1.HostStageRebooting, 40))
	}
	for _, name := range []string{"f", "g", "h", "i", "j", "k"} {
		hosts = append(hosts, workerIn(name, aiv1beta1.HostStageDone, 20))
	}
	v := progressOf(hosts...)
	cp := v.ControlPlane.DeepCopy()
	compose(v, cp)
	g.Expect(conditions.GetMessage(cp, controlplanev1.HostsProgressingCondition)).To(
		And(ContainSubstring("host c "), ContainSubstring("; 2 more hosts; "), Not(ContainSubstring("host d"))),
	)
}

func TestNoHostIsBehindWhenInstallationEnds(t *testing.T) {
	slow := []aiv1beta1.Agent{workerIn("a", aiv1beta1.HostStageWritingImageToDisk, 25), workerIn("b", aiv1beta1.HostStageDone, 15)}
	for situation, change := range map[string]func(*View){
		"failed": func(v *View) { v.Phase = controlplanev1.InstallationFailed },
		"the cluster is being deleted": func(v *View) {
			v.ControlPlane.DeletionTimestamp = &metav1.Time{Time: noon}
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := progressOf(slow...)
			change(v)
			hosts, left := v.behind()
			g.Expect(hosts).To(BeEmpty())
			g.Expect(left).To(BeZero())
		})
	}
}

func TestInstallationStart(t *testing.T) {
	since := metav1.NewTime(noon.Add(-time.Hour))
	for situation, tc := range map[string]struct {
		state, reason string
		reported      bool
	}{
		"hosts are missing": {"insufficient", "ClusterNotReady", false},
		"preparing":         {"preparing-for-installation", "ClusterAlreadyInstalling", true},
		"installing":        {"installing", "ClusterAlreadyInstalling", true},
		"finalizing":        {"finalizing", "ClusterAlreadyInstalling", true},
		"failed":            {"error", "ClusterInstallationStopped", false},
		"adds hosts, for which assisted-service sets the same reason": {"adding-hosts", "ClusterAlreadyInstalling", false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(nil)
			f.Install = installOf(tc.state, hivev1.ClusterInstallCondition{
				Type: hiveext.ClusterRequirementsMetCondition, Status: corev1.ConditionTrue, Reason: tc.reason, LastTransitionTime: since,
			})
			f.Progress = assisted.Observe(f.Install)
			v := viewOf(f)
			if !tc.reported {
				g.Expect(v.Start()).To(BeNil())
				return
			}
			g.Expect(v.Start()).To(HaveValue(Equal(since)))
		})
	}
}
