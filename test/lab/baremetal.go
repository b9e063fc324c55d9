package lab

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// machines is where the real Bare Metal Operator, which starts before there is a rack, asks the machines; nil: there is a simulated one.
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

// operator is how the operator is started.
func (m *machines) operator() *env.ManagerOptions {
	if m == nil {
		return nil
	}
	return &env.ManagerOptions{ExtraArgs: []string{"--machines=http://" + m.listener.Addr().String()}}
}

// serve lets the machines answer until ctx ends.
func (m *machines) serve(ctx context.Context, rack http.Handler) {
	if m == nil {
		return
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: rack}
	go func() {
		// It ends when it is closed.
		_ = server.Serve(m.listener)
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
}
