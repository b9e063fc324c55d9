package lab

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestInstalledClusterWhoseEtcdHasMembers(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first run builds everything
	defer cancel()
	l, err := New(ctx, Options{Out: t.Output(), LeaveSignals: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(l.Stop)

	begin := time.Now()
	cluster, err := l.ApplySample(ctx, "compact", Mutations{EtcdMembers: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.WaitAvailable(ctx)).To(Succeed())
	t.Logf("available after %s", time.Since(begin).Round(100*time.Millisecond))
	g.Eventually(cluster.EtcdSettled).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
	t.Logf("etcd settled after %s", time.Since(begin).Round(100*time.Millisecond))

	workload, err := cluster.Workload()
	g.Expect(err).NotTo(HaveOccurred())
	nodes := &corev1.NodeList{}
	g.Expect(workload.List(ctx, nodes)).To(Succeed())
	g.Expect(nodes.Items).To(HaveLen(3))
	members, err := cluster.EtcdMembers(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(members).To(HaveLen(3))
	for _, node := range nodes.Items {
		g.Expect(members).To(HaveKeyWithValue(node.Name, true))
	}
}
