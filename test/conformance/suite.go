package conformance

import (
	"cmp"
	"context"
	"fmt"
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

	// ctx ends with the suite.
	ctx context.Context //nolint:containedctx // Watches of objects outlast the specs.
	end context.CancelFunc

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
	s.ctx, s.end = context.WithCancel(context.Background())
	BeforeSuite(s.start, NodeTimeout(startTimeout))
	AfterSuite(s.stop)
	ReportAfterSuite("the table of rules", func(report Report) {
		Expect(s.close(report, p.Report)).To(Succeed())
	})
	installTimeout = cmp.Or(p.InstallTimeout, installTimeout)
	noClusterctl := ""
	if p.Clusterctl == "" {
		noClusterctl = "no clusterctl is given"
	}
	noClusters := s.lacking(Full, Small)
	// One container keeps the order; the first clusters install while the rules on manifests run.
	parts := []struct {
		name  string
		rules func()
		// exemption is the reason if none of the rules applies.
		exemption string
	}{
		{name: "Manifests", rules: s.manifestRules},
		{name: "Clusterctl", rules: s.clusterctlRules, exemption: noClusterctl},
		{name: "Waiting", rules: s.waitingRules, exemption: noClusters},
		{name: "An installed cluster", rules: s.installedRules, exemption: noClusters},
		{name: "In place", rules: s.inPlaceRules, exemption: noClusters},
		{name: "A replacement", rules: s.replacementRules, exemption: noClusters},
		{name: "Disturbances", rules: s.resilienceRules, exemption: noClusters},
		{name: "A ClusterClass", rules: s.topologyRules, exemption: cmp.Or(p.Exempt["P22"], noClusters, s.lacking(Topology))},
		{name: "Crashing managers", rules: s.crashRules, exemption: noClusters},
		{name: "A move", rules: s.moveRules, exemption: cmp.Or(noClusterctl, p.Exempt["C18"], noClusters)},
		{name: "Idle", rules: s.idleRules, exemption: noClusters},
		{name: "Deletion", rules: s.deletionRules, exemption: noClusters},
	}
	Describe("Contract", Ordered, ContinueOnFailure, func() {
		for _, part := range parts {
			s.exemption = part.exemption
			Describe(part.name, Label(part.name), part.rules)
		}
		for _, r := range untestedRules {
			s.exclude(r.id, r.title, r.level, r.exempt)
		}
		Expect(s.complete()).To(Succeed())
	})
}

// lacking returns the reason for which rules that need samples do not apply; empty if the hub has the samples.
func (s *suite) lacking(samples ...Sample) string {
	for _, sample := range samples {
		if !slices.Contains(s.Samples, sample) {
			return fmt.Sprintf("no sample %s is given", sample)
		}
	}
	return ""
}

// start starts the hub and applies the clusters of most rules.
func (s *suite) start(ctx SpecContext) {
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultConsistentlyDuration(still)
	SetDefaultConsistentlyPollingInterval(500 * time.Millisecond)
	hub, err := s.Start(ctx, HubOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hub.Stop)
	s.world = newWorld(ctx, hub, s.Kinds)
	if s.lacking(Full, Small) != "" {
		return
	}
	s.fixtures.full = s.apply(ctx, ClusterOptions{Sample: Full, Namespace: "full", Replaceable: true})
	s.fixtures.small = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: "small"})
	if s.exempt["P22"] == "" && s.lacking(Topology) == "" {
		s.fixtures.topology = s.apply(ctx, ClusterOptions{Sample: Topology, Namespace: "topology"})
	}
}

func (s *suite) stop() { s.end() }

// moved returns the cluster that is moved. The first caller applies it, early enough that it is installed when
// it is moved.
func (s *suite) moved(ctx context.Context) *fixture {
	GinkgoHelper()
	if s.fixtures.moved == nil {
		s.fixtures.moved = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: moveNamespace, Edit: s.filtered})
	}
	return s.fixtures.moved
}

// doomed returns the cluster that is deleted last. Its installation ends when it is released.
func (s *suite) doomed(ctx context.Context) *fixture {
	GinkgoHelper()
	if s.fixtures.doomed == nil {
		s.fixtures.doomed = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: "doomed", Hold: true})
	}
	return s.fixtures.doomed
}

// fixture is a cluster with its history.
type fixture struct {
	Cluster
	namespace string
	// applied are the objects of its user.
	applied []client.Object
	seen    *journal
	// installed makes await wait once; unless is the error of that wait.
	installed sync.Once
	err       error
}

// apply applies a cluster and records what happens to its objects.
func (s *suite) apply(ctx context.Context, options ClusterOptions) *fixture {
	GinkgoHelper()
	f := &fixture{namespace: options.Namespace}
	s.createNamespace(ctx, options.Namespace)
	f.seen = s.follow(s.ctx, options.Namespace, append(s.createdKinds(), s.ControlPlane.Kind)...)
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

// everCreated returns the UIDs of all objects of a kind that were ever seen.
func (f *fixture) everCreated(k kind) []string {
	var uids []string
	for _, e := range f.seen.of(k) {
		if uid := string(e.GetUID()); !slices.Contains(uids, uid) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// created returns the kinds of objects that the providers create.
func (s *suite) createdKinds() []kind {
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
		f.err = f.Available(ctx)
	})
	Expect(f.err).NotTo(HaveOccurred())
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
