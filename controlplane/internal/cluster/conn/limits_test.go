package conn

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// accessTo returns the access to a server. It does not connect yet.
func accessTo(t *testing.T, server string, change func(*clientcmdapi.Config)) *Access {
	t.Helper()
	a, err := New(conntest.Kubeconfig(t, server, change), Options{UserAgent: "test", Clock: clock.RealClock{}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(a.Transport.Close)
	return a
}

func TestLimitOfAnswers(t *testing.T) {
	for request, want := range map[string]int64{
		"GET 200 /version":                   smallResponse,
		"GET 200 /readyz/etcd":               smallResponse,
		"GET 200 /clusters/c-1/version":      smallResponse,
		"GET 200 /api/v1/nodes":              listResponse,
		"GET 200 /api/v1/nodes?watch=true":   0,
		"GET 403 /api/v1/nodes?watch=true":   smallResponse,
		"GET 403 /api/v1/nodes":              smallResponse,
		"GET 200 /clusters/c-1/api/v1/nodes": listResponse,
		"GET 200 /clusters/c-1/apis/config.openshift.io/v1/clusteroperators": listResponse,
		"GET 200 /api/v1/nodes/n0":                                               objectResponse,
		"GET 200 /api/v1/namespaces/openshift-etcd/pods":                         listResponse,
		"GET 200 /api/v1/namespaces/openshift-etcd/secrets/etcd-client":          objectResponse,
		"GET 200 /apis/config.openshift.io/v1/clusteroperators":                  listResponse,
		"PATCH 200 /apis/config.openshift.io/v1/clusterversions/version":         objectResponse,
		"POST 201 /api/v1/namespaces/kube-system/serviceaccounts/x/token":        objectResponse,
		"POST 201 /api/v1/namespaces/kube-system/secrets":                        objectResponse,
		"GET 200 /apis/machineconfiguration.openshift.io/v1/machineconfigs/m-00": objectResponse,
	} {
		parts := strings.Fields(request)
		at, err := url.Parse("https://api.example:6443" + parts[2])
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		status := map[string]int{"200": 200, "201": 201, "403": 403}[parts[1]]
		g.Expect(limitOf(&http.Response{StatusCode: status, Request: &http.Request{Method: parts[0], URL: at}})).To(Equal(want), request)
	}
}

// endlessServer responds without end. It counts the bytes that were sent.
func endlessServer(t *testing.T, http2Too bool) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	sent := &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[],"gitVersion":"`)
		for block := []byte(strings.Repeat("x", 32<<10)); ; {
			n, err := w.Write(block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	server.EnableHTTP2 = http2Too
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server, sent
}

// buffers is more than the kernel and servers buffer of unread data.
const buffers = 24 << 20

func TestVersionWithoutEndIsNotRead(t *testing.T) {
	for name, http2Too := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			server, sent := endlessServer(t, http2Too)
			g := NewWithT(t)
			_, err := accessTo(t, server.URL, nil).Probe(t.Context())
			g.Expect(err).To(HaveOccurred())
			at, parseErr := url.Parse(server.URL)
			g.Expect(parseErr).NotTo(HaveOccurred())
			g.Expect(FailureOf(err)).To(And(HaveField("Kind", workload.Unreachable),
				HaveField("Message", at.Host+" answers a request for /version with more than 64 KiB")))
			g.Expect(sent.Load()).To(BeNumerically("<", smallResponse+buffers))
		})
	}
}

func TestListWithoutEndIsNotRead(t *testing.T) {
	g := NewWithT(t)
	server, sent := endlessServer(t, true)
	a := accessTo(t, server.URL, nil)
	err := a.Call(func(c client.Client) error { return c.List(t.Context(), &corev1.NodeList{}) })
	tooLarge := (*bound.TooLargeError)(nil)
	g.Expect(errors.As(err, &tooLarge)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring("answers a request for /api/v1/nodes with more than 32 MiB")))
	err = a.Call(func(c client.Client) error { return c.Get(t.Context(), client.ObjectKey{Name: "n0"}, &corev1.Node{}) })
	g.Expect(err).To(MatchError(ContainSubstring("answers a request for /api/v1/nodes/n0 with more than 4 MiB")))
	g.Expect(sent.Load()).To(BeNumerically("<", listResponse+objectResponse+buffers))
}

func TestProxyThatRefusesIsNamed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	t.Cleanup(proxy.Close)
	g := NewWithT(t)
	_, err := accessTo(t, "https://api.example:6443", func(c *clientcmdapi.Config) {
		for _, cluster := range c.Clusters {
			cluster.ProxyURL = strings.Replace(proxy.URL, "http://", "http://user:hush@", 1)
		}
	}).Probe(t.Context())
	g.Expect(err).To(HaveOccurred())
	g.Expect(FailureOf(err)).To(And(
		HaveField("Kind", workload.Unreachable), HaveField("Silent", false), // the cluster may run: only the proxy was reached
		HaveField("Message", "the proxy "+strings.TrimPrefix(proxy.URL,
			"http://")+" refuses the connection with 407 Proxy Authentication Required"),
	))
}

type zeros struct{ net.Conn }

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestPortForwardWithoutEndIsCut(t *testing.T) {
	g := NewWithT(t)
	read, err := io.Copy(io.Discard, &limitedConn{Conn: zeros{}, left: forwardBytes})
	g.Expect(err).To(MatchError(errForward))
	g.Expect(read).To(BeNumerically("~", forwardBytes, 64<<10))
}
