package metal3

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRestoredWithoutHistory(t *testing.T) {
	created := time.Date(2026, time.August, 1, 12, 0, 0, 0, time.UTC)
	restored := map[string]string{RestoreLabel: "nightly"}
	for situation, tc := range map[string]struct {
		labels     map[string]string
		registered string
		want       bool
	}{
		"a new host":                       {registered: "2026-08-01T12:00:01Z"},
		"a new host, not registered yet":   {},
		"restored, and registered again":   {labels: restored, registered: "2026-08-01T12:00:01Z", want: true},
		"restored and registered at once":  {labels: restored, registered: "2026-08-01T12:00:00Z", want: true},
		"restored, and not registered yet": {labels: restored, want: true},
		"restored with its status":         {labels: restored, registered: "2026-07-01T12:00:00Z"},
		"restored, with an invalid time":   {labels: restored, registered: "yesterday", want: true},
	} {
		t.Run(situation, func(t *testing.T) {
			host := &Host{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, CreationTimestamp: metav1.NewTime(created)}}
			host.Status.History.Register.Start = tc.registered
			NewWithT(t).Expect(RestoredWithoutHistory(host)).To(Equal(tc.want))
		})
	}
}
