package e2e

import (
	"context"
	"path"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("An Agent", Label("agents"), func() {
	It("is told everything before it is approved and nothing afterwards, and its host is installed so", func(ctx SpecContext) {
		const namespace = "order"
		specs := followAgents(ctx, namespace) // before there is any
		cluster := apply(ctx, "compact", lab.Mutations{
			Namespace: namespace, ClusterName: "orderly", HostOptions: []hosts.HostOption{hosts.WithRootDeviceHints(firstDisk)},
			Edit: edit(controlPlaneKind, []any{"rack=b7"}, "spec", "openshiftAssistedConfigSpec", "nodeRegistration", "kubeletExtraLabels"),
		})
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		workload := workloadOf(cluster)
		for _, m := range state(ctx, cluster).Machines {
			history := specs(m.Agent.Name)
			last := len(history) - 1
			Expect(last).To(BeNumerically(">", 0), "Agent %s was seen before its approval", m.Agent.Name)
			Expect(history[last].Approved).To(BeTrue())
			before := history[last-1]
			Expect(before.Approved).To(BeFalse(), "nothing is written after the approval")
			before.Approved = true
			Expect(equality.Semantic.DeepEqual(before, history[last])).To(BeTrue(), "the approval is a write of its own")

			disk := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name)).Hardware().Disks[0]
			Expect(m.Agent.Status.InstallationDiskID).To(Equal(disk.ByID))
			Expect(nodeOf(ctx, workload, m).Labels).To(HaveKeyWithValue("rack", "b7"))
		}
	}, NodeTimeout(installTimeout+soon))

	It("comes back when it is deleted while its host runs, is recognised again, and the installation goes on", func(ctx SpecContext) {
		cluster := apply(ctx, "compact", lab.Mutations{
			Namespace: "comeback", ClusterName: "lazarus", Edit: edit(controlPlaneKind, true, "spec", "config", "holdInstallation"),
		})
		s := wait(ctx, cluster, "approved", allApproved)
		lost := s.Machines[0].Agent
		Expect(laboratory.Client().Delete(ctx, lost)).To(Succeed())
		wait(ctx, cluster, "recognising the host again", func(s *lab.State) bool {
			agent := s.Machines[0].Agent
			return agent != nil && agent.UID != lost.UID && allApproved(s)
		})
		Expect(state(ctx, cluster).Machines[0].Agent.Name).To(Equal(lost.Name))
		waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.InstallationOnHoldReason)
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"config":{"holdInstallation":false}}}`)
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(2*installTimeout))

	It("whose host boots the discovery image again is reported, and never installed twice", func(ctx SpecContext) {
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: "boot-order", ClusterName: "twice", HoldAPI: true})
		wait(ctx, cluster, "installing", installing)

		By("booting it instead of the disk at the end of the installation")
		s := state(ctx, cluster)
		worker := s.Machines[len(s.Machines)-1]
		host := laboratory.Rack.Host(path.Join(worker.Host.Namespace, worker.Host.Name))
		host.WrongBoot()
		cluster.ReleaseAPI()
		wait(ctx, cluster, "telling of the wrong boot", func(s *lab.State) bool {
			return configHas(s, bootstrapv1.HostBootedDiscoveryAgainReason)
		})
		host.Reboot()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)

		By("booting it in the installed cluster")
		host.WrongBoot()
		Eventually(host.Problem).Should(MatchError(ContainSubstring("after the cluster has already been installed")), "assisted-service refuses it")
		boots := len(host.Boots())
		Expect(host.Boots()[boots-1].System).To(Equal(hosts.Discovery))
		wait(ctx, cluster, "missing a Node", func(s *lab.State) bool {
			machine := s.Machines[len(s.Machines)-1]
			return lab.Condition(machine.Status.Conditions, clusterv1.MachineNodeHealthyCondition).Status != metav1.ConditionTrue
		})
		Consistently(ctx, func(g Gomega) {
			g.Expect(host.Boots()).To(HaveLen(boots), "nothing is written to its disk and booted")
			g.Expect(state(ctx, cluster).Machines).To(HaveLen(5))
		}).WithTimeout(quiet).Should(Succeed())
		host.Reboot()
		waitAvailable(ctx, cluster)
		Expect(host.Wipes()).To(BeZero())
	}, NodeTimeout(2*installTimeout))
})

// allApproved tells whether every Machine that shall be has an approved Agent.
func allApproved(s *lab.State) bool {
	for _, m := range s.Machines {
		if m.Agent == nil || !m.Agent.Spec.Approved {
			return false
		}
	}
	return len(s.Machines) == s.Wanted
}

// followAgents watches the Agents of a namespace, which need not exist yet, until ctx ends. What it returns gives the specs that an Agent had, one after the other.
func followAgents(ctx context.Context, namespace string) func(name string) []aiv1beta1.AgentSpec {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(laboratory.Env.Config(), client.Options{Scheme: laboratory.Env.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	events, err := watcher.Watch(ctx, &aiv1beta1.AgentList{}, client.InNamespace(namespace))
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
