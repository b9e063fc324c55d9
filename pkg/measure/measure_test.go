package measure

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestProblemBeginsOnce(t *testing.T) {
	condition := func(name, reason string) metav1.Condition { return metav1.Condition{Type: name, Reason: reason} }
	for situation, tc := range map[string]struct{ before, after []metav1.Condition }{
		"no problem before": {nil, []metav1.Condition{condition("A", "Broken")}},
		"another problem lasts": {
			[]metav1.Condition{condition("A", "Refused")}, []metav1.Condition{condition("A", "Refused"), condition("B", "Broken")},
		},
		"another problem ends":           {[]metav1.Condition{condition("A", "Refused")}, []metav1.Condition{condition("A", "Broken")}},
		"two conditions have the reason": {nil, []metav1.Condition{condition("A", "Broken"), condition("B", "Broken")}},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(NewProblems(tc.before, tc.after)).To(Equal([]string{"Broken"}))
		})
	}
	for situation, tc := range map[string]struct{ before, after []metav1.Condition }{
		"it lasts":                              {[]metav1.Condition{condition("A", "Broken")}, []metav1.Condition{condition("A", "Broken")}},
		"the reason moves to another condition": {[]metav1.Condition{condition("A", "Broken")}, []metav1.Condition{condition("B", "Broken")}},
		"it has ended":                          {[]metav1.Condition{condition("A", "Broken")}, nil},
		"no problem before and now":             {nil, nil},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(NewProblems(tc.before, tc.after)).To(BeEmpty()) })
	}
}

func TestReactionIsTheTimeSinceAHandover(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
	}
	for situation, tc := range map[string]struct {
		since  *metav1.Time
		wanted []Reaction
	}{
		"it was a moment ago":    {at(-3), []Reaction{{ImageReady, 3 * time.Second}}},
		"it is now":              {at(0), []Reaction{{ImageReady, 0}}},
		"its time is unknown":    {nil, nil},
		"its time is not set":    {&metav1.Time{}, nil},
		"another clock is ahead": {at(2), nil},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(ReactionTo(ImageReady, tc.since, noon)).To(Equal(tc.wanted)) })
	}
}

// increase() does not count the first sample of a series.
func TestLookupResultsHaveSeriesFromStart(t *testing.T) {
	g := NewWithT(t)
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var results []string
	for _, family := range families {
		if family.GetName() == "capi_openshift_agent_release_lookups_total" {
			for _, metric := range family.GetMetric() {
				results = append(results, metric.GetLabel()[0].GetValue())
			}
		}
	}
	g.Expect(results).To(ConsistOf("found", "not_found", "refused", "blocked", "unavailable"))
}
