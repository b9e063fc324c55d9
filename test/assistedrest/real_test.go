package assistedrest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	hiveagent "github.com/openshift/hive/apis/hive/v1/agent"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/assistedservice"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const releaseImage = "quay.io/openshift-release-dev/ocp-release:4.19.10-x86_64"

// bed is a real assisted-service with a rack of hosts and one namespace.
type bed struct {
	*testing.T
	*WithT
	ctx      context.Context
	env      *env.Env
	service  *assistedservice.Service
	rack     *hosts.Rack
	client   client.WithWatch
	seen     *journal
	workload map[string]*workload
}

type workload struct {
	server *env.WorkloadCluster
	up     sync.Once
	err    error
}

// TestRealService takes hosts through the journeys of a cluster, with the real service instead of the simulator.
func TestRealService(t *testing.T) {
	if testing.Short() {
		t.Skip("starts assisted-service")
	}
	for _, auth := range []assistedservice.Auth{assistedservice.AuthLocal, assistedservice.AuthNone} {
		t.Run(string(auth), func(t *testing.T) {
			b := newBed(t, auth)
			switch auth {
			case assistedservice.AuthLocal:
				masters, worker := b.threeControlPlanesThenAWorker()
				b.wrongBoots(masters[0], worker)
			case assistedservice.AuthNone:
				b.singleNode()
				b.failedInstallation()
				b.deletedWhileInstalling()
			}
		})
	}
}

func newBed(t *testing.T, auth assistedservice.Auth) *bed {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(2 * time.Minute)
	g.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	e, err := env.Start(ctx, env.Options{LeaveSignals: true, NoManagers: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Stop)
	b := &bed{T: t, WithT: g, ctx: ctx, env: e, seen: &journal{start: time.Now(), last: map[string]string{}}, workload: map[string]*workload{}}
	b.service, err = assistedservice.Start(ctx, e, assistedservice.Options{Auth: auth})
	g.Expect(err).NotTo(HaveOccurred())
	b.client, err = client.NewWithWatch(e.Config(), client.Options{Scheme: e.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	b.startRack(cancel)
	g.Expect(b.service.SetRelease(releaseImage, "4.19.10")).To(Succeed())
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}})
	b.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "pull-secret"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}`)},
	})
	b.create(&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "lab"}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: releaseImage}})
	b.follow(&aiv1beta1.AgentList{})
	b.follow(&hiveext.AgentClusterInstallList{})
	return b
}

func (b *bed) startRack(cancel context.CancelFunc) {
	logger := testr.New(b.T)
	rack, err := hosts.New(b.env.Config(), hosts.Options{
		Service: New(Options{
			URL: b.service.URL(), Hub: b.client, ClusterToken: b.service.ClusterToken, Log: logger,
			Preparing: func(ctx context.Context, p Preparation) error {
				return b.service.PutKubeconfig(ctx, p.ClusterID, p.Since, b.workload[p.Deployment.Name].server.Kubeconfig())
			},
		}),
		Workload: func(_ context.Context, _, name string) (client.Client, error) {
			return b.open(name, rest.ImpersonationConfig{})
		},
		WorkloadAs: func(_ context.Context, _, name string, user rest.ImpersonationConfig) (client.Client, error) {
			return b.open(name, user)
		},
		Log: logger,
	})
	b.Expect(err).NotTo(HaveOccurred())
	b.rack = rack
	ended := make(chan error, 1)
	go func() { ended <- rack.Start(b.ctx) }()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
}

// open reaches the API of a cluster, which the first caller starts.
func (b *bed) open(name string, user rest.ImpersonationConfig) (client.Client, error) {
	w := b.workload[name]
	w.up.Do(func() { w.err = w.server.Start(b.ctx) })
	if w.err != nil {
		return nil, w.err
	}
	config := w.server.Config()
	config.Impersonate = user
	return client.New(config, client.Options{Scheme: b.env.Scheme()})
}

func (b *bed) create(object client.Object) {
	b.Helper()
	b.Expect(b.client.Create(b.ctx, object)).To(Succeed())
}

// infraEnv creates an InfraEnv and returns the URL of its ISO.
func (b *bed) infraEnv(name string) string {
	b.Helper()
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	infraEnv.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull-secret"}
	infraEnv.Spec.OSImageVersion = "4.19"
	b.create(infraEnv)
	b.Eventually(func() string {
		b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(infraEnv), infraEnv)).To(Succeed())
		return infraEnv.Status.ISODownloadURL
	}).ShouldNot(BeEmpty())
	return infraEnv.Status.ISODownloadURL
}

// cluster creates a cluster for so many control planes: on bare metal, or a single node for no platform.
func (b *bed) cluster(name string, controlPlanes int) {
	b.Helper()
	server, err := b.env.ReserveWorkloadCluster(name)
	b.Expect(err).NotTo(HaveOccurred())
	b.workload[name] = &workload{server: server}
	deployment := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	deployment.Spec = hivev1.ClusterDeploymentSpec{
		BaseDomain: "example.com", ClusterName: name, PullSecretRef: &corev1.LocalObjectReference{Name: "pull-secret"},
		Platform: hivev1.Platform{AgentBareMetal: &hiveagent.BareMetalPlatform{}},
		ClusterInstallRef: &hivev1.ClusterInstallLocalReference{
			Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall", Name: name,
		},
	}
	install := &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}}
	install.Spec = hiveext.AgentClusterInstallSpec{
		ClusterDeploymentRef:  corev1.LocalObjectReference{Name: name},
		ImageSetRef:           &hivev1.ClusterImageSetReference{Name: "lab"},
		ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: controlPlanes},
		Networking: hiveext.Networking{
			ClusterNetwork: []hiveext.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}},
			ServiceNetwork: []string{"172.30.0.0/16"},
			MachineNetwork: []hiveext.MachineNetworkEntry{{CIDR: "192.168.111.0/24"}},
		},
	}
	if controlPlanes > 1 {
		install.Spec.APIVIPs, install.Spec.IngressVIPs = []string{"192.168.111.250"}, []string{"192.168.111.251"}
	}
	b.create(deployment)
	b.create(install)
}

// boot boots a machine from an ISO and waits until its Agent may be bound.
func (b *bed) boot(iso, name string) *hosts.Host {
	b.Helper()
	host, err := b.rack.BootUnmanaged(iso, hosts.NewHardware(name))
	b.Expect(err).NotTo(HaveOccurred())
	b.expectHost(host, models.HostStatusKnownUnbound)
	return host
}

func (b *bed) agent(host *hosts.Host) *aiv1beta1.Agent {
	agent := &aiv1beta1.Agent{}
	key := types.NamespacedName{Namespace: "lab", Name: host.Hardware().UUID}
	b.Expect(client.IgnoreNotFound(b.client.Get(b.ctx, key, agent))).To(Succeed())
	return agent
}

// assign binds and approves a host.
func (b *bed) assign(host *hosts.Host, cluster string, role models.HostRole) {
	b.Helper()
	b.Eventually(func() error {
		agent := b.agent(host)
		agent.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: "lab", Name: cluster}
		agent.Spec.Role, agent.Spec.Approved = role, true
		agent.Spec.Hostname = host.Name() + ".example.com"
		agent.Spec.NodeLabels = map[string]string{"laboratory/rack": "one"}
		agent.Spec.IgnitionConfigOverrides = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/kubernetes/kubelet-env",` +
			`"mode":420,"overwrite":true,"contents":{"source":"data:,CUSTOM_KUBELET_LABELS=metal3.io/uuid=` + host.Name() + `%0A"}}]}}`
		return b.client.Update(b.ctx, agent)
	}).Should(Succeed())
}

func (b *bed) expectHost(host *hosts.Host, state string) {
	b.Helper()
	b.Eventually(func() string { return b.agent(host).Status.DebugInfo.State }).Should(Equal(state), func() string {
		return fmt.Sprintf("%s: %s; held up by: %v", host.Name(), b.agent(host).Status.DebugInfo.StateInfo, host.Problem())
	})
}

func (b *bed) install(name string) *hiveext.AgentClusterInstall {
	install := &hiveext.AgentClusterInstall{}
	b.Expect(b.client.Get(b.ctx, types.NamespacedName{Namespace: "lab", Name: name}, install)).To(Succeed())
	return install
}

func (b *bed) expectCluster(name, state string) {
	b.Helper()
	b.Eventually(func() string { return b.install(name).Status.DebugInfo.State }).Should(Equal(state), func() string {
		return b.install(name).Status.DebugInfo.StateInfo
	})
}

// expectNode checks what the hub, or the controller in the cluster, and the ignition of the host made of its Node.
func (b *bed) expectNode(cluster string, host *hosts.Host) {
	b.Helper()
	c, err := b.open(cluster, rest.ImpersonationConfig{})
	b.Expect(err).NotTo(HaveOccurred())
	node := &corev1.Node{}
	b.Eventually(func() map[string]string {
		b.Expect(c.Get(b.ctx, types.NamespacedName{Name: host.Name() + ".example.com"}, node)).To(Succeed())
		return node.Labels
	}).Should(And(HaveKeyWithValue("laboratory/rack", "one"), HaveKeyWithValue("metal3.io/uuid", host.Name())))
}

func (b *bed) threeControlPlanesThenAWorker() (masters []*hosts.Host, worker *hosts.Host) {
	iso := b.infraEnv("ha")
	b.cluster("ha", 3)
	for i := range 3 {
		masters = append(masters, b.boot(iso, fmt.Sprintf("master-%d", i)))
	}
	masters[2].WrongBoot()
	for _, host := range masters {
		b.assign(host, "ha", models.HostRoleMaster)
	}
	b.expectHost(masters[2], models.HostStatusInstallingPendingUserAction)
	b.expectCluster("ha", models.ClusterStatusInstallingPendingUserAction)
	masters[2].Reboot()
	b.expectCluster("ha", models.ClusterStatusAddingHosts)
	for _, host := range masters {
		b.expectHost(host, models.HostStatusInstalled)
		b.expectNode("ha", host)
	}
	secret := &corev1.Secret{}
	b.Expect(b.client.Get(b.ctx, types.NamespacedName{Namespace: "lab", Name: "ha-admin-kubeconfig"}, secret)).To(Succeed())
	b.Expect(string(secret.Data["kubeconfig"])).To(ContainSubstring(fmt.Sprintf(":%d", b.workload["ha"].server.Port)))

	worker = b.boot(iso, "worker-0")
	b.assign(worker, "ha", models.HostRoleWorker)
	b.expectHost(worker, models.HostStatusAddedToExistingCluster)
	b.expectNode("ha", worker)
	b.Expect(worker.Problem()).NotTo(HaveOccurred())
	return masters, worker
}

// wrongBoots lets hosts boot the discovery system after they were installed. The one of the first day is sent away; that of the
// second waits for somebody, and nobody notices that it is back.
func (b *bed) wrongBoots(master, worker *hosts.Host) {
	for _, host := range []*hosts.Host{master, worker} {
		host.WrongBoot()
	}
	b.Eventually(master.Problem).Should(MatchError(ContainSubstring("after the cluster has already been installed")))
	// The service announces a registration before it commits it: the Agent may show the old state until something else happens.
	b.Eventually(func() string {
		agent := b.agent(worker)
		patch := client.MergeFrom(agent.DeepCopy())
		agent.Annotations["laboratory/look-again"] = time.Now().String()
		b.Expect(b.client.Patch(b.ctx, agent, patch)).To(Succeed())
		return agent.Status.DebugInfo.State
	}).WithPolling(time.Second).Should(Equal(models.HostStatusInstallingPendingUserAction))
	b.expectHost(master, models.HostStatusInstalled)
	worker.Reboot()
	master.Reboot()
	b.Eventually(func() error { return errors.Join(worker.Problem(), master.Problem()) }).ShouldNot(HaveOccurred())
	b.Consistently(func() string { return b.agent(worker).Status.DebugInfo.State }).WithTimeout(5 * time.Second).
		Should(Equal(models.HostStatusInstallingPendingUserAction))
}

func (b *bed) singleNode() {
	iso := b.infraEnv("sno")
	b.cluster("sno", 1)
	host := b.boot(iso, "sno-0")
	host.FailImages("connection refused")
	b.assign(host, "sno", models.HostRoleMaster)
	b.expectHost(host, models.HostStatusPreparingFailed)
	host.FailImages("")
	b.expectHost(host, models.HostStatusInstallingInProgress)
	b.service.Process().Kill()
	b.Expect(b.service.Process().Start(b.ctx)).To(Succeed())
	b.expectCluster("sno", models.ClusterStatusAddingHosts)
	b.expectNode("sno", host)
}

func (b *bed) failedInstallation() {
	iso := b.infraEnv("bad")
	b.cluster("bad", 1)
	host := b.boot(iso, "bad-0")
	host.Fail(models.HostStageWritingImageToDisk, "disk sda is read-only")
	b.assign(host, "bad", models.HostRoleMaster)
	b.expectCluster("bad", models.ClusterStatusError)
	b.expectHost(host, models.HostStatusError)
	b.Expect(b.agent(host).Status.DebugInfo.StateInfo).To(Equal("Failed - disk sda is read-only"))
	b.deleteCluster("bad", host)
}

func (b *bed) deletedWhileInstalling() {
	iso := b.infraEnv("short")
	b.cluster("short", 3)
	var all []*hosts.Host
	for i := range 3 {
		all = append(all, b.boot(iso, fmt.Sprintf("short-%d", i)))
	}
	b.workload["short"].err = errors.New("not yet")
	b.workload["short"].up.Do(func() {})
	for _, host := range all {
		b.assign(host, "short", models.HostRoleMaster)
	}
	b.Eventually(func() []models.HostStage {
		return []models.HostStage{all[0].Stage(), all[1].Stage(), all[2].Stage()}
	}).Should(ContainElement(models.HostStageWaitingForControlPlane))
	b.deleteCluster("short", all...)
}

// deleteCluster deletes a cluster and expects those of its hosts back that run the discovery system; the others cannot hear.
func (b *bed) deleteCluster(name string, members ...*hosts.Host) {
	b.Expect(b.client.Delete(b.ctx, &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}})).To(Succeed())
	for _, host := range members {
		b.Eventually(func(g Gomega) {
			boots, wanted := host.Boots(), models.HostStatusKnownUnbound
			if boots[len(boots)-1].System == hosts.Installed {
				wanted = models.HostStatusUnbindingPendingUserAction
			}
			g.Expect(b.agent(host).Status.DebugInfo.State).To(Equal(wanted), host.Name())
		}).Should(Succeed())
	}
}

// journal logs what is new of each object.
type journal struct {
	start time.Time
	mu    sync.Mutex
	last  map[string]string
}

func (b *bed) follow(list client.ObjectList) {
	events, err := b.client.Watch(b.ctx, list)
	b.Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		for event := range events.ResultChan() {
			switch object := event.Object.(type) {
			case *aiv1beta1.Agent:
				b.seen.note(b.T, "agent/"+object.Status.Inventory.Hostname, agentLine(object))
			case *hiveext.AgentClusterInstall:
				b.seen.note(b.T, "aci/"+object.Name, installLine(object))
			}
		}
	})
	b.Cleanup(func() {
		events.Stop()
		running.Wait()
	})
}

func (j *journal) note(t *testing.T, name, line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.last[name] != line {
		j.last[name] = line
		t.Logf("%7.2f %s %s", time.Since(j.start).Seconds(), name, line)
	}
}

func agentLine(agent *aiv1beta1.Agent) string {
	parts := []string{
		agent.Status.DebugInfo.State, agent.Status.DebugInfo.StateInfo, string(agent.Status.Progress.CurrentStage), string(agent.Status.Role),
	}
	for _, c := range agent.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(parts, " | ")
}

func installLine(install *hiveext.AgentClusterInstall) string {
	parts := []string{install.Status.DebugInfo.State, install.Status.DebugInfo.StateInfo, fmt.Sprintf("%d%%", install.Status.Progress.TotalPercentage)}
	for _, c := range install.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		if c.Type == hiveext.ClusterSpecSyncedCondition && c.Status == corev1.ConditionFalse {
			parts = append(parts, c.Message)
		}
	}
	return strings.Join(parts, " | ")
}
