package network

import (
	"net"
	"slices"
	"sync"
)

// Cut cuts a host off from the network, in both directions, until heal is called. Connections stay open and carry
// nothing, and a new connection gets no answer. A host that is switched off behaves differently: connections to it fail
// immediately.
func (n *Network) Cut(host string) (heal func()) {
	n.mu.Lock()
	if n.cuts[host] == nil {
		n.cuts[host] = make(chan struct{})
	}
	cut := n.cuts[host]
	n.mu.Unlock()
	if n.OnCut != nil {
		n.OnCut(host)
	}
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.cuts[host] == cut {
			delete(n.cuts, host)
			close(cut)
		}
	})
}

// IsCut reports whether a host is cut off.
func (n *Network) IsCut(host string) bool { return n.cutOf(host) != nil }

// cutOf is what is closed when one of these hosts is not cut off any more; nil: none is.
func (n *Network) cutOf(hosts ...string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.IndexFunc(hosts, func(host string) bool { return n.cuts[host] != nil }); i >= 0 {
		return n.cuts[hosts[i]]
	}
	return nil
}

// path is the way between two hosts.
type path struct {
	network *Network
	hosts   []string
}

// open waits until no host of the path is cut off. It returns false when the caller gave up before.
func (p path) open(given <-chan struct{}) bool {
	for {
		cut := p.network.cutOf(p.hosts...)
		if cut == nil {
			return true
		}
		select {
		case <-cut:
		case <-given:
			return false
		}
	}
}

// pathConn is a connection over a path. While the path is cut, sent data does not leave, and received data is not
// delivered, including the end of the connection.
type pathConn struct {
	net.Conn

	path   path
	once   sync.Once
	closed chan struct{}
}

// Read implements [net.Conn].
func (c *pathConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.path.open(c.closed) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements [net.Conn].
func (c *pathConn) Write(p []byte) (int, error) {
	if !c.path.open(c.closed) {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// Close implements [net.Conn].
func (c *pathConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
