package process

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// These count, for each controller of a manager, its reconciles, those that failed, and those that panicked.
const (
	reconcilesMetric = "controller_runtime_reconcile_total"
	failuresMetric   = "controller_runtime_reconcile_errors_total"
	panicsMetric     = "controller_runtime_reconcile_panics_total"
)

// Reconciles returns the number of reconciles of a manager that have ended since its last start.
func (p *Process) Reconciles(ctx context.Context) (int, error) { return p.sum(ctx, reconcilesMetric) }

// FailedReconciles returns the number of reconciles that ended with an error.
func (p *Process) FailedReconciles(ctx context.Context) (int, error) {
	return p.sum(ctx, failuresMetric)
}

// Panics returns the number of reconciles of a manager that have panicked since its last start. A missing metric is an
// error.
func (p *Process) Panics(ctx context.Context) (int, error) { return p.sum(ctx, panicsMetric) }

// sum adds up the values of a counter.
func (p *Process) sum(ctx context.Context, metric string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.MetricsURL, nil)
	if err != nil {
		return 0, fmt.Errorf("cannot read the metrics of %s: %w", p.Name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("cannot read the metrics of %s: %w", p.Name, err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("cannot read the metrics of %s: %w", p.Name, err)
	}
	metrics := families[metric].GetMetric()
	if len(metrics) == 0 {
		return 0, fmt.Errorf("%s has no metric %s", p.Name, metric)
	}
	sum := 0
	for _, m := range metrics {
		sum += int(m.GetCounter().GetValue())
	}
	return sum, nil
}
