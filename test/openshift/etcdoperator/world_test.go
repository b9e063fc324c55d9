package etcdoperator_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // client-go dials with it
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/etcdoperator"
)

const (
	namespace = "lab"
	infraEnv  = "11111111-2222-3333-4444-555555555555"
	patience  = time.Minute
	restart   = time.Second
)

// world is a cluster of simulated hosts with real API servers and a real etcd with members.
type world struct {
	*WithT
	ctx     context.Context
	env     *env.Env
	rack    *hosts.Rack
	service *service
	cluster *env.WorkloadCluster
	etcd    *members.Cluster
	running *sync.WaitGroup
	// operator runs when the API runs.
	operator *etcdoperator.Operator

	up       *sync.Mutex
	workload client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), service: &service{orders: map[string]hosts.Instruction{}}, up: &sync.Mutex{}, running: &sync.WaitGroup{}}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // of closed connections
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first run builds everything
	w.ctx = ctx
	var err error
	w.env, err = env.Start(ctx, env.Options{Out: t.Output(), NoManagers: true, LeaveSignals: true})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.env.Stop)
	w.cluster, err = w.env.ReserveWorkloadCluster("ha")
	w.Expect(err).NotTo(HaveOccurred())
	w.etcd, err = w.cluster.UseMembers(ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.operator = etcdoperator.New(etcdoperator.Options{Etcd: w.etcd, Restart: restart, Log: testr.New(t)})
	w.rack, err = hosts.New(w.env.Config(), hosts.Options{
		Service:    w.service,
		Workload:   func(context.Context, string, string) (client.Client, error) { return w.reach() },
		WorkloadAs: w.reachAs,
		Cluster: func(context.Context, string, string) (hosts.Cluster, error) {
			return hosts.Cluster{Version: "4.20.1"}, nil
		},
		Site: func(string, string) hosts.Site { return w.etcd },
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.running.Go(func() {
		if err := w.rack.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		w.running.Wait()
		w.etcd.Stop()
	})
	w.Expect(w.env.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	return w
}

// reach starts the API of the cluster and its etcd operator.
func (w *world) reach() (client.Client, error) {
	w.up.Lock()
	defer w.up.Unlock()
	if w.workload != nil {
		return w.workload, nil
	}
	if err := w.cluster.Start(w.ctx); err != nil {
		return nil, err
	}
	c, err := w.cluster.Client()
	if err != nil {
		return nil, err
	}
	w.running.Go(func() { w.operator.Run(w.ctx, c) })
	w.workload = c
	return c, nil
}

func (w *world) reachAs(_ context.Context, _, _ string, user rest.ImpersonationConfig) (client.Client, error) {
	config := w.cluster.Config()
	config.Impersonate = user
	return client.New(config, client.Options{Scheme: w.env.Scheme()})
}

// install starts the installation of n control-plane hosts, and returns when the hosts exist.
func (w *world) install(prefix string, n int, dayTwo bool) []*hosts.Host {
	created, err := hosts.NewBareMetalHosts(w.ctx, w.env.Client(), namespace, n, hosts.WithName(prefix),
		func(i int, bmh *metal3api.BareMetalHost) {
			format := "live-iso"
			bmh.Spec.Image = &metal3api.Image{URL: "http://images/byid/" + infraEnv + "/4.20/x86_64/minimal.iso", DiskFormat: &format}
			hardware, err := hosts.HardwareOf(bmh)
			w.Expect(err).NotTo(HaveOccurred())
			w.service.order(hardware.UUID, hosts.Instruction{
				Kind: hosts.Install, ClusterNamespace: namespace, ClusterName: "ha", ClusterID: "ha", Hostname: bmh.Name,
				Role: models.HostRoleMaster, Bootstrap: i == 0 && !dayTwo, DayTwo: dayTwo, InstallationDisk: hardware.Disks[0].ByID,
			})
		})
	w.Expect(err).NotTo(HaveOccurred())
	machines := make([]*hosts.Host, 0, n)
	for _, bmh := range created {
		w.Eventually(func() *hosts.Host { return w.rack.Host(bmh.Name) }).ShouldNot(BeNil())
		machines = append(machines, w.rack.Host(bmh.Name))
	}
	return machines
}

// wipe deprovisions a host, as the deletion of its Machine does.
func (w *world) wipe(name string) {
	bmh := &metal3api.BareMetalHost{}
	w.Expect(w.env.Client().Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, bmh)).To(Succeed())
	before := client.MergeFrom(bmh.DeepCopy())
	bmh.Spec.Image = nil
	w.Expect(w.env.Client().Patch(w.ctx, bmh, before)).To(Succeed())
	w.Eventually(w.rack.Host(name).Losses).Should(HaveLen(1))
}

// approve approves the certificate requests of kubelets.
func (w *world) approve(signer string) {
	list := &certificatesv1.CertificateSigningRequestList{}
	w.Expect(w.workload.List(w.ctx, list)).To(Succeed())
	for i := range list.Items {
		request := &list.Items[i]
		if request.Spec.SignerName != signer || len(request.Status.Conditions) > 0 {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
		}}
		w.Expect(w.workload.SubResource("approval").Update(w.ctx, request)).To(Succeed())
	}
}

// dialers returns the dialers of a port-forward by protocol: WebSocket, and the older SPDY.
func (w *world) dialers(pod string) map[string]httpstream.Dialer {
	clientset, err := kubernetes.NewForConfig(w.cluster.Config())
	w.Expect(err).NotTo(HaveOccurred())
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace("openshift-etcd").Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(w.cluster.Config())
	w.Expect(err).NotTo(HaveOccurred())
	webSocket, err := portforward.NewSPDYOverWebsocketDialer(url, w.cluster.Config())
	w.Expect(err).NotTo(HaveOccurred())
	return map[string]httpstream.Dialer{
		"WebSocket": webSocket,
		"SPDY":      spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
	}
}

// through calls etcd through the Pod of a Node, with the published credentials only.
func (w *world) through(node, protocol string, call func(ctx context.Context, c *clientv3.Client) error) error {
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(w.dialers("etcd-" + node)[protocol], []string{"0:2379"}, stop, ready, io.Discard, io.Discard)
	w.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return err
	case <-ready:
	}
	defer func() {
		close(stop)
		<-ended
	}()
	ports, err := forwarder.GetPorts()
	w.Expect(err).NotTo(HaveOccurred())
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{fmt.Sprintf("https://127.0.0.1:%d", ports[0].Local)}, TLS: w.credentials(),
		DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	w.Expect(err).NotTo(HaveOccurred())
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	return call(ctx, c)
}

func (w *world) credentials() *tls.Config {
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-client"}, secret)).To(Succeed())
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-ca-bundle"}, bundle)).To(Succeed())
	certificate, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	w.Expect(err).NotTo(HaveOccurred())
	pool := x509.NewCertPool()
	w.Expect(pool.AppendCertsFromPEM([]byte(bundle.Data["ca-bundle.crt"]))).To(BeTrue())
	return &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

// service is an assisted-service that sends each host one instruction.
type service struct {
	mu     sync.Mutex
	orders map[string]hosts.Instruction
}

func (s *service) order(host string, instruction hosts.Instruction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[host] = instruction
}

func (s *service) Image(context.Context, string, string) ([]byte, error) {
	unit := "[Service]\nExecStart=/usr/local/bin/agent --url http://service --infra-env-id " + infraEnv
	return json.Marshal(map[string]any{
		"ignition": map[string]any{"version": "3.2.0"},
		"systemd":  map[string]any{"units": []any{map[string]any{"name": "agent.service", "enabled": true, "contents": unit}}},
	})
}

func (s *service) Register(context.Context, hosts.Agent) error { return nil }

func (s *service) Next(ctx context.Context, agent hosts.Agent) (hosts.Instruction, error) {
	s.mu.Lock()
	order, ordered := s.orders[agent.HostID]
	delete(s.orders, agent.HostID)
	s.mu.Unlock()
	if ordered {
		return order, nil
	}
	<-ctx.Done()
	return hosts.Instruction{}, context.Cause(ctx)
}

func (s *service) Progress(context.Context, hosts.Report) error { return nil }
func (s *service) Finalize(context.Context, string) error       { return nil }
