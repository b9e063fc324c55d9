package process

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/common/expfmt"
)

// panicsMetric counts, for each controller of a manager, the reconciles that panicked.
const panicsMetric = "controller_runtime_reconcile_panics_total"

// Panics tells how many reconciles of a manager have panicked since it was started last. That it does not tell is an error.
func (p *Process) Panics(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.MetricsURL, nil)
	if err != nil {
		return 0, fmt.Errorf("cannot ask %s for its metrics: %w", p.Name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("cannot read the metrics of %s: %w", p.Name, err)
	}
	defer response.Body.Close()
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("cannot read the metrics of %s: %w", p.Name, err)
	}
	metrics := families[panicsMetric].GetMetric()
	if len(metrics) == 0 {
		return 0, fmt.Errorf("%s has no metric %s", p.Name, panicsMetric)
	}
	panics := 0
	for _, m := range metrics {
		panics += int(m.GetCounter().GetValue())
	}
	return panics, nil
}
