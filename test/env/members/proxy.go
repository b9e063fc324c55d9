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

// doorPoll is the interval at which a door searches for a member to forward to.
const doorPoll = 50 * time.Millisecond

// door forwards connections of the kube-apiserver to any member that votes and runs. In OpenShift each member has a
// kube-apiserver on its host, and the load balancer forwards clients to those that work. Here one kube-apiserver serves
// the cluster. After a member was away for minutes, it would dial the member only after up to two more minutes. The
// reason is the back-off of gRPC, which the client of etcd does not change.
type door struct {
	cluster  *Cluster
	listener net.Listener
	life     context.Context //nolint:containedctx // It is the life of the connections.
	end      context.CancelFunc

	mu sync.Mutex
	// through are the connections that go through the door, with the addresses of the hosts that they lead to.
	through map[net.Conn]string
}

func newDoor(ctx context.Context, c *Cluster) (*door, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the kube-apiserver: %w", err)
	}
	d := &door{cluster: c, listener: listener, through: map[net.Conn]string{}}
	d.life, d.end = context.WithCancel(context.Background())
	go d.serve()
	return d, nil
}

func (d *door) port() int {
	address, _ := d.listener.Addr().(*net.TCPAddr)
	return address.Port
}

func (d *door) close() {
	d.end()
	_ = d.listener.Close()
	d.leave("")
}

func (d *door) serve() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		go d.lead(conn)
	}
}

// lead joins a connection with a member. Where there is none it is held: its client dials again at once when it gives
// up, and not after a back-off.
func (d *door) lead(conn net.Conn) {
	defer conn.Close()
	tick := time.NewTicker(doorPoll)
	defer tick.Stop()
	for {
		if address, port := d.cluster.voter(); address != "" {
			if member, err := (&net.Dialer{}).DialContext(d.life, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				d.join(conn, address, member)
				return
			}
		}
		select {
		case <-d.life.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *door) join(conn net.Conn, address string, member net.Conn) {
	d.mu.Lock()
	d.through[member] = address
	d.mu.Unlock()
	network.Join(conn, conn, member)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.through, member)
}

// leave ends the connections that lead to a host; empty: to all. When it is cut off, clients learn at once that its
// kube-apiserver is of no use.
func (d *door) leave(host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for member, address := range d.through {
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
