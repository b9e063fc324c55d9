package assistedsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// bed is a running simulator on a real API server, which also plays every workload cluster.
type bed struct {
	*testing.T
	*WithT
	config *rest.Config
	client client.WithWatch
	sim    *Simulator
	ctx    context.Context
}

func TestSimulator(t *testing.T) {
	g := NewWithT(t)
	log.SetLogger(logr.New(log.NullLogSink{}))
	ctx, cancel := context.WithCancel(t.Context())
	e, err := env.Start(ctx, env.Options{LeaveSignals: true, NoManagers: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Stop)
	sim, err := New(e.Config(), Options{
		PreparationRetry: 100 * time.Millisecond,
		WorkloadKubeconfig: func(context.Context, string, string) ([]byte, error) {
			return os.ReadFile(e.Kubeconfig())
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start(ctx)).To(Succeed())
	t.Cleanup(func() {
		cancel()
		g.Expect(sim.Wait()).To(Succeed())
	})
	scheme, err := Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	c, err := client.NewWithWatch(e.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.InstallWebhooks(ctx)).To(Succeed())
	g.Expect(InstallClusterSets(ctx, c)).To(Succeed())
	for name, journey := range map[string]func(bed){
		"single node with a bound InfraEnv":                               singleNodeOfABoundInfraEnv,
		"missing inputs are reported and then found":                      missingInputs,
		"a failing preparation is retried":                                failingPreparation,
		"a failing host fails the cluster":                                failingHost,
		"the Agent of a polling host is created again":                    agentIsRecreated,
		"a deleted cluster unbinds its hosts":                             deletedClusterFreesHosts,
		"a deleted InfraEnv deletes its Agents":                           deletedInfraEnv,
		"bound hosts block the deletion of an InfraEnv":                   infraEnvIsKeptForItsHosts,
		"the Node of a deleted Agent is deleted":                          deletedAgentOfAnInstalledHost,
		"the creator of a ClusterDeployment needs the right to join sets": clusterSetsAreJoined,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.SetDefaultEventuallyTimeout(time.Minute)
			g.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
			journey(bed{T: t, WithT: g, config: e.Config(), client: c, sim: sim, ctx: t.Context()})
		})
	}
}

// namespace creates a namespace with a pull secret and a ClusterImageSet of the same name.
func (b bed) namespace() string {
	name := "sim-" + uuid.NewString()[:8]
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	b.create(&hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/x/y:4.19.0"},
	})
	b.create(pullSecret(name))
	return name
}

func pullSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull-secret"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"quay.io":{"auth":"dTpw"}}}`)},
	}
}

func (b bed) create(obj client.Object) {
	b.Helper()
	b.Expect(b.client.Create(b.ctx, obj)).To(Succeed())
}

func (b bed) infraEnv(namespace, name string, clusterRef *aiv1beta1.ClusterReference) *InfraEnv {
	b.Helper()
	ie := &InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ie.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull-secret"}
	ie.Spec.ClusterRef = clusterRef
	ie.Spec.AgentLabels = map[string]string{"pool": "metal"}
	ie.Spec.IPXEScriptType = discoveryImageAlways
	b.create(ie)
	return ie
}

// cluster creates the recorded ClusterDeployment and AgentClusterInstall.
func (b bed) cluster(namespace, file string, controlPlanes int) types.NamespacedName {
	b.Helper()
	aci := recorded[hiveext.AgentClusterInstall](b.T, file)
	cd := recorded[hivev1.ClusterDeployment](b.T, "day1-done-cd.yaml")
	cd.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: aci.Name}
	cd.Spec.ClusterInstallRef.Name = aci.Name
	aci.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: aci.Name}
	aci.Status = hiveext.AgentClusterInstallStatus{}
	aci.Spec.ClusterMetadata, aci.Spec.ImageSetRef = nil, &hivev1.ClusterImageSetReference{Name: namespace}
	aci.Spec.ProvisionRequirements.ControlPlaneAgents = controlPlanes
	b.create(cd)
	b.create(aci)
	return client.ObjectKeyFromObject(aci)
}

func (b bed) imageOf(ie *InfraEnv) string {
	b.Helper()
	b.Eventually(func() string {
		b.Expect(b.client.Get(b.ctx, client.ObjectKeyFromObject(ie), ie)).To(Succeed())
		return ie.Status.ISODownloadURL
	}).ShouldNot(BeEmpty())
	_, after, ok := strings.Cut(ie.Status.ISODownloadURL, "/byid/")
	b.Expect(ok).To(BeTrue())
	id, _, _ := strings.Cut(after, "/")
	return id
}

// boot runs a host on the InfraEnv until it is installed or the test ends, and returns the name of its Agent.
func (b bed) boot(infraEnvID, hostname string) (agent string) {
	b.Helper()
	id := uuid.NewString()
	inventory := &models.Inventory{
		Hostname: hostname, CPU: &models.CPU{Architecture: "x86_64", Count: 16, Flags: []string{"vmx"}},
		Memory:       &models.Memory{PhysicalBytes: 32 << 30, UsableBytes: 32 << 30},
		SystemVendor: &models.SystemVendor{Manufacturer: "Sim", ProductName: "SimBox", SerialNumber: hostname},
		Disks: []*models.Disk{{
			ID: "/dev/disk/by-id/wwn-" + hostname, DriveType: models.DriveTypeSSD,
			InstallationEligibility: models.DiskInstallationEligibility{Eligible: true},
		}},
		Interfaces: []*models.Interface{{Name: "eth0", MacAddress: "52:54:00:00:00:01", IPV4Addresses: []string{"192.168.111.40/24"}}},
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(b.ctx)
	running.Go(func() {
		if err := b.runHost(ctx, infraEnvID, id, inventory); err != nil && ctx.Err() == nil {
			b.Errorf("host %s: %v", hostname, err)
		}
	})
	b.Cleanup(func() {
		stop()
		running.Wait()
	})
	return id
}

func (b bed) runHost(ctx context.Context, infraEnvID, id string, inventory *models.Inventory) error {
	agent := hosts.Agent{AgentConfig: hosts.AgentConfig{InfraEnvID: infraEnvID}, HostID: id, Inventory: inventory}
	for {
		if err := b.sim.Register(ctx, agent); err != nil {
			if errors.Is(err, hosts.ErrNotFound) {
				return nil // its InfraEnv was deleted
			}
			return err
		}
		order, err := b.sim.Next(ctx, agent)
		switch {
		case errors.Is(err, hosts.ErrNotFound) || (err == nil && order.Kind == hosts.Exit):
			continue
		case err != nil:
			return err
		case order.Kind != hosts.Install:
			return nil
		}
		report := hosts.Report{AgentConfig: agent.AgentConfig, HostID: id}
		for _, stage := range stagesOf(order.Role, order.Bootstrap, order.SingleNode) {
			if stage == models.HostStageJoined {
				if err := client.IgnoreAlreadyExists(b.client.Create(ctx, nodeOf(order))); err != nil {
					return err
				}
			}
			report.Stage = stage
			err := b.sim.Progress(ctx, report)
			if errors.Is(err, hosts.ErrNotFound) && stage == models.HostStageDone {
				break // deleted with its InfraEnv once it was installed; its cluster keeps running
			}
			if err != nil {
				return nil //nolint:nilerr // the test requested the failure
			}
		}
		if order.Bootstrap {
			return b.sim.Finalize(ctx, order.ClusterID)
		}
		return nil
	}
}

func nodeOf(order hosts.Instruction) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: order.Hostname}}
}

func (b bed) agent(namespace, name string) *Agent {
	agent := &Agent{}
	if err := b.client.Get(b.ctx, types.NamespacedName{Namespace: namespace, Name: name}, agent); err != nil {
		return &Agent{}
	}
	return agent
}

func (b bed) expectAgent(namespace, name, state string) {
	b.Helper()
	b.Eventually(func() string { return b.agent(namespace, name).Status.DebugInfo.State }).Should(Equal(state))
}

func (b bed) change(namespace, name string, change func(*AgentSpec)) {
	b.Helper()
	b.Eventually(func() error {
		agent := b.agent(namespace, name)
		change(&agent.Spec)
		return b.client.Update(b.ctx, agent)
	}).Should(Succeed())
}

func (b bed) bind(namespace, name string, cluster types.NamespacedName, role models.HostRole) {
	b.Helper()
	b.change(namespace, name, func(spec *AgentSpec) {
		spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: cluster.Namespace, Name: cluster.Name}
		spec.Role = role
	})
}

func (b bed) approve(namespace, name string) {
	b.Helper()
	b.change(namespace, name, func(spec *AgentSpec) { spec.Approved = true })
}

func (b bed) install(key types.NamespacedName) *hiveext.AgentClusterInstall {
	aci := &hiveext.AgentClusterInstall{}
	if err := b.client.Get(b.ctx, key, aci); err != nil {
		return &hiveext.AgentClusterInstall{}
	}
	return aci
}

func (b bed) expectCluster(key types.NamespacedName, state string) {
	b.Helper()
	b.Eventually(func() string { return b.install(key).Status.DebugInfo.State }).Should(Equal(state))
}

// installed installs n masters and waits for state adding-hosts.
func (b bed) installed(namespace string, n int) (cluster types.NamespacedName, agents []string) {
	b.Helper()
	id := b.imageOf(b.infraEnv(namespace, "ie1", nil))
	cluster = b.cluster(namespace, "day1-done-aci.yaml", n)
	for i := range n {
		agents = append(agents, b.boot(id, fmt.Sprintf("%s-m%d", namespace, i)))
	}
	for _, agent := range agents {
		b.expectAgent(namespace, agent, models.HostStatusKnownUnbound)
		b.bind(namespace, agent, cluster, models.HostRoleMaster)
	}
	b.expectCluster(cluster, models.ClusterStatusReady)
	for _, agent := range agents {
		b.approve(namespace, agent)
	}
	b.expectCluster(cluster, models.ClusterStatusAddingHosts)
	return cluster, agents
}

// sightings returns a function that returns the observed states and conditions (type=status/reason) of the
// AgentClusterInstall of a namespace.
func (b bed) sightings(namespace string) func() []string {
	b.Helper()
	events, err := b.client.Watch(b.ctx, &hiveext.AgentClusterInstallList{}, client.InNamespace(namespace))
	b.Expect(err).NotTo(HaveOccurred())
	var mu sync.Mutex
	var seen []string
	go func() {
		for event := range events.ResultChan() {
			if aci, ok := event.Object.(*hiveext.AgentClusterInstall); ok {
				mu.Lock()
				seen = append(seen, aci.Status.DebugInfo.State)
				for _, c := range aci.Status.Conditions {
					seen = append(seen, string(c.Type)+"="+string(c.Status)+"/"+c.Reason)
				}
				mu.Unlock()
			}
		}
	}()
	b.Cleanup(events.Stop)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func objectMeta(key types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
}
