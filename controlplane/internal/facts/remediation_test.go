package facts

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func recorded(machine, at string) string {
	return `{"machine":"` + machine + `","timestamp":"` + at + `","retryCount":1}`
}

func TestRemediationIn(t *testing.T) {
	for situation, tc := range map[string]struct {
		value    string
		readable bool
	}{
		"a complete record": {recorded("m0", "2026-01-02T12:00:00Z"), true},
		"no JSON":           {"m0", false},
		"no Machine":        {recorded("", "2026-01-02T12:00:00Z"), false},
		"no time":           {`{"machine":"m0","retryCount":1}`, false},
		"a negative number": {`{"machine":"m0","timestamp":"2026-01-02T12:00:00Z","retryCount":-1}`, false},
		"an empty object":   {"{}", false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			record, err := RemediationIn(&metav1.ObjectMeta{Name: "c1", Annotations: map[string]string{"a": tc.value}}, "a")
			if !tc.readable {
				g.Expect(err).To(MatchError(ContainSubstring("the annotation a of c1 cannot be read")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(record.Timestamp.UTC()).To(Equal(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)))
			g.Expect(*record).To(And(HaveField("Machine", "m0"), HaveField("RetryCount", BeEquivalentTo(1))))
		})
	}
	record, err := RemediationIn(&metav1.ObjectMeta{}, "a")
	NewWithT(t).Expect(record, err).To(BeNil())
}

func TestLastRemediation(t *testing.T) {
	g, f := NewWithT(t), factsOf(nil)
	createdFor := func(value string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{controlplanev1.RemediationForAnnotation: value}}}
	}
	g.Expect(f.LastRemediation([]*clusterv1.Machine{{}})).To(BeNil())
	machines := []*clusterv1.Machine{
		createdFor(recorded("m1", "2026-01-02T12:00:00Z")),
		createdFor(recorded("m2", "2026-01-03T12:00:00Z")),
		createdFor("m3"),
		createdFor(recorded("m4", "2026-01-01T12:00:00Z")),
	}
	g.Expect(f.LastRemediation(machines).Machine).To(Equal("m2"), "the last one")
	f.ControlPlane.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: recorded("m5", "2026-01-01T12:00:00Z")}
	g.Expect(f.LastRemediation(machines).Machine).To(Equal("m5"), "the one in progress")
}
