package measure

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAProblemBeginsOnce(t *testing.T) {
	condition := func(name, reason string) metav1.Condition { return metav1.Condition{Type: name, Reason: reason} }
	isProblem := func(c *metav1.Condition) bool { return c.Reason != "Waiting" }
	for situation, tc := range map[string]struct{ before, after []metav1.Condition }{
		"nothing was told before":     {nil, []metav1.Condition{condition("A", "Broken")}},
		"it was waited for something": {[]metav1.Condition{condition("A", "Waiting")}, []metav1.Condition{condition("A", "Broken")}},
		"another problem goes on": {
			[]metav1.Condition{condition("A", "Refused")}, []metav1.Condition{condition("A", "Refused"), condition("B", "Broken")},
		},
		"another problem ends":     {[]metav1.Condition{condition("A", "Refused")}, []metav1.Condition{condition("A", "Broken")}},
		"two conditions tell it":   {nil, []metav1.Condition{condition("A", "Broken"), condition("B", "Broken")}},
		"and others only wait now": {nil, []metav1.Condition{condition("A", "Broken"), condition("B", "Waiting")}},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(Begun(tc.before, tc.after, isProblem)).To(Equal([]string{"Broken"}))
		})
	}
	for situation, tc := range map[string]struct{ before, after []metav1.Condition }{
		"it goes on":                   {[]metav1.Condition{condition("A", "Broken")}, []metav1.Condition{condition("A", "Broken")}},
		"another condition tells it":   {[]metav1.Condition{condition("A", "Broken")}, []metav1.Condition{condition("B", "Broken")}},
		"it is over":                   {[]metav1.Condition{condition("A", "Broken")}, []metav1.Condition{condition("A", "Waiting")}},
		"all conditions are gone":      {[]metav1.Condition{condition("A", "Broken")}, nil},
		"it is waited for, as it was":  {[]metav1.Condition{condition("A", "Waiting")}, []metav1.Condition{condition("A", "Waiting")}},
		"nobody has told anything yet": {nil, nil},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(Begun(tc.before, tc.after, isProblem)).To(BeEmpty()) })
	}
}

func TestAReactionIsTheTimeSinceAHandover(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
	}
	for situation, tc := range map[string]struct {
		since  *metav1.Time
		wanted []Reaction
	}{
		"it was a moment ago":      {at(-3), []Reaction{{ImageReady, 3 * time.Second}}},
		"it is now":                {at(0), []Reaction{{ImageReady, 0}}},
		"nobody tells when it was": {nil, nil},
		"its time is not set":      {&metav1.Time{}, nil},
		"another clock is ahead":   {at(2), nil},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(ReactionTo(ImageReady, tc.since, noon)).To(Equal(tc.wanted)) })
	}
}
