package journeys

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	hiveagent "github.com/openshift/hive/apis/hive/v1/agent"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	namespace = "lab"
	version   = "4.19.10"
	apiVIP    = "192.168.111.250"
)

// world is a laboratory without managers: an assisted-service and a rack of hosts. The test itself binds, approves and
// deletes.
type world struct {
	*testing.T
	*WithT
	*lab.Lab
	ctx  context.Context
	seen *record
}

func newWorld(t *testing.T, backend lab.Backend, auth assistedsim.AuthType) *world {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(2 * time.Minute)
	g.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first run builds everything
	t.Cleanup(cancel)
	l, err := lab.New(ctx, lab.Options{Backend: backend, Auth: auth, NoManagers: true, LeaveSignals: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(l.Stop)
	w := &world{T: t, WithT: g, Lab: l, ctx: ctx, seen: newRecord(t)}
	release, err := l.Registry.Publish(version)
	g.Expect(err).NotTo(HaveOccurred())
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	w.create(&corev1.Secret{
		ObjectMeta: metadata("pull-secret"), Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: lab.PullSecretContent()},
	})
	w.create(&hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: version}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: release},
	})
	w.watch(&aiv1beta1.AgentList{})
	w.watch(&hiveext.AgentClusterInstallList{})
	return w
}

func metadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func (w *world) create(object client.Object) {
	w.Helper()
	w.Expect(w.Client().Create(w.ctx, object)).To(Succeed())
}

// infraEnv creates an InfraEnv and returns the URL of its ISO.
func (w *world) infraEnv(name string) string {
	w.Helper()
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metadata(name)}
	infraEnv.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull-secret"}
	infraEnv.Spec.OSImageVersion = "4.19"
	w.create(infraEnv)
	w.Eventually(func() string {
		w.Expect(w.Client().Get(w.ctx, client.ObjectKeyFromObject(infraEnv), infraEnv)).To(Succeed())
		return infraEnv.Status.ISODownloadURL
	}).ShouldNot(BeEmpty())
	return infraEnv.Status.ISODownloadURL
}

// cluster creates a cluster for so many control planes: on bare metal, or a single node for no platform.
func (w *world) cluster(name string, controlPlanes int) *lab.Cluster {
	w.Helper()
	cluster := w.clusterWithoutAPI(name, controlPlanes)
	cluster.ReleaseAPI()
	return cluster
}

// clusterWithoutAPI likewise, but its hosts cannot bring up its API.
func (w *world) clusterWithoutAPI(name string, controlPlanes int) *lab.Cluster {
	w.Helper()
	cluster, err := w.NewCluster(types.NamespacedName{Namespace: namespace, Name: name})
	w.Expect(err).NotTo(HaveOccurred())
	deployment, install := described(name, controlPlanes)
	w.create(deployment)
	w.create(install)
	return cluster
}

// described are the objects that describe a cluster.
func described(name string, controlPlanes int) (*hivev1.ClusterDeployment, *hiveext.AgentClusterInstall) {
	deployment := &hivev1.ClusterDeployment{ObjectMeta: metadata(name)}
	deployment.Spec = hivev1.ClusterDeploymentSpec{
		BaseDomain: "example.com", ClusterName: name, PullSecretRef: &corev1.LocalObjectReference{Name: "pull-secret"},
		Platform: hivev1.Platform{AgentBareMetal: &hiveagent.BareMetalPlatform{}},
		ClusterInstallRef: &hivev1.ClusterInstallLocalReference{
			Group: hiveext.Group, Version: hiveext.Version, Kind: "AgentClusterInstall", Name: name,
		},
	}
	install := &hiveext.AgentClusterInstall{ObjectMeta: metadata(name)}
	install.Spec = hiveext.AgentClusterInstallSpec{
		ClusterDeploymentRef:  corev1.LocalObjectReference{Name: name},
		ImageSetRef:           &hivev1.ClusterImageSetReference{Name: version},
		ProvisionRequirements: hiveext.ProvisionRequirements{ControlPlaneAgents: controlPlanes},
		Networking: hiveext.Networking{
			ClusterNetwork: []hiveext.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostPrefix: 23}},
			ServiceNetwork: []string{"172.30.0.0/16"},
			MachineNetwork: []hiveext.MachineNetworkEntry{{CIDR: "192.168.111.0/24"}},
		},
	}
	if controlPlanes > 1 {
		install.Spec.APIVIPs, install.Spec.IngressVIPs = []string{apiVIP}, []string{"192.168.111.251"}
	}
	return deployment, install
}

// importedCluster registers a cluster that was installed elsewhere, like the control plane provider. Its pull secret is
// missing at first.
func (w *world) importedCluster(name string) *lab.Cluster {
	w.Helper()
	cluster, err := w.NewCluster(types.NamespacedName{Namespace: namespace, Name: name})
	w.Expect(err).NotTo(HaveOccurred())
	cluster.ReleaseAPI()
	w.create(&corev1.Secret{
		ObjectMeta: metadata(name + "-admin-kubeconfig"),
		Data:       map[string][]byte{"kubeconfig": cluster.Server().Kubeconfig()},
	})
	deployment, install := described(name, 3)
	known := &hivev1.ClusterMetadata{
		ClusterID: "6d9ad6a6-3d3b-4d2f-9a43-111111111111", InfraID: name + "-x7k2p",
		AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: name + "-admin-kubeconfig"},
	}
	deployment.Spec.Installed, deployment.Spec.ClusterMetadata = true, known
	deployment.Spec.PullSecretRef.Name = name + "-pull-secret"
	install.Spec.HoldInstallation, install.Spec.ClusterMetadata = true, known
	w.create(deployment)
	w.create(install)
	return cluster
}

// boot boots a machine from an ISO and waits until its Agent may be bound.
func (w *world) boot(iso, name string) *hosts.Host {
	w.Helper()
	host, err := w.Rack.BootUnmanaged(iso, hosts.NewHardware(name))
	w.Expect(err).NotTo(HaveOccurred())
	w.expectHost(host, models.HostStatusKnownUnbound)
	return host
}

func (w *world) agent(host *hosts.Host) *aiv1beta1.Agent {
	agent := &aiv1beta1.Agent{}
	key := types.NamespacedName{Namespace: namespace, Name: host.Hardware().UUID}
	w.Expect(client.IgnoreNotFound(w.Client().Get(w.ctx, key, agent))).To(Succeed())
	return agent
}

func (w *world) change(host *hosts.Host, change func(*aiv1beta1.AgentSpec)) {
	w.Helper()
	w.Eventually(func() error {
		agent := w.agent(host)
		read := agent.DeepCopy()
		change(&agent.Spec)
		return w.Client().Patch(w.ctx, agent, client.MergeFrom(read))
	}).Should(Succeed())
}

// bind sets the cluster and the role of a host.
func (w *world) bind(host *hosts.Host, cluster *lab.Cluster, role models.HostRole) {
	w.Helper()
	w.change(host, func(spec *aiv1beta1.AgentSpec) {
		spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: namespace, Name: cluster.Name}
		spec.Role, spec.Hostname = aiv1beta1.HostRole(role), nodeName(host)
		spec.NodeLabels = map[string]string{"laboratory/rack": "one"}
		spec.IgnitionConfigOverrides = `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/kubernetes/kubelet-env",` +
			`"mode":420,"overwrite":true,"contents":{"source":"data:,CUSTOM_KUBELET_LABELS=metal3.io/uuid=` + host.Name() + `%0A"}}]}}`
	})
}

func (w *world) approve(host *hosts.Host) {
	w.Helper()
	w.change(host, func(spec *aiv1beta1.AgentSpec) { spec.Approved = true })
}

func nodeName(host *hosts.Host) string { return host.Name() + ".example.com" }

func (w *world) expectHost(host *hosts.Host, state string) {
	w.Helper()
	w.Eventually(func() string { return w.agent(host).Status.DebugInfo.State }).Should(Equal(state), func() string {
		return fmt.Sprintf("%s: %s; held up by: %v", host.Name(), w.agent(host).Status.DebugInfo.StateInfo, host.Problem())
	})
}

func (w *world) install(cluster *lab.Cluster) *hiveext.AgentClusterInstall {
	install := &hiveext.AgentClusterInstall{}
	w.Expect(w.Client().Get(w.ctx, cluster.Key(), install)).To(Succeed())
	return install
}

func (w *world) expectCluster(cluster *lab.Cluster, state string) {
	w.Helper()
	w.Eventually(func() string { return w.install(cluster).Status.DebugInfo.State }).Should(Equal(state), func() string {
		return w.install(cluster).Status.DebugInfo.StateInfo
	})
}

// expectNode checks what the hub, or the controller in the cluster, and the ignition of the host made of its Node.
func (w *world) expectNode(cluster *lab.Cluster, host *hosts.Host) {
	w.Helper()
	workload, err := cluster.Workload()
	w.Expect(err).NotTo(HaveOccurred())
	node := &corev1.Node{}
	w.Eventually(func() map[string]string {
		w.Expect(workload.Get(w.ctx, types.NamespacedName{Name: nodeName(host)}, node)).To(Succeed())
		return node.Labels
	}).Should(And(HaveKeyWithValue("laboratory/rack", "one"), HaveKeyWithValue("metal3.io/uuid", host.Name())))
}

// expectInstalled checks the status of an installed cluster on bare metal, and the fields that the service does not
// set.
func (w *world) expectInstalled(cluster *lab.Cluster) {
	w.Helper()
	install := w.install(cluster)
	w.Expect(install.Finalizers).To(ConsistOf("agentclusterinstall.agent-install.openshift.io/ai-deprovision"))
	w.Expect(install.OwnerReferences).To(ConsistOf(HaveField("Kind", "ClusterDeployment")))
	w.Expect(install.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name).To(Equal(cluster.Name + "-admin-kubeconfig"))
	w.Expect(install.Spec.ClusterMetadata.AdminPasswordSecretRef.Name).To(Equal(cluster.Name + "-admin-password"))
	w.Expect(install.Status.APIVIPs).To(ConsistOf(apiVIP))
	w.Expect(install.Status.PlatformType).To(Equal(hiveext.BareMetalPlatformType))
	w.Expect(install.Status.UserManagedNetworking).To(HaveValue(BeFalse()))

	deployment := &hivev1.ClusterDeployment{}
	w.Expect(w.Client().Get(w.ctx, cluster.Key(), deployment)).To(Succeed())
	w.Expect(deployment.Spec.Installed).To(BeFalse())
	w.Expect(deployment.Spec.ClusterMetadata).To(BeNil())

	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: namespace, Name: install.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name}
	w.Expect(w.Client().Get(w.ctx, key, secret)).To(Succeed())
	w.Expect(string(secret.Data["kubeconfig"])).To(ContainSubstring(fmt.Sprintf(":%d", cluster.Server().Port)))
	w.Expect(lab.Final(secret.Data["kubeconfig"])).To(BeTrue())
}
