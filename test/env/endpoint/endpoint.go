// Package endpoint serves https in this process, as something that is stopped and comes back.
package endpoint

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Endpoint answers from Start to Stop, which may follow each other as often as one likes.
type Endpoint struct {
	tls     *tls.Config
	handler http.Handler

	mu      sync.Mutex
	running *http.Server
	address string
}

// New returns an endpoint that shows the certificate of a configuration, and trusts the clients that it trusts. It does not listen yet.
func New(config *tls.Config, handler http.Handler) *Endpoint {
	return &Endpoint{tls: config, handler: handler}
}

// Start listens, unless it does already.
func (e *Endpoint) Start(ctx context.Context, address string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running != nil {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot serve the API of a workload cluster: %w", err)
	}
	server := &http.Server{Handler: e.handler, TLSConfig: e.tls.Clone(), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	e.running, e.address = server, listener.Addr().String()
	go func() {
		// It ends when it is closed.
		_ = server.ServeTLS(listener, "", "")
	}()
	return nil
}

// Address is where it listens, or did last.
func (e *Endpoint) Address() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.address
}

// Stop ends all connections.
func (e *Endpoint) Stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running != nil {
		_ = e.running.Close() // no caller handles the error
	}
	e.running = nil
}
