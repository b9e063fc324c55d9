package conformance

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
		full, small, topology, moved, doomed *fixture
	}
	// rendered are the manifests of the two providers.
	rendered map[*Component][]byte
	quiet    quiet
}

// Specs declares the specs of a provider.
func Specs(p *Provider) {
	s := &suite{Provider: p, book: &book{exempt: p.Exempt}, rendered: map[*Component][]byte{}}
	s.life, s.end = context.WithCancel(context.Background())
	BeforeSuite(s.start, NodeTimeout(startTimeout))
	AfterSuite(s.stop)
	ReportAfterSuite("the table of rules", func(report Report) {
		Expect(s.close(report, p.Report)).To(Succeed())
	})
	noClusterctl := ""
	if p.Clusterctl == "" {
		noClusterctl = "no clusterctl is given"
	}
	// One container keeps the order; the first clusters install while the manifests are read.
	parts := []struct {
		name  string
		rules func()
		// lacking is why none of them applies; empty: they do.
		lacking string
	}{
		{name: "Manifests", rules: s.manifestRules},
		{name: "Clusterctl", rules: s.clusterctlRules, lacking: noClusterctl},
		{name: "What waits", rules: s.waitingRules},
		{name: "An installed cluster", rules: s.installedRules},
		{name: "In place", rules: s.inPlaceRules},
		{name: "A replacement", rules: s.replacementRules},
		{name: "What is disturbed", rules: s.resilienceRules},
		{name: "A ClusterClass", rules: s.topologyRules, lacking: p.Exempt["P22"]},
		{name: "Managers that die", rules: s.crashRules},
		{name: "A move", rules: s.moveRules, lacking: noClusterctl},
		{name: "An idle world", rules: s.idleRules},
		{name: "Deletion", rules: s.deletionRules},
	}
	Describe("Contract", Ordered, ContinueOnFailure, func() {
		for _, part := range parts {
			s.lacking = part.lacking
			Describe(part.name, Label(part.name), part.rules)
		}
		for _, r := range elsewhere {
			s.without(r.id, r.title, r.level, r.exempt)
		}
		Expect(s.complete()).To(Succeed())
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
	s.world = newWorld(ctx, hub, s.Kinds)
	s.fixtures.full = s.apply(ctx, ClusterOptions{Sample: Full, Namespace: "full", Replaceable: true})
	s.fixtures.small = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: "small"})
	if s.exempt["P22"] == "" {
		s.fixtures.topology = s.apply(ctx, ClusterOptions{Sample: Topology, Namespace: "topology"})
	}
}

func (s *suite) stop() { s.end() }

// moved is a cluster that is moved. It is applied by the first who asks for it, well before it is needed, for it has to be installed then.
func (s *suite) moved(ctx context.Context) *fixture {
	GinkgoHelper()
	if s.fixtures.moved == nil {
		s.fixtures.moved = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: moveNamespace, Edit: s.filtered})
	}
	return s.fixtures.moved
}

// doomed is a cluster that is deleted at last. It installs until it is released.
func (s *suite) doomed(ctx context.Context) *fixture {
	GinkgoHelper()
	if s.fixtures.doomed == nil {
		s.fixtures.doomed = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: "doomed", Hold: true})
	}
	return s.fixtures.doomed
}

// fixture is a cluster with what was seen of it from its beginning.
type fixture struct {
	Cluster
	namespace string
	// applied are the objects of its user.
	applied []client.Object
	seen    *journal
	// installed is waited for once; unless is why it is not.
	installed sync.Once
	unless    error
}

// apply applies a cluster and follows what becomes of it.
func (s *suite) apply(ctx context.Context, options ClusterOptions) *fixture {
	GinkgoHelper()
	f := &fixture{namespace: options.Namespace}
	s.createNamespace(ctx, options.Namespace)
	f.seen = s.follow(s.life, options.Namespace, append(s.made(), s.ControlPlane.Kind)...)
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

// everMade returns the UIDs of all objects of a kind that were ever seen.
func (f *fixture) everMade(k kind) []string {
	var uids []string
	for _, e := range f.seen.of(k) {
		if uid := string(e.GetUID()); !slices.Contains(uids, uid) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// made are the kinds of which the providers make objects.
func (s *suite) made() []kind {
	kinds := append([]kind{machineKind, s.Bootstrap.Kind, secretKind}, s.Kinds...)
	if !s.InfraMachine.Empty() {
		kinds = append(kinds, s.InfraMachine)
	}
	return kinds
}

// await waits until a fixture is installed.
func (s *suite) await(ctx context.Context, f *fixture) {
	GinkgoHelper()
	f.installed.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, installTimeout)
		defer cancel()
		f.unless = f.Available(ctx)
	})
	Expect(f.unless).NotTo(HaveOccurred())
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme,
		clusterv1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	return scheme
}
