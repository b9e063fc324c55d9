package installed

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
)

// TestMissingWorkersBecomeAProblem: worker Machines that no controller creates block an installation without
// end. The condition names their MachineDeployment and its blocker, and becomes a problem.
func TestMissingWorkersBecomeAProblem(t *testing.T) {
	now := time.Unix(100_000, 0)
	for name, tc := range map[string]struct {
		missing []workers.Missing
		reason  string
		mention string
		left    time.Duration
	}{
		"none": {nil, controlplanev1.WaitingForHostsReason, "hosts bound to the cluster: 3 of 5", 0},
		"being created": {
			[]workers.Missing{{Owner: "MachineDeployment w", Count: 2, Since: now}},
			controlplanev1.WaitingForHostsReason,
			"hosts bound to the cluster: 3 of 5",
			creationTime,
		},
		"blocked just now": {
			[]workers.Missing{{Owner: "MachineDeployment w", Count: 2, Since: now, Blocker: "it is paused"}},
			controlplanev1.WaitingForHostsReason,
			"3 of 5; Cluster API has not created 2 Machines of MachineDeployment w: it is paused",
			creationTime,
		},
		"paused for long": {
			[]workers.Missing{{Owner: "MachineDeployment w", Count: 1, Since: now.Add(-creationTime), Blocker: "it is paused"}},
			controlplanev1.WorkersNotCreatedReason, "3 of 5; Cluster API has not created 1 Machine of MachineDeployment w: it is paused", 0,
		},
		"missing for long": {
			[]workers.Missing{{Owner: "MachineSet w", Count: 2, Since: now.Add(-time.Hour)}},
			controlplanev1.WorkersNotCreatedReason, "2 Machines of MachineSet w: no condition states why, see the log of Cluster API", 0,
		},
		"a long blocker": {
			[]workers.Missing{{Owner: "MachineDeployment w", Count: 2, Since: now.Add(-time.Hour), Blocker: strings.Repeat("x", 40_000)}},
			controlplanev1.WorkersNotCreatedReason, "of MachineDeployment w: xxx", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := &View{Facts: &facts.Facts{MissingWorkers: tc.missing}, Now: now}
			c := v.withMissingWorkers(metav1.Condition{Reason: controlplanev1.WaitingForHostsReason, Message: "hosts bound to the cluster: 3 of 5"})
			g.Expect(c.Reason).To(Equal(tc.reason))
			g.Expect(c.Message).To(ContainSubstring(tc.mention))
			g.Expect(len(c.Message)).To(BeNumerically("<", 1024))
			g.Expect(v.UntilWorkersCount()).To(Equal(tc.left))
		})
	}
}

func TestMissingWorkersStayAProblemAfterARestart(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	v := &View{Facts: s, Now: time.Unix(100_000, 0)}
	wait := metav1.Condition{Type: controlplanev1.InstalledCondition, Reason: controlplanev1.WaitingForHostsReason, Message: "3 of 5"}
	s.MissingWorkers = []workers.Missing{{Owner: "MachineDeployment w", Count: 2, Since: v.Now}}
	g.Expect(v.withMissingWorkers(wait).Reason).To(Equal(controlplanev1.WaitingForHostsReason))
	s.ControlPlane.Status.Conditions = []metav1.Condition{
		{Type: controlplanev1.InstalledCondition, Reason: controlplanev1.WorkersNotCreatedReason},
	}
	g.Expect(v.withMissingWorkers(wait).Reason).To(Equal(controlplanev1.WorkersNotCreatedReason))
	s.MissingWorkers = nil
	g.Expect(v.withMissingWorkers(wait).Reason).To(Equal(controlplanev1.WaitingForHostsReason), "Cluster API has created them")
}
