package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/network"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/process"
)

const (
	// BootstrapName is the member that serves before the first Node does, on the bootstrap host.
	BootstrapName = "etcd-bootstrap"
	// bootstrapAddress is leased to no host.
	bootstrapAddress = "192.168.111.10"

	clientPort = "2379"
	peerPort   = "2380"

	// slots is how many members there may be at a time, the bootstrap and those whose disks are not wiped yet among them. The kube-apiserver
	// knows them all from its start: OpenShift's three are restarted one after the other for a new member, which one alone cannot be.
	slots = 9

	dialTimeout = 2 * time.Second
)

// Options of a Cluster.
type Options struct {
	// Name tells the etcd processes of several clusters apart.
	Name string
	// Group runs the processes, Program is etcd.
	Group   *process.Group
	Program string
	// Kubernetes is the authority of the cluster's kube-apiserver and kubelets.
	Kubernetes *pki.Authority
}

// Cluster is the etcd of one workload cluster, and the network that its hosts are in.
type Cluster struct {
	options Options
	network *network.Network
	ca      *pki.Authority
	// client are the credentials with which OpenShift's own components use etcd.
	client Credentials
	dir    string

	mu    sync.Mutex
	slots []*slot
	nodes map[string]*node
}

// Credentials are a certificate and its key, in PEM.
type Credentials struct{ Certificate, Key []byte }

// slot are the ports of this machine on which a member listens.
type slot struct {
	client, peer int
	taken        bool
}

// New prepares an etcd without members.
func New(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{options: options, dir: filepath.Join(options.Group.Temp(), "etcd-"+options.Name), nodes: map[string]*node{}}
	var err error
	if c.ca, err = pki.New("etcd-signer"); err != nil {
		return nil, err
	}
	if c.client.Certificate, c.client.Key, err = c.ca.Client("etcd-client"); err != nil {
		return nil, err
	}
	for range slots {
		s := &slot{}
		if s.client, err = options.Group.Port(); err != nil {
			return nil, err
		}
		if s.peer, err = options.Group.Port(); err != nil {
			return nil, err
		}
		c.slots = append(c.slots, s)
	}
	if err := write(c.dir, map[string][]byte{"ca.crt": c.ca.PEM(), "client.crt": c.client.Certificate, "client.key": c.client.Key}); err != nil {
		return nil, err
	}
	c.network, err = network.New(ctx, filepath.Join(options.Group.Temp(), strconv.Itoa(c.slots[0].client)+".sock"))
	return c, err
}

// Start runs the bootstrap member, if no member ever ran.
func (c *Cluster) Start(ctx context.Context) error {
	c.mu.Lock()
	_, begun := c.nodes[BootstrapName]
	c.mu.Unlock()
	if begun {
		return nil
	}
	credentials, err := c.Issue(BootstrapName, bootstrapAddress)
	if err != nil {
		return err
	}
	if err := c.PowerOn(ctx, BootstrapName, bootstrapAddress); err != nil {
		return err
	}
	return c.Place(ctx, BootstrapName, credentials, credentials, nil)
}

// Stop ends all members and the network for good.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		n.stop()
	}
	c.network.Close()
}

// ServerFlags are the flags that make a kube-apiserver keep its data here.
func (c *Cluster) ServerFlags() []string {
	servers := make([]string, 0, len(c.slots))
	for _, s := range c.slots {
		servers = append(servers, local(s.client))
	}
	file := func(name string) string { return filepath.Join(c.dir, name) }
	return []string{
		"--etcd-servers=" + strings.Join(servers, ","),
		"--etcd-cafile=" + file("ca.crt"), "--etcd-certfile=" + file("client.crt"), "--etcd-keyfile=" + file("client.key"),
	}
}

// Network is the one that the hosts of the cluster are in.
func (c *Cluster) Network() *network.Network { return c.network }

// CA is the certificate of the authority that issued all certificates of etcd, in PEM.
func (c *Cluster) CA() []byte { return c.ca.PEM() }

// ClientCredentials are those of etcd-client.
func (c *Cluster) ClientCredentials() Credentials { return c.client }

// Issue makes the certificate of a member, which is good for a server, for a peer, and for a client.
func (c *Cluster) Issue(name, address string) (Credentials, error) {
	certificate, key, err := c.ca.Host(name, true, address, "etcd.openshift-etcd.svc", "etcd.openshift-etcd.svc.cluster.local")
	return Credentials{Certificate: certificate, Key: key}, err
}

// KubeletCertificate is what the kubelet of a Node serves with.
func (c *Cluster) KubeletCertificate(name, address string) (tls.Certificate, error) {
	certificate, key, err := c.options.Kubernetes.Host("system:node:"+name, false, name, address)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

// KubeletClients is the authority of those that a kubelet answers.
func (c *Cluster) KubeletClients() *x509.CertPool { return c.options.Kubernetes.Pool() }

// Dial connects to an address of the cluster's hosts.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	return c.network.Dial(ctx, address)
}

// Attach lets what listens on this machine be reached under an address of a host.
func (c *Cluster) Attach(address, at string) (detach func()) { return c.network.Attach(address, at) }

// Client is a client of the members at these URLs, as etcd-client.
func (c *Cluster) Client(urls ...string) (*clientv3.Client, error) {
	certificate, err := tls.X509KeyPair(c.client.Certificate, c.client.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate of etcd-client: %w", err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: urls, DialTimeout: dialTimeout,
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: c.ca.Pool(), MinVersion: tls.VersionTLS12},
		// Who asks hears of it; and a member that has just been started is there soon.
		Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(patient), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return c.network.Dial(ctx, strings.TrimPrefix(address, "https://"))
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of etcd: %w", err)
	}
	return client, nil
}

// patient is how a member is waited for that does not answer.
var patient = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond}, MinConnectTimeout: dialTimeout,
}

var errNoSlot = errors.New("the laboratory has no room for another etcd member")

// take finds room for a member; the caller holds the lock.
func (c *Cluster) take() (*slot, error) {
	for _, s := range c.slots {
		if !s.taken {
			s.taken = true
			return s, nil
		}
	}
	return nil, errNoSlot
}

// PeerURL and ClientURL are what the member on a host advertises.
func PeerURL(address string) string { return "https://" + net.JoinHostPort(address, peerPort) }

// ClientURL see [PeerURL].
func ClientURL(address string) string { return "https://" + net.JoinHostPort(address, clientPort) }

func local(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }

func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot create %s: %w", dir, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}
