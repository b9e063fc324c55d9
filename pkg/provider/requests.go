package provider

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

// workloadHost is the host label in rest_client_requests_total of all API servers except that of the hub.
const workloadHost = "workload-clusters"

// countRequests gives rest_client_requests_total one host label for the hub and one for all workload
// clusters. A label for each cluster would give a large hub thousands of series.
func countRequests(hub *rest.Config) error {
	url, _, err := rest.DefaultServerUrlFor(hub)
	if err != nil {
		return fmt.Errorf("cannot determine the host of the API server: %w", err)
	}
	metrics.RequestResult = requestCounter{hub: url.Host, counted: metrics.RequestResult}
	return nil
}

type requestCounter struct {
	hub     string
	counted metrics.ResultMetric
}

// Increment implements metrics.ResultMetric.
func (c requestCounter) Increment(ctx context.Context, code, method, host string) {
	if host != c.hub {
		host = workloadHost
	}
	c.counted.Increment(ctx, code, method, host)
}
