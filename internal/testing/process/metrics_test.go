package process

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

func TestPanicsAddsUpTheControllers(t *testing.T) {
	for situation, c := range map[string]struct {
		metrics string
		wanted  int
		fails   bool
	}{
		"none": {metrics: panicsMetric + "{controller=\"a\"} 0\n" + panicsMetric + "{controller=\"b\"} 0\n"},
		"two and one": {metrics: "# TYPE " + panicsMetric + " counter\n" + panicsMetric + "{controller=\"a\"} 2\n" +
			panicsMetric + "{controller=\"b\"} 1\n", wanted: 3},
		"missing":      {metrics: "something_else 1\n", fails: true},
		"not readable": {metrics: "{\n", fails: true},
	} {
		t.Run(situation, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.metrics)) }))
			defer server.Close()
			panics, err := (&Process{Name: "manager", MetricsURL: server.URL}).Panics(t.Context())
			g := NewWithT(t)
			g.Expect(err != nil).To(Equal(c.fails))
			g.Expect(panics).To(Equal(c.wanted))
		})
	}
}
