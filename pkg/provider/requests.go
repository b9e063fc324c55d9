package provider

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

// elsewhere is the host in rest_client_requests_total that stands for all API servers but that of the hub.
const elsewhere = "workload-clusters"

// countRequests makes rest_client_requests_total have a host for the hub, and one for all workload clusters: with one
// for each, a hub of thousands has as many series.
func countRequests(hub *rest.Config) error {
	url, _, err := rest.DefaultServerUrlFor(hub)
	if err != nil {
		return fmt.Errorf("cannot tell the host of the API server: %w", err)
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
		host = elsewhere
	}
	c.counted.Increment(ctx, code, method, host)
}
