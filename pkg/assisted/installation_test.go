package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
)

// aci returns an AgentClusterInstall in a state, with the condition Completed that assisted-service sets in
// that state.
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
		"no AgentClusterInstall yet: no host is accepted": {nil, PhasePending, false, false, false},
		"not registered yet: no host is accepted":         {aci("", no, ""), PhasePending, false, false, false},
		"insufficient: accepts hosts": {
			aci("insufficient", no, "InstallationNotStarted"), PhasePending, true, false, false,
		},
		"pending for input alternates with insufficient: accepts hosts": {
			aci("pending-for-input", no, "InstallationNotStarted"), PhasePending, true, false, false,
		},
		"on hold: accepts hosts": {
			aci("ready", no, "InstallationOnHold"), PhasePending, true, false, false,
		},
		"preparing: no host is accepted": {
			aci("preparing-for-installation", no, "InstallationInProgress"), PhasePreparing, false, true, false,
		},
		"preparation failed, back to ready: accepts hosts again": {
			aci("ready", no, "InstallationNotStarted"), PhasePending, true, false, false,
		},
		"installing: no host is accepted": {
			aci("installing", no, "InstallationInProgress"), PhaseInstalling, false, true, false,
		},
		"a host booted the wrong medium: no host is accepted": {
			aci("installing-pending-user-action", no, "InstallationInProgress"), PhaseInstalling, false, true, false,
		},
		"finalizing: no host is accepted": {
			aci("finalizing", no, "InstallationInProgress"), PhaseFinalizing, false, true, false,
		},
		"installed, for some milliseconds: no host is accepted yet": {
			aci("installed", yes, "InstallationCompleted"), PhaseInstalled, false, true, true,
		},
		"adding hosts: accepts day-2 hosts": {
			aci("adding-hosts", yes, "InstallationCompleted"), PhaseInstalled, true, true, true,
		},
		"failed: no host is accepted": {
			aci("error", no, "InstallationFailed"), PhaseFailed, false, true, false,
		},
		"backend lost after the installation: installed, no host is accepted": {
			aci("", yes, "InstallationCompleted"), PhaseInstalled, false, true, true,
		},
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
