package e2e

import (
	"path"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("Unsteady hosts", Label("agents", "nightly"), func() {
	It("are approved once, reported while they are disconnected or invalid, and never replaced", func(ctx SpecContext) {
		onlySimulated()
		const namespace, name = "unsteady", "shaky"
		ids := make([]string, 3)
		for i := range ids {
			ids[i] = hosts.NewHardware(path.Join(namespace, nameOf(name, i))).UUID
		}
		specs := followAgents(namespace) // before any exists

		By("waiting for hosts that fail a validation, one of which is also disconnected, before they are bound")
		laboratory.Service.FailValidation(ids[0], "no NTP server answers")
		laboratory.Service.FailValidation(ids[1], "no NTP server answers")
		cluster := apply(ctx, "compact", lab.Mutations{
			Namespace: namespace, ClusterName: name, Edit: edit(controlPlaneKind, true, "spec", "config", "holdInstallation"),
		})
		shaky := func(i int) *hosts.Host { return rackHostOf(cluster.Hosts[i]) }
		machines := func(s *lab.State) []string {
			var names []string
			for _, m := range s.Machines {
				names = append(names, m.Name+" "+string(m.UID))
			}
			slices.Sort(names)
			return names
		}
		wait(ctx, cluster, "reporting a validation", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostBoundCondition, bootstrapv1.WaitingForHostValidationReason, "no NTP server answers")
		})
		laboratory.Service.Disconnect(ids[1])
		s := wait(ctx, cluster, "reporting a disconnected host", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostBoundCondition, bootstrapv1.WaitingForHostValidationReason, "in state disconnected-unbound")
		})
		expected := machines(s)
		for _, id := range ids[:2] {
			Expect(specs(id)).To(HaveLen(1), "nothing is written to Agent %s", id)
			laboratory.Service.FailValidation(id, "")
		}
		shaky(1).Reboot()
		wait(ctx, cluster, "approved", allApproved)

		By("not changing them when that happens after their approval")
		for range 3 {
			laboratory.Service.FailValidation(ids[0], "no NTP server answers")
			wait(ctx, cluster, "with a host that fails a validation", agentIs(ids[0], "insufficient"))
			laboratory.Service.FailValidation(ids[0], "")
			wait(ctx, cluster, "with a host that passes the validation", agentIs(ids[0], "known"))
		}
		laboratory.Service.FailValidation(ids[0], "no NTP server answers")
		laboratory.Service.Disconnect(ids[1])
		wait(ctx, cluster, "reporting both", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostInstalledCondition, bootstrapv1.WaitingForHostReason, "has lost contact with assisted-service") &&
				reports(s, bootstrapv1.HostInstalledCondition, bootstrapv1.WaitingForHostValidationReason, "no NTP server answers")
		})
		laboratory.Service.FailValidation(ids[0], "")
		shaky(1).Reboot()
		wait(ctx, cluster, "with both back", func(s *lab.State) bool { return agentIs(ids[0], "known")(s) && agentIs(ids[1], "known")(s) })
		for _, id := range ids {
			Expect(approvals(specs(id))).To(Equal(1), "of Agent %s", id)
		}
		Expect(machines(state(ctx, cluster))).To(Equal(expected))

		By("losing one during its installation: that fails, and there is no reaction without a request")
		release := shaky(2).Linger("Writing image to disk")
		defer release()
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"config":{"holdInstallation":false}}}`)
		wait(ctx, cluster, "installing", agentIs(ids[2], "installing-in-progress"))
		laboratory.Service.Disconnect(ids[2])
		waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.InstallationFailedReason)
		wait(ctx, cluster, "reporting the host", func(s *lab.State) bool {
			return reports(s, bootstrapv1.HostInstalledCondition, bootstrapv1.HostInstallationFailedReason,
				"timeout while connecting to host during the installation phase")
		})
		Consistently(ctx, func() []string { return machines(state(ctx, cluster)) }).WithTimeout(quiet).Should(Equal(expected))
		for _, id := range ids {
			Expect(approvals(specs(id))).To(Equal(1), "of Agent %s", id)
		}
	}, NodeTimeout(3*installTimeout))
})

// agentIs reports whether a host is in a state for assisted-service.
func agentIs(id, wanted string) func(*lab.State) bool {
	return func(s *lab.State) bool {
		return slices.ContainsFunc(s.Agents,
			func(agent aiv1beta1.Agent) bool { return agent.Name == id && agent.Status.DebugInfo.State == wanted })
	}
}

// approvals returns how often an Agent was approved.
func approvals(history []aiv1beta1.AgentSpec) int {
	count := 0
	for i, spec := range history {
		if spec.Approved && (i == 0 || !history[i-1].Approved) {
			count++
		}
	}
	return count
}
