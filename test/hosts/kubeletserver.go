package hosts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

const (
	kubeletPort   = 10250
	etcdPodPrefix = "etcd-"

	// The values of a kubelet.
	streamIdleTimeout     = 4 * time.Hour
	streamCreationTimeout = 30 * time.Second
)

// Site is the part of a workload cluster behind its Node objects: the network of the nodes, and the static pods
// on their disks.
type Site interface {
	// KubeletCertificate issues the serving certificate of the kubelet of a Node. KubeletClients returns the
	// authorities of the clients that it accepts.
	KubeletCertificate(node, address string) (tls.Certificate, error)
	KubeletClients() *x509.CertPool
	// Attach makes a listener on this machine reachable under an address of a host. Dial connects to such an
	// address.
	Attach(address, at string) (detach func())
	Dial(ctx context.Context, address string) (net.Conn, error)
	// PowerOn reports that a node runs with the static pods on its disk, PowerOff that it stopped. Wipe reports
	// that its disk is lost.
	PowerOn(ctx context.Context, node, address string) error
	PowerOff(node string)
	Wipe(node string) error
}

var errNoAddress = errors.New("the host has no address")

func (h *Host) site(inst *installation) Site {
	if h.rack.options.Site == nil {
		return nil
	}
	return h.rack.options.Site(inst.cluster.key.Namespace, inst.cluster.key.Name)
}

// runPods does what a kubelet does without an API: it runs the static pods on the disk and serves requests. Both
// last until the host is switched off, even after the deletion of its Node. It returns false if the host was
// switched off before.
func (h *Host) runPods(ctx context.Context, inst *installation) bool {
	site := h.site(inst)
	if site == nil {
		return true
	}
	again := backOff{}
	for ctx.Err() == nil {
		err := h.startKubelet(ctx, inst, site)
		if err == nil {
			return true
		}
		h.setProblem(err)
		again.wait(ctx)
	}
	return false
}

func (h *Host) startKubelet(ctx context.Context, inst *installation, site Site) error {
	node, err := h.newNode(ctx, inst)
	if err != nil {
		return err
	}
	address := openshift.InternalIP(node)
	if address == "" {
		return errNoAddress
	}
	h.mu.Lock()
	inst.pods = node.Name
	h.mu.Unlock()
	if err := site.PowerOn(ctx, node.Name, address); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen for a kubelet: %w", err)
	}
	k := &kubeletServer{host: h, inst: inst, site: site, node: node.Name, address: address}
	server := &http.Server{
		Handler: k.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.certificate(ctx) },
			ClientAuth:     tls.RequireAndVerifyClientCert, ClientCAs: site.KubeletClients(), MinVersion: tls.VersionTLS12,
		},
		// HTTP/2 has no upgrade, with which port-forward starts.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	detach := site.Attach(net.JoinHostPort(address, strconv.Itoa(kubeletPort)), listener.Addr().String())
	context.AfterFunc(ctx, func() {
		detach()
		_ = server.Close()
	})
	go func() {
		// It ends when the host is switched off.
		_ = server.ServeTLS(boundListener{Listener: listener, life: ctx}, "", "")
	}()
	return nil
}

// stopPods stops what runPods started, when the host is switched off.
func (h *Host) stopPods(inst *installation) {
	if site, name := h.site(inst), h.podsOf(inst); site != nil && name != "" {
		site.PowerOff(name)
	}
}

// wipePods removes the static pods of a lost disk.
func (h *Host) wipePods(inst *installation) {
	if site, name := h.site(inst), h.podsOf(inst); site != nil && name != "" {
		if err := site.Wipe(name); err != nil {
			h.log.Error(err, "cannot wipe the static pods of the node")
		}
	}
}

func (h *Host) podsOf(inst *installation) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return inst.pods
}

// boundListener closes its accepted connections when life ends: an http.Server forgets upgraded connections.
type boundListener struct {
	net.Listener
	life context.Context //nolint:containedctx // It bounds the connections.
}

// Accept implements [net.Listener].
func (m boundListener) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return boundConn{Conn: conn, forget: context.AfterFunc(m.life, func() { _ = conn.Close() })}, nil
}

// boundConn is a connection that leaves the life of its listener when it is closed.
type boundConn struct {
	net.Conn

	forget func() bool
}

// Close implements [net.Conn].
func (c boundConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// kubeletServer serves the requests of kube-apiserver to a kubelet: port-forward to the etcd pod of its node.
type kubeletServer struct {
	host          *Host
	inst          *installation
	site          Site
	node, address string

	mu     sync.Mutex
	issued *tls.Certificate
}

func (k *kubeletServer) handler() http.Handler {
	mux := http.NewServeMux()
	forward := func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("namespace") != openshift.EtcdNamespace || r.PathValue("pod") != etcdPodPrefix+k.node {
			http.Error(w, "pod not found", http.StatusNotFound)
			return
		}
		portforward.ServePortForward(w, r, k, r.PathValue("pod"), r.PathValue("uid"), &portforward.V4Options{},
			streamIdleTimeout, streamCreationTimeout, portforward.SupportedProtocols)
	}
	mux.HandleFunc("/portForward/{namespace}/{pod}", forward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", forward)
	return mux
}

// PortForward connects a stream with a port of the pod, which is in the network of the host.
func (k *kubeletServer) PortForward(ctx context.Context, _ string, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := k.site.Dial(ctx, net.JoinHostPort(k.address, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		// The connection ends with either direction, for any reason.
		_, _ = io.Copy(conn, stream)
		_ = conn.Close()
	}()
	_, _ = io.Copy(stream, conn)
	return nil
}

// certificate returns the serving certificate of the kubelet. A day-2 host has none until its request was
// approved: handshakes fail until then.
func (k *kubeletServer) certificate(ctx context.Context) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.issued != nil {
		return k.issued, nil
	}
	if k.inst.instruction.DayTwo {
		if err := k.host.servingApproved(ctx, k.inst); err != nil {
			return nil, err
		}
	}
	certificate, err := k.site.KubeletCertificate(k.node, k.address)
	if err != nil {
		return nil, err
	}
	k.issued = &certificate
	return k.issued, nil
}

func (h *Host) servingApproved(ctx context.Context, inst *installation) error {
	c, err := h.rack.options.Workload(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
	if err != nil {
		return err
	}
	return h.approved(ctx, c, inst, certificatesv1.KubeletServingSignerName)
}
