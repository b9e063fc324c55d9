package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// front is a reverse proxy before assisted-service, like the ingress of a hub. It can serve HTTPS with a
// private CA, and return errors of a test in place of the service.
type front struct {
	listener net.Listener
	scheme   string

	mu     sync.Mutex
	target *url.URL
	// faults are handlers that serve the discovery ignitions of a namespace in place of the service;
	// inNamespace finds the namespace of an InfraEnv.
	faults      map[string]http.HandlerFunc
	inNamespace func(ctx context.Context, infraEnvID string) (namespace string, err error)
}

// ignitionPath matches the path of a discovery ignition.
var ignitionPath = regexp.MustCompile(`^/api/assisted-install/v2/infra-envs/([^/]+)/downloads/files$`)

// startFront listens until ctx ends. It returns status 503 until it has a service. With a certificate it serves
// HTTPS.
func startFront(ctx context.Context, certificate *tls.Certificate, logger logr.Logger) (*front, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for assisted-service: %w", err)
	}
	f := &front{listener: listener, scheme: "http", faults: map[string]http.HandlerFunc{}}
	if certificate != nil {
		f.scheme = "https"
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			f.mu.Lock()
			defer f.mu.Unlock()
			r.SetURL(f.target)
		},
		// The client gets the error.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if handler := f.answer(r); handler != nil {
				logger.V(1).Info("served by a fault instead of assisted-service", "path", r.URL.Path)
				handler(w, r)
				return
			}
			proxy.ServeHTTP(w, r)
		}),
	}
	go func() {
		// Serve returns an error when the server is closed.
		_ = server.Serve(listener)
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return f, nil
}

// url returns the URL of the service.
func (f *front) url() string { return f.scheme + "://" + f.listener.Addr().String() }

// serve forwards requests to a service from now on.
func (f *front) serve(service string, inNamespace func(ctx context.Context, infraEnvID string) (string, error)) error {
	target, err := url.Parse(service)
	if err != nil {
		return fmt.Errorf("cannot use the URL of assisted-service: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target, f.inNamespace = target, inNamespace
	return nil
}

// fail serves the discovery ignitions of a namespace with handler; nil ends the fault.
func (f *front) fail(namespace string, handler http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if handler == nil {
		delete(f.faults, namespace)
		return
	}
	f.faults[namespace] = handler
}

// answer returns the handler in place of the service, or nil.
func (f *front) answer(r *http.Request) http.HandlerFunc {
	f.mu.Lock()
	target, inNamespace, faults := f.target, f.inNamespace, maps.Clone(f.faults)
	f.mu.Unlock()
	if target == nil {
		return func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no service yet", http.StatusServiceUnavailable)
		}
	}
	match := ignitionPath.FindStringSubmatch(r.URL.Path)
	if match == nil || len(faults) == 0 {
		return nil
	}
	namespace, err := inNamespace(r.Context(), match[1])
	if err != nil {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, err.Error(), http.StatusBadGateway) }
	}
	return faults[namespace]
}
