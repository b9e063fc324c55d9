package conn

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	grpchealth "google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/proxy"
	apiserverproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
)

// atOnce is the limit for operations that must not block, on a busy machine. A blocked operation takes
// longer.
const atOnce = 5 * time.Second

var etcdPod = client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-n0"}

// apiServer is an API server that serves Node n0 and forwards ports.
type apiServer struct {
	*httptest.Server
	portForward http.Handler
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer secret-token":
		http.Error(w, "unknown token", http.StatusUnauthorized)
	case strings.HasSuffix(r.URL.Path, "/portforward"):
		s.portForward.ServeHTTP(w, r)
	case r.URL.Path == "/api/v1/nodes/n0":
		answer(w, &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "n0"}})
	default:
		http.NotFound(w, r)
	}
}

// answer writes JSON, with the code of a Status. Errors of closed connections are ignored.
func answer(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json")
	if status, ok := content.(*metav1.Status); ok {
		w.WriteHeader(int(status.Code))
	}
	if encoded, err := json.Marshal(content); err == nil {
		_, _ = w.Write(encoded)
	}
}

// caller makes requests to an apiServer.
type caller struct {
	*WithT
	*Access
}

// connect returns the caller of a server.
func connect(t *testing.T) (*caller, *apiServer) {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return &caller{NewWithT(t), accessTo(t, s.URL, nil)}, s
}

// tlsSessionCount returns the number of cached TLS sessions.
func (c *caller) tlsSessionCount() int {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	return len(c.sessions.kept)
}

// port serves a port of a Pod, with the two streams of a connection.
type port func(data, problems httpstream.Stream)

// kubelet forwards to a port.
func kubelet(serve port) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
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
		byType := map[string]httpstream.Stream{}
		for {
			select {
			case stream := <-streams:
				byType[stream.Headers().Get(corev1.StreamType)] = stream
				if len(byType) == 2 {
					go serve(byType[corev1.StreamTypeData], byType[corev1.StreamTypeError])
				}
			case <-connection.CloseChan():
				return
			}
		}
	}
}

// echo sends back the received data, preceded by the port.
func echo(data, _ httpstream.Stream) {
	_, _ = io.WriteString(data, data.Headers().Get(corev1.PortHeader)+" ")
	_, _ = io.Copy(data, data)
}

// tunnel is an API server that relays WebSockets to a kubelet, as API servers do since Kubernetes 1.31.
func tunnel(t *testing.T, serve port) http.Handler {
	t.Helper()
	behind := httptest.NewServer(kubelet(serve))
	t.Cleanup(behind.Close)
	at, err := url.Parse(behind.URL)
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

// onlySPDY is an older API server, without WebSockets.
func onlySPDY(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wsstream.IsWebSocketRequest(r) {
			http.Error(w, `query parameter "port" is required`, http.StatusBadRequest)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

// protocols are the implementations of a port-forward.
var protocols = map[string]func(*testing.T, port) http.Handler{
	"a WebSocket": tunnel,
	"SPDY":        func(_ *testing.T, serve port) http.Handler { return onlySPDY(kubelet(serve)) },
}

// forwardedTo runs a test with a connection to a port of a Pod.
func forwardedTo(t *testing.T, serve http.Handler, test func(h *caller, conn net.Conn)) {
	t.Helper()
	h, server := connect(t)
	server.portForward = serve
	h.Expect(h.Connect(t.Context(), func(ctx context.Context, remote *Conn) error {
		conn, err := remote.DialPod(ctx, etcdPod, 2379)
		h.Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		test(h, conn)
		return nil
	})).To(Succeed())
}

func TestDialPod(t *testing.T) {
	for by, handler := range protocols {
		t.Run(by, func(t *testing.T) {
			h, server := connect(t)
			requested := make(chan string, 10)
			serves := handler(t, echo)
			server.portForward = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requested <- r.URL.Path
				serves.ServeHTTP(w, r)
			})
			h.Expect(h.Connect(t.Context(), func(ctx context.Context, remote *Conn) error {
				h.Expect(remote.Get(ctx, client.ObjectKey{Name: "n0"}, &corev1.Node{})).To(Succeed())
				conn, err := remote.DialPod(ctx, etcdPod, 2379)
				h.Expect(err).NotTo(HaveOccurred())
				defer conn.Close()
				_, err = io.WriteString(conn, "hello")
				h.Expect(err).NotTo(HaveOccurred())
				received := make([]byte, len("2379 hello"))
				_, err = io.ReadFull(conn, received)
				h.Expect(err).NotTo(HaveOccurred())
				h.Expect(string(received)).To(Equal("2379 hello"))
				h.Expect(conn.Close()).To(Succeed())
				_, err = conn.Read(received)
				h.Expect(err).To(MatchError(net.ErrClosed))
				return nil
			})).To(Succeed())
			h.Expect(requested).To(Receive(Equal("/api/v1/namespaces/openshift-etcd/pods/etcd-n0/portforward")))
			h.Expect(h.tlsSessionCount()).To(BeZero(), "TLS sessions are dropped")
		})
	}
}

// etcd's client uses a port-forward in this way.
func TestGRPCWithTLSOverPortForward(t *testing.T) {
	authority, err := pki.New("etcd")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	certificate, err := authority.ServerCertificate()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	healthv1.RegisterHealthServer(server, grpchealth.NewServer())
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	for by, handler := range protocols {
		t.Run(by, func(t *testing.T) {
			h, api := connect(t)
			ended := make(chan struct{}, 1)
			api.portForward = handler(t, func(data, _ httpstream.Stream) {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(conn, data)
					_ = conn.Close()
					ended <- struct{}{}
				}()
				_, _ = io.Copy(data, conn)
			})
			h.Expect(h.Connect(t.Context(), func(ctx context.Context, remote *Conn) error {
				member, err := grpc.NewClient("passthrough:///localhost",
					grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
						RootCAs: authority.Pool(), ServerName: "localhost",
						MinVersion: tls.VersionTLS12,
					})),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return remote.DialPod(ctx, etcdPod, 2379) }))
				h.Expect(err).NotTo(HaveOccurred())
				for range 3 {
					_, err = healthv1.NewHealthClient(member).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
					h.Expect(err).NotTo(HaveOccurred())
				}
				began := time.Now()
				h.Expect(member.Close()).To(Succeed())
				h.Expect(time.Since(began)).To(BeNumerically("<", atOnce))
				return nil
			})).To(Succeed())
			h.Eventually(ended, "1m").Should(Receive(), "the peer is notified")
		})
	}
}

func TestClosedPortIsReported(t *testing.T) {
	for by, handler := range protocols {
		t.Run(by, func(t *testing.T) {
			forwardedTo(t, handler(t, func(_, problems httpstream.Stream) {
				_, _ = io.WriteString(problems, "connection refused")
				_ = problems.Close()
			}), func(h *caller, conn net.Conn) {
				_, err := conn.Read(make([]byte, 1))
				h.Expect(err).To(MatchError(ContainSubstring("connection refused")))
			})
		})
	}
}

// All buffers are full then, and a writer holds the locks of all layers.
func TestPeerThatStopsReadingBlocksNothing(t *testing.T) {
	t.Parallel()
	for by, handler := range protocols {
		for end, tc := range map[string]struct {
			do  func(net.Conn) error
			why error
		}{
			"closed":     {net.Conn.Close, net.ErrClosed},
			"a deadline": {func(conn net.Conn) error { return conn.SetDeadline(time.Now().Add(50 * time.Millisecond)) }, os.ErrDeadlineExceeded},
			"of writing": {func(conn net.Conn) error { return conn.SetWriteDeadline(time.Now()) }, os.ErrDeadlineExceeded},
			"of reading": {func(conn net.Conn) error { return conn.SetReadDeadline(time.Now()) }, os.ErrDeadlineExceeded},
			"a later deadline": {func(conn net.Conn) error {
				return errors.Join(conn.SetDeadline(time.Now().Add(time.Hour)), conn.Close())
			}, net.ErrClosed},
		} {
			t.Run(by+", "+end, func(t *testing.T) {
				forwardedTo(t, handler(t, func(httpstream.Stream, httpstream.Stream) {}), func(h *caller, conn net.Conn) {
					written, stuck := make(chan struct{}, 1), make(chan error, 1)
					go func() {
						for chunk := make([]byte, 1<<16); ; {
							if _, err := conn.Write(chunk); err != nil {
								stuck <- err
								return
							}
							select {
							case written <- struct{}{}:
							default:
							}
						}
					}()
					h.Eventually(func() bool {
						select {
						case <-written:
							return false
						case <-time.After(200 * time.Millisecond):
							return true
						}
					}, "20s", "1ms").Should(BeTrue(), "the writer is blocked")
					h.Expect(stuck).NotTo(Receive())
					began := time.Now()
					h.Expect(tc.do(conn)).To(Succeed())
					h.Expect(time.Since(began)).To(BeNumerically("<", atOnce))
					h.Eventually(stuck, "1m").Should(Receive(MatchError(tc.why)))
					_, err := conn.Read(make([]byte, 1))
					h.Expect(err).To(MatchError(tc.why))
				})
			})
		}
	}
}

// The caller may be blocked itself.
func TestPortForwardEndsWithConnect(t *testing.T) {
	h, server := connect(t)
	server.portForward = tunnel(t, echo)
	read := make(chan error, 1)
	h.Expect(h.Connect(t.Context(), func(ctx context.Context, remote *Conn) error {
		conn, err := remote.DialPod(ctx, etcdPod, 2379)
		h.Expect(err).NotTo(HaveOccurred())
		go func() {
			_, err := io.Copy(io.Discard, conn)
			read <- err
		}()
		return nil
	})).To(Succeed())
	h.Eventually(read, "1m").Should(Receive(MatchError(net.ErrClosed)))
}

func TestWithdrawnDeadlineEndsNothing(t *testing.T) {
	t.Parallel()
	forwardedTo(t, tunnel(t, echo), func(h *caller, conn net.Conn) {
		h.Expect(conn.SetDeadline(time.Now().Add(time.Second))).To(Succeed())
		h.Expect(conn.SetDeadline(time.Time{})).To(Succeed())
		h.Consistently(func() error { _, err := conn.Write([]byte("x")); return err }, "1500ms").Should(Succeed())
	})
}

// unresponsive accepts a connection, and neither reads nor responds. It reports the end of the connection.
func unresponsive(ended chan<- struct{}, upgrade func(w http.ResponseWriter, r *http.Request) net.Conn) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn := upgrade(w, r)
		defer conn.Close()
		_, _ = io.Copy(io.Discard, conn)
		ended <- struct{}{}
	}
}

func TestUnreachablePod(t *testing.T) {
	t.Parallel()
	silent := func(ended chan<- struct{}) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended <- struct{}{}
		}
	}
	for situation, serve := range map[string]func(chan<- struct{}) http.Handler{
		"unreachable kubelet":                 func(ended chan<- struct{}) http.Handler { return silent(ended) },
		"unreachable kubelet, old API server": func(ended chan<- struct{}) http.Handler { return onlySPDY(silent(ended)) },
		"no response to streams": func(ended chan<- struct{}) http.Handler {
			return unresponsive(ended, func(w http.ResponseWriter, r *http.Request) net.Conn {
				conn, err := (&websocket.Upgrader{Subprotocols: websocket.Subprotocols(r)}).Upgrade(w, r, nil)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return conn.NetConn()
			})
		},
		"no response to SPDY streams": func(ended chan<- struct{}) http.Handler {
			return onlySPDY(unresponsive(ended, func(w http.ResponseWriter, _ *http.Request) net.Conn {
				conn, _, err := w.(http.Hijacker).Hijack() //nolint:forcetypeassert // HTTP/1.1
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return conn
			}))
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h, server := connect(t)
			ended := make(chan struct{}, 10)
			server.portForward = serve(ended)
			began := time.Now()
			h.Expect(h.Connect(t.Context(), func(ctx context.Context, remote *Conn) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second) // long enough for two connections
				defer cancel()
				_, err := remote.DialPod(ctx, etcdPod, 2379)
				return err
			})).To(MatchError(ContainSubstring("etcd-n0")))
			h.Expect(time.Since(began)).To(BeNumerically("<", atOnce))
			h.Eventually(ended, "1m").Should(Receive(), "all connections are closed")
		})
	}
}

func TestRefusedPortForwardIsNotRepeated(t *testing.T) {
	forbidden := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: "not you",
	}
	for situation, tc := range map[string]struct {
		answer    func(w http.ResponseWriter)
		is        func(error) bool
		message   string
		requested int
	}{
		"forbidden": {func(w http.ResponseWriter) { answer(w, &forbidden) }, apierrors.IsForbidden, "not you", 1},
		"no Pod": {
			func(w http.ResponseWriter) { http.Error(w, "no Pod", http.StatusNotFound) }, apierrors.IsNotFound,
			"", 1,
		},
		"unauthorized": {
			func(w http.ResponseWriter) { http.Error(w, "no", http.StatusUnauthorized) },
			apierrors.IsUnauthorized, "", 1,
		},
		"unreachable kubelet": {
			func(w http.ResponseWriter) { http.Error(w, "dial timeout", http.StatusBadGateway) }, nil,
			"dial timeout", 1,
		},
		"WebSocket protocol unknown": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, apierrors.IsForbidden, "", 2},
		"port expected as parameter": {
			func(w http.ResponseWriter) { http.Error(w, "port is required", http.StatusBadRequest) },
			apierrors.IsBadRequest, "", 2,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h, server := connect(t)
			requested := make(chan string, 10)
			server.portForward = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requested <- r.Method
				tc.answer(w)
			})
			err := h.Connect(t.Context(), func(ctx context.Context, remote *Conn) error {
				_, err := remote.DialPod(ctx, etcdPod, 2379)
				return err
			})
			h.Expect(err).To(MatchError(And(ContainSubstring("etcd-n0"), ContainSubstring(tc.message))))
			if tc.is != nil {
				h.Expect(tc.is(err)).To(BeTrue(), err.Error())
			}
			h.Expect(requested).To(HaveLen(tc.requested))
		})
	}
}
