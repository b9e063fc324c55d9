package status

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// TestStatusBoundsForeignTexts: the CRD accepts messages of 32,768 characters.
func TestStatusBoundsForeignTexts(t *testing.T) {
	long := strings.Repeat("x", 40000)
	hosts := func() (agents []aiv1beta1.Agent) {
		for i := range 200 {
			agent := agentIn(fmt.Sprintf("m%03d", i), "error", fmt.Sprintf("failure %d %s\n", i, long))
			agent.Status.Inventory.Hostname = fmt.Sprintf("m%03d%s", i, long)
			agents = append(agents, agent)
		}
		return agents
	}
	var unhealthy []string
	for i := range 200 {
		unhealthy = append(unhealthy, fmt.Sprintf("ClusterOperator o%d is not available (%s)", i, long))
	}
	for situation, tc := range map[string]struct {
		view    func() *View
		message string
	}{
		"200 hosts with long failures: the links stay": {func() *View {
			f := factsOf(nil)
			f.Install, f.Agents = installOf("error"), hosts()
			f.Install.Status.DebugInfo.StateInfo = long
			f.Install.Status.DebugInfo.EventsURL = "https://svc/events?cluster_id=1"
			f.Progress = assisted.Observe(f.Install)
			return viewOf(f)
		}, "; events: https://svc/events?cluster_id=1"},
		"200 hosts with long failures: the command stays": {func() *View {
			f := factsOf(nil)
			f.Install, f.Agents = installOf("error"), hosts()
			f.Progress = assisted.Observe(f.Install)
			return viewOf(f)
		}, "; to analyze the failure, run kubectl openshift-agent gather "},
		"200 operators": {func() *View {
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
			})
			f.Workload = workload.State{Connected: true, OpenShiftVersion: "4.20.1", Unhealthy: unhealthy}
			return viewOf(f)
		}, "197 more"},
		"long rejection by assisted-service": {func() *View {
			f := factsOf(nil)
			f.Install = installOf("")
			f.Install.Status.Conditions = []hivev1.ClusterInstallCondition{
				{Type: hiveext.ClusterSpecSyncedCondition, Status: corev1.ConditionFalse, Message: "bad input " + long},
			}
			return viewOf(f)
		}, "bad input xxx"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := tc.view()
			cp := v.ControlPlane.DeepCopy()
			v.Compose(cp)
			var all []string
			for _, c := range cp.Status.Conditions {
				g.Expect(len(c.Message)).To(BeNumerically("<=", bound.MessageBytes), c.Type)
				all = append(all, c.Message)
			}
			g.Expect(all).To(ContainElement(ContainSubstring(tc.message)))
		})
	}
}
