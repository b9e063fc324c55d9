// Package measuretest reads metrics in tests.
package measuretest

import (
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Count is the value of a counter, or how often a histogram has observed something; 0 as long as there is none with these labels.
func Count(name string, labels map[string]string) (float64, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0, fmt.Errorf("cannot gather the metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if labelled(metric, labels) {
				return metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount()), nil
			}
		}
	}
	return 0, nil
}

func labelled(metric *dto.Metric, labels map[string]string) bool {
	if len(metric.GetLabel()) != len(labels) {
		return false
	}
	for _, label := range metric.GetLabel() {
		if labels[label.GetName()] != label.GetValue() {
			return false
		}
	}
	return true
}
