package e2e

import (
	"context"
	"path"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// startup is the shortest nodeStartupTimeoutSeconds of Cluster API. The default is ten minutes, and an
// installation takes forty. Hosts that take longer than the timeout behave the same with both.
const startup = 30 * time.Second

var _ = Describe("A MachineHealthCheck", Label("healthcheck", "nightly"), func() {
	It("does not remediate hosts that are being installed, on day 1 and later, and remediates installed ones", func(ctx SpecContext) {
		const namespace = "slow"
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: namespace, ClusterName: "patient", ExtraHosts: 1, Edit: oneWorker})
		Expect(laboratory.Client().Create(ctx, healthCheckOf(cluster))).To(Succeed())

		By("installing workers slowly, while the control plane already runs")
		var releases []func()
		for _, created := range cluster.Hosts {
			// This is a stage of workers.
			releases = append(releases, hostOf(ctx, created.Namespace, created.Name).Linger(models.HostStageWaitingForIgnition))
		}
		wait(ctx, cluster, "initialized", func(s *lab.State) bool {
			return s.Cluster != nil && ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false)
		})
		By("adding a worker whose host starts late")
		late := hostOf(ctx, namespace, spareHost(state(ctx, cluster), cluster))
		late.PowerOff()
		Expect(cluster.Scale(ctx, 2)).To(Succeed())
		wait(ctx, cluster, "waiting for the host", func(s *lab.State) bool { return len(s.Machines) == 5 && everyMachineHasHost(s) })
		expectKept(ctx, cluster)
		for _, release := range releases {
			release()
		}
		late.PowerOn()
		wait(ctx, cluster, "complete", func(s *lab.State) bool { return len(s.Machines) == 5 && s.Available() })
		expectInstalled(ctx, cluster, 1)
		expectUnprotected(ctx, cluster)

		By("losing that host: its Machine is remediated")
		machine := machineOn(state(ctx, cluster), late)
		late.PowerOff()
		wait(ctx, cluster, "remediated", func(s *lab.State) bool {
			for _, m := range s.Machines {
				if m.UID == machine {
					return !m.DeletionTimestamp.IsZero()
				}
			}
			return true
		})
	}, NodeTimeout(3*installTimeout))
})

// healthCheckOf returns a MachineHealthCheck for all Machines of the cluster; only its times are not the
// defaults.
func healthCheckOf(cluster *lab.Cluster) *clusterv1.MachineHealthCheck {
	const lost = 10
	return &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: cluster.Name,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: cluster.Name}},
			Checks: clusterv1.MachineHealthCheckChecks{
				NodeStartupTimeoutSeconds: ptr.To(int32(startup.Seconds())),
				UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](lost)},
					{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](lost)},
				},
			},
		},
	}
}

// hostOf waits until the machine behind a BareMetalHost exists.
func hostOf(ctx context.Context, namespace, name string) *hosts.Host {
	GinkgoHelper()
	var host *hosts.Host
	Eventually(ctx, func() *hosts.Host { host = laboratory.Rack.Host(path.Join(namespace, name)); return host }).
		WithPolling(10 * time.Millisecond).ShouldNot(BeNil())
	return host
}

// expectKept checks that no Machine is replaced for longer than the timeout of a start. Machines without a Node
// then have to be protected.
func expectKept(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	before := map[types.UID]bool{}
	for _, m := range state(ctx, cluster).Machines {
		before[m.UID] = true
	}
	Consistently(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Machines).To(HaveLen(len(before)))
		for _, m := range s.Machines {
			g.Expect(before).To(HaveKey(m.UID), "Machine %s is new", m.Name)
			g.Expect(m.DeletionTimestamp).To(BeNil(), "Machine %s is deleted", m.Name)
		}
	}).WithTimeout(startup + quiet).WithPolling(time.Second).Should(Succeed())
	for _, m := range state(ctx, cluster).Machines {
		if !m.Status.NodeRef.IsDefined() {
			Expect(m.Annotations).To(HaveKey(clusterv1.MachineSkipRemediationAnnotation))
		}
	}
}

// expectUnprotected checks that a MachineHealthCheck covers all Machines again.
func expectUnprotected(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		for _, m := range state(ctx, cluster).Machines {
			g.Expect(m.Annotations).NotTo(HaveKey(clusterv1.MachineSkipRemediationAnnotation), "Machine %s", m.Name)
		}
	}).Should(Succeed())
}

// spareHost returns the name of the BareMetalHost of the cluster without a Machine.
func spareHost(s *lab.State, cluster *lab.Cluster) string {
	GinkgoHelper()
	used := map[string]bool{}
	for _, m := range s.Machines {
		used[m.Host.Name] = true
	}
	for _, created := range cluster.Hosts {
		if !used[created.Name] {
			return created.Name
		}
	}
	Fail("no host is left")
	return ""
}

func everyMachineHasHost(s *lab.State) bool {
	for _, m := range s.Machines {
		if m.Host == nil {
			return false
		}
	}
	return true
}

// machineOn returns the uid of the Machine of a host.
func machineOn(s *lab.State, host *hosts.Host) types.UID {
	GinkgoHelper()
	for _, m := range s.Machines {
		if path.Join(m.Host.Namespace, m.Host.Name) == host.Name() {
			return m.UID
		}
	}
	Fail("no Machine has host " + host.Name())
	return ""
}
