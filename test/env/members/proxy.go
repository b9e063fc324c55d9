package members

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/network"
)

// proxyPoll is the interval at which a proxy searches for a member to forward to.
const proxyPoll = 50 * time.Millisecond

// proxy forwards connections of the kube-apiserver to any member that votes and runs. In OpenShift each member has a
// kube-apiserver on its host, and the load balancer forwards clients to those that work. Here one kube-apiserver serves
// the cluster. After a member was away for minutes, it would dial the member only after up to two more minutes. The
// reason is the back-off of gRPC, which the client of etcd does not change.
type proxy struct {
	cluster  *Cluster
	listener net.Listener
	life     context.Context //nolint:containedctx // It is the life of the connections.
	end      context.CancelFunc

	mu sync.Mutex
	// through are the connections that it forwards, with the addresses of the hosts to which they lead.
	through map[net.Conn]string
}

func newProxy(ctx context.Context, c *Cluster) (*proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the kube-apiserver: %w", err)
	}
	p := &proxy{cluster: c, listener: listener, through: map[net.Conn]string{}}
	p.life, p.end = context.WithCancel(context.Background())
	go p.serve()
	return p, nil
}

func (p *proxy) port() int {
	address, _ := p.listener.Addr().(*net.TCPAddr)
	return address.Port
}

func (p *proxy) close() {
	p.end()
	_ = p.listener.Close()
	p.disconnect("")
}

func (p *proxy) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.forward(conn)
	}
}

// forward joins a connection with a member. Without a member the connection stays open: a client that closes it dials
// again at once, and not after a back-off.
func (p *proxy) forward(conn net.Conn) {
	defer conn.Close()
	tick := time.NewTicker(proxyPoll)
	defer tick.Stop()
	for {
		if address, port := p.cluster.voter(); address != "" {
			if member, err := (&net.Dialer{}).DialContext(p.life, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				p.join(conn, address, member)
				return
			}
		}
		select {
		case <-p.life.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *proxy) join(conn net.Conn, address string, member net.Conn) {
	p.mu.Lock()
	p.through[member] = address
	p.mu.Unlock()
	network.Join(conn, conn, member)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.through, member)
}

// disconnect ends the connections that lead to a host; empty: to all. Clients of a host that is cut off then dial at once.
func (p *proxy) disconnect(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for member, address := range p.through {
		if host == "" || address == host {
			_ = member.Close()
		}
	}
}

// voter is where a member listens that votes, runs and is not cut off, and the address of its host; empty: there is none.
func (c *Cluster) voter() (address string, port int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if m := n.member; m != nil && m.votes && m.process.Running() && !c.network.IsCut(n.address) {
			return n.address, m.slot.client
		}
	}
	return "", 0
}
