package cluster

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
)

// loadBalancer serves an apiServer at another address, over HTTP/1.1 unless http2 is set.
type loadBalancer struct {
	*httptest.Server

	http2 atomic.Bool
	// connections is the number of open connections.
	connections atomic.Int32
}

func newLoadBalancer(t *testing.T, s *apiServer) *loadBalancer {
	t.Helper()
	b := &loadBalancer{Server: httptest.NewUnstartedServer(http.HandlerFunc(s.serve))}
	b.EnableHTTP2 = true
	b.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	b.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := b.TLS.Clone()
		config.GetConfigForClient = nil
		if !b.http2.Load() {
			config.NextProtos = []string{"http/1.1"}
		}
		return config, nil
	}
	b.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			b.connections.Add(1)
		case http.StateClosed, http.StateHijacked:
			b.connections.Add(-1)
		}
	}
	b.StartTLS()
	t.Cleanup(func() { b.CloseClientConnections(); b.Close() })
	return b
}

// polledHub returns a hub that has visited a cluster behind a load balancer that does not speak HTTP/2.
func polledHub(t *testing.T) (*hub, *apiServer, *loadBalancer) {
	t.Helper()
	s := newAPIServer(t, "secret-token")
	b := newLoadBalancer(t, s)
	h := newHub(t, conntest.Kubeconfig(t, b.URL, nil))
	h.isInstalled.Store(true)
	h.Expect(h.visit(t.Context())).To(BeNumerically("~", pollInterval, float64(pollInterval)*jitter*1.1))
	h.Expect(h.observeChange().Connected).To(BeTrue())
	return h, s, b
}

func watchRequests(s *apiServer) (watches []string) {
	for _, request := range s.requests() {
		if strings.Contains(request, " true") {
			watches = append(watches, request)
		}
	}
	return watches
}

func TestClusterWithoutHTTP2IsPolled(t *testing.T) {
	h, s, b := polledHub(t)
	h.Eventually(b.connections.Load, "30s").Should(BeZero(), "no permanent connection, although idle ones may stay for a minute")
	h.Consistently(func() []string { return watchRequests(s) }, 200*time.Millisecond).Should(BeEmpty())

	s.remove(nodesPath, "n0")
	s.put(versionsPath, clusterVersionOf("4.19.4"))
	s.put(secretsPath, boundSecret("t1"))
	h.visit(t.Context())
	seen := h.observeChange()
	h.Expect(seen.Nodes).To(BeEmpty())
	h.Expect(seen.OpenShiftVersion).To(Equal("4.19.4"))
	h.Expect(seen.Tokens.UnsortedList()).To(ConsistOf(types.UID("t1")))
	h.Expect(watchRequests(s)).To(BeEmpty())
	h.Eventually(b.connections.Load, time.Minute).Should(BeZero())

	h.visit(t.Context())
	h.Expect(h.changes).NotTo(Receive(), "nothing changed")
}

func TestEtcdIsCheckedOverHTTP1BetweenVisits(t *testing.T) {
	h, s, b := polledHub(t)
	h.Eventually(b.connections.Load, time.Minute).Should(BeZero())
	s.etcd.Store(http.StatusInternalServerError)
	h.Expect(h.EtcdServes(t.Context(), clusterKey)).To(BeFalse())
	s.etcd.Store(http.StatusOK)
	h.Expect(h.EtcdServes(t.Context(), clusterKey)).To(BeTrue())
}

// Joining hosts wait for their certificates.
func TestPolledClusterIsVisitedOftenWhileHostsAreExpected(t *testing.T) {
	h, s, b := polledHub(t)
	begun := len(s.requests())
	h.visit(t.Context())
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(HavePrefix("GET " + requestsPath)))

	h.ExpectHosts(clusterKey, true)
	h.Expect(h.visits).To(Receive())
	s.put(requestsPath, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r1", UID: "r1"}})
	configMap, ca := authority(t, "machine-config-server-ca", "ca-bundle.crt")
	s.put(serverCAsPath, configMap)
	h.Expect(h.visit(t.Context())).To(BeNumerically("~", pollUrgent, float64(pollUrgent)*jitter*1.1))
	seen := h.observeChange()
	h.Expect(seen.Requested).To(Equal(types.UID("r1")))
	h.Expect(seen.ServerCA).To(Equal(ca))
	s.remove(requestsPath, "r1")
	s.put(requestsPath, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r2", UID: "r2"}})
	h.visit(t.Context())
	h.Expect(h.observeChange().Requested).To(Equal(types.UID("r2")), "each visit reads the requests")
	h.Expect(watchRequests(s)).To(BeEmpty())

	h.ExpectHosts(clusterKey, false)
	begun = len(s.requests())
	h.Expect(h.visit(t.Context())).To(BeNumerically(">", 2*pollUrgent))
	h.Expect(s.requests()[begun:]).NotTo(ContainElement(HavePrefix("GET " + requestsPath)))
	h.Expect(h.Observe(clusterKey).ServerCA).To(BeEmpty(), "it may have changed since it was read")
	h.ExpectHosts(clusterKey, true)
	h.Expect(h.visits).To(Receive(), "it is read again at once")
	h.Eventually(b.connections.Load, time.Minute).Should(BeZero())
}

func TestPolledClusterThatCannotBeReadIsReported(t *testing.T) {
	h, s, _ := polledHub(t)
	s.set(func() { s.refuse[nodesPath] = true })
	h.visit(t.Context())
	h.Expect(h.observeChange().UnreadSince).NotTo(BeZero())
	h.Expect(h.Observe(clusterKey).Nodes).To(HaveLen(1), "the last state is kept")
	s.set(func() { s.refuse[nodesPath] = false })
	h.visit(t.Context())
	h.Expect(h.observeChange().UnreadSince).To(BeZero())
}

// A load balancer is replaced, or its setting changed.
func TestClusterIsWatchedOnceItSpeaksHTTP2(t *testing.T) {
	h, s, b := polledHub(t)
	watched := func() int { return s.watched(nodesPath) }
	b.http2.Store(true)
	h.Eventually(b.connections.Load, time.Minute).Should(BeZero())
	h.Expect(h.visit(t.Context())).To(BeNumerically(">", visitInterval/2))
	h.Eventually(watched).Should(Equal(1))

	s.set(func() { s.refuseWatch[secretsPath] = true })
	s.endWatches(secretsPath, nil)
	h.Eventually(func() time.Time { return h.Observe(clusterKey).UnreadSince }, time.Minute).ShouldNot(BeZero())
	b.http2.Store(false)
	b.CloseClientConnections()
	h.Eventually(h.visits, time.Minute).Should(Receive())
	h.Expect(h.visit(t.Context())).To(BeNumerically("<=", pollInterval*6/5))
	h.Eventually(watched, time.Minute).Should(BeZero())
	h.Eventually(b.connections.Load, time.Minute).Should(BeZero(), "no watch begins over HTTP/1.1")
	h.Expect(h.Observe(clusterKey).UnreadSince).To(BeZero(), "a resource that cannot be watched can be read")
	s.remove(nodesPath, "n0")
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Nodes).To(BeEmpty())
}
