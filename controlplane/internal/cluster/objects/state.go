package objects

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// State is what was read of the objects of one cluster, and which of them are needed. It is not safe for
// concurrent use.
type State struct {
	// HostsExpected is true while hosts of the cluster are expected to join or return.
	HostsExpected bool
	// PoolsRequired is true while the MachineConfigPools are needed although the cluster is not being upgraded.
	PoolsRequired bool

	clock clock.PassiveClock
	// requestsRead is when the CertificateSigningRequests were last read.
	requestsRead time.Time
	nodes        nodeList
	// pools are the MachineConfigPools to report, unpaused the names of pools of workers that are not paused.
	unpaused []string
	pools    []workload.Pool
	tokens   sets.Set[types.UID]
	// latestRequest is the UID of the newest CertificateSigningRequest of a kubelet.
	latestRequest types.UID
	// serverCA are the certificate authorities (PEM) of the machine config server.
	serverCA string
	// health holds the health of each object in observed, in the same order.
	health [len(observed)]health
}

// NewState returns the state of a cluster of which nothing was read.
func NewState(clk clock.PassiveClock) *State { return &State{clock: clk} }

// View returns a copy of the state that was read, without the connection. isCurrent reports whether the state
// of an optional resource, or of the tokens, is current. Otherwise the last values may be outdated, and are
// omitted.
func (s *State) View(isCurrent func(Resource) bool) workload.State {
	seen := workload.State{Requested: s.latestRequest, Restarts: s.Restarts()}
	if isCurrent(tokenSecrets) {
		seen.Tokens = s.tokens.Clone()
	}
	if isCurrent(serverCAs) {
		seen.ServerCA = s.serverCA
	}
	if isCurrent(pools) {
		seen.Pools, seen.UnpausedPools, seen.PoolsKnown = slices.Clone(s.pools), s.unpaused, true
	}
	seen.Nodes = append(seen.Nodes, s.nodes...)
	if r := s.released(); r != nil {
		seen.OpenShiftVersion, seen.ReleaseImage, seen.Upgrading = r.Completed, r.Image, r.Upgrading
		seen.Channel, seen.Offers, seen.Rollout = r.Channel, r.Offers, r.Rollout
	}
	seen.Etcd = s.health[slices.Index(observed[:], etcdOperator)].Etcd
	seen.APIServersVersion = s.APIServersVersion()
	for _, h := range s.health {
		if h.Problem != "" {
			seen.Unhealthy = append(seen.Unhealthy, h.Problem)
		}
	}
	return seen
}

// APIServersVersion returns the Kubernetes version in ClusterOperator kube-apiserver; "" if it has none.
func (s *State) APIServersVersion() string {
	return s.health[slices.Index(observed[:], apiServerOperator)].APIServers
}

// Restarts returns the planned changes that restart API servers or control plane hosts.
func (s *State) Restarts() []string {
	var planned []string
	for _, n := range s.nodes {
		if n.Reconfigured {
			planned = append(planned, "Node "+bound.Value(n.Name)+" is being brought to another machine configuration")
		}
	}
	for i, h := range s.health {
		if h.RollsOut {
			planned = append(planned, "ClusterOperator "+observed[i].Name+" rolls out another revision")
		}
	}
	return planned
}

// Node returns the Node with a name, or an empty one if it is not known.
func (s *State) Node(name string) workload.Node { return s.nodes.Get(name) }

// released returns the release in the ClusterVersion, or nil if that was not read yet.
func (s *State) released() *release {
	return s.health[slices.Index(observed[:], clusterVersion)].Release
}

// record stores the health of an object. A clock of the cluster that is ahead must not extend the grace period
// of a degraded etcd. A start in the future is replaced by the time of the first read.
func (s *State) record(at int, h health) {
	before, now := s.health[at].Etcd.DegradedSince, s.clock.Now()
	if h.Etcd.DegradedSince.After(now) {
		h.Etcd.DegradedSince = now
		if !before.IsZero() {
			h.Etcd.DegradedSince = before
		}
	}
	s.health[at] = h
}

// Needs reports whether a resource must be watched.
func (s *State) Needs(r Resource) bool { return r.Demand == nil || r.Demand(s) }

// NeedsPools reports whether the state of the MachineConfigPools is needed.
func (s *State) NeedsPools() bool {
	released := s.released()
	return s.PoolsRequired || released != nil && released.Upgrading != ""
}

// needsHosts reports whether resources are needed that matter only while hosts are expected.
func (s *State) needsHosts() bool { return s.HostsExpected }

// requestsOutdated reports whether the CertificateSigningRequests must be read again although they are not
// watched.
func (s *State) requestsOutdated() bool { return s.clock.Now().Sub(s.requestsRead) >= requestsAge }
