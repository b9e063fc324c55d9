package cluster

import (
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

const (
	// minReportTime is how long a cause is reported before another of its kind replaces it. The causes of an
	// unstable API server alternate.
	minReportTime = time.Minute
)

// failure is why there is no connection, and since when that cause is reported.
type failure struct {
	workload.Failure
	since time.Time
}

// failed records why an attempt to connect failed, or why the connection ended.
func (c *connection) failed(err error) {
	c.update(func() {
		c.endWatches()
		c.lastSuccess, c.http2Conn, c.connected = c.answered(), nil, false
		now := conn.FailureOf(err)
		now.KubeconfigVersion = c.kubeconfig
		if known := c.failure; known != nil && known.Kind == now.Kind && known.Silent == now.Silent &&
			known.KubeconfigVersion == now.KubeconfigVersion && c.clock.Now().Sub(known.since) < minReportTime {
			return
		}
		c.failure = &failure{Failure: now, since: c.clock.Now()}
	})
}
