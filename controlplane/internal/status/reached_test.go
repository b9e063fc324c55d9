package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// times are phases with the minute at which they were reached.
func times(minutes ...any) []controlplanev1.InstallationPhaseTime {
	var reached []controlplanev1.InstallationPhaseTime
	for i := 0; i < len(minutes); i += 2 {
		phase, _ := minutes[i].(controlplanev1.InstallationPhase)
		minute, _ := minutes[i+1].(int)
		reached = append(reached, controlplanev1.InstallationPhaseTime{Phase: phase, Time: metav1.Unix(int64(60*minute), 0)})
	}
	return reached
}

func TestWhenPhasesWereReached(t *testing.T) {
	const (
		none       = controlplanev1.InstallationPhase("")
		pending    = controlplanev1.InstallationPending
		preparing  = controlplanev1.InstallationPreparing
		installing = controlplanev1.InstallationInstalling
		installed  = controlplanev1.InstallationInstalled
	)
	for name, tc := range map[string]struct {
		was    controlplanev1.InstallationPhase
		before []controlplanev1.InstallationPhaseTime
		is     controlplanev1.InstallationPhase
		want   []controlplanev1.InstallationPhaseTime
	}{
		"it begins":                       {none, nil, pending, times(pending, 9)},
		"it goes on":                      {pending, times(pending, 1), preparing, times(pending, 1, preparing, 9)},
		"a phase was not seen":            {pending, times(pending, 1), installing, times(pending, 1, installing, 9)},
		"nothing happens":                 {pending, times(pending, 1), pending, times(pending, 1)},
		"it goes back":                    {preparing, times(pending, 1, preparing, 2), pending, times(pending, 1, preparing, 2)},
		"it goes on for the second time":  {pending, times(pending, 1, preparing, 2), preparing, times(pending, 1, preparing, 2)},
		"it goes back to what it was not": {preparing, times(preparing, 2), pending, times(preparing, 2, pending, 9)},
		"it ends":                         {installing, times(pending, 1, installing, 3), installed, times(pending, 1, installing, 3, installed, 9)},
		"it is installed for long":        {installed, times(pending, 1, installed, 5), installed, times(pending, 1, installed, 5)},
		"it was reported by an older one": {installing, nil, installing, nil},
		"it was installed elsewhere":      {none, nil, installed, nil},
	} {
		cp := controlPlane(nil)
		cp.Status.Installation.Phase, cp.Status.Installation.Reached = tc.was, tc.before
		v := &View{Facts: &facts.Facts{ControlPlane: cp}, Now: time.Unix(9*60, 999)}
		g := NewWithT(t)
		g.Expect(equality.Semantic.DeepEqual(v.reached(tc.is), tc.want)).To(BeTrue(), "%s: %v", name, v.reached(tc.is))
	}
}
