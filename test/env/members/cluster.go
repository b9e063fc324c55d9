package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/network"
)

const (
	// BootstrapName is the member that serves before the first Node does, on the bootstrap host.
	BootstrapName = "etcd-bootstrap"
	// bootstrapAddress is leased to no host.
	bootstrapAddress = "192.168.111.10"

	clientPort = "2379"
	peerPort   = "2380"

	dialTimeout = 2 * time.Second
)

// Options of a Cluster.
type Options struct {
	// Name is a prefix of the names of the etcd processes, which distinguishes several clusters.
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
	// proxy is the address at which the kube-apiserver reaches the members.
	proxy *proxy

	mu     sync.Mutex
	free   []slot
	nodes  map[string]*node
	closed bool
}

// Credentials are a certificate and its key, in PEM.
type Credentials struct{ Certificate, Key []byte }

// slot are the ports of this machine on which a member listens.
type slot struct{ client, peer int }

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
	if err := process.WriteFiles(c.dir,
		map[string][]byte{"ca.crt": c.ca.PEM(), "client.crt": c.client.Certificate, "client.key": c.client.Key}); err != nil {
		return nil, err
	}
	if c.proxy, err = newProxy(ctx, c); err != nil {
		return nil, err
	}
	if c.network, err = network.New(ctx, filepath.Join(options.Group.Temp(), strconv.Itoa(c.proxy.port())+".sock")); err != nil {
		return nil, err
	}
	c.network.OnCut = c.proxy.disconnect
	return c, nil
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
	c.closed = true
	for _, n := range c.nodes {
		n.stop()
	}
	c.proxy.close()
	c.network.Close()
}

// ServerFlags are the flags that make a kube-apiserver keep its data here.
func (c *Cluster) ServerFlags() []string {
	file := func(name string) string { return filepath.Join(c.dir, name) }
	return []string{
		"--etcd-servers=" + local(c.proxy.port()),
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
		// The caller gets the error. A member that was just started serves soon.
		Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(patient),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return c.network.Dial(ctx, strings.TrimPrefix(address, "https://"))
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of etcd: %w", err)
	}
	return client, nil
}

// patient are the parameters of connections to a member that does not answer.
var patient = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
	MinConnectTimeout: dialTimeout,
}

// take finds room for a member; the caller holds the lock.
func (c *Cluster) take() (slot, error) {
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s, nil
	}
	client, err := c.options.Group.Port()
	if err != nil {
		return slot{}, err
	}
	peer, err := c.options.Group.Port()
	return slot{client: client, peer: peer}, err
}

// PeerURL and ClientURL are what the member on a host advertises.
func PeerURL(address string) string { return "https://" + net.JoinHostPort(address, peerPort) }

// ClientURL see [PeerURL].
func ClientURL(address string) string { return "https://" + net.JoinHostPort(address, clientPort) }

func local(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }
