package lab

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is the timeout of all waits, which end as soon as the state is reached.
const patience = 5 * time.Minute

func TestClusterWithEtcdMembers(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first run builds everything
	defer cancel()
	l, err := New(ctx, Options{Out: t.Output(), LeaveSignals: true, AllClusters: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(l.Stop)

	for sample, mutations := range map[string]Mutations{"sno": {EtcdMembers: true}, "compact": {EtcdMembers: true, LightAPI: true}} {
		_, err = l.ApplySample(ctx, sample, mutations)
		g.Expect(err).To(MatchError(ContainSubstring("EtcdMembers")))
	}
	users := applyAsUser(ctx, g, l, "sno")
	begin := time.Now()
	cluster, err := l.ApplySample(ctx, "compact", Mutations{EtcdMembers: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.WaitAvailable(ctx)).To(Succeed())
	t.Logf("available after %s", time.Since(begin).Round(100*time.Millisecond))
	g.Eventually(cluster.EtcdSettled).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	t.Logf("etcd settled after %s", time.Since(begin).Round(100*time.Millisecond))
	w := &etcdWorld{WithT: g, ctx: ctx, lab: l, cluster: cluster}
	w.SetDefaultEventuallyTimeout(patience)
	w.Eventually(func() (bool, error) {
		err := l.Client().Get(ctx, client.ObjectKeyFromObject(users), users)
		return conditions.IsTrue(users, clusterv1.AvailableCondition), err
	}).Should(BeTrue(), "the cluster that a user has applied")

	writer := cluster.StartWriting(ctx)
	w.moveLeader()
	w.cutOff()
	w.wipeVoter()
	acknowledged := writer.Stop()
	g.Expect(len(acknowledged)).To(BeNumerically(">", 20))
	g.Expect(cluster.Lost(ctx, acknowledged)).To(BeEmpty())
	g.Expect(cluster.Lost(ctx, append(acknowledged, "never-written"))).To(ConsistOf("never-written"))
	w.deleteCluster()
}

// applyAsUser applies a sample and a BareMetalHost without help of the lab, and returns the Cluster.
func applyAsUser(ctx context.Context, g *WithT, l *Lab, sample string) *clusterv1.Cluster {
	const namespace = "users"
	g.Expect(l.EnsureNamespace(ctx, namespace)).To(Succeed())
	host, err := os.ReadFile("../demo/host.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := decode(host)
	g.Expect(err).NotTo(HaveOccurred())
	manifests, err := l.readSample(sample)
	g.Expect(err).NotTo(HaveOccurred())
	for _, object := range append(objects, manifests...) {
		object.SetNamespace(namespace)
		g.Expect(l.Apply(ctx, object)).To(Succeed())
	}
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sample}}
}

// etcdWorld is an installed cluster whose etcd has three members.
type etcdWorld struct {
	*WithT

	ctx     context.Context //nolint:containedctx // context of the test
	lab     *Lab
	cluster *Cluster
}

func (w *etcdWorld) moveLeader() {
	list, err := w.cluster.EtcdMembers(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(list).To(HaveLen(3))
	for _, m := range list {
		w.Eventually(func(g Gomega) {
			w.Expect(w.cluster.MoveEtcdLeader(w.ctx, m.Name)).To(Succeed())
			g.Expect(w.cluster.EtcdLeader(w.ctx)).To(Equal(m.Name))
		}).Should(Succeed(), "retried if the members elect another leader")
	}
}

// cutOff makes the host of the leader unreachable.
func (w *etcdWorld) cutOff() {
	leader, err := w.cluster.EtcdLeader(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	etcd := w.cluster.Etcd()
	heal := etcd.Network().Cut(etcd.Address(leader))
	w.Eventually(w.cluster.EtcdLeader).WithContext(w.ctx).ShouldNot(Or(Equal(leader), BeEmpty()), "the others elect a leader")
	w.Eventually(w.cluster.EtcdSettled).WithContext(w.ctx).Should(MatchError(ContainSubstring(leader + " is unhealthy")))
	w.Eventually(func() error { return w.cluster.write(w.ctx, "while-a-host-is-cut-off") }).Should(Succeed(),
		"once the API server uses another member")
	heal()
	w.Eventually(w.cluster.EtcdSettled).WithContext(w.ctx).Should(Succeed())
}

// wipeVoter wipes the disk of a host whose member the quorum counts.
func (w *etcdWorld) wipeVoter() {
	list, err := w.cluster.EtcdMembers(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.cluster.WipedMembers()).To(BeEmpty())
	site := w.lab.site(w.cluster.Namespace, w.cluster.Name)
	site.PowerOff(list[0].Name)
	w.Expect(site.Wipe(list[0].Name)).To(Succeed())
	wiped := w.cluster.WipedMembers()
	w.Expect(wiped).To(HaveLen(1))
	w.Expect(wiped[0].Node).To(Equal(list[0].Name))
	w.Expect(wiped[0].Unknown).To(BeFalse())
}

func (w *etcdWorld) deleteCluster() {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	w.Expect(w.cluster.Delete(ctx)).To(Succeed())
	w.Expect(w.cluster.Etcd().Serving()).To(BeEmpty())
	w.Expect(w.cluster.WipedMembers()).To(HaveLen(1), "the deletion of the cluster counts as no loss")
	for _, p := range w.lab.Env.Group().Processes() {
		if strings.HasPrefix(p.Name, "etcd-"+w.cluster.Server().Name) {
			w.Expect(p.Running()).To(BeFalse(), p.Name)
		}
	}
}

func TestEachVotes(t *testing.T) {
	voter := func(name string) EtcdMember { return EtcdMember{Name: name, Voter: true} }
	for name, test := range map[string]struct {
		nodes   []string
		members []EtcdMember
		settled bool
	}{
		"a voter for each node":        {[]string{"b", "a"}, []EtcdMember{voter("a"), voter("b")}, true},
		"a learner":                    {[]string{"a", "b"}, []EtcdMember{voter("a"), {Name: "b"}}, false},
		"two members that never ran":   {[]string{"a"}, []EtcdMember{voter("a"), voter(""), voter("")}, false},
		"the member of a deleted node": {[]string{"a", "c"}, []EtcdMember{voter("a"), voter("b")}, false},
		"no node yet":                  {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(eachVotes(test.nodes, test.members) == nil).To(Equal(test.settled))
		})
	}
}
