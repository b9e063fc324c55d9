package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
)

// aci returns an AgentClusterInstall in a state, with a Completed condition as the real service sets it there.
func aci(state string, completed corev1.ConditionStatus, reason string) *hiveext.AgentClusterInstall {
	a := &hiveext.AgentClusterInstall{}
	a.Status.DebugInfo.State = state
	if reason != "" {
		a.Status.Conditions = []hivev1.ClusterInstallCondition{{Type: hiveext.ClusterCompletedCondition, Status: completed, Reason: reason}}
	}
	return a
}

func TestObserve(t *testing.T) {
	const no, yes = corev1.ConditionFalse, corev1.ConditionTrue
	for name, tc := range map[string]struct {
		aci                      *hiveext.AgentClusterInstall
		phase                    Phase
		accepts, started, dayTwo bool
	}{
		"no AgentClusterInstall yet: nothing can be bound":             {nil, PhasePending, false, false, false},
		"not registered yet: nothing can be bound":                     {aci("", no, ""), PhasePending, false, false, false},
		"insufficient: hosts are welcome":                              {aci("insufficient", no, "InstallationNotStarted"), PhasePending, true, false, false},
		"pending for input flaps with insufficient: hosts welcome":     {aci("pending-for-input", no, "InstallationNotStarted"), PhasePending, true, false, false},
		"on hold: hosts are welcome":                                   {aci("ready", no, "InstallationOnHold"), PhasePending, true, false, false},
		"preparing: closed":                                            {aci("preparing-for-installation", no, "InstallationInProgress"), PhasePreparing, false, true, false},
		"preparation failed, back to ready: open again":                {aci("ready", no, "InstallationNotStarted"), PhasePending, true, false, false},
		"installing: closed":                                           {aci("installing", no, "InstallationInProgress"), PhaseInstalling, false, true, false},
		"a host booted the wrong medium: closed":                       {aci("installing-pending-user-action", no, "InstallationInProgress"), PhaseInstalling, false, true, false},
		"finalizing: closed":                                           {aci("finalizing", no, "InstallationInProgress"), PhaseFinalizing, false, true, false},
		"installed, for some milliseconds: does not take hosts yet":    {aci("installed", yes, "InstallationCompleted"), PhaseInstalled, false, true, true},
		"adding hosts: open for day 2":                                 {aci("adding-hosts", yes, "InstallationCompleted"), PhaseInstalled, true, true, true},
		"failed: closed":                                               {aci("error", no, "InstallationFailed"), PhaseFailed, false, true, false},
		"backend gone after installation: still installed, but closed": {aci("", yes, "InstallationCompleted"), PhaseInstalled, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			i := Observe(tc.aci)
			g.Expect(i.Phase).To(Equal(tc.phase))
			g.Expect(i.AcceptsHosts).To(Equal(tc.accepts), "accepts hosts")
			g.Expect(i.Started).To(Equal(tc.started), "started")
			g.Expect(i.DayTwo).To(Equal(tc.dayTwo), "day 2")
		})
	}
}

func TestPublicURL(t *testing.T) {
	for raw, public := range map[string]string{
		"https://svc/api/assisted-install/v2/events?api_key=eyJh.secret&cluster_id=42": "https://svc/api/assisted-install/v2/events?cluster_id=42",
		"https://user:pw@svc/x?token=t#frag":                                           "https://svc/x",
		"http://svc:8090/logs?cluster_id=1&logs_type=all":                              "http://svc:8090/logs?cluster_id=1&logs_type=all",
		"":          "",
		"%zz":       "",
		"/relative": "",
	} {
		NewWithT(t).Expect(PublicURL(raw)).To(Equal(public), raw)
	}
}
