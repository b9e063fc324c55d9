package e2e

import (
	"context"
	"path"
	"sync"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The hosts of an installation on hold have enough time for the specs. Each spec continues with the state of the
// former one.
var _ = Describe("An installation on hold", Ordered, Label("hold", "agents"), func() {
	const namespace = "hold"
	var cluster *lab.Cluster
	var specs func(agent string) []aiv1beta1.AgentSpec

	BeforeAll(func(ctx SpecContext) {
		specs = followAgents(namespace) // before any exists
		cluster = apply(ctx, "compact", lab.Mutations{
			Namespace: namespace, ClusterName: "patient", HostOptions: []hosts.HostOption{withSettings},
			Edit: edits(edit(controlPlaneKind, true, "spec", "config", "holdInstallation"),
				edit(controlPlaneKind, ordered, "spec", "openshiftAssistedConfigSpec")),
		})
	}, NodeTimeout(soon))

	It("does not start while it is on hold", func(ctx SpecContext) {
		waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.InstallationOnHoldReason)
		wait(ctx, cluster, "ready to install", allApproved)
		s := state(ctx, cluster)
		Expect(s.ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationPending))
		// The machine that runs the tests has no record of the cluster, and may have no DNS.
		preflight := lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.PreflightPassedCondition)
		Expect(preflight.Reason).To(Or(Equal(controlplanev1.PreflightWarningsReason), Equal(controlplanev1.PreflightIncompleteReason)))
		Expect(preflight.Message).To(ContainSubstring("api.patient."))
	}, NodeTimeout(installTimeout))

	It("has an Agent that is recreated and identified when it is deleted while its host runs",
		func(ctx SpecContext) {
			lost := state(ctx, cluster).Machines[0].Agent
			Expect(laboratory.Client().Delete(ctx, lost)).To(Succeed())
			wait(ctx, cluster, "identifying the host again", func(s *lab.State) bool {
				agent := s.Machines[0].Agent
				return agent != nil && agent.UID != lost.UID && allApproved(s)
			})
			Expect(state(ctx, cluster).Machines[0].Agent.Name).To(Equal(lost.Name))
			waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.InstallationOnHoldReason)
			Expect(state(ctx, cluster).ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationPending),
				"the installation is still on hold")
		}, NodeTimeout(installTimeout))

	It("is blocked while an Agent of another namespace is bound to its ClusterDeployment", func(ctx SpecContext) {
		onlySimulated() // the real assisted-service deletes an Agent that it has not discovered
		foreign := bindForeignAgent(ctx, cluster)
		message := waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.ForeignAgentsBoundReason)
		Expect(message).To(ContainSubstring(client.ObjectKeyFromObject(foreign).String()))
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"config":{"holdInstallation":false}}}`)
		Eventually(ctx, func(g Gomega) {
			cp := state(ctx, cluster).ControlPlane
			installed := lab.Condition(cp.Status.Conditions, controlplanev1.InstalledCondition)
			g.Expect(installed.ObservedGeneration).To(Equal(cp.Generation))
			g.Expect(installed.Reason).To(Equal(controlplanev1.ForeignAgentsBoundReason))
		}).Should(Succeed())
		Consistently(ctx, func(g Gomega) {
			s := state(ctx, cluster)
			g.Expect(s.Installation.Spec.HoldInstallation).To(BeTrue())
			g.Expect(s.ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationPending))
		}).WithTimeout(quiet).Should(Succeed())
		Expect(laboratory.Client().Delete(ctx, foreign)).To(Succeed())
	}, NodeTimeout(installTimeout))

	It("is installed when nothing blocks it", func(ctx SpecContext) {
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"config":{"holdInstallation":false}}}`)
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		wait(ctx, cluster, "without a preflight report: it is installed", func(s *lab.State) bool {
			return lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.PreflightPassedCondition).Reason == ""
		})
	}, NodeTimeout(2*installTimeout))

	It("writes the settings of each Agent before its approval and none afterwards, and installs its host with them",
		func(ctx SpecContext) {
			workload := workloadOf(cluster)
			for _, m := range state(ctx, cluster).Machines {
				history := specs(m.Agent.Name)
				last := len(history) - 1
				Expect(last).To(BeNumerically(">", 0), "Agent %s was seen before its approval", m.Agent.Name)
				Expect(history[last].Approved).To(BeTrue())
				before := history[last-1]
				Expect(before.Approved).To(BeFalse(), "nothing is written after the approval")
				before.Approved = true
				Expect(equality.Semantic.DeepEqual(before, history[last])).To(BeTrue(), "the approval is a separate write")

				disk := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name)).Hardware().Disks[0]
				Expect(m.Agent.Status.InstallationDiskID).To(Equal(disk.ByID), "the disk of the hint: assisted-service would choose the second")
				node := nodeOf(ctx, workload, m)
				Expect(node.Labels).To(And(HaveKeyWithValue("rack", "b7"), HaveKeyWithValue("row", "of-the-host")),
					"labels from the annotations of the BareMetalHost")
				expectOrder(ctx, m)
			}
		}, NodeTimeout(soon))
})

var _ = Describe("An Agent", Label("agents"), func() {
	It("whose host boots the discovery image again is reported, and never installed again", func(ctx SpecContext) {
		cluster := apply(ctx, "ha", lab.Mutations{
			Namespace: "boot-order", ClusterName: "twice", LightAPI: lightly(),
			HoldAPI: true, Edit: oneWorker,
		})
		wait(ctx, cluster, "installing", installing)

		By("booting it instead of the disk at the end of the installation")
		s := state(ctx, cluster)
		worker := s.Machines[len(s.Machines)-1]
		host := laboratory.Rack.Host(path.Join(worker.Host.Namespace, worker.Host.Name))
		host.WrongBoot()
		cluster.ReleaseAPI()
		wait(ctx, cluster, "reporting the wrong boot", func(s *lab.State) bool {
			return configHas(s, bootstrapv1.HostBootedDiscoveryAgainReason)
		})
		host.Reboot()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0, host)

		By("booting it in the installed cluster")
		host.WrongBoot()
		Eventually(host.Problem).Should(MatchError(ContainSubstring("after the cluster has already been installed")),
			"assisted-service rejects it")
		boots := len(host.Boots())
		Expect(host.Boots()[boots-1].System).To(Equal(hosts.Discovery))
		wait(ctx, cluster, "missing a Node", func(s *lab.State) bool {
			machine := s.Machines[len(s.Machines)-1]
			return lab.Condition(machine.Status.Conditions, clusterv1.MachineNodeHealthyCondition).Status != metav1.ConditionTrue
		})
		Consistently(ctx, func(g Gomega) {
			g.Expect(host.Boots()).To(HaveLen(boots), "the host does not boot again")
			g.Expect(state(ctx, cluster).Machines).To(HaveLen(4))
		}).WithTimeout(quiet).Should(Succeed())
		host.Reboot()
		waitAvailable(ctx, cluster)
		Expect(host.Losses()).To(BeEmpty())
	}, NodeTimeout(2*installTimeout))
})

// ordered are the settings for each host that is discovered and installed.
var ordered = map[string]any{
	"imageType":                "minimal-iso",
	"rootDeviceHints":          map[string]any{"deviceName": firstDisk.DeviceName},
	"agentLabels":              map[string]any{"example.com/site": "seven"},
	"discoveryKernelArguments": []any{map[string]any{"operation": "append", "value": "rd.net.timeout.carrier=60"}},
	"kernelArguments":          []any{map[string]any{"operation": "append", "value": "quiet"}},
	"installerArguments":       []any{"--save-partlabel", "data*"},
	"nodeRegistration":         map[string]any{"kubeletExtraLabels": []any{"rack=b7", "row=of-the-config"}},
}

// withSettings sets the annotations of ZTP pipelines for the installation of a BareMetalHost.
func withSettings(_ int, host *metal3api.BareMetalHost) {
	host.Annotations = map[string]string{
		"bmac.agent-install.openshift.io/role":           "master",
		"bmac.agent-install.openshift.io/installer-args": `["--copy-network"]`,
		"bmac.agent-install.openshift.io/ignition-config-overrides": `{"ignition":{"version":"3.2.0"},"storage":{"files":[` +
			`{"path":"/etc/of-the-host","contents":{"source":"data:,yes"}}]}}`,
		"bmac.agent-install.openshift.io.node-label.row": "of-the-host",
	}
}

// expectOrder checks that a host was discovered and installed with the settings.
func expectOrder(ctx context.Context, m lab.Machine) {
	GinkgoHelper()
	Expect(m.Agent.Labels).To(HaveKeyWithValue("example.com/site", "seven"))
	infraEnv := &aiv1beta1.InfraEnv{}
	Expect(laboratory.Client().Get(ctx, client.ObjectKeyFromObject(m.Machine), infraEnv)).To(Succeed())
	Expect(infraEnv.Spec.KernelArguments).To(ConsistOf(aiv1beta1.KernelArgument{Operation: "append", Value: "rd.net.timeout.carrier=60"}))
	Expect(infraEnv.Status.ISODownloadURL).To(ContainSubstring("/minimal.iso"))
	instruction, given := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name)).Instruction()
	Expect(given).To(BeTrue())
	Expect(instruction.InstallerArgs).To(ContainSubstring(`"--append-karg","quiet","--save-partlabel","data*","--copy-network"`))
	ignition, err := hosts.DecodeIgnition([]byte(instruction.IgnitionOverrides))
	Expect(err).NotTo(HaveOccurred())
	Expect(ignition.Files).To(HaveKeyWithValue("/etc/of-the-host", HaveField("Contents", "yes")))
}

// bindForeignAgent creates an Agent of another namespace that is bound to the ClusterDeployment of a cluster.
// Any client can do so that may write Agents in its own namespace.
func bindForeignAgent(ctx context.Context, cluster *lab.Cluster) *aiv1beta1.Agent {
	GinkgoHelper()
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace + "-tenant"}}
	Expect(laboratory.Client().Create(ctx, tenant)).To(Succeed())
	foreign := &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "foreign"},
		Spec:       aiv1beta1.AgentSpec{ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: cluster.Namespace, Name: cluster.Name}},
	}
	Expect(laboratory.Client().Create(ctx, foreign)).To(Succeed())
	return foreign
}

// allApproved reports whether all wanted Machines exist and have an approved Agent.
func allApproved(s *lab.State) bool {
	for _, m := range s.Machines {
		if m.Agent == nil || !m.Agent.Spec.Approved {
			return false
		}
	}
	return len(s.Machines) == s.Wanted
}

// followAgents watches the Agents of a namespace, which need not exist yet, until the spec or container ends.
// The returned function lists the specs that an Agent had, in their order.
func followAgents(namespace string) func(name string) []aiv1beta1.AgentSpec {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(laboratory.Env.Config(), client.Options{Scheme: laboratory.Env.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	events, err := watcher.Watch(context.Background(), &aiv1beta1.AgentList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)

	var mu sync.Mutex
	specs := map[string][]aiv1beta1.AgentSpec{}
	go func() {
		for event := range events.ResultChan() {
			agent, ok := event.Object.(*aiv1beta1.Agent)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			mu.Lock()
			history := specs[agent.Name]
			if len(history) == 0 || !equality.Semantic.DeepEqual(history[len(history)-1], agent.Spec) {
				specs[agent.Name] = append(history, agent.Spec)
			}
			mu.Unlock()
		}
	}()
	return func(name string) []aiv1beta1.AgentSpec {
		mu.Lock()
		defer mu.Unlock()
		return specs[name]
	}
}
