// Package etcd reads the etcd of workload clusters, and changes its members. It uses the port-forward of API
// servers, and the client credentials of each cluster. Those give access to all data of the cluster.
// Therefore they are read for each use, and never kept.
package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// namespace is the namespace of etcd, configNamespace that of its authorities up to OpenShift 4.16.
	namespace, configNamespace = "openshift-etcd", "openshift-config"
	// credentialsSecret and authoritiesConfigMap hold the credentials of clients.
	credentialsSecret, authoritiesConfigMap, authoritiesKey = "etcd-client", "etcd-ca-bundle", "ca-bundle.crt"
	// clientPort is the port of members for clients. Their certificates include serverName.
	clientPort, serverName = 2379, "localhost"
	// memberTimeout is the limit for all queries to a member, changeTimeout the limit for a change.
	memberTimeout, changeTimeout = 5 * time.Second, 10 * time.Second
)

// Clusters connects to workload clusters.
type Clusters interface {
	Connect(ctx context.Context, key client.ObjectKey, requests func(context.Context, *conn.Conn) error) error
	EtcdServes(ctx context.Context, key client.ObjectKey) (bool, error)
}

// Etcds reads and changes the etcd of workload clusters.
type Etcds struct{ clusters Clusters }

// New returns Etcds for clusters.
func New(clusters Clusters) *Etcds { return &Etcds{clusters} }

// Observe reads all facts for decisions. They include the status of each member, or that a member does not
// respond.
func (e *Etcds) Observe(ctx context.Context, key client.ObjectKey) (workload.Etcd, error) {
	var seen workload.Etcd
	serves, err := e.Serves(ctx, key)
	if err != nil || !serves {
		return workload.Etcd{Lost: !serves}, err
	}
	err = e.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) (err error) {
		seen, err = observe(ctx, conn.Client, conn.DialPod)
		return err
	})
	return seen, err
}

// Serves reports whether etcd serves the API server of the cluster. Without quorum it does not. This takes
// one request.
func (e *Etcds) Serves(ctx context.Context, key client.ObjectKey) (bool, error) {
	return e.clusters.EtcdServes(ctx, key)
}

// MoveLeader transfers the leadership to another member.
func (e *Etcds) MoveLeader(ctx context.Context, key client.ObjectKey, leader, to workload.EtcdMember) error {
	return e.change(ctx, key, leader, func(ctx context.Context, c *clientv3.Client) error {
		if _, err := c.MoveLeader(ctx, to.ID); err != nil {
			return &failure{fmt.Sprintf("etcd member %s does not hand over to %s", leader.Name, to.Name), err}
		}
		return nil
	})
}

// RemoveMember removes a member through another member.
func (e *Etcds) RemoveMember(ctx context.Context, key client.ObjectKey, via, member workload.EtcdMember) error {
	return e.change(ctx, key, via, func(ctx context.Context, c *clientv3.Client) error {
		if _, err := c.MemberRemove(ctx, member.ID); err != nil {
			return &failure{"cannot remove etcd member " + member.Name, err}
		}
		return nil
	})
}

func (e *Etcds) change(ctx context.Context, key client.ObjectKey, via workload.EtcdMember,
	change func(context.Context, *clientv3.Client) error,
) error {
	return e.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error {
		return viaMember(ctx, conn.Client, conn.DialPod, via.Name, change)
	})
}

// viaMember makes a change through the member on a Node.
func viaMember(ctx context.Context, c client.Client, forward forward, node string,
	change func(context.Context, *clientv3.Client) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	credentials, err := readCredentials(ctx, c)
	if err != nil {
		return err
	}
	pods, err := readPods(ctx, c)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].Spec.NodeName != node {
			continue
		}
		member, err := open(ctx, credentials, forward, client.ObjectKeyFromObject(&pods[i]))
		if err != nil {
			return err
		}
		return errors.Join(change(ctx, member), member.Close())
	}
	return &failure{action: fmt.Sprintf("Node %s has no etcd Pod to connect to", node)}
}

// DeleteSecrets deletes the certificates of the member of a removed Node. Another Node with the same name may
// have another address.
func (e *Etcds) DeleteSecrets(ctx context.Context, key client.ObjectKey, node string) error {
	return e.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error {
		return deleteSecrets(ctx, conn.Client, node)
	})
}

// DeleteNode deletes exactly the Node that was read. If the Node was recreated or changed since, for example
// because its kubelet reports again, the API server refuses with a conflict. A Node that does not exist is
// reported as NotFound.
func (e *Etcds) DeleteNode(ctx context.Context, key client.ObjectKey, node workload.ControlPlaneNode) error {
	return e.clusters.Connect(ctx, key, func(ctx context.Context, conn *conn.Conn) error {
		return deleteNode(ctx, conn.Client, node)
	})
}

func deleteNode(ctx context.Context, c client.Client, node workload.ControlPlaneNode) error {
	obj := &corev1.Node{}
	obj.Name = node.Name
	if err := c.Delete(ctx, obj,
		client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion}); err != nil {
		return &failure{"cannot delete Node " + node.Name + " of the workload cluster", err}
	}
	return nil
}

func deleteSecrets(ctx context.Context, c client.Client, node string) error {
	for _, purpose := range []string{"etcd-peer-", "etcd-serving-", "etcd-serving-metrics-"} {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = namespace, purpose+node
		if err := c.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return &failure{"cannot delete Secret " + secret.Name + " of the workload cluster", err}
		}
	}
	return nil
}

// forward connects to a port of a Pod.
type forward func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error)

// maxResponseBytes is the limit of one response of etcd. A status or a list of members has some KiB.
const maxResponseBytes = 1 << 20

// open returns a client of one member. It does not connect yet.
func open(ctx context.Context, credentials *tls.Config, forward forward, pod client.ObjectKey) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Context:   ctx,
		Endpoints: []string{"https://" + credentials.ServerName}, // is not resolved, but must match the certificate
		TLS:       credentials,
		Logger:    zap.NewNop(),
		// By default a client accepts responses of 2 GiB, and headers of 16 MiB.
		MaxCallRecvMsgSize: maxResponseBytes,
		DialOptions: []grpc.DialOption{
			grpc.WithMaxHeaderListSize(bound.HeaderBytes),
			// The client sets its load balancing only after the first connection (v3.6, with grpc v1.78), and would
			// connect again.
			grpc.WithDisableServiceConfig(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return forward(ctx, pod, clientPort) }),
		},
	})
	if err != nil {
		return nil, &failure{"cannot create a client of etcd", err}
	}
	return c, nil
}

// readCredentials reads the client credentials. The cluster may renew them at any time. Errors contain no
// part of them.
func readCredentials(ctx context.Context, c client.Reader) (*tls.Config, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: credentialsSecret}, secret); err != nil {
		return nil, &failure{"cannot read Secret " + credentialsSecret + " of the workload cluster", err}
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, &failure{action: "Secret " + credentialsSecret + " of the workload cluster holds no certificate with its key"}
	}
	authorities, err := readAuthorities(ctx, c)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		RootCAs:      authorities,
		ServerName:   serverName,
	}, nil
}

func readAuthorities(ctx context.Context, c client.Reader) (*x509.CertPool, error) {
	bundle := &corev1.ConfigMap{}
	for _, in := range []string{namespace, configNamespace} {
		err := c.Get(ctx, client.ObjectKey{Namespace: in, Name: authoritiesConfigMap}, bundle)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, &failure{"cannot read ConfigMap " + authoritiesConfigMap + " of the workload cluster", err}
		}
		if pool := x509.NewCertPool(); err == nil && pool.AppendCertsFromPEM([]byte(bundle.Data[authoritiesKey])) {
			return pool, nil
		}
	}
	return nil, &failure{action: "the workload cluster has no ConfigMap " + authoritiesConfigMap + " with the authorities of etcd"}
}

// readPods reads the Pods of etcd.
func readPods(ctx context.Context, c client.Reader) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": "etcd"}); err != nil {
		return nil, &failure{"cannot list the Pods of etcd in the workload cluster", err}
	}
	return pods.Items, nil
}
