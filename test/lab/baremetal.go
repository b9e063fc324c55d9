package lab

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// machines is the listener of the simulated machines for the real Bare Metal Operator, which starts before the
// rack exists. It is nil with the simulated operator.
type machines struct{ listener net.Listener }

func (l *Lab) listenForOperator(ctx context.Context, options Options) (*machines, error) {
	if options.BareMetal != Real || options.NoManagers {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the Bare Metal Operator: %w", err)
	}
	context.AfterFunc(l.life, func() { _ = listener.Close() })
	return &machines{listener: listener}, nil
}

// operator returns the options for starting the operator.
func (m *machines) operator() *env.ManagerOptions {
	if m == nil {
		return nil
	}
	return &env.ManagerOptions{ExtraArgs: []string{"--machines=http://" + m.listener.Addr().String()}}
}

// serve serves the machines until ctx ends.
func (m *machines) serve(ctx context.Context, rack http.Handler) {
	if m == nil {
		return
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: rack}
	go func() {
		// Serve returns an error when the server is closed.
		_ = server.Serve(m.listener)
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
}
