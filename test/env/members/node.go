package members

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
)

// The certificates of a member, in its folder.
const (
	servingFile = "serving.crt"
	servingKey  = "serving.key"
	peerFile    = "peer.crt"
	peerKey     = "peer.key"
)

// node is a host of the cluster as far as etcd is concerned.
type node struct {
	address string
	on      bool
	// member is on the disk of the host; nil: none is.
	member *member
}

type member struct {
	slot slot
	dir  string
	// votes is false for a learner, which serves no clients.
	votes bool
	// away is true while the member is being started again.
	away    bool
	process *process.Process
	// detach takes the member out of the network; nil while it is not in it.
	detach func()
}

// Peer is a member as the others know it.
type Peer struct{ Name, URL string }

// PowerOn starts the member on the disk of a Node's host, which now runs.
func (c *Cluster) PowerOn(ctx context.Context, name, address string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil {
		n = &node{}
		c.nodes[name] = n
	}
	n.address, n.on = address, true
	return c.start(ctx, n)
}

// PowerOff stops the member of a Node immediately, because its host is off.
func (c *Cluster) PowerOff(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[name]; n != nil {
		n.on = false
		n.stop()
	}
}

// Wipe deletes the data on the disk of a Node's host, which is off.
func (c *Cluster) Wipe(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil {
		return nil
	}
	n.on = false
	return c.erase(n)
}

// Vote sets the names of the voting members. The kube-apiserver is connected to them.
func (c *Cluster) Vote(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range c.nodes {
		if n.member != nil {
			n.member.votes = slices.Contains(names, name)
		}
	}
}

// Bounce stops the member of a Node, like a new revision of its Pod, and starts it again after the time away.
func (c *Cluster) Bounce(name string, away time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil || n.member == nil || n.member.detach == nil {
		return
	}
	n.stop()
	m := n.member
	m.away = true
	time.AfterFunc(away, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if n.member != m {
			return
		}
		m.away = false
		// If the start fails, the member counts as crashed: the kubelet tries again.
		_ = c.start(context.Background(), n)
	})
}

// On reports whether the host of a Node runs.
func (c *Cluster) On(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	return n != nil && n.on
}

// Address is that of the host of a Node in the network of the hosts; empty: there is no such host.
func (c *Cluster) Address(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[name]; n != nil {
		return n.address
	}
	return ""
}

// Placed reports whether there is a member on the disk of a Node's host; Running, whether it runs.
func (c *Cluster) Placed(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	return n != nil && n.member != nil
}

// Running see [Cluster.Placed].
func (c *Cluster) Running(name string) bool {
	p := c.Process(name)
	return p != nil && p.Running()
}

// Serving are the members that run, with the URLs of their clients.
func (c *Cluster) Serving() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	urls := map[string]string{}
	for name, n := range c.nodes {
		if n.member != nil && n.member.process.Running() {
			urls[name] = ClientURL(n.address)
		}
	}
	return urls
}

// Ended are the Nodes whose members ended by themselves: their hosts run.
func (c *Cluster) Ended() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name, n := range c.nodes {
		if n.on && n.member != nil && !n.member.away && !n.member.process.Running() {
			names = append(names, name)
		}
	}
	return names
}

// Process is the process of the member of a Node, for tests that kill or measure it; nil: the Node has no member.
func (c *Cluster) Process(name string) *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[name]; n != nil && n.member != nil {
		return n.member.process
	}
	return nil
}

// Restart starts the member of a Node again after a crash.
func (c *Cluster) Restart(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil || !n.on {
		return nil
	}
	n.stop()
	return c.start(ctx, n)
}

// Discard takes the member off the disk of a Node's host, which goes on.
func (c *Cluster) Discard(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[name]; n != nil {
		return c.erase(n)
	}
	return nil
}

// Place puts a member without data on the disk of a Node's host and runs it. peers are all members that there are,
// itself included; none: it is the first one of all.
func (c *Cluster) Place(ctx context.Context, name string, serving, peer Credentials, peers []Peer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil || !n.on || n.member != nil {
		return fmt.Errorf("no etcd member can be placed on the host of %s: it is off, or has one", name)
	}
	s, err := c.take()
	if err != nil {
		return err
	}
	m := &member{slot: s, dir: filepath.Join(c.dir, name), votes: len(peers) == 0}
	files := map[string][]byte{servingFile: serving.Certificate, servingKey: serving.Key, peerFile: peer.Certificate, peerKey: peer.Key}
	if err := process.WriteFiles(m.dir, files); err != nil {
		return err
	}
	m.process = c.options.Group.New("etcd-"+c.options.Name+"-"+name, process.Storage, c.options.Program, c.flags(name, n.address, m, peers)...)
	// Peers reach each other through the network of the hosts alone.
	m.process.Env = []string{"HTTPS_PROXY=" + c.network.ProxyURL(n.address), "NO_PROXY=", "no_proxy="}
	// The data is not needed after the run, and a host that is switched off does not shut down its processes.
	m.process.StopSignal = syscall.SIGKILL
	// A member whose others are away is not ready, and runs.
	m.process.Ready = func(context.Context) error { return nil }
	n.member = m
	return c.start(ctx, n)
}

func (c *Cluster) flags(name, address string, m *member, peers []Peer) []string {
	state := "existing"
	if len(peers) == 0 {
		peers, state = []Peer{{Name: name, URL: PeerURL(address)}}, "new"
	}
	initial := make([]string, 0, len(peers))
	for _, p := range peers {
		initial = append(initial, p.Name+"="+p.URL)
	}
	ca, file := filepath.Join(c.dir, "ca.crt"), func(name string) string { return filepath.Join(m.dir, name) }
	return []string{
		"--name=" + name,
		"--data-dir=" + file("data"),
		"--listen-client-urls=" + local(m.slot.client), "--advertise-client-urls=" + ClientURL(address),
		"--listen-peer-urls=" + local(m.slot.peer), "--initial-advertise-peer-urls=" + PeerURL(address),
		"--initial-cluster=" + strings.Join(initial, ","), "--initial-cluster-state=" + state,
		"--client-cert-auth", "--trusted-ca-file=" + ca, "--cert-file=" + file(servingFile), "--key-file=" + file(servingKey),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca, "--peer-cert-file=" + file(peerFile), "--peer-key-file=" + file(peerKey),
		// those of OpenShift for slow hardware: by default, a member that does nothing beats ten times a second
		"--heartbeat-interval=500", "--election-timeout=2500",
		"--unsafe-no-fsync", // a host that is switched off loses no page of this machine
		"--log-level=warn",
	}
}

// start runs the member of a host that is on and has one; the caller holds the lock.
func (c *Cluster) start(ctx context.Context, n *node) error {
	if c.closed || !n.on || n.member == nil || n.member.detach != nil {
		return nil
	}
	if err := c.options.Group.Start(ctx, n.member.process); err != nil {
		return fmt.Errorf("cannot start an etcd member: %w", err)
	}
	client := c.network.Attach(net.JoinHostPort(n.address, clientPort), strings.TrimPrefix(local(n.member.slot.client), "https://"))
	peer := c.network.Attach(net.JoinHostPort(n.address, peerPort), strings.TrimPrefix(local(n.member.slot.peer), "https://"))
	n.member.detach = func() { client(); peer() }
	return nil
}

// stop ends the member of a host, if it has one.
func (n *node) stop() {
	if n.member == nil || n.member.detach == nil {
		return
	}
	n.member.detach()
	n.member.detach = nil
	n.member.process.Kill()
}

// erase ends the member of a host for good; the caller holds the lock.
func (c *Cluster) erase(n *node) error {
	if n.member == nil {
		return nil
	}
	n.stop()
	dir := n.member.dir
	c.free = append(c.free, n.member.slot)
	n.member = nil
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove the data of an etcd member: %w", err)
	}
	return nil
}
