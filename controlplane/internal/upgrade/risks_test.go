package upgrade

import (
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// newRiskyWorld returns a world whose desired release has two risks, which the spec accepts together with one that no
// longer exists.
func newRiskyWorld(recordsRisks bool, inCluster ...workload.AcceptedRisk) *world {
	w := newWorld()
	w.seen.Offers[0].Risks = []workload.Risk{{Name: "SlowDisks"}, {Name: "OldNICs"}}
	w.seen.RecordsRisks, w.seen.AcceptedRisks = recordsRisks, inCluster
	w.spec().Upgrade.AcceptedRisks = []string{"Former", "OldNICs", "SlowDisks"}
	return w
}

func TestAcceptedRisksAreRecordedInCluster(t *testing.T) {
	for situation, tc := range map[string]struct {
		world      *world
		acceptable []string
		message    string
	}{
		"cluster records them": {newRiskyWorld(true), []string{"SlowDisks", "OldNICs"}, "starts the upgrade"},
		"cluster does not know the field": {
			newRiskyWorld(false), nil,
			"feature gate ClusterUpdateAcceptRisks is off: SlowDisks, OldNICs",
		},
		"another client accepted other risks": {
			newRiskyWorld(true, accepted("Theirs", false), accepted("OldNICs", false)),
			[]string{"SlowDisks", "OldNICs", "Theirs"},
			"",
		},
		"the former request accepted others": {newRiskyWorld(true, accepted("Former", true)), []string{"SlowDisks", "OldNICs"}, ""},
		"former ones, and the release has no risk": {
			func() *world {
				w := newRiskyWorld(false, accepted("Former", true), accepted("Theirs", false))
				w.seen.Offers[0].Risks = nil
				return w
			}(),
			[]string{"Theirs"},
			"starts the upgrade",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, w := NewWithT(t), tc.world
			request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
			g.Expect(request.Update).NotTo(BeNil())
			g.Expect(request.AcceptRisks).To(Equal(tc.acceptable))
			g.Expect(blocker.Reason).To(Equal(controlplanev1.UpgradeInProgressReason))
			g.Expect(blocker.Message).To(ContainSubstring(tc.message))
			if len(w.seen.Offers[0].Risks) > 0 {
				g.Expect(request.Accepted).To(Equal([]string{"SlowDisks", "OldNICs"}))
			}
		})
	}
}

func accepted(name string, ours bool) workload.AcceptedRisk {
	return workload.AcceptedRisk{Name: name, Ours: ours}
}

func TestRequestWithoutItsAcceptedRisksIsCompleted(t *testing.T) {
	g, w := NewWithT(t), newRiskyWorld(true, accepted("SlowDisks", true))
	w.seen.Requested, w.seen.Ours = workload.Update{Version: "4.20.1", Image: newest}, true
	request, _ := Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.AcceptRisks).To(Equal([]string{"SlowDisks", "OldNICs"}))

	w.seen.AcceptedRisks = append(w.seen.AcceptedRisks, accepted("OldNICs", true))
	request, _ = Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Empty()).To(BeTrue())

	w.seen.AcceptedRisks, w.seen.Ours = nil, false
	request, _ = Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Empty()).To(BeTrue(), "the request of another client stays as it is")
}

func TestWithdrawalKeepsRisksThatOtherClientsAccepted(t *testing.T) {
	g, w := NewWithT(t), newRiskyWorld(true, accepted("SlowDisks", true), accepted("Theirs", false))
	w.seen.Requested = workload.Update{Version: "4.20.1", Image: newest}
	w.refuse("no")
	w.spec().Upgrade.AcceptedRisks = nil
	request, blocker := Next(w.Facts, &w.seen, Kubernetes{})
	g.Expect(request.Withdraw).To(BeTrue())
	g.Expect(request.AcceptRisks).To(Equal([]string{"Theirs"}))
	g.Expect(blocker.Message).To(ContainSubstring("spec.upgrade.acceptedRisks if you accept them: SlowDisks"))
}
