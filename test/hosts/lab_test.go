package hosts

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/assisted-service/models"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/cluster-api/controllers/noderefutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	labNamespace = "lab"
	// patience is the timeout of all waits of these tests, which end as soon as the wanted state is reached.
	patience = time.Minute
)

// lab is a Rack on a fake hub with a scripted assisted-service and a fake workload cluster.
type lab struct {
	*WithT
	ctx      context.Context
	hub      client.WithWatch
	workload client.WithWatch
	service  *script
	rack     *Rack
}

func newLab(t *testing.T, change ...func(o *Options)) *lab {
	t.Helper()
	workloadScheme := runtime.NewScheme()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(2 * time.Millisecond)
	g.Expect(clientgoscheme.AddToScheme(workloadScheme)).To(Succeed())
	g.Expect(configv1.AddToScheme(workloadScheme)).To(Succeed())
	l := &lab{
		WithT: g,
		hub:   fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&metal3api.BareMetalHost{}).Build(),
		workload: fake.NewClientBuilder().WithScheme(workloadScheme).
			WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}, &corev1.Node{}, &configv1.ClusterVersion{},
				&configv1.ClusterOperator{},
				&configv1.Infrastructure{}).Build(),
		service: newScript(),
	}
	options := Options{
		Service:  l.service,
		Workload: func(context.Context, string, string) (client.Client, error) { return l.workload, nil },
		WorkloadAs: func(_ context.Context, _, _ string, user rest.ImpersonationConfig) (client.Client, error) {
			return interceptor.NewClient(l.workload,
				interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if request, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
						request.Spec.Username, request.Spec.Groups = user.UserName, user.Groups // as the API server does
					}
					return c.Create(ctx, o, options...)
				}}), nil
		},
		Cluster: func(context.Context, string, string) (Cluster, error) {
			return Cluster{Version: "4.19.3", ReleaseImage: "quay.io/ocp:4.19.3"}, nil
		},
	}
	for _, f := range change {
		f(&options)
	}
	l.rack = newRack(l.hub, l.hub, options)
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithCancel(t.Context())
	done := pump(l.ctx, g, l.rack, l.hub)
	t.Cleanup(func() {
		cancel()
		<-done
		l.rack.stop()
	})
	return l
}

// pump replaces the manager of the operator: it watches the fake hub and reconciles.
func pump(ctx context.Context, g *WithT, rack *Rack, hub client.WithWatch) <-chan struct{} {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry))
	op := newOperator(rack)
	hosts, err := hub.Watch(ctx, &metal3api.BareMetalHostList{})
	g.Expect(err).NotTo(HaveOccurred())
	secrets, err := hub.Watch(ctx, &corev1.SecretList{})
	g.Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		defer queue.ShutDown()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-hosts.ResultChan():
				if bmh, ok := e.Object.(*metal3api.BareMetalHost); ok {
					queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bmh)})
				}
			case e := <-secrets.ResultChan():
				if secret, ok := e.Object.(*corev1.Secret); ok && e.Type != watch.Deleted {
					for _, request := range op.hostsOfSecret(ctx, secret) {
						queue.Add(request)
					}
				}
			case poke := <-rack.pokes:
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(poke.Object)})
			}
		}
	})
	for range 4 {
		running.Go(func() { work(ctx, queue, op) })
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		hosts.Stop()
		secrets.Stop()
		close(done)
	}()
	return done
}

func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], op *operator) {
	for {
		request, shutdown := queue.Get()
		if shutdown {
			return
		}
		result, err := op.Reconcile(ctx, request)
		switch {
		case err != nil && ctx.Err() == nil:
			queue.AddRateLimited(request)
		case result.RequeueAfter > 0:
			queue.AddAfter(request, result.RequeueAfter)
		default:
			queue.Forget(request)
		}
		queue.Done(request)
	}
}

// hosts creates n BareMetalHosts and waits until they are available.
func (l *lab) hosts(n int, options ...HostOption) []*metal3api.BareMetalHost {
	created, err := NewBareMetalHosts(l.ctx, l.hub, labNamespace, n, options...)
	l.Expect(err).NotTo(HaveOccurred())
	for _, bmh := range created {
		l.Eventually(l.state(bmh.Name)).Should(Equal(metal3api.StateAvailable))
	}
	return created
}

func (l *lab) get(name string) *metal3api.BareMetalHost {
	bmh := &metal3api.BareMetalHost{}
	l.Expect(client.IgnoreNotFound(l.hub.Get(l.ctx, types.NamespacedName{Namespace: labNamespace, Name: name}, bmh))).To(Succeed())
	return bmh
}

func (l *lab) state(name string) func() metal3api.ProvisioningState {
	return func() metal3api.ProvisioningState { return l.get(name).Status.Provisioning.State }
}

// change edits a BareMetalHost as CAPM3 does, with retries on conflicts with the operator.
func (l *lab) change(name string, edit func(bmh *metal3api.BareMetalHost)) {
	l.Eventually(func() error {
		bmh := l.get(name)
		edit(bmh)
		return l.hub.Update(l.ctx, bmh)
	}).Should(Succeed())
}

// bootISO provisions a host with the live ISO of an InfraEnv.
func (l *lab) bootISO(name, infraEnv string) {
	l.change(name, func(bmh *metal3api.BareMetalHost) { bmh.Spec.Image = isoImage(infraEnv) })
}

func isoImage(infraEnv string) *metal3api.Image {
	format := "live-iso"
	return &metal3api.Image{URL: "http://img/byid/" + infraEnv + "/4.19/x86_64/minimal.iso", DiskFormat: &format}
}

func (l *lab) node(name string) func() *corev1.Node {
	return func() *corev1.Node {
		node := &corev1.Node{}
		if err := l.workload.Get(l.ctx, types.NamespacedName{Name: name}, node); err != nil {
			return nil
		}
		return node
	}
}

func readiness(node *corev1.Node) corev1.ConditionStatus {
	if node == nil {
		return ""
	}
	if c := noderefutil.GetReadyCondition(&node.Status); c != nil {
		return c.Status
	}
	return ""
}

// script is an assisted-service that follows the instructions of a test.
type script struct {
	mu      sync.Mutex
	changed chan struct{}
	busy    chan struct{}   // nil: registrations are answered immediately
	known   map[string]bool // by InfraEnv; false: unknown
	hosts   map[string]*scripted
	// finalized are the clusters that were reported complete.
	finalized []string
}

type scripted struct {
	infraEnv      string
	inventory     *models.Inventory
	registrations int
	forgotten     bool
	orders        []Instruction
	stages        []models.HostStage
	info          string
}

func newScript() *script {
	return &script{changed: make(chan struct{}), known: map[string]bool{}, hosts: map[string]*scripted{}}
}

// with changes the script and wakes the waiting hosts.
func (s *script) with(hostID string, change func(h *scripted)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts[hostID] == nil {
		s.hosts[hostID] = &scripted{}
	}
	change(s.hosts[hostID])
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *script) order(hostID string, orders ...Instruction) {
	s.with(hostID, func(h *scripted) { h.orders = append(h.orders, orders...) })
}

func (s *script) state(hostID string) scripted {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[hostID]; h != nil {
		seen := *h
		seen.stages = append([]models.HostStage(nil), h.stages...)
		return seen
	}
	return scripted{}
}

// answerSlowly makes each registration signal its arrival, and blocks its answer until the returned channel
// receives a value.
func (s *script) answerSlowly() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = make(chan struct{})
	return s.busy
}

func (s *script) forbid(infraEnv string, forbidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[infraEnv] = !forbidden
}

func (s *script) Image(_ context.Context, infraEnvID, _ string) ([]byte, error) {
	if s.forbidden(infraEnvID) {
		return nil, ErrNotFound
	}
	return discoveryIgnition("/agent --url http://svc --infra-env-id " + infraEnvID), nil
}

func (s *script) forbidden(infraEnvID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, set := s.known[infraEnvID]
	return set && !known
}

func (s *script) Register(ctx context.Context, agent Agent) error {
	if s.forbidden(agent.InfraEnvID) {
		return ErrNotFound
	}
	s.mu.Lock()
	busy := s.busy
	s.mu.Unlock()
	if busy != nil {
		busy <- struct{}{}
		select {
		case <-busy:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.with(agent.HostID, func(h *scripted) {
		h.infraEnv, h.inventory, h.forgotten = agent.InfraEnvID, agent.Inventory, false
		h.registrations++
	})
	return nil
}

func (s *script) Next(ctx context.Context, agent Agent) (Instruction, error) {
	for {
		s.mu.Lock()
		h, changed := s.hosts[agent.HostID], s.changed
		if h.forgotten {
			s.mu.Unlock()
			return Instruction{}, ErrNotFound
		}
		if len(h.orders) > 0 {
			order := h.orders[0]
			h.orders = h.orders[1:]
			s.mu.Unlock()
			return order, nil
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return Instruction{}, context.Cause(ctx)
		case <-changed:
		}
	}
}

func (s *script) Progress(_ context.Context, report Report) error {
	s.with(report.HostID, func(h *scripted) {
		h.stages = append(h.stages, report.Stage)
		h.info = report.Info
	})
	return nil
}

func (s *script) Finalize(_ context.Context, clusterID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finalized = append(s.finalized, clusterID)
	return nil
}

// reportedComplete returns the clusters that were reported complete, which happens after their final version was
// written.
func (s *script) reportedComplete() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.finalized)
}
