package etcd

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
)

// maxDuration is the limit for observing etcd with unresponsive members on a busy machine. Waiting for a
// member to close would never end.
const maxDuration = 6 * memberTimeout

// fakeClusters connects to a fakeCluster.
type fakeClusters struct{ *fakeCluster }

func (d fakeClusters) Connect(ctx context.Context, _ client.ObjectKey, requests func(context.Context, *conn.Conn) error) error {
	return requests(ctx, &conn.Conn{Client: d.Client, DialPod: d.forward})
}

func (d fakeClusters) EtcdServes(context.Context, client.ObjectKey) (bool, error) {
	return !d.lost, nil
}

func member(name string) types.GomegaMatcher { return HaveField("Name", name) }

func TestMembershipChanges(t *testing.T) {
	c := newCluster(t, 3)
	ctx, key := withLogger(t), client.ObjectKey{}
	etcds := New(fakeClusters{c})
	restarting := &corev1.Node{}
	c.Expect(c.Get(ctx, client.ObjectKey{Name: "n2"}, restarting)).To(Succeed())
	restarting.Annotations = map[string]string{
		"machineconfiguration.openshift.io/currentConfig": "rendered-master-1",
		"machineconfiguration.openshift.io/desiredConfig": "rendered-master-2",
	}
	c.Expect(c.Update(ctx, restarting)).To(Succeed())
	restarting.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionUnknown},
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse},
	}
	c.Expect(c.Status().Update(ctx, restarting)).To(Succeed())
	silentNode := &corev1.Node{}
	c.Expect(c.Get(ctx, client.ObjectKey{Name: "n0"}, silentNode)).To(Succeed())
	silentNode.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	c.Expect(c.Status().Update(ctx, silentNode)).To(Succeed())
	seen, err := etcds.Observe(ctx, key)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(c.connections.Load()).To(BeEquivalentTo(3), "one port-forward to each member")
	c.Expect(seen.Doubt).To(BeEmpty())
	c.Expect(seen.Members).To(HaveExactElements(member("n0"), member("n1"), member("n2")))
	c.Expect(seen.Members).To(HaveEach(And(HaveField("Problem", ""), HaveField("Learner", false),
		HaveField("Hosts", []string{"127.0.0.1"}))))
	c.Expect(seen.Topology).To(Equal(configv1.HighlyAvailableTopologyMode))
	c.Expect(seen.Operators).To(Equal([]workload.ClusterOperator{
		{Name: "etcd", Available: true},
		{Name: "kube-apiserver", Available: true, Progressing: true},
	}))
	c.Expect(seen.LatestRevision).To(BeEquivalentTo(8))
	c.Expect(seen.Revisions).To(Equal([]workload.Revision{{Node: "n0", Current: 8}, {Node: "n1", Current: 7, Target: 8}}))
	c.Expect([]bool{seen.Condemns("n0"), seen.Condemns("n1"), seen.Condemns("n2")}).To(Equal([]bool{false, true, false}))
	c.Expect(seen.Nodes[1]).To(Equal(workload.ControlPlaneNode{Node: workload.Node{
		Name: "n1", UID: "u", ProviderID: "metal3://n1",
		HostUID: "host of n1",
	}, Addresses: []string{"192.168.111.21"}, ResourceVersion: "1"}))
	c.Expect(seen.Nodes[2].Configuring).To(BeTrue())
	c.Expect([]bool{seen.Nodes[0].Silent, seen.Nodes[1].Silent, seen.Nodes[2].Silent}).To(Equal([]bool{true, false, false}))

	leader := c.leader(ctx)
	at := slices.IndexFunc(seen.Members, func(m workload.EtcdMember) bool { return m.Name == leader.Name })
	follower, third := seen.Members[(at+1)%3], seen.Members[(at+2)%3]
	c.Expect(etcds.MoveLeader(ctx, key, third, follower)).To(MatchError(ContainSubstring("does not hand over")), "only the leader can")
	c.Expect(etcds.MoveLeader(ctx, key, leader, follower)).To(Succeed())
	c.Expect(c.leader(ctx).Name).To(Equal(follower.Name))

	// etcd itself refuses until its members have been connected for five seconds.
	c.Eventually(func() error { return etcds.RemoveMember(ctx, key, follower, leader) }, "1m", "100ms").Should(Succeed())
	c.eventuallyMembers(ctx).Should(ConsistOf(member(follower.Name), member(third.Name)),
		"the report of the removed member does not count")
	c.Eventually(c.members[leader.Name].Running, "1m").Should(BeFalse(), "the member stops")
	c.eventuallyMembers(ctx).Should(And(HaveLen(2), HaveEach(HaveField("Problem", ""))))

	c.Expect(c.viaMember(ctx, follower.Name, func(ctx context.Context, member *clientv3.Client) error {
		_, err := member.MemberAddAsLearner(ctx, []string{"http://127.0.0.9:2380"})
		return err
	})).To(Succeed())
	c.eventuallyMembers(ctx).Should(HaveLen(3))
	learner := c.observe(ctx).Members[0]
	c.Expect(learner.Name).To(BeEmpty(), "the member was never started")
	c.Expect(learner.Learner).To(BeTrue())
	c.Expect(learner.Hosts).To(Equal([]string{"127.0.0.9"}))
	c.Expect(learner.Problem).NotTo(BeEmpty())
	c.Expect(etcds.RemoveMember(ctx, key, follower, learner)).To(Succeed())
	c.eventuallyMembers(ctx).Should(HaveLen(2))
	c.Expect(etcds.RemoveMember(ctx, key, workload.EtcdMember{Name: "n9"}, leader)).To(MatchError(ContainSubstring("n9 has no etcd Pod")))
}

// A real learner reports only its status. It does not list the members, but must not count as unresponsive:
// users would delete its Machine.
func TestRunningLearnerIsHealthy(t *testing.T) {
	c := newCluster(t, 1)
	ctx, peer := withLogger(t), c.peerURL()
	c.Expect(c.viaMember(ctx, "n0", func(ctx context.Context, member *clientv3.Client) error {
		_, err := member.MemberAddAsLearner(ctx, []string{peer})
		return err
	})).To(Succeed())
	learner := c.newMember(ctx, "n1="+peer, "--initial-cluster-state=existing", "--initial-cluster=n0="+c.peers["n0"]+",n1="+peer)
	learner.Ready = func(context.Context) error { return nil } // a learner does not pass the health check
	c.Expect(c.group.Start(ctx, learner)).To(Succeed())
	running := And(member("n1"), HaveField("Learner", true), HaveField("Problem", ""))
	c.Eventually(func() []workload.EtcdMember { return c.observe(ctx).Members }, "1m", "100ms").Should(
		HaveExactElements(And(member("n0"), HaveField("Leader", true), HaveField("Problem", "")), running))
	learner.Kill()
	c.Expect(c.observe(ctx).Members).To(ContainElement(And(member("n1"), HaveField("Problem", "does not answer"))))
	c.Expect(c.group.Start(ctx, learner)).To(Succeed())
	c.members["n0"].Kill()
	c.Consistently(func() workload.Etcd { return c.observe(ctx) }, "3s", "200ms").Should(HaveField("Members", BeEmpty()),
		"a learner alone does not list members")
}

func TestLostEtcdIsNotQueried(t *testing.T) {
	g := NewWithT(t)
	etcds := New(fakeClusters{&fakeCluster{lost: true}}) // any other access would panic
	seen, err := etcds.Observe(t.Context(), client.ObjectKey{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen).To(Equal(workload.Etcd{Lost: true}))
	g.Expect(etcds.Serves(t.Context(), client.ObjectKey{})).To(BeFalse())
}

func TestUnreachableMembers(t *testing.T) {
	c := newCluster(t, 3)
	ctx := withLogger(t)
	leader := c.leader(ctx)
	c.members[leader.Name].Kill()
	c.Eventually(func() []workload.EtcdMember { return c.observe(ctx).Members }, "1m", "100ms").Should(
		And(HaveLen(3), ContainElement(HaveField("Leader", true))), "the other members elect a leader")
	for _, m := range c.observe(ctx).Members {
		c.Expect(m.Healthy()).To(Equal(m.Name != leader.Name))
		c.Expect(m.Leader && m.Name == leader.Name).To(BeFalse())
	}

	second := c.leader(ctx)
	c.members[second.Name].Kill()
	began := time.Now()
	seen := c.observe(ctx)
	c.Expect(time.Since(began)).To(BeNumerically("<", maxDuration))
	c.Expect(seen.Doubt).To(BeEmpty())
	c.Expect(seen.Members).To(HaveLen(3), "the list of members needs no quorum")
	c.Expect(seen.Members).To(HaveEach(HaveField("Problem", Not(BeEmpty()))), "no member serves")
}

// Each member reports an alarm, even if it is healthy. If these members counted as down, the quorum would
// seem lost.
func TestAlarmsDoNotMakeMembersUnhealthy(t *testing.T) {
	c := newCluster(t, 3)
	ctx, key := withLogger(t), client.ObjectKey{}
	members := c.observe(ctx).Members
	c.Expect(c.observe(ctx).Alarms).To(BeEmpty())
	alarm := func(kind etcdserverpb.AlarmType, about workload.EtcdMember) {
		c.Expect(c.viaMember(ctx, "n1", func(ctx context.Context, member *clientv3.Client) error {
			_, err := etcdserverpb.NewMaintenanceClient(member.ActiveConnection()).Alarm(ctx,
				&etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: kind, MemberID: about.ID})
			return err
		})).To(Succeed())
	}
	put := func(ctx context.Context, member *clientv3.Client) error {
		_, err := member.Put(ctx, "key", "value")
		return err
	}
	c.Expect(c.viaMember(ctx, "n1", put)).To(Succeed())

	alarm(etcdserverpb.AlarmType_NOSPACE, members[2])
	c.Expect(c.viaMember(ctx, "n1", put)).To(MatchError(rpctypes.ErrNoSpace))
	seen := c.observe(ctx)
	c.Expect(seen.Doubt).To(BeEmpty())
	c.Expect(seen.Members).To(And(HaveLen(3), HaveEach(HaveField("Problem", ""))), "all members serve")
	c.Expect(seen.Alarms).To(Equal([]workload.EtcdAlarm{{Kind: workload.EtcdNoSpace, Member: members[2].ID}}), "once")

	alarm(etcdserverpb.AlarmType_CORRUPT, members[0])
	seen = c.observe(ctx)
	c.Expect(seen.Members).To(And(HaveLen(3), HaveEach(HaveField("Problem", ""))), "also with this alarm")
	c.Expect(seen.Alarms).To(Equal([]workload.EtcdAlarm{
		{Kind: workload.EtcdCorrupt, Member: members[0].ID},
		{Kind: workload.EtcdNoSpace, Member: members[2].ID},
	}))
	c.Eventually(func() error { return New(fakeClusters{c}).RemoveMember(ctx, key, members[1], members[0]) }, "1m",
		"100ms").Should(Succeed(), "an alarm does not block the removal")
	c.eventuallyMembers(ctx).Should(HaveExactElements(member("n1"), member("n2")))
	c.Expect(c.observe(ctx).Alarms).To(HaveLen(2), "an alarm outlives its member")
}

// A single member is enough to test trust.
func TestTrust(t *testing.T) {
	c := newCluster(t, 1)
	ctx := withLogger(t)
	c.Expect(c.observe(ctx).Members).To(HaveExactElements(HaveField("Problem", "")))

	other, err := pki.New("other")
	c.Expect(err).NotTo(HaveOccurred())
	bundle := &corev1.ConfigMap{}
	c.Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: authoritiesConfigMap}, bundle)).To(Succeed())
	setAuthority := func(pem []byte) {
		bundle.Data = map[string]string{authoritiesKey: string(pem)}
		c.Expect(c.Update(ctx, bundle)).To(Succeed())
	}
	setAuthority(other.PEM())
	c.Expect(c.observe(ctx).Members).To(BeEmpty(), "a member with another authority is not trusted")
	setAuthority(nil)
	_, err = observe(ctx, c.Client, c.forward)
	c.Expect(err).To(MatchError(ContainSubstring("no ConfigMap etcd-ca-bundle")))
	c.Expect(c.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: authoritiesConfigMap},
		Data:       map[string]string{authoritiesKey: string(c.authority.PEM())},
	})).To(Succeed())
	c.Expect(c.observe(ctx).Members).To(HaveLen(1), "older releases have the bundle elsewhere")

	credentials, err := readCredentials(ctx, c.Client)
	c.Expect(err).NotTo(HaveOccurred())
	pod := client.ObjectKey{Namespace: namespace, Name: "etcd-n0"}
	_, err = queryMember(ctx, credentials, c.forward, pod)
	c.Expect(err).NotTo(HaveOccurred())
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	credentials.ServerName = "n0.example.com"
	_, err = queryMember(within, credentials, c.forward, pod)
	c.Expect(err).To(HaveOccurred(), "the certificate is for another name")

	secret := &corev1.Secret{}
	c.Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: credentialsSecret}, secret)).To(Succeed())
	setCredentials := func(certificate, key []byte) {
		secret.Data = map[string][]byte{"tls.crt": certificate, "tls.key": key}
		c.Expect(c.Update(ctx, secret)).To(Succeed())
	}
	certificate, key, err := other.Client("etcd-client")
	c.Expect(err).NotTo(HaveOccurred())
	setCredentials(certificate, key)
	c.Expect(c.observe(ctx).Members).To(BeEmpty(), "the member does not trust the client")
	setCredentials([]byte("certificate"), []byte("very secret"))
	_, err = observe(ctx, c.Client, c.forward)
	c.Expect(err).To(MatchError(And(ContainSubstring("Secret etcd-client"), Not(ContainSubstring("very secret")))),
		"credentials are read each time")
}

// blockedConn blocks the close of a client, which writes the GOAWAY of gRPC and waits for a reader.
type blockedConn struct{ net.Conn }

func (s blockedConn) Write([]byte) (int, error) { select {} }
func (s blockedConn) Read([]byte) (int, error)  { select {} }

func TestMemberBlocksClose(t *testing.T) {
	c := newCluster(t, 1)
	c.addPod(t.Context(), "n1")
	began := time.Now()
	seen, err := observe(withLogger(t), c.Client, func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
		conn, err := c.forward(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: "etcd-n0"}, port)
		if pod.Name == "etcd-n1" {
			return blockedConn{conn}, err
		}
		return conn, err
	})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(time.Since(began)).To(BeNumerically("<", maxDuration))
	c.Expect(seen.Members).To(HaveExactElements(HaveField("Problem", "")))
}

// A member that accepts a connection and does not respond must not block others.
func TestUnresponsiveMember(t *testing.T) {
	c := newCluster(t, 1)
	c.addPod(t.Context(), "n1")
	began := time.Now()
	seen, err := observe(withLogger(t), c.Client, func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
		if pod.Name == "etcd-n1" {
			silent, other := net.Pipe()
			t.Cleanup(func() { _ = errors.Join(silent.Close(), other.Close()) })
			return silent, nil
		}
		return c.forward(ctx, pod, port)
	})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(time.Since(began)).To(BeNumerically("<", maxDuration))
	c.Expect(seen.Members).To(HaveExactElements(HaveField("Problem", "")))
}

func TestTwoNodeClusterIsNotQueried(t *testing.T) {
	c := newWorkload(t)
	infrastructure := &configv1.Infrastructure{}
	c.Expect(c.Get(t.Context(), client.ObjectKey{Name: "cluster"}, infrastructure)).To(Succeed())
	infrastructure.Status.ControlPlaneTopology = configv1.DualReplicaTopologyMode
	c.Expect(c.Update(t.Context(), infrastructure)).To(Succeed())
	c.addPod(t.Context(), "n0")
	seen, err := observe(withLogger(t), c.Client, func(context.Context, client.ObjectKey, int) (net.Conn,
		error,
	) {
		panic("unexpected query")
	})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.Topology).To(Equal(configv1.DualReplicaTopologyMode))
	c.Expect(seen.Members).To(BeEmpty())
}

func TestMachineAPI(t *testing.T) {
	for situation, tc := range map[string]struct {
		role, phase string
		decides     bool
	}{
		"running master":       {"master", "Running", true},
		"running arbiter":      {"arbiter", "Running", true},
		"provisioning master":  {"master", "Provisioning", false},
		"running worker":       {"worker", "Running", false},
		"master without phase": {"master", "", false},
		"Machine without role": {"", "Running", false},
	} {
		t.Run(situation, func(t *testing.T) {
			c := newWorkload(t)
			m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: "m"}}
			if tc.role != "" {
				m.Labels = map[string]string{"machine.openshift.io/cluster-api-machine-role": tc.role}
			}
			if tc.phase != "" {
				m.Status.Phase = ptr.To(tc.phase)
			}
			c.Expect(c.Create(t.Context(), m)).To(Succeed())
			c.Expect(c.observe(withLogger(t)).MachineAPI).To(Equal(tc.decides))
		})
	}
}

func TestDeleteSecrets(t *testing.T) {
	c := newWorkload(t)
	for _, name := range []string{"etcd-peer-n0", "etcd-serving-n0", "etcd-serving-metrics-n0", "etcd-peer-n1", "etcd-all-certs"} {
		c.Expect(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})).To(Succeed())
	}
	left := &corev1.SecretList{}
	for range 2 { // also if they do not exist
		c.Expect(New(fakeClusters{c}).DeleteSecrets(t.Context(), client.ObjectKey{}, "n0")).To(Succeed())
		c.Expect(c.List(t.Context(), left)).To(Succeed())
		c.Expect(left.Items).To(ConsistOf(HaveField("Name", "etcd-peer-n1"), HaveField("Name", "etcd-all-certs"),
			HaveField("Name", credentialsSecret)))
	}
}

func TestDeleteNodeRequiresReadVersion(t *testing.T) {
	c := newWorkload(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", UID: "u", Labels: map[string]string{controlPlaneLabels[0]: ""}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	c.Expect(c.Create(t.Context(), node)).To(Succeed())
	seen := workload.Etcd{}
	c.Expect(readNodes(t.Context(), c, &seen)).To(Succeed())
	c.Expect(seen.Nodes).To(HaveLen(1))
	c.Expect(seen.Nodes[0].Silent).To(BeTrue())

	node.Status.Conditions[0].Status = corev1.ConditionTrue
	c.Expect(c.Status().Update(t.Context(), node)).To(Succeed())
	err := New(fakeClusters{c}).DeleteNode(t.Context(), client.ObjectKey{}, seen.Nodes[0])
	c.Expect(apierrors.IsConflict(err)).To(BeTrue(), "its kubelet reports again: %v", err)
	c.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(node), node)).To(Succeed())

	seen = workload.Etcd{}
	c.Expect(readNodes(t.Context(), c, &seen)).To(Succeed())
	c.Expect(New(fakeClusters{c}).DeleteNode(t.Context(), client.ObjectKey{}, seen.Nodes[0])).To(Succeed())
	c.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(node), node))).To(BeTrue())
	err = New(fakeClusters{c}).DeleteNode(t.Context(), client.ObjectKey{}, seen.Nodes[0])
	c.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "it does not exist: %v", err)
}

func TestNodeWithFinalizerIsBeingDeleted(t *testing.T) {
	c := newWorkload(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n0", UID: "u", Labels: map[string]string{controlPlaneLabels[0]: ""}, Finalizers: []string{"example.com/storage"},
	}}
	c.Expect(c.Create(t.Context(), node)).To(Succeed())
	for _, deleting := range []bool{false, true} {
		seen := workload.Etcd{}
		c.Expect(readNodes(t.Context(), c, &seen)).To(Succeed())
		c.Expect(seen.Nodes).To(ConsistOf(HaveField("Deleting", deleting)))
		c.Expect(c.Delete(t.Context(), node)).To(Succeed())
	}
}

// The fake client ignores the UID of a precondition. This test checks that it is sent.
func TestDeleteNodeRequiresUID(t *testing.T) {
	c := newWorkload(t)
	sent := client.DeleteOptions{}
	recording := interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch,
		_ client.Object, opts ...client.DeleteOption,
	) error {
		sent.ApplyOptions(opts)
		return nil
	}})
	c.Expect(deleteNode(t.Context(), recording, workload.ControlPlaneNode{
		Node:            workload.Node{Name: "n0", UID: "u"},
		ResourceVersion: "7",
	})).To(Succeed())
	c.Expect(sent.Preconditions).To(Equal(&metav1.Preconditions{UID: ptr.To[apitypes.UID]("u"), ResourceVersion: ptr.To("7")}))
}

func TestMembersOf(t *testing.T) {
	three := []*etcdserverpb.Member{{ID: 1, Name: "n0"}, {ID: 2, Name: "n1"}, {ID: 3, Name: "n2"}}
	two := three[1:]
	for situation, tc := range map[string]struct {
		statuses []memberStatus
		names    []string
		doubt    bool
		leader   string
	}{
		"no response": {},
		"all agree": {statuses: []memberStatus{
			{id: 1, leader: 2, serves: true, members: three},
			{id: 2, leader: 2, serves: true, members: three},
		}, names: []string{"n0", "n1", "n2"}, leader: "n1"},
		"removed member has an old list": {
			statuses: []memberStatus{
				{id: 1, leader: 1, members: three, problem: "p"},
				{id: 2, leader: 3, serves: true, members: two},
				{id: 3, leader: 3, serves: true, members: two},
			},
			names: []string{"n1", "n2"}, leader: "n2",
		},
		"serving members disagree on the list": {statuses: []memberStatus{
			{id: 1, serves: true, members: three},
			{id: 2, serves: true, members: two},
		}, doubt: true},
		"serving members disagree on the leader": {statuses: []memberStatus{
			{id: 1, leader: 1, serves: true, members: three},
			{id: 2, leader: 2, serves: true, members: three},
		}, names: []string{"n0", "n1", "n2"}},
		"one member has an old term": {
			statuses: []memberStatus{
				{id: 1, leader: 1, term: 4, serves: true, members: three},
				{id: 2, leader: 2, term: 5, serves: true, members: three},
			}, names: []string{"n0", "n1", "n2"}, leader: "n1",
		},
		"members of two clusters": {statuses: []memberStatus{
			{id: 1, key: 1, serves: true, members: three},
			{id: 2, key: 2, serves: true, members: three},
		}, doubt: true},
		"no member serves, lists agree": {statuses: []memberStatus{
			{id: 1, members: three, problem: "p"},
			{id: 2, members: three, problem: "p"},
		}, names: []string{"n0", "n1", "n2"}},
		"no member serves, lists differ": {statuses: []memberStatus{
			{id: 1, members: three, problem: "p"},
			{id: 2, members: two, problem: "p"},
		}, doubt: true},
		"promotion known to one member": {
			statuses: []memberStatus{{id: 2, serves: true, members: two}, {
				id: 3, serves: true,
				members: []*etcdserverpb.Member{{ID: 2, Name: "n1"}, {ID: 3, Name: "n2", IsLearner: true}},
			}}, doubt: true,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			members, doubt := membersOf(tc.statuses)
			wanted := BeEmpty()
			if tc.doubt {
				wanted = Not(wanted)
			}
			g.Expect(doubt).To(wanted)
			var names []string
			leader := ""
			for _, m := range members {
				names = append(names, m.Name)
				if m.Leader {
					leader = m.Name
				}
			}
			g.Expect(names).To(Equal(tc.names))
			g.Expect(leader).To(Equal(tc.leader))
		})
	}
}
