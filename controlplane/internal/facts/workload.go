package facts

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// GracePeriod is how long an API server may not answer before it counts as down.
const GracePeriod = 5 * time.Minute

// The longest planned downtime of an API server. Of a single host the API server is away while the host restarts: large
// servers take 20 minutes from power-on to their operating system, and an upgrade restarts API server and host several
// times. Two hosts restart one after the other, and etcd has to elect a leader. Of more hosts only the load balancer
// has to notice.
const (
	restartOfSingleHost = time.Hour
	restartOfTwoHosts   = 30 * time.Minute
	restartOfMoreHosts  = 15 * time.Minute
)

// RestartTime is how long the API server of a control plane of that many hosts may be away for a planned restart before
// this counts as a failure.
func RestartTime(hosts int32) time.Duration {
	switch {
	case hosts <= 1:
		return restartOfSingleHost
	case hosts == 2:
		return restartOfTwoHosts
	}
	return restartOfMoreHosts
}

// Workload is what is known of an installed cluster.
type Workload struct {
	// Connected is true while the cluster's API server answers.
	Connected bool
	// LastSuccess is when it answered last; zero when it has not since this process runs.
	LastSuccess time.Time
	// Failure is why there is no connection; nil while there is one, or as long as none was tried.
	Failure *Failure
	// KubernetesVersion is what the API server reports.
	KubernetesVersion string
	// OpenShiftVersion is the release that was completed last, without leading v. Empty before the first.
	OpenShiftVersion string
	// ReleaseImage is the image of that release.
	ReleaseImage string
	// Upgrading is the release that is being rolled out over the one that was completed; empty: none.
	Upgrading string
	// Channel is that of the update graph in which the cluster looks for releases.
	Channel string
	// Offers is another number whenever the releases that the update graph offers may be others.
	Offers uint64
	// Rollout is what the cluster tells of its release unless all is as it was asked for; nil: it is, or nothing is known.
	Rollout *Rollout
	// Unhealthy says, for people, what of the control plane is not available. Empty: nothing, if it could be read.
	Unhealthy []string
	// Etcd is what ClusterOperator etcd reports.
	Etcd EtcdOperator
	// UnreadSince is since when the API server answers but what is known of the cluster cannot be read; zero when it was read.
	UnreadSince time.Time
	// Nodes of the cluster, by name.
	Nodes []Node
	// Pools are the MachineConfigPools that are paused, degraded or behind, by name. They are read while the cluster is
	// being upgraded, or pools are awaited; PoolsKnown is true when they were.
	Pools      []Pool
	PoolsKnown bool
	// Restarts states for which planned changes the API server or control-plane hosts restart, as was seen last; it
	// stays when the connection is down. Empty: for none. An upgrade is not among them: the status of the control plane
	// records it.
	Restarts []string
	// Requested is the certificate request of a kubelet that was made last, as far as it was noticed; empty: none was.
	// Where no host is awaited nobody looks for the first minutes of a connection.
	Requested types.UID
	// ServerCA are the certificates (PEM) by which hosts that join recognise the machine config server of the cluster.
	// They are read while hosts are awaited; empty: not yet, or there are none.
	ServerCA string
	// Tokens are the UIDs of the Secrets in the cluster that our tokens are bound to; nil: they could not be read.
	Tokens sets.Set[types.UID]
}

// EtcdOperator is what ClusterOperator etcd reports of the members as a whole. The zero value is one that was not read.
type EtcdOperator struct {
	Known, Available, Progressing bool
	// DegradedSince is zero while the operator is not degraded; Degraded is why it is, in the operator's words, bounded.
	DegradedSince time.Time
	Degraded      string
}

// Settled reports whether the operator reports that all members serve, and that none comes, goes or restarts.
func (o EtcdOperator) Settled() bool {
	return o.Known && o.Available && !o.Progressing && o.DegradedSince.IsZero()
}

// Identity is what an installed cluster is known by, whichever hub looks after it.
type Identity struct {
	// ClusterID is a UUID, InfraID the name of its infrastructure.
	ClusterID, InfraID string
}

// Node is what matters of a Node.
type Node struct {
	Name       string
	UID        types.UID
	ProviderID string
	// HostUID is the UID of the BareMetalHost that it runs on, as its label says.
	HostUID string
	// ControlPlane reports whether its labels make it a Node of the control plane, arbiters included.
	ControlPlane bool
	// Config names the rendered machine configuration that it has. Release is the release that this is of; known only
	// while the cluster is being upgraded, or releases are awaited.
	Config, Release string
	// Reconfigured is true for a control-plane Node while the machine config operator brings it to another configuration: its host restarts.
	Reconfigured bool
}

// controlPlanePools are the MachineConfigPools of the control plane, which an upgrade waits for.
var controlPlanePools = sets.New("master", "arbiter")

// Pool is what matters of a MachineConfigPool.
type Pool struct {
	Name   string
	Paused bool
	// Degraded says, for people, why it is degraded; empty: it is not.
	Degraded string
	// Behind is true as long as not all of its Nodes have the configuration that they are to have.
	Behind bool
}

// ControlPlane reports whether the pool is one of the control plane.
func (p Pool) ControlPlane() bool { return controlPlanePools.Has(p.Name) }

// FailureKind is what matters of a Failure to those who act upon it.
type FailureKind string

// The kinds of failures.
const (
	// KubeconfigRefused is a kubeconfig that is not used, because it is more than data.
	KubeconfigRefused FailureKind = "KubeconfigRefused"
	// Unauthorized are credentials that the cluster does not accept, or no more.
	Unauthorized FailureKind = "Unauthorized"
	// Untrusted is a certificate of the API server that the kubeconfig does not accept.
	Untrusted FailureKind = "Untrusted"
	// Unreachable is everything else.
	Unreachable FailureKind = "Unreachable"
)

// Failure is why there is no connection to a cluster.
type Failure struct {
	Kind FailureKind
	// Message tells it to people in words of our own: what a server answers is not for everybody who reads conditions.
	Message string
	// Silent is true when nothing answered at all: no connection was accepted, or nothing came by it in time.
	Silent bool
	// KubeconfigVersion is the resource version of the Secret with which it was tried.
	KubeconfigVersion string
}
