//go:build conformance

package conformance

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// suite is the state of one run.
type suite struct {
	*Provider
	*book
	world

	// life ends with the suite.
	life context.Context //nolint:containedctx // What follows objects outlasts the specs.
	end  context.CancelFunc

	fixtures struct {
		full, small, topology *fixture
	}
	quiet quiet
}

// Specs declares the specs of a provider. The value is of no use; it lets a declaration stand in a var.
func Specs(p *Provider) bool {
	s := &suite{Provider: p, book: &book{exempt: p.Exempt}}
	s.life, s.end = context.WithCancel(context.Background())
	BeforeSuite(s.start, NodeTimeout(startTimeout))
	AfterSuite(s.stop)
	ReportAfterSuite("the table of rules", func(report Report) {
		Expect(s.close(report, p.Report)).To(Succeed())
	})
	// One container keeps the order; the first clusters install while the manifests are read.
	parts := []struct {
		name  string
		rules func()
	}{
		{"Manifests", s.manifestRules},
		{"Clusterctl", s.clusterctlRules},
		{"What waits", s.waitingRules},
		{"An installed cluster", s.installedRules},
		{"In place", s.inPlaceRules},
		{"What is disturbed", s.resilienceRules},
		{"A ClusterClass", s.topologyRules},
		{"Managers that die", s.crashRules},
		{"A move", s.moveRules},
		{"An idle world", s.idleRules},
		{"Deletion", s.deletionRules},
	}
	return Describe("Contract", Ordered, ContinueOnFailure, func() {
		for _, part := range parts {
			Describe(part.name, Label(part.name), part.rules)
		}
		for _, r := range elsewhere {
			s.without(r.id, r.title, r.level, r.exempt)
		}
	})
}

// start starts the hub and applies the clusters that most rules look at.
func (s *suite) start(ctx SpecContext) {
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultConsistentlyDuration(still)
	SetDefaultConsistentlyPollingInterval(500 * time.Millisecond)
	hub, err := s.Start(ctx, HubOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hub.Stop)
	s.world = newWorld(hub)
	s.world.further = s.Kinds
	s.fixtures.full = s.apply(ctx, ClusterOptions{Sample: Full, Namespace: "full"})
	s.fixtures.small = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: "small"})
	if s.exempt["P22"] == "" {
		s.fixtures.topology = s.apply(ctx, ClusterOptions{Sample: Topology, Namespace: "topology"})
	}
}

func (s *suite) stop() { s.end() }

// fixture is a cluster with what was seen of it from its beginning.
type fixture struct {
	Cluster
	namespace string
	// applied are the objects of its user.
	applied []client.Object
	seen    *journal
	once    sync.Once
}

// apply applies a cluster and follows what becomes of it.
func (s *suite) apply(ctx context.Context, options ClusterOptions) *fixture {
	GinkgoHelper()
	f := &fixture{namespace: options.Namespace}
	s.createNamespace(ctx, options.Namespace)
	kinds := append([]kind{machineKind, s.ControlPlane.Kind, s.Bootstrap.Kind, secretKind}, s.registration()...)
	f.seen = s.follow(s.life, options.Namespace, kinds...)
	edit := options.Edit
	options.Edit = func(object *object) {
		if edit != nil {
			edit(object)
		}
		f.applied = append(f.applied, object)
	}
	var err error
	f.Cluster, err = s.hub.Apply(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	return f
}

func (s *suite) registration() []kind {
	if s.Registration.Empty() {
		return nil
	}
	return []kind{s.Registration}
}

// await waits until a fixture is installed.
func (s *suite) await(ctx context.Context, f *fixture) {
	GinkgoHelper()
	f.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, installTimeout)
		defer cancel()
		Expect(f.Available(ctx)).To(Succeed())
	})
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	return scheme
}
