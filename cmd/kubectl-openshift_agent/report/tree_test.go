package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

var now = metav1.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// installing is a cluster whose hosts are at different steps.
func installing() *Cluster {
	refused := judge.Cause{
		State: judge.Blocked, Object: judge.Object{Kind: snapshot.KindConfig, Namespace: "lab", Name: "m1"}, Condition: "HostIdentified",
		Reason: "HostRefused", Message: "An Agent registered that is not the host\nof this Machine.", Since: ptr.To(ago(12 * time.Minute)),
	}
	return &Cluster{
		Namespace: "lab", Name: "ha", Time: now, State: judge.Blocked, Cause: refused, Phase: "Provisioning", Since: ago(time.Hour),
		DesiredMachines: 3, RunningMachines: 0,
		ControlPlane: &ControlPlane{
			Name: "ha", Release: "4.19.3", Installation: "Pending",
			Notes: []Note{{Condition: "PreflightPassed", Message: "api.ha.lab resolves to another address."}},
		},
		Machines: []Machine{
			{
				Name: "m0", ControlPlane: true, Phase: "Provisioned", State: judge.Progressing,
				Cause: judge.Cause{State: judge.Progressing, Reason: "HostInstalling", Message: "Agent of BareMetalHost rack0 is being installed."},
				Stage: &Stage{Name: "Rebooting", Percentage: ptr.To[int32](40), Since: ago(3 * time.Minute), UsualSeconds: 2400},
				Host:  &Host{Name: "rack0", State: "provisioned", PoweredOn: true},
				Agent: &Agent{Name: "9063fe3d", Hostname: "n0", State: "installing"},
			},
			{
				Name: "m1", ControlPlane: true, Phase: "Provisioning", State: judge.Blocked, Cause: refused,
				Stage: &Stage{Name: "HostRefused", Since: ago(12 * time.Minute)}, Host: &Host{Name: "rack1", State: "provisioned"},
			},
			{
				Name: "w0", Phase: "Running", State: judge.Ready, Version: "v1.32.7", Host: &Host{Name: "rack2", State: "provisioned"},
				Agent: &Agent{Name: "1", Hostname: "w0", State: "added-to-existing-cluster"}, Node: &Node{Name: "w0", Ready: metav1.ConditionTrue},
			},
		},
		NotReadable: map[string]string{snapshot.KindAgent: "no permission"},
	}
}

func TestTreeOfAnInstallation(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(WriteTree(&out, Tree(installing()))).To(Succeed())
	g.Expect("\n" + out.String()).To(Equal(`
! Cluster lab/ha  Blocked · Provisioning · 0 of 3 Machines run · 60m
│   HostRefused: An Agent registered that is not the host of this Machine. (OpenshiftAssistedConfig m1)
├─· Control plane ha  release 4.19.3 · Pending
│ ├─  Note  PreflightPassed: api.ha.lab resolves to another address.
│ ├─· Machine m0  Provisioned · Rebooting 40% · BareMetalHost rack0 provisioned · Agent n0 installing · 3m (usually up to 40m)
│ │     HostInstalling: Agent of BareMetalHost rack0 is being installed.
│ └─! Machine m1  Provisioning · HostRefused · BareMetalHost rack1 provisioned · 12m
│       An Agent registered that is not the host of this Machine.
├─✓ Workers
│ └─✓ Machine w0  Running · BareMetalHost rack2 provisioned · Node w0 ready · v1.32.7
└─? Agents  not readable (no permission)
`))
}

func TestHostHasItsNameWithoutItsBareMetalHost(t *testing.T) {
	g := NewWithT(t)
	c := installing()
	c.Machines[1].Host, c.Machines[1].HostName, c.Cause.Host = nil, "rack1", "rack1"
	var out bytes.Buffer
	g.Expect(WriteTree(&out, Tree(c))).To(Succeed())
	g.Expect(out.String()).To(And(
		ContainSubstring("Machine m1  Provisioning · HostRefused · host rack1 · 12m\n"),
		ContainSubstring("of this Machine. (OpenshiftAssistedConfig m1, host rack1)\n"),
	))
	out.Reset()
	g.Expect(WriteCause(&out, c.Cause.Object, now, &c.Cause)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("\nHost:       rack1\n"))
}

func TestTreeOfAnUpgrade(t *testing.T) {
	g := NewWithT(t)
	c := installing()
	c.Machines, c.NotReadable = nil, nil
	c.State, c.Phase = judge.Progressing, "Provisioned"
	c.Cause = judge.Cause{
		State: judge.Progressing, Object: judge.Object{Kind: snapshot.KindControlPlane, Namespace: "lab", Name: "ha"},
		Reason: "UpgradeInProgress", Message: "Upgrading to 4.20.8.", Since: ptr.To(ago(10 * time.Minute)),
	}
	c.ControlPlane = &ControlPlane{
		Name: "ha", Release: "4.20.8", Runs: "4.19.3", Installation: "Installed", Available: true,
		Upgrade: &Upgrade{To: "4.20.8", Percentage: ptr.To[int32](40), UpToDate: 1, Machines: 3, PoolsBehind: []string{"worker"}},
		Etcd: &Etcd{
			Healthy: metav1.ConditionFalse, Message: "Member m2 is down.", HealthyMembers: 2,
			OtherMembers: []Member{{Machine: "m2", Reason: "NotHealthy", Message: "The member does not answer."}},
		},
	}
	var out bytes.Buffer
	g.Expect(WriteTree(&out, Tree(c))).To(Succeed())
	g.Expect("\n" + out.String()).To(Equal(`
· Cluster lab/ha  Progressing · Provisioned · 0 of 3 Machines run · 60m
│   UpgradeInProgress: Upgrading to 4.20.8. (OpenshiftAssistedControlPlane ha)
└─· Control plane ha  release 4.19.3 · available · 10m
  │   UpgradeInProgress: Upgrading to 4.20.8.
  ├─· Upgrade to 4.20.8  40% · 1 of 3 control-plane Machines up to date · pools behind: worker
  └─! etcd  not healthy · 2 of 3 members healthy
    │   Member m2 is down.
    └─? Member of Machine m2  NotHealthy: The member does not answer.
`))
}

func TestHiddenControlPlaneIsNotMissing(t *testing.T) {
	g := NewWithT(t)
	c := installing()
	c.ControlPlane = nil
	g.Expect(Tree(c).Children[0]).To(And(HaveField("Title", "Control plane"), HaveField("Text", "does not exist yet")))
	c.NotReadable = map[string]string{snapshot.KindControlPlane: snapshot.NoPermission}
	g.Expect(Tree(c).Children[0].Text).To(Equal("not readable"))
}

func TestErrorOfHostContainsNoCredentials(t *testing.T) {
	g := NewWithT(t)
	host := &metal3.Host{ObjectMeta: metav1.ObjectMeta{Name: "rack0"}}
	host.Status.ErrorType = "registration error"
	host.Status.ErrorMessage = "cannot reach https://admin:secret@192.0.2.7/redfish/v1?token=secret"
	m := &snapshot.Machine{Machine: &clusterv1.Machine{}, Host: host}
	shown := machineOf(&snapshot.Cluster{}, m).Host.Error
	g.Expect(shown).To(HavePrefix("registration error: cannot reach https://192.0.2.7/"))
	g.Expect(shown).NotTo(ContainSubstring("secret"))
}

func TestTextOfForeignObjectsIsHarmless(t *testing.T) {
	g := NewWithT(t)
	c := installing()
	c.Machines[0].Host.State = "\x1b[2Jprovisioned"
	c.Cause.Message = "first\n\x1b]0;title\asecond; events: https://service/events"
	var out bytes.Buffer
	g.Expect(WriteTree(&out, Tree(c))).To(Succeed())
	g.Expect(WriteList(&out, &snapshot.Snapshot{}, []*Cluster{c})).To(Succeed())
	g.Expect(WriteCause(&out, c.Cause.Object, now, &c.Cause)).To(Succeed())
	g.Expect(out.String()).NotTo(ContainSubstring("\x1b"))
	g.Expect(Line(&c.Cause)).To(Equal("Blocked: HostRefused: first ]0;title second (OpenshiftAssistedConfig m1)"))
	g.Expect(out.String()).To(ContainSubstring("https://service/events"), "command why shows where the events are")

	c.Cause.Message = strings.Repeat("word ", 1000)
	g.Expect(len(Line(&c.Cause))).To(BeNumerically("<", 1200), "a message on one line has a bound")
}

func TestListNamesWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	g.Expect(WriteList(&out, &snapshot.Snapshot{}, nil)).To(Succeed())
	g.Expect(out.String()).To(Equal("No clusters found.\n"))

	out.Reset()
	s := &snapshot.Snapshot{NotReadable: map[string]string{snapshot.KindMachine: "no permission"}}
	g.Expect(WriteList(&out, s, []*Cluster{installing()})).To(Succeed())
	g.Expect(out.String()).To(HaveSuffix("\nMachines are not readable (no permission).\n"))
}

func TestClustersThatNeedAttentionComeFirst(t *testing.T) {
	g := NewWithT(t)
	cluster := func(name string) clusterv1.Cluster {
		c := clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionTrue}}
		return c
	}
	paused, blocked := cluster("c"), cluster("d")
	paused.Spec.Paused = ptr.To(true)
	blocked.Spec.ControlPlaneRef.Name = "d"
	names := []string{}
	for _, c := range All(&snapshot.Snapshot{Time: now, Clusters: []clusterv1.Cluster{cluster("b"), cluster("a"), paused, blocked}}) {
		names = append(names, c.Name+" "+string(c.State))
	}
	g.Expect(names).To(Equal([]string{"d Blocked", "c Paused", "a Ready", "b Ready"}))
}
