package installed

import (
	"testing"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// ofMachine returns the Agent of the host of a Machine, with pending validations.
func ofMachine(name string) aiv1beta1.Agent {
	a := agentIn("host-"+name, "insufficient", "Host cannot be installed due to following failing validation(s):")
	a.Labels = map[string]string{aiv1beta1.InfraEnvNameLabel: name}
	a.Status.Conditions = []conditionsv1.Condition{{
		Type: aiv1beta1.ValidatedCondition, Status: corev1.ConditionFalse, Reason: aiv1beta1.ValidationsFailingReason,
		Message: "The agent's validations are failing: No connectivity to the majority of hosts in the cluster",
	}}
	return a
}

func TestInstallationNamesBlockingHosts(t *testing.T) {
	machine := func(name, reason, message string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if reason != "" {
			conditions.Set(m, condition.False(clusterv1.MachineBootstrapConfigReadyCondition, reason, message))
		}
		return m
	}
	deleted := machine("m2", bootstrapv1.WaitingForMachineReason, "Machine m2 is being deleted")
	deleted.DeletionTimestamp = ptr.To(metav1.Now())
	const bound = "WaitingForHostValidation"
	for situation, tc := range map[string]struct {
		third    *clusterv1.Machine
		wanted   string
		unwanted string
	}{
		"a host is refused": {
			machine("m2", bootstrapv1.HostRefusedReason, "Agent x has the MAC address 1, not 2"),
			"Machine m2: HostRefused: Agent x has the MAC address 1, not 2",
			"host-m0",
		},
		"a host has no address": {
			machine("m2", bootstrapv1.WaitingForHostIdentityReason, "set spec.bootMACAddress"), "Machine m2: WaitingForHostIdentity", "host-m0",
		},
		"a host boots": {
			machine("m2", bootstrapv1.WaitingForHostReason, "waiting for the host"),
			"host host-m0: The agent's validations are failing: No connectivity",
			"Machine m2",
		},
		"a Machine is being deleted": {deleted, "hosts bound to the cluster: 2 of 3; Machine m2 is being deleted", "host-m0"},
		"nothing reported yet":       {machine("m2", "", ""), "No connectivity", "Machine m2"},
		"a host is being bound": {
			machine("m2", bootstrapv1.HostBindingReason, "binding"), "hosts bound to the cluster: 2 of 3", "Machine m2",
		},
		"bound hosts are not named": {
			machine("m2", bootstrapv1.InstallationDiskNotFoundReason, "no disk"), "InstallationDiskNotFound", "Machine m0",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := factsOf(nil)
			s.Install = installOf("insufficient")
			s.Progress = assisted.Observe(s.Install)
			s.Machines = []*clusterv1.Machine{machine("m0", bound, "info"), machine("m1", bound, "info"), tc.third}
			s.Agents = []aiv1beta1.Agent{ofMachine("m0"), ofMachine("m1")}
			c := viewOf(s).Condition()
			g.Expect(c.Reason).To(Equal(controlplanev1.WaitingForHostsReason))
			g.Expect(c.Message).To(
				And(HavePrefix("hosts bound to the cluster: 2 of 3"), ContainSubstring(tc.wanted), Not(ContainSubstring(tc.unwanted))),
			)
		})
	}
}
