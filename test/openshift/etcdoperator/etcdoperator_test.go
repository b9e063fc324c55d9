package etcdoperator_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/etcdoperator"
)

// members lists the members through the Pod of a Node.
func (w *world) members(node, protocol string) (list []*etcdserverpb.Member, err error) {
	err = w.through(node, protocol, func(ctx context.Context, c *clientv3.Client) error {
		answer, err := c.MemberList(ctx)
		if err == nil {
			list = answer.Members
		}
		return err
	})
	return list, err
}

// voters returns the names of the voters.
func (w *world) voters(node string) []string {
	list, err := w.members(node, "WebSocket")
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, m := range list {
		if !m.IsLearner {
			names = append(names, m.Name)
		}
	}
	return names
}

// write creates a ConfigMap, within a time that suffices with a quorum.
func (w *world) write(name string) error { return w.writeWithin(name, 5*time.Second) }

func (w *world) writeWithin(name string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	// A write that timed out may have been executed.
	return client.IgnoreAlreadyExists(w.workload.Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))
}

// settled reports whether all Nodes have the latest revision.
func (w *world) settled() bool {
	etcd := &operatorv1.Etcd{}
	if err := w.workload.Get(w.ctx, client.ObjectKey{Name: "cluster"}, etcd); err != nil {
		return false
	}
	for _, n := range etcd.Status.NodeStatuses {
		if n.CurrentRevision != etcd.Status.LatestAvailableRevision || n.TargetRevision != 0 {
			return false
		}
	}
	return len(etcd.Status.NodeStatuses) > 0
}

// target returns the target revision of a Node, or 0.
func (w *world) target(node string) int32 {
	etcd := &operatorv1.Etcd{}
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Name: "cluster"}, etcd)).To(Succeed())
	for _, n := range etcd.Status.NodeStatuses {
		if n.NodeName == node {
			return n.TargetRevision
		}
	}
	return 0
}

// condition returns the status of a condition of a ClusterOperator.
func (w *world) condition(operator string, kind configv1.ClusterStatusConditionType) configv1.ConditionStatus {
	found := &configv1.ClusterOperator{}
	if err := w.workload.Get(w.ctx, client.ObjectKey{Name: operator}, found); err != nil {
		return configv1.ConditionStatus(err.Error())
	}
	for _, c := range found.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func TestEtcdOfThreeHosts(t *testing.T) {
	w := newWorld(t)
	begin := time.Now()
	w.install("master", 3, false)
	for i := range 3 {
		w.Eventually(w.rack.Host(fmt.Sprintf("master-%d", i)).Stage).Should(BeEquivalentTo("Done"))
	}
	w.Eventually(func() []string { return w.voters("master-0") }).Should(ConsistOf("master-0", "master-1", "master-2"))
	w.Eventually(w.settled).Should(BeTrue())
	t.Logf("three members after %s", time.Since(begin).Round(100*time.Millisecond))
	for _, name := range []string{"master-0", "master-1", "master-2"} {
		usage, err := w.etcd.Process(name).Usage()
		w.Expect(err).NotTo(HaveOccurred())
		t.Logf("etcd of %s: %d MiB, %d MiB its own, %s CPU", name, usage.Memory>>20, usage.Anonymous>>20, usage.CPU)
	}

	for _, step := range []struct {
		situation string
		check     func(w *world)
	}{
		{"each member answers through the port-forward of the kube-apiserver", reachEach},
		{"the objects for clients of etcd are published", readPublished},
		{"a member stops and starts with its host", switchOff},
		{"a Node is not drained while another Node is drained, or while another member is down", guardDrains},
		{"a revision restarts the members, one after the other", rollOut},
		{"members that exit are restarted, with and without the API", restartExited},
		{"with two hosts off no write succeeds, and no data is lost", loseQuorum},
		{"a wiped host leaves a dead member, and a fourth host waits for its removal", replaceWiped},
		{"a removed member returns while its Node exists", removeHealthy},
	} {
		if !t.Run(step.situation, func(t *testing.T) {
			part := *w
			part.WithT = NewWithT(t)
			part.SetDefaultEventuallyTimeout(patience)
			step.check(&part)
		}) {
			return
		}
	}
}

func reachEach(w *world) {
	for _, node := range []string{"master-0", "master-1", "master-2"} {
		for _, protocol := range []string{"WebSocket", "SPDY"} {
			list, err := w.members(node, protocol)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(list).To(HaveLen(3))
			for _, m := range list {
				address := w.address(m.Name)
				w.Expect(m.PeerURLs).To(ConsistOf("https://" + address + ":2380"))
				w.Expect(m.ClientURLs).To(ConsistOf("https://" + address + ":2379"))
			}
		}
		// The member of this Node answers.
		w.Expect(w.through(node, "WebSocket", func(ctx context.Context, c *clientv3.Client) error {
			status, err := c.Status(ctx, c.Endpoints()[0])
			if err == nil {
				w.Expect(status.Header.MemberId).To(Equal(w.member(node).ID))
			}
			return err
		})).To(Succeed())
	}
}

// address returns the InternalIP of a Node.
func (w *world) address(name string) string {
	node := &corev1.Node{}
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	w.Expect(node.Status.Addresses[0].Type).To(Equal(corev1.NodeInternalIP))
	return node.Status.Addresses[0].Address
}

// member returns the member of a Node, or nil, according to any running member.
func (w *world) member(name string) *etcdserverpb.Member {
	for node := range w.etcd.Serving() {
		list, err := w.members(node, "WebSocket")
		if err != nil {
			continue
		}
		for _, m := range list {
			if m.Name == name {
				return m
			}
		}
		return nil
	}
	return nil
}

func readPublished(w *world) {
	get := func(name string, object client.Object) {
		w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: name}, object)).To(Succeed())
	}
	endpoints, pdb := &corev1.ConfigMap{}, &policyv1.PodDisruptionBudget{}
	get("etcd-endpoints", endpoints)
	w.Expect(endpoints.Data).To(HaveLen(3))
	get("etcd-guard-pdb", pdb)
	w.Expect(pdb.Spec.MinAvailable.IntValue()).To(Equal(2))
	for _, node := range []string{"master-0", "master-1", "master-2"} {
		w.Expect(endpoints.Data).To(HaveKeyWithValue(strconv.FormatUint(w.member(node).ID, 16), w.address(node)))
		for _, prefix := range []string{"etcd-peer-", "etcd-serving-", "etcd-serving-metrics-"} {
			get(prefix+node, &corev1.Secret{})
		}
		pod := &corev1.Pod{}
		get("etcd-"+node, pod)
		w.Expect(pod.Labels).To(HaveKeyWithValue("app", "etcd"))
		w.Expect(pod.Spec.NodeName).To(Equal(node))
		w.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}
	for _, operator := range []string{"etcd", "kube-apiserver"} {
		w.Eventually(w.condition).WithArguments(operator, configv1.OperatorProgressing).Should(Equal(configv1.ConditionFalse))
		w.Expect(w.condition(operator, configv1.OperatorAvailable)).To(Equal(configv1.ConditionTrue))
		w.Expect(w.condition(operator, configv1.OperatorDegraded)).To(Equal(configv1.ConditionFalse))
	}
}

func switchOff(w *world) {
	id := w.member("master-1").ID
	w.rack.Host("master-1").PowerOff()
	w.Expect(w.etcd.Running("master-1")).To(BeFalse())
	_, err := w.members("master-1", "WebSocket")
	w.Expect(err).To(HaveOccurred(), "the member is down")
	w.Eventually(w.condition).WithArguments("etcd", configv1.OperatorDegraded).Should(Equal(configv1.ConditionTrue))
	w.Eventually(w.write).WithArguments("one-off").Should(Succeed(), "after an election, if it was the leader")
	w.rack.Host("master-1").PowerOn()
	w.Eventually(w.condition).WithArguments("etcd", configv1.OperatorDegraded).Should(Equal(configv1.ConditionFalse))
	w.Expect(w.member("master-1").ID).To(Equal(id))
	w.Eventually(func() []string { return w.voters("master-1") }).Should(HaveLen(3))
}

// evict evicts the guard Pod of a Node, as a drain does.
func (w *world) evict(node string) error {
	guard := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-" + node}}
	return w.workload.SubResource("eviction").Create(w.ctx, guard, &policyv1.Eviction{})
}

// guards returns the Nodes with a guard Pod, and whether it is Ready.
func (w *world) guards() map[string]bool {
	list, found := &corev1.PodList{}, map[string]bool{}
	w.Expect(w.workload.List(w.ctx, list, client.InNamespace("openshift-etcd"), client.MatchingLabels{"app": "guard"})).To(Succeed())
	for _, p := range list.Items {
		// A Pod that was just created has no status.
		found[p.Spec.NodeName] = slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	}
	return found
}

// healthyGuards returns the number of Ready guard Pods in the status of the PodDisruptionBudget, which decides evictions.
func (w *world) healthyGuards() int32 {
	pdb := &policyv1.PodDisruptionBudget{}
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}, pdb)).To(Succeed())
	return pdb.Status.CurrentHealthy
}

func (w *world) cordon(name string, cordoned bool) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Expect(w.workload.Patch(w.ctx, node,
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)))).To(Succeed())
}

func guardDrains(w *world) {
	refused := MatchError(ContainSubstring("violate the pod's disruption budget"))
	w.Eventually(w.guards).Should(Equal(map[string]bool{"master-0": true, "master-1": true, "master-2": true}))
	w.cordon("master-0", true)
	w.Eventually(w.evict).WithArguments("master-0").Should(Succeed())
	w.Eventually(w.guards).Should(Equal(map[string]bool{"master-1": true, "master-2": true}), "a cordoned Node gets no guard Pod")
	w.Eventually(w.evict).WithArguments("master-1").Should(refused)

	w.rack.Host("master-1").PowerOff()
	w.Eventually(w.guards).Should(Equal(map[string]bool{"master-1": false, "master-2": true}))
	// The budget is computed after the Pods, as by the disruption controller: until then it allows the eviction of an unready Pod.
	w.Eventually(w.healthyGuards).Should(BeEquivalentTo(1))
	w.Expect(w.evict("master-1")).To(refused, "the budget counts Pods of members that are down")

	w.cordon("master-0", false)
	w.Eventually(w.evict).WithArguments("master-1").Should(Succeed(), "enough others serve")
	w.rack.Host("master-1").PowerOn()
	w.Eventually(w.guards).Should(Equal(map[string]bool{"master-0": true, "master-1": true, "master-2": true}))
}

// pids returns the processes of the members.
func (w *world) pids() map[string]int {
	pids := map[string]int{}
	for node := range w.etcd.Serving() {
		pids[node] = w.etcd.Process(node).PID()
	}
	return pids
}

func rollOut(w *world) {
	before := w.pids()
	w.Expect(before).To(HaveLen(3))
	w.operator.Block(etcdoperator.Rollout)
	// A new certificate changes the content of the Pods.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-serving-metrics-master-0"}}
	w.Expect(w.workload.Delete(w.ctx, secret)).To(Succeed())
	for _, operator := range []string{"etcd", "kube-apiserver"} {
		w.Eventually(w.condition).WithArguments(operator, configv1.OperatorProgressing).Should(Equal(configv1.ConditionTrue))
	}
	w.Consistently(w.pids, time.Second, 100*time.Millisecond).Should(Equal(before), "the rollout is blocked")

	w.operator.Unblock(etcdoperator.Rollout)
	w.Eventually(func() bool {
		w.Expect(len(w.etcd.Serving())).To(BeNumerically(">=", 2))
		return w.settled()
	}).Should(BeTrue())
	after := w.pids()
	w.Expect(after).To(HaveLen(3))
	for node, pid := range before {
		w.Expect(after).NotTo(HaveKeyWithValue(node, pid), "the member was restarted")
	}
	w.Eventually(w.write).WithArguments("after-a-revision").Should(Succeed())
	w.Eventually(w.condition).WithArguments("etcd", configv1.OperatorProgressing).Should(Equal(configv1.ConditionFalse))
	w.Expect(w.condition("etcd", configv1.OperatorDegraded)).To(Equal(configv1.ConditionFalse))
}

func restartExited(w *world) {
	before := w.pids()
	for _, node := range []string{"master-0", "master-1"} {
		w.etcd.Process(node).Kill()
	}
	w.Expect(w.writeWithin("without-votes", restart/2)).NotTo(Succeed(), "before the restart")
	w.Eventually(w.pids).Should(And(HaveLen(3), Not(HaveKeyWithValue("master-0", before["master-0"])),
		Not(HaveKeyWithValue("master-1", before["master-1"]))))
	w.Eventually(w.write).WithArguments("with-votes").Should(Succeed())
	w.Eventually(w.condition).WithArguments("etcd", configv1.OperatorDegraded).Should(Equal(configv1.ConditionFalse))
}

func loseQuorum(w *world) {
	w.Eventually(w.write).WithArguments("before").Should(Succeed())
	for _, name := range []string{"master-0", "master-2"} {
		w.rack.Host(name).PowerOff()
	}
	w.Expect(w.write("without-quorum")).NotTo(Succeed())
	for _, name := range []string{"master-0", "master-2"} {
		w.rack.Host(name).PowerOn()
	}
	w.Eventually(w.write).WithArguments("after").Should(Succeed())
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "before"}, &corev1.ConfigMap{})).To(Succeed())
	w.Eventually(w.condition).WithArguments("etcd", configv1.OperatorDegraded).Should(Equal(configv1.ConditionFalse))
}

func replaceWiped(w *world) {
	dead := w.member("master-2")
	w.wipe("master-2")
	w.Expect(w.etcd.Placed("master-2")).To(BeFalse(), "its data is lost")
	w.Eventually(w.condition).WithArguments("etcd", configv1.OperatorDegraded).Should(Equal(configv1.ConditionTrue))
	w.Expect(w.member("master-2")).NotTo(BeNil(), "no controller removes the member of a deprovisioned host")

	w.install("spare", 1, true)
	w.Eventually(func() error {
		w.approve(certificatesv1.KubeAPIServerClientKubeletSignerName)
		return w.workload.Get(w.ctx, client.ObjectKey{Name: "spare-0"}, &corev1.Node{})
	}).Should(Succeed())
	w.Eventually(func() error {
		return w.workload.Get(w.ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-spare-0"}, &corev1.Pod{})
	}).Should(Succeed())
	w.Consistently(func() *etcdserverpb.Member { return w.member("spare-0") }, 3*time.Second, 200*time.Millisecond).Should(BeNil())
	metrics := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-serving-metrics-spare-0"}}
	w.Expect(w.workload.Delete(w.ctx, metrics)).To(Succeed())
	w.Eventually(func() error {
		return w.workload.Get(w.ctx, client.ObjectKeyFromObject(metrics), &corev1.Secret{})
	}).Should(Succeed(), "the operator runs")
	w.Expect(w.etcd.Placed("spare-0")).To(BeFalse(), "the host waits")

	w.operator.Block(etcdoperator.Promotion)
	w.remove(dead)
	w.Eventually(w.isLearner).WithArguments("spare-0").Should(BeTrue())
	w.Consistently(w.isLearner, time.Second, 100*time.Millisecond).WithArguments("spare-0").Should(BeTrue(), "the promotion is blocked")
	w.operator.Unblock(etcdoperator.Promotion)
	w.Eventually(func() []string { return w.voters("master-0") }).Should(ConsistOf("master-0", "master-1", "spare-0"))

	_, err := w.members("spare-0", "WebSocket")
	w.Expect(err).To(HaveOccurred(), "the kubelet has no serving certificate")
	w.approve(certificatesv1.KubeletServingSignerName)
	w.Eventually(func() []string { return w.voters("spare-0") }).Should(ConsistOf("master-0", "master-1", "spare-0"))

	w.Eventually(w.target).WithArguments("master-2").ShouldNot(BeZero())
	w.Consistently(w.target, time.Second, 100*time.Millisecond).WithArguments("master-2").ShouldNot(BeZero(),
		"the revision does not reach a Node that is off")
	w.Expect(w.condition("kube-apiserver", configv1.OperatorProgressing)).To(Equal(configv1.ConditionTrue))
	w.Expect(w.workload.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "master-2"}})).To(Succeed())
	w.Eventually(w.settled).Should(BeTrue())
	pod := client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-master-2"}
	w.Eventually(func() error { return w.workload.Get(w.ctx, pod, &corev1.Pod{}) }).ShouldNot(Succeed())
	w.Expect(w.workload.Get(w.ctx, client.ObjectKey{Namespace: "openshift-etcd", Name: "etcd-peer-master-2"}, &corev1.Secret{})).To(Succeed())
}

func (w *world) isLearner(node string) bool {
	m := w.member(node)
	return m != nil && m.IsLearner
}

// remove removes a member. etcd refuses until every other member was connected for 5 s (HealthInterval in
// server/etcdserver/server.go).
func (w *world) remove(m *etcdserverpb.Member) {
	w.Eventually(func() error {
		return w.through("master-0", "WebSocket", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MemberRemove(ctx, m.ID)
			return err
		})
	}).Should(Succeed())
}

func removeHealthy(w *world) {
	removed := w.member("spare-0")
	w.remove(removed)
	w.Eventually(func() bool {
		m := w.member("spare-0")
		return m != nil && m.ID != removed.ID && !m.IsLearner
	}).Should(BeTrue(), "a new member replaces it")
	w.Eventually(func() []string { return w.voters("master-0") }).Should(ConsistOf("master-0", "master-1", "spare-0"))
}
