// Package gateway is a way from a manager to the API server of the management cluster that a test has in its hands.
package gateway

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Gateway listens for a manager. What becomes of its requests is decided by the handler.
type Gateway struct {
	account  string // namespace:name of the ServiceAccount
	hub      string // path of the hub's kubeconfig
	listener net.Listener
	server   *http.Server

	mu sync.Mutex
	// transport and target lead to the API server; they are known after the first request.
	transport http.RoundTripper
	target    *url.URL
}

// New listens for the manager that runs as a ServiceAccount (namespace:name), and passes its requests to the handler.
// The kubeconfig of the hub is written to hub.
func New(ctx context.Context, account, hub string, handler http.Handler) (*Gateway, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for a manager: %w", err)
	}
	g := &Gateway{account: account, hub: hub, listener: listener}
	g.server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = g.server.Serve(listener) }()
	return g, nil
}

// Close ends all connections; the manager must not run any more.
func (g *Gateway) Close() { _ = g.server.Close() }

// Kubeconfig writes what the manager is to use as KUBECONFIG into a directory, and returns its path.
func (g *Gateway) Kubeconfig(dir string) (string, error) {
	const name = "gateway"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "http://" + g.listener.Addr().String()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	path := filepath.Join(dir, strings.ReplaceAll(g.account, ":", "-")+".kubeconfig")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return path, clientcmd.WriteToFile(*config, path)
}

// Proxy passes requests on at once, answers that go on included; where that fails the connection is cut.
func Proxy(transport http.RoundTripper, target *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// Connect finds the API server. The manager's ServiceAccount is impersonated: its rights are those that count.
func (g *Gateway) Connect() (http.RoundTripper, *url.URL, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.transport != nil {
		return g.transport, g.target, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", g.hub)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the kubeconfig of the hub: %w", err)
	}
	namespace, _, _ := strings.Cut(g.account, ":")
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + g.account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot reach the hub: %w", err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use the URL of the hub: %w", err)
	}
	g.transport, g.target = transport, target
	return transport, target, nil
}
