package assistedsim

import (
	"cmp"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/token"
)

func newSimulator(t *testing.T, opts Options) *Simulator {
	t.Helper()
	s, err := New(&rest.Config{}, opts)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

func TestAgentConditionsMatchRealService(t *testing.T) {
	for file, h := range map[string]*host{
		"known-unbound-agent.yaml": {state: models.HostStatusKnownUnbound, validation: validationPassing},
		"day1-done-agent.yaml":     {state: models.HostStatusInstalled, info: "Done", approved: true, validation: validationPassing},
		"sno-done-agent.yaml":      {state: models.HostStatusInstalled, info: "Done", approved: true, validation: validationPassing},
	} {
		t.Run(file, func(t *testing.T) {
			wanted := recorded[Agent](t, file).Status.Conditions
			NewWithT(t).Expect(agentConditions(h)).To(Equal(wanted))
		})
	}
}

func TestClusterConditionsMatchRealService(t *testing.T) {
	for _, file := range []string{"day1-done-aci.yaml", "sno-done-aci.yaml"} {
		t.Run(file, func(t *testing.T) {
			c := &cluster{state: models.ClusterStatusAddingHosts, info: infoClusterInstalled, prepared: true}
			NewWithT(t).Expect(clusterConditions(c, nil)).To(Equal(recorded[hiveext.AgentClusterInstall](t, file).Status.Conditions))
		})
	}
}

func TestStagesMatchRealService(t *testing.T) {
	g := NewWithT(t)
	g.Expect(stagesOf(models.HostRoleMaster, true,
		false)).To(Equal(recorded[Agent](t, "day1-done-agent.yaml").Status.Progress.ProgressStages))
	g.Expect(stagesOf(models.HostRoleMaster, true,
		true)).To(Equal(recorded[Agent](t, "sno-done-agent.yaml").Status.Progress.ProgressStages))
	g.Expect(stagesOf(models.HostRoleArbiter, false, false)).To(Equal(stagesOf(models.HostRoleMaster, false, false)))
	g.Expect(stagesOf(models.HostRoleWorker, false, false)).To(ContainElement(models.HostStageWaitingForIgnition))
}

func TestPercentageOfSingleNodeCluster(t *testing.T) {
	s := newSimulator(t, Options{})
	c := &cluster{key: types.NamespacedName{Name: "c"}, state: models.ClusterStatusInstalling}
	h := &host{cluster: c.key, kind: models.HostKindHost, stages: stagesOf(models.HostRoleMaster, true, true)}
	s.hosts[types.NamespacedName{Name: "h"}] = h
	observed := []int64{s.percentage(c)}
	for _, stage := range h.stages {
		h.stage = stage
		observed = append(observed, s.percentage(c))
	}
	NewWithT(t).Expect(observed).To(Equal([]int64{10, 18, 27, 35, 45, 53, 62, 70, 80})) // as recorded
}

// Installed hosts are deleted with their InfraEnv (cluster/transition.go: areAllHostsDone).
func TestClusterIsInstalledAfterItsHostsWereDeleted(t *testing.T) {
	g := NewWithT(t)
	s := newSimulator(t, Options{})
	c := &cluster{key: types.NamespacedName{Name: "c"}, state: models.ClusterStatusFinalizing, operatorsDone: true}
	late := &host{cluster: c.key, kind: models.HostKindHost, state: models.HostStatusInstallingInProgress}
	s.hosts[types.NamespacedName{Name: "late"}] = late
	g.Expect(s.nextClusterState(c)).To(BeNil(), "a host is still being installed")
	late.state = models.HostStatusInstalled
	installed := &transition{state: models.ClusterStatusInstalled, info: infoClusterInstalled}
	g.Expect(s.nextClusterState(c)).To(Equal(installed))
	clear(s.hosts)
	g.Expect(s.nextClusterState(c)).To(Equal(installed))
}

func TestObstaclesToStartOfInstallation(t *testing.T) {
	known := func(role models.HostRole, approved bool) *host {
		return &host{state: models.HostStatusKnown, role: role, approved: approved}
	}
	ready := []*host{known(models.HostRoleMaster, true), known(models.HostRoleWorker, true)}
	wanted := hiveext.ProvisionRequirements{ControlPlaneAgents: 1, WorkerAgents: 1}
	arbiter := hiveext.ProvisionRequirements{ControlPlaneAgents: 1, ArbiterAgents: 1}
	for name, test := range map[string]struct {
		wanted  hiveext.ProvisionRequirements
		members []*host
		hold    bool
		reason  string
		starts  bool
	}{
		"a master and an arbiter: starts": {
			wanted:  arbiter,
			members: []*host{ready[0], known(models.HostRoleArbiter, true)}, starts: true,
		},
		"a worker in place of the arbiter: does not start": {wanted: arbiter, members: ready, reason: "InsufficientAgents"},
		"the arbiter is not approved: does not start": {
			wanted:  arbiter,
			members: []*host{ready[0], known(models.HostRoleArbiter, false)}, reason: "UnapprovedAgents",
		},
		"the exact hosts, all approved: starts": {members: ready, starts: true},
		"on hold: does not start":               {members: ready, hold: true},
		"one host too many: does not start": {
			members: append([]*host{known(models.HostRoleWorker, true)}, ready...), reason: "InsufficientAgents",
		},
		"the right number in the wrong roles: does not start": {
			members: []*host{known(models.HostRoleMaster, true), known(models.HostRoleMaster, true)}, reason: "InsufficientAgents",
		},
		"one not approved: does not start": {
			members: []*host{known(models.HostRoleMaster, true), known(models.HostRoleWorker, false)}, reason: "UnapprovedAgents",
		},
		"one with a spec that cannot be applied: does not start": {
			members: []*host{ready[0], {state: models.HostStatusKnown, role: models.HostRoleWorker, approved: true, specError: inputErrorf("x")}},
			reason:  "UnsyncedAgents",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &cluster{hold: test.hold, spec: hiveext.AgentClusterInstallSpec{
				ProvisionRequirements: cmp.Or(test.wanted, wanted),
			}}
			g.Expect(startObstacle(c, test.members)).To(Equal(test.reason))
			g.Expect(startAllowed(c, test.members)).To(Equal(test.starts))
		})
	}
}

func TestSpecIsIgnoredAfterStartOfInstallation(t *testing.T) {
	g := NewWithT(t)
	s := newSimulator(t, Options{})
	h := &host{state: models.HostStatusInstalling, infraEnv: &infraEnv{}, requested: requests{hostname: "before"}, role: models.HostRoleMaster}
	g.Expect(s.applySpec(h, &AgentSpec{Hostname: "after", Role: models.HostRoleWorker})).To(Succeed(), "silently")
	g.Expect(h.hostname()).To(Equal("before"))
	g.Expect(h.role).To(Equal(models.HostRoleMaster))
	h.state = models.HostStatusKnown
	g.Expect(s.applySpec(h, &AgentSpec{Hostname: "after", Role: models.HostRoleWorker})).To(Succeed())
	g.Expect(s.applySpec(h, &AgentSpec{})).To(Succeed())
	g.Expect(h.hostname()).To(Equal("after"), "empty means no change")
	g.Expect(s.applySpec(h, &AgentSpec{Role: "boss"})).To(MatchError(ContainSubstring("boss")))
}

// TestRegistrationOfKnownHost follows the state machine of the service, as observed with a real one (April
// 2025).
func TestRegistrationOfKnownHost(t *testing.T) {
	for name, tc := range map[string]struct {
		host    host
		want    string
		refused bool
	}{
		"known": {host{state: models.HostStatusKnown}, models.HostStatusDiscoveringUnbound, false},
		"during the installation": {
			host{state: models.HostStatusInstallingInProgress, stage: models.HostStageWritingImageToDisk}, models.HostStatusError, false,
		},
		"after the reboot": {
			host{state: models.HostStatusInstallingInProgress, stage: models.HostStageRebooting},
			models.HostStatusInstallingPendingUserAction, false,
		},
		"after the reboot, again": {
			host{state: models.HostStatusInstallingPendingUserAction, stage: models.HostStageRebooting},
			models.HostStatusInstallingPendingUserAction, true,
		},
		"installed": {host{state: models.HostStatusInstalled, stage: models.HostStageDone}, models.HostStatusInstalled, true},
		"added to an installed cluster": {
			host{state: models.HostStatusAddedToExistingCluster, stage: models.HostStageDone, kind: models.HostKindAddToExistingClusterHost},
			models.HostStatusInstallingPendingUserAction, false,
		},
		"failed to prepare": {host{state: models.HostStatusPreparingFailed}, models.HostStatusPreparingFailed, true},
		"failed":            {host{state: models.HostStatusError}, models.HostStatusError, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := newSimulator(t, Options{}).reregister(&tc.host, hosts.Agent{})
			g.Expect(err != nil).To(Equal(tc.refused))
			g.Expect(tc.host.state).To(Equal(tc.want))
		})
	}
}

func TestHostWithoutImagesFailsToPrepare(t *testing.T) {
	g, s, failure, pulled := NewWithT(t), newSimulator(t, Options{}), "", ""
	c := &cluster{key: types.NamespacedName{Name: "c"}, state: models.ClusterStatusPreparingForInstallation, releaseImage: "release"}
	s.clusters[c.key] = c
	h := &host{state: models.HostStatusPreparingForInstallation, cluster: c.key, cannotPull: func(image string) string {
		pulled = image
		return failure
	}}
	state, _, _ := s.nextHostState(h)
	g.Expect(state).To(Equal(models.HostStatusPreparingSuccessful))
	g.Expect(pulled).To(Equal("release"))
	failure = "no route to host"
	state, info, _ := s.nextHostState(h)
	g.Expect(state).To(Equal(models.HostStatusPreparingFailed))
	g.Expect(info).To(ContainSubstring("Failed to fetch container images"))
}

func TestAgentsAuthenticateWithLocalAuth(t *testing.T) {
	g, s := NewWithT(t), newSimulator(t, Options{Auth: AuthLocal})
	token, err := s.tokens.Sign(token.InfraEnv, "ie")
	g.Expect(err).NotTo(HaveOccurred())
	s.infraEnvs[types.NamespacedName{Name: "ie"}] = &infraEnv{id: "ie", token: token}
	_, err = s.Image(t.Context(), "ie", "")
	g.Expect(err).To(MatchError(hosts.ErrNotFound))
	raw, err := s.Image(t.Context(), "ie", token)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := hosts.DecodeIgnition(raw)
	g.Expect(err).NotTo(HaveOccurred())
	agent, err := hosts.AgentConfigOf(config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(agent.Token).To(Equal(token))
	g.Expect(s.Register(t.Context(), hosts.Agent{AgentConfig: hosts.AgentConfig{InfraEnvID: "ie"}})).To(MatchError(hosts.ErrNotFound))
}

func TestInstallationDiskIsSmallAndSlow(t *testing.T) {
	disk := func(id string, kind models.DriveType, size int64, eligible bool) *models.Disk {
		return &models.Disk{
			ID: id, Name: id, DriveType: kind, SizeBytes: size,
			InstallationEligibility: models.DiskInstallationEligibility{Eligible: eligible},
		}
	}
	h := &host{inventory: &models.Inventory{Disks: []*models.Disk{
		disk("nvme0n1", models.DriveTypeSSD, 1, true), disk("sda", models.DriveTypeSSD, 1, true), disk("sdb", models.DriveTypeHDD, 3, true),
		disk("sdc", models.DriveTypeHDD, 2, true), disk("sdd", models.DriveTypeHDD, 1, false),
	}}}
	NewWithT(t).Expect(h.installationDisk()).To(Equal("sdc"))
}

func TestHostIsBoundOnlyWhileClusterAcceptsHosts(t *testing.T) {
	g := NewWithT(t)
	s := newSimulator(t, Options{})
	c := &cluster{key: types.NamespacedName{Namespace: "ns", Name: "c"}, state: models.ClusterStatusInstalling}
	s.clusters[c.key] = c
	h := &host{state: models.HostStatusKnownUnbound, infraEnv: &infraEnv{}}
	spec := &AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: "ns", Name: "c"}}
	g.Expect(s.applySpec(h, spec)).To(MatchError(ContainSubstring("installing")))
	g.Expect(h.state).To(Equal(models.HostStatusKnownUnbound))
	c.state = models.ClusterStatusAddingHosts
	g.Expect(s.applySpec(h, spec)).To(Succeed())
	g.Expect(h.state).To(Equal(models.HostStatusBinding))
	g.Expect(s.applySpec(h, &AgentSpec{})).To(Succeed())
	g.Expect(h.state).To(Equal(models.HostStatusBinding), "the host must register first")
	h.state = models.HostStatusKnown
	g.Expect(s.applySpec(h, &AgentSpec{})).To(Succeed())
	g.Expect(h.state).To(Equal(models.HostStatusUnbinding))
	g.Expect(h.bound()).To(BeFalse())
}

// TestHostWithNameOfAnotherHost waits until the Agent of the previous host with the name is deleted.
func TestHostWithNameOfAnotherHost(t *testing.T) {
	g, s := NewWithT(t), newSimulator(t, Options{})
	c := &cluster{key: types.NamespacedName{Name: "c"}, state: models.ClusterStatusAddingHosts}
	s.clusters[c.key] = c
	named := func(id string, in types.NamespacedName, state, hostname string) *host {
		h := &host{
			key: types.NamespacedName{Name: id}, cluster: in, state: state, kind: models.HostKindAddToExistingClusterHost,
			requested: requests{hostname: hostname},
		}
		s.hosts[h.key] = h
		return h
	}
	named("elsewhere", types.NamespacedName{Name: "other"}, models.HostStatusAddedToExistingCluster, "n1")
	named("neighbor", c.key, models.HostStatusAddedToExistingCluster, "n2")
	former := named("former", c.key, models.HostStatusAddedToExistingCluster, "n1")
	h := named("new", c.key, models.HostStatusInsufficient, "n1")

	state, info, ok := s.nextHostState(h)
	g.Expect(ok).To(BeTrue())
	g.Expect(state).To(Equal(models.HostStatusInsufficient))
	g.Expect(info).To(ContainSubstring("n1 is not unique"))
	h.state, h.info = state, info
	_, _, ok = s.nextHostState(h)
	g.Expect(ok).To(BeFalse(), "it waits")

	delete(s.hosts, former.key)
	state, _, _ = s.nextHostState(h)
	g.Expect(state).To(Equal(models.HostStatusKnown))
}

func TestReadinessOfCluster(t *testing.T) {
	s := newSimulator(t, Options{})
	spec := recorded[hiveext.AgentClusterInstall](t, "day1-done-aci.yaml").Spec
	g := NewWithT(t)
	c := &cluster{spec: *spec.DeepCopy()}
	g.Expect(s.readiness(c, nil).state).To(Equal(models.ClusterStatusInsufficient))
	c.spec.APIVIPs = []string{"10.1.1.1"}
	g.Expect(s.readiness(c, nil).failing).To(ContainSubstring("10.1.1.1"))
	c.spec.APIVIPs = nil
	g.Expect(s.readiness(c, nil).state).To(Equal(models.ClusterStatusPendingForInput))
}

func refusedWith(code int32) func(error) bool {
	return func(err error) bool {
		var no refusal
		return errors.As(err, &no) && no.code == code
	}
}

func TestAdmissionOfInstalls(t *testing.T) {
	started := func(reason string) hiveext.AgentClusterInstallStatus {
		return hiveext.AgentClusterInstallStatus{Conditions: []hivev1.ClusterInstallCondition{
			{Type: hiveext.ClusterCompletedCondition, Reason: reason},
		}}
	}
	no := false
	for name, test := range map[string]struct {
		status hiveext.AgentClusterInstallStatus
		change func(*hiveext.AgentClusterInstall)
		code   int32
	}{
		"image set changes: refused always": {change: func(a *hiveext.AgentClusterInstall) { a.Spec.ImageSetRef = nil }, code: 400},
		"single node without user-managed networking: refused": {change: func(a *hiveext.AgentClusterInstall) {
			a.Spec.ProvisionRequirements.ControlPlaneAgents = 1
			a.Spec.Networking.UserManagedNetworking = &no
		}, code: 409},
		"held before the installation: allowed": {change: func(a *hiveext.AgentClusterInstall) { a.Spec.HoldInstallation = true }},
		"held during the installation: refused": {
			status: started("InstallationInProgress"),
			change: func(a *hiveext.AgentClusterInstall) { a.Spec.HoldInstallation = true }, code: 400,
		},
		"worker count during the installation: refused": {
			status: started("InstallationInProgress"),
			change: func(a *hiveext.AgentClusterInstall) { a.Spec.ProvisionRequirements.WorkerAgents = 9 }, code: 400,
		},
		"worker count after the installation: allowed": {
			status: started("InstallationCompleted"),
			change: func(a *hiveext.AgentClusterInstall) { a.Spec.ProvisionRequirements.WorkerAgents = 9 },
		},
		"metadata during the installation: allowed": {
			status: started("InstallationInProgress"),
			change: func(a *hiveext.AgentClusterInstall) { a.Spec.ClusterMetadata = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := recorded[hiveext.AgentClusterInstall](t, "day1-done-aci.yaml")
			before.Status = test.status
			after := before.DeepCopy()
			test.change(after)
			err := validateInstall(t.Context(), before, after)
			if test.code == 0 {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(Satisfy(refusedWith(test.code)))
		})
	}
}

func TestAdmissionOfAgentsAndInfraEnvs(t *testing.T) {
	g := NewWithT(t)
	s := newSimulator(t, Options{})
	before := recorded[Agent](t, "day1-done-agent.yaml")
	before.Status.DebugInfo.State = models.HostStatusInstallingInProgress
	after := before.DeepCopy()
	after.Spec.ClusterDeploymentName = nil
	g.Expect(validateAgent(t.Context(), before, after)).To(Satisfy(refusedWith(400)))
	after.Status.Kind = models.HostKindAddToExistingClusterHost
	g.Expect(validateAgent(t.Context(), before, after)).To(Succeed(), "a day-2 host may leave")
	env := &InfraEnv{Spec: InfraEnvSpec{InfraEnvSpec: aiv1beta1.InfraEnvSpec{
		ClusterRef: &aiv1beta1.ClusterReference{Name: "c"}, OSImageVersion: "4.19",
	}}}
	g.Expect(s.validateInfraEnv(t.Context(), nil, env)).To(Satisfy(refusedWith(400)))
	sno := &hiveext.AgentClusterInstall{Spec: hiveext.AgentClusterInstallSpec{
		ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: 1},
	}}
	value, ok := defaultNetworking(sno)
	g.Expect([]bool{value, ok}).To(Equal([]bool{true, true}))
}

func TestClusterConditionTimesMoveWithAnyChange(t *testing.T) {
	g := NewWithT(t)
	old := metav1.Time{}
	conditions := []hivev1.ClusterInstallCondition{clusterCondition("A", "True", "R", "m")}
	setClusterCondition(&conditions, clusterCondition("A", "True", "R", "m"))
	g.Expect(conditions[0].LastTransitionTime).To(Equal(old))
	setClusterCondition(&conditions, clusterCondition("A", "True", "R", "n"))
	g.Expect(conditions[0].LastTransitionTime).NotTo(Equal(old))
}

func TestTwoMastersWithoutArbiterNeedBMCCredentials(t *testing.T) {
	g, s := NewWithT(t), newSimulator(t, Options{})
	c := &cluster{key: types.NamespacedName{Name: "c"}, spec: hiveext.AgentClusterInstallSpec{
		PlatformType: hiveext.NonePlatformType, ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: 2},
	}}
	s.clusters[c.key] = c
	master := func(name string) *host {
		return &host{
			key: types.NamespacedName{Name: name}, cluster: c.key, wanted: c.key, infraEnv: &infraEnv{},
			state: models.HostStatusKnown, role: models.HostRoleMaster,
		}
	}
	spec := &AgentSpec{Role: models.HostRoleMaster, Hostname: "new", ClusterDeploymentName: &aiv1beta1.ClusterReference{Name: "c"}}
	members := []*host{master("a"), master("b")}
	g.Expect(s.readiness(c, members).failing).To(ContainSubstring("must have fencing credentials"))
	for _, h := range members {
		h.fencing = fencing{err: errors.New("no such Secret")}
		g.Expect(s.applySpec(h, spec)).To(MatchError("no such Secret"))
		g.Expect(h.requested.hostname).To(BeEmpty(), "other fields are not read")
		g.Expect(s.readiness(c, members).state).To(Equal(models.ClusterStatusInsufficient))
		s.DisableFencing(h.key.Namespace, true)
		h.fencing = fencing{credentials: "{}"}
		g.Expect(s.applySpec(h, spec)).To(MatchError(ContainSubstring("TNF clusters support is disabled")))
		s.DisableFencing(h.key.Namespace, false)
		c.spec.PlatformType = hiveext.ExternalPlatformType
		g.Expect(s.applySpec(h, spec)).To(MatchError(ContainSubstring("platform must be baremetal or none")))
		c.spec.PlatformType = hiveext.NonePlatformType
		g.Expect(s.applySpec(h, spec)).To(Succeed())
		h.fencing = fencing{}
		g.Expect(s.applySpec(h, spec)).To(Succeed())
		g.Expect(h.requested.fencing).To(Equal("{}"), "credentials are kept")
	}
	g.Expect(s.readiness(c, members).state).To(Equal(models.ClusterStatusReady))
}
