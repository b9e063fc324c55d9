package etcd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	operatorv1 "github.com/openshift/api/operator/v1"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// fakeCluster has real etcd members named n0 and so on. A fake API server serves OpenShift's objects about
// them.
type fakeCluster struct {
	*WithT
	client.Client
	authority *pki.Authority
	members   map[string]*process.Process
	group     *process.Group
	// program is the etcd binary, certificates the folder of serving certificates.
	program, certificates string
	// ports are the client ports of members by Pod, peers their peer URLs.
	ports map[string]int
	peers map[string]string
	// connections counts connections to members.
	connections atomic.Int32
	// lost is true if etcd does not serve the API server.
	lost bool
}

// newCluster starts members. Their certificates are for localhost, and clients need a certificate of the same
// authority.
func newCluster(t *testing.T, size int) *fakeCluster {
	t.Helper()
	c := newWorkload(t)
	c.program, c.certificates = buildEtcd(t), t.TempDir()
	c.Expect(c.authority.ServerFiles(c.certificates)).To(Succeed())
	var err error
	c.group, err = process.NewGroup(t.TempDir(), io.Discard)
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(c.group.Stop)
	var peers []string
	for i := range size {
		peers = append(peers, fmt.Sprintf("n%d=%s", i, c.peerURL()))
	}
	var all errgroup.Group
	for i, peer := range peers {
		name, _, _ := strings.Cut(peer, "=")
		member := c.newMember(t.Context(), peer, "--initial-cluster="+strings.Join(peers, ","))
		c.Expect(c.Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Labels: map[string]string{
				controlPlaneLabels[i/2]: "",
				metal3.HostUIDLabel:     "host of " + name,
			}}, Spec: corev1.NodeSpec{ProviderID: "metal3://" + name},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalIP, Address: "192.168.111.2" + strconv.Itoa(i)},
			}},
		})).To(Succeed())
		all.Go(func() error { return c.group.Start(t.Context(), member) }) // members are ready only with quorum
	}
	c.Expect(all.Wait()).To(Succeed())
	return c
}

// buildEtcd returns the path of the etcd binary. The module of the tests builds it, with progress on standard error.
func buildEtcd(t *testing.T) string {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "run", "./env/build", "-program=etcd")
	build.Dir, build.Stderr = "../../../test", os.Stderr
	path, err := build.Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(path))
}

func (c *fakeCluster) port() int {
	reserved, err := c.group.Port()
	c.Expect(err).NotTo(HaveOccurred())
	return reserved
}

func (c *fakeCluster) peerURL() string { return "http://127.0.0.1:" + strconv.Itoa(c.port()) }

// newMember returns a member that is not started, and creates its Pod. peer has the form n0=http://...
func (c *fakeCluster) newMember(ctx context.Context, peer string, extra ...string) *process.Process {
	name, peerURL, _ := strings.Cut(peer, "=")
	serving, metrics := c.port(), "http://127.0.0.1:"+strconv.Itoa(c.port())
	member := c.group.New("etcd-"+name, process.Storage, c.program, append(extra,
		"--name="+name, "--data-dir="+filepath.Join(c.group.Temp(), name), "--unsafe-no-fsync", "--log-level=error",
		"--heartbeat-interval=500", "--election-timeout=2500", // a leader without CPU time for a second stays leader
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL,
		"--listen-client-urls=https://127.0.0.1:"+strconv.Itoa(serving), "--advertise-client-urls=https://127.0.0.1:"+strconv.Itoa(serving),
		"--listen-metrics-urls="+metrics,
		"--cert-file="+filepath.Join(c.certificates, "tls.crt"), "--key-file="+filepath.Join(c.certificates, "tls.key"),
		"--client-cert-auth", "--trusted-ca-file="+filepath.Join(c.certificates, "ca.crt"), "--enable-grpc-gateway=false",
	)...)
	member.Ready = process.Probe(http.DefaultClient, metrics+"/health")
	c.members[name], c.ports["etcd-"+name], c.peers[name] = member, serving, peerURL
	c.addPod(ctx, name)
	return member
}

func (c *fakeCluster) addPod(ctx context.Context, node string) {
	c.Expect(c.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-" + node, Labels: map[string]string{"app": "etcd"}},
		Spec:       corev1.PodSpec{NodeName: node},
	})).To(Succeed())
}

// newWorkload returns a fakeCluster without members.
func newWorkload(t *testing.T) *fakeCluster {
	t.Helper()
	c := &fakeCluster{WithT: NewWithT(t), members: map[string]*process.Process{}, ports: map[string]int{}, peers: map[string]string{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, configv1.Install, operatorv1.Install, machinev1beta1.Install} {
		c.Expect(add(scheme)).To(Succeed())
	}
	var err error
	c.authority, err = pki.New("etcd")
	c.Expect(err).NotTo(HaveOccurred())
	certificate, key, err := c.authority.Client("etcd-client")
	c.Expect(err).NotTo(HaveOccurred())
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&configv1.Infrastructure{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
			Status:     configv1.InfrastructureStatus{ControlPlaneTopology: configv1.HighlyAvailableTopologyMode},
		},
		&operatorv1.Etcd{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
			Status: operatorv1.EtcdStatus{StaticPodOperatorStatus: operatorv1.StaticPodOperatorStatus{
				OperatorStatus: operatorv1.OperatorStatus{LatestAvailableRevision: 8, Conditions: []operatorv1.OperatorCondition{
					{Type: "EtcdMembersDegraded", Status: operatorv1.ConditionTrue, Message: "2 of 3 members are available, n1 is unhealthy"},
					{Type: "EtcdMembersAvailable", Status: operatorv1.ConditionTrue, Message: "2 of 3 members are available, n2 is unhealthy"},
				}},
				NodeStatuses: []operatorv1.NodeStatus{{NodeName: "n0", CurrentRevision: 8}, {NodeName: "n1", CurrentRevision: 7, TargetRevision: 8}},
			}},
		},
		operatorOf("etcd", configv1.ConditionFalse), operatorOf("kube-apiserver", configv1.ConditionTrue),
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: credentialsSecret},
			Data:       map[string][]byte{"tls.crt": certificate, "tls.key": key},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: authoritiesConfigMap},
			Data:       map[string]string{authoritiesKey: string(c.authority.PEM())},
		},
	).Build()
	return c
}

func operatorOf(name string, progressing configv1.ConditionStatus) *configv1.ClusterOperator {
	condition := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: kind, Status: status}
	}
	return &configv1.ClusterOperator{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
			condition(configv1.OperatorAvailable, configv1.ConditionTrue), condition(configv1.OperatorProgressing, progressing),
			condition(configv1.OperatorDegraded, configv1.ConditionFalse),
		}},
	}
}

// forward replaces the port-forward.
func (c *fakeCluster) forward(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
	c.Expect(port).To(Equal(clientPort))
	c.Expect(pod.Namespace).To(Equal(namespace))
	c.connections.Add(1)
	return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(c.ports[pod.Name]))
}

// withLogger logs the errors of members to the test.
func withLogger(t *testing.T) context.Context {
	t.Helper()
	return ctrl.LoggerInto(t.Context(), testr.New(t))
}

func (c *fakeCluster) observe(ctx context.Context) workload.Etcd {
	seen, err := observe(ctx, c.Client, c.forward)
	c.Expect(err).NotTo(HaveOccurred())
	return seen
}

// eventuallyMembers observes the members until they agree on a change of their list: a member other than the
// changed one may apply it later.
func (c *fakeCluster) eventuallyMembers(ctx context.Context) AsyncAssertion {
	return c.Eventually(func() []workload.EtcdMember { return c.observe(ctx).Members }, "20s", "100ms")
}

// leader waits for a leader.
func (c *fakeCluster) leader(ctx context.Context) workload.EtcdMember {
	var leader workload.EtcdMember
	c.Eventually(func() string {
		for _, m := range c.observe(ctx).Members {
			if m.Leader {
				leader = m
			}
		}
		return leader.Name
	}, "20s", "100ms").ShouldNot(BeEmpty())
	return leader
}

// viaMember makes a change through a member.
func (c *fakeCluster) viaMember(ctx context.Context, node string, change func(context.Context, *clientv3.Client) error) error {
	return viaMember(ctx, c.Client, c.forward, node, change)
}
