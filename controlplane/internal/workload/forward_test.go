package workload

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/proxy"
	apiserverproxy "k8s.io/apiserver/pkg/util/proxy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// echo is a kubelet whose Pods answer what they are told, with the port before it.
func echo(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardV1Name}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 2)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if connection == nil {
		return
	}
	defer connection.Close()
	for {
		select {
		case stream := <-streams:
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				go func() {
					_, _ = io.WriteString(stream, stream.Headers().Get(corev1.PortHeader)+" ")
					_, _ = io.Copy(stream, stream)
				}()
			}
		case <-connection.CloseChan():
			return
		}
	}
}

// tunnel is an API server that passes on to a kubelet what comes in WebSockets, as those do since Kubernetes 1.31.
func tunnel(t *testing.T) http.Handler {
	t.Helper()
	kubelet := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(kubelet.Close)
	at, err := url.Parse(kubelet.URL)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	upgrading := proxy.NewUpgradeAwareHandler(at, http.DefaultTransport, false, true, responder{})
	tunnelling := apiserverproxy.NewTunnelingHandler(upgrading)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !wsstream.IsWebSocketRequest(r) {
			http.Error(w, "not in a WebSocket", http.StatusBadRequest)
			return
		}
		tunnelling.ServeHTTP(w, r)
	})
}

type responder struct{}

func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

func TestPortsOfPodsAreReached(t *testing.T) {
	for by, serve := range map[string]func(*testing.T) http.Handler{
		"a WebSocket": tunnel,
		"SPDY": func(*testing.T) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if wsstream.IsWebSocketRequest(r) {
					http.Error(w, "unable to upgrade", http.StatusBadRequest)
					return
				}
				echo(w, r)
			})
		},
	} {
		t.Run(by, func(t *testing.T) {
			h, server := connectedHub(t)
			asked := make(chan string, 10)
			serves := serve(t)
			server.portForward = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				serves.ServeHTTP(w, r)
			})
			h.Expect(h.Enter(t.Context(), clusterKey, func(ctx context.Context, door *Door) error {
				h.Expect(door.Get(ctx, client.ObjectKey{Name: "n0"}, &corev1.Node{})).To(Succeed())
				conn, err := door.Forwards(ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-n0"}, 2379)
				h.Expect(err).NotTo(HaveOccurred())
				defer conn.Close()
				_, err = io.WriteString(conn, "hello")
				h.Expect(err).NotTo(HaveOccurred())
				heard := make([]byte, len("2379 hello"))
				_, err = io.ReadFull(conn, heard)
				h.Expect(err).NotTo(HaveOccurred())
				h.Expect(string(heard)).To(Equal("2379 hello"))
				h.Expect(conn.Close()).To(Succeed())
				_, err = conn.Read(heard)
				h.Expect(err).To(HaveOccurred())
				return nil
			})).To(Succeed())
			h.Expect(asked).To(Receive(Equal("/api/v1/namespaces/openshift-etcd/pods/etcd-n0/portforward")))
			h.Expect(h.sessions()).To(BeZero(), "what they hold is dropped")
		})
	}
}

func TestPortsOfPodsThatAreNotReached(t *testing.T) {
	for situation, tc := range map[string]struct {
		serve   http.HandlerFunc
		problem string
	}{
		"it is forbidden": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, "etcd-n0"},
		"the kubelet is away, and the API server waits for it": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "etcd-n0"},
	} {
		t.Run(situation, func(t *testing.T) {
			h, server := connectedHub(t)
			server.portForward = tc.serve
			began := time.Now()
			h.Expect(h.Enter(t.Context(), clusterKey, func(ctx context.Context, door *Door) error {
				ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				_, err := door.Forwards(ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-n0"}, 2379)
				return err
			})).To(MatchError(ContainSubstring(tc.problem)))
			h.Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
		})
	}
}

func TestNobodyEntersAClusterThatIsNotConnected(t *testing.T) {
	h := newHub(t, kubeconfigFor(t, "https://127.0.0.1:1", nil))
	entered := func(context.Context, *Door) error { panic("nobody may") }
	h.Expect(h.Enter(t.Context(), clusterKey, entered)).To(MatchError(ErrNotConnected), "it was not visited")
	h.visit(t.Context())
	h.Expect(h.Enter(t.Context(), clusterKey, entered)).To(MatchError(ErrNotConnected), "it does not answer")
}
