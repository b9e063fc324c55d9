package cluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestClockAheadDoesNotExtendEtcdGrace(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	clk := testingclock.NewFakePassiveClock(now)
	conn := &connection{clock: clk}
	degraded := func(since time.Time) objects.Health {
		return objects.Health{Etcd: workload.EtcdOperator{DegradedSince: since}}
	}
	since := func() time.Time { return conn.health[1].Etcd.DegradedSince }

	ahead := now.Add(time.Hour)
	conn.record(1, degraded(ahead))
	g.Expect(since()).To(Equal(now))
	now = now.Add(time.Minute)
	clk.SetTime(now)
	conn.record(1, degraded(ahead)) // read again, with another message
	g.Expect(since()).To(Equal(now.Add(-time.Minute)))
	conn.record(1, objects.Health{})
	g.Expect(since()).To(BeZero())
	conn.record(1, degraded(now.Add(-time.Second)))
	g.Expect(since()).To(Equal(now.Add(-time.Second)), "a correct clock is used")
}
