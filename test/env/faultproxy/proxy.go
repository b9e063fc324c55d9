// Package faultproxy is a proxy between clients and servers. It loses requests, answers and watches, shifts the clock
// of a client, and crashes a manager at its writes. Faults are random, with a seed.
package faultproxy

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

// Proxy listens for one manager and forwards its requests to the API server of the hub.
type Proxy struct {
	*Connection

	crashes  crashes
	account  string // namespace:name of the ServiceAccount
	hub      string // path of the hub's kubeconfig
	listener net.Listener
	server   *http.Server

	mu sync.Mutex
	// transport and target lead to the API server. They are set with the first request.
	transport http.RoundTripper
	target    *url.URL
}

// Listen starts a proxy for the manager that runs as a ServiceAccount (namespace:name). The hub may start later, as
// long as its kubeconfig exists at the path hub when the manager sends its first request.
func Listen(ctx context.Context, account, hub string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for a manager: %w", err)
	}
	p := &Proxy{Connection: NewConnection(), account: account, hub: hub, listener: listener}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Close ends all connections. The manager must have stopped.
func (p *Proxy) Close() { _ = p.server.Close() }

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	transport, target, err := p.connect()
	if err != nil {
		http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		return
	}
	p.Pass(rw, r, &crashing{transport, &p.crashes}, target)
}

// Kubeconfig writes the kubeconfig of the manager into a directory, and returns its path.
func (p *Proxy) Kubeconfig(dir string) (string, error) {
	const name = "proxy"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "http://" + p.listener.Addr().String()}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	path := filepath.Join(dir, strings.ReplaceAll(p.account, ":", "-")+".kubeconfig")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return path, clientcmd.WriteToFile(*config, path)
}

// Forward returns a proxy without faults, for watches too. It cuts the connection of a request that fails.
func Forward(transport http.RoundTripper, target *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// connect returns the transport to the API server. The transport impersonates the ServiceAccount of the manager, so
// that the manager has only the rights of its roles.
func (p *Proxy) connect() (http.RoundTripper, *url.URL, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.transport != nil {
		return p.transport, p.target, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.hub)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the kubeconfig of the hub: %w", err)
	}
	namespace, _, _ := strings.Cut(p.account, ":")
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + p.account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot connect to the hub: %w", err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use the URL of the hub: %w", err)
	}
	p.transport, p.target = transport, target
	return transport, target, nil
}
