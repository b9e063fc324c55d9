package provider

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

type hosts []string

func (h *hosts) Increment(_ context.Context, _, _, host string) { *h = append(*h, host) }

func TestRequestsToWorkloadClustersShareOneSeries(t *testing.T) {
	g := NewWithT(t)
	counted, before := &hosts{}, metrics.RequestResult
	t.Cleanup(func() { metrics.RequestResult = before })
	metrics.RequestResult = counted
	servers := make([]*rest.Config, 3)
	for i := range servers {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
		t.Cleanup(server.Close)
		servers[i] = &rest.Config{Host: server.URL}
	}
	g.Expect(countRequests(servers[0])).To(Succeed())
	for _, server := range servers {
		_, err := discovery.NewDiscoveryClientForConfigOrDie(server).ServerVersion()
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(*counted).To(HaveLen(3))
	g.Expect((*counted)[0]).NotTo(Equal(workloadHost), "the hub has its own series")
	g.Expect(slices.Compact((*counted)[1:])).To(Equal(hosts{workloadHost}))
}
