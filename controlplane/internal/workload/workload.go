// Package workload holds the state of an installed cluster as it was read from the cluster itself: its releases, Nodes, pools, etcd and
// connection. It has no client.
package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// GracePeriod is how long an API server may not answer before it counts as down.
const GracePeriod = 5 * time.Minute

// The longest planned downtime of an API server. The API server of a single host is unavailable while the
// host restarts. Large servers take 20 minutes from power-on to their operating system, and an upgrade
// restarts API server and host several times. Two hosts restart one after the other, and etcd has to elect a
// leader. With more hosts only the load balancer has to react.
const (
	restartOfSingleHost = time.Hour
	restartOfTwoHosts   = 30 * time.Minute
	restartOfMoreHosts  = 15 * time.Minute
)

// RestartTime returns how long the API server of a control plane may be unavailable for a planned restart.
// A longer interruption counts as a failure. The time depends on the number of hosts.
func RestartTime(hosts int32) time.Duration {
	switch {
	case hosts <= 1:
		return restartOfSingleHost
	case hosts == 2:
		return restartOfTwoHosts
	}
	return restartOfMoreHosts
}

// State is the last known state of an installed cluster.
type State struct {
	// Connected is true while the cluster's API server answers.
	Connected bool
	// LastSuccess is when it last answered; zero if it has not since the start of this process.
	LastSuccess time.Time
	// Failure is why there is no connection; nil if there is one, or none was tried.
	Failure *Failure
	// KubernetesVersion is what the API server reports that answered last, as v1.32.7 or v1.29.6+aba1e8d.
	KubernetesVersion string
	// APIServersVersion is the Kubernetes version of all API servers, as 1.32.7, by ClusterOperator
	// kube-apiserver; "" if it reports none.
	APIServersVersion string
	// OpenShiftVersion is the release that was completed last, without leading v; "" before the first.
	OpenShiftVersion string
	// ReleaseImage is the image of that release.
	ReleaseImage string
	// Upgrading is the release that is being rolled out over the completed one; "" if there is none.
	Upgrading string
	// Channel is the channel of the update graph from which the cluster gets releases.
	Channel string
	// Offers is a number that changes when the releases that the update graph offers may have changed.
	Offers uint64
	// Rollout is the state of the release unless all requests are complete; nil if they are, or nothing is
	// known.
	Rollout *Rollout
	// Unhealthy lists the unavailable components of the control plane, for messages; empty if there is none,
	// if it could be read.
	Unhealthy []string
	// Etcd is the report of ClusterOperator etcd.
	Etcd EtcdOperator
	// UnreadSince is since when the API server answers but the state of the cluster cannot be read; zero if
	// it was read.
	UnreadSince time.Time
	// Nodes of the cluster, by name.
	Nodes []Node
	// Pools are the MachineConfigPools that are paused, degraded or behind, by name. They are read during an
	// upgrade and while pools matter (see Facts.PoolsMatter). PoolsKnown is true if they were read.
	Pools      []Pool
	PoolsKnown bool
	// UnpausedPools are the MachineConfigPools of workers that have Nodes and are not paused, by name. They are
	// read together with Pools.
	UnpausedPools []string
	// Restarts lists the planned changes for which the API server or control-plane hosts restart, by the last
	// inspection. It stays while there is no connection. An upgrade is not among them: the status of the
	// control plane records it.
	Restarts []string
	// Requested is the last certificate request of a kubelet that was observed; "" if there was none. If no
	// host is expected, requests are not observed in the first minutes of a connection.
	Requested types.UID
	// ServerCA are the certificates (PEM) with which joining hosts verify the machine config server of the
	// cluster. They are read while hosts are expected; "" if not read yet, or there are none.
	ServerCA string
	// Tokens are the UIDs of the Secrets in the cluster that our tokens are bound to; nil if they could not
	// be read.
	Tokens sets.Set[types.UID]
}

// Known reports whether the API server of the cluster answers, and the state of the cluster could be read from it.
func (s *State) Known() bool { return s.Connected && s.UnreadSince.IsZero() }

// Kubernetes returns the Kubernetes version that all API servers run, with the hash of releases that have one. It
// returns "" while they are being updated one after the other, or if it is unknown.
//
// ClusterOperator kube-apiserver has the version when all API servers run it, but no hash. The API server that answers
// has the hash. Its answer may be older, or newer during an update. So the version with the hash counts if it is the same.
// At rest the kubelets of the control plane have the version, too. They show that an operator reports a wrong version:
// OpenShift builds the version from a label that some branches did not update.
func (s *State) Kubernetes() string {
	_, err := versions.ParseKubernetes(s.KubernetesVersion)
	reported, _ := versions.ParseKubernetes(s.APIServersVersion)
	kubelet := func(version string) string {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.ControlPlane && versions.SameKubernetes(n.KubeletVersion, version) {
				return n.KubeletVersion
			}
		}
		return ""
	}
	switch same := versions.SameKubernetes(s.APIServersVersion, s.KubernetesVersion); {
	case same, err == nil && s.Upgrading == "" && reported.Major == 0 && s.OpenShiftVersion != "" && s.UnreadSince.IsZero():
		return s.KubernetesVersion
	case reported.Major == 0:
		return ""
	case kubelet(s.APIServersVersion) != "":
		return kubelet(s.APIServersVersion)
	case s.Upgrading == "" && kubelet(s.KubernetesVersion) != "":
		return s.KubernetesVersion
	}
	return "v" + reported.String()
}

// EtcdOperator is the report of ClusterOperator etcd on the members as a whole. The zero value was not read.
type EtcdOperator struct {
	Known, Available, Progressing bool
	// DegradedSince is zero while the operator is not degraded. Degraded is its message, bounded.
	DegradedSince time.Time
	Degraded      string
}

// Settled reports whether the operator reports that all members serve, and that none is added, removed or
// restarted.
func (o EtcdOperator) Settled() bool {
	return o.Known && o.Available && !o.Progressing && o.DegradedSince.IsZero()
}

// Identity identifies an installed cluster on any hub.
type Identity struct {
	// ClusterID is a UUID, InfraID the name of its infrastructure.
	ClusterID, InfraID string
}

// Node holds the relevant data of a Node.
type Node struct {
	Name       string
	UID        types.UID
	ProviderID string
	// HostUID is the UID of the BareMetalHost that it runs on, by its label.
	HostUID string
	// ControlPlane reports whether its labels make it a Node of the control plane, arbiters included.
	ControlPlane bool
	// Config is the name of its rendered machine configuration.
	Config string
	// KubeletVersion is the Kubernetes version that its kubelet reports, as v1.32.7 or v1.29.6+aba1e8d; "" if it
	// is not a version.
	KubeletVersion string
	// Reconfigured is true for a control-plane Node while the machine config operator changes its
	// configuration: its host restarts.
	Reconfigured bool
}

// controlPlanePools are the MachineConfigPools of the control plane, which an upgrade waits for.
var controlPlanePools = sets.New("master", "arbiter")

// Pool holds the relevant data of a MachineConfigPool.
type Pool struct {
	Name   string
	Paused bool
	// Degraded is why it is degraded, for messages; "" if it is not.
	Degraded string
	// Behind is true while not all of its Nodes have the desired configuration.
	Behind bool
	// PausedUntil is the Kubernetes version until which this provider pauses the pool, PausedSince the start of the pause. They
	// are zero if this provider does not pause the pool.
	PausedUntil string
	PausedSince time.Time
}

// ControlPlane reports whether the pool belongs to the control plane.
func (p Pool) ControlPlane() bool { return controlPlanePools.Has(p.Name) }

// FailureKind is the kind of a Failure, for decisions.
type FailureKind string

// The kinds of failures.
const (
	// KubeconfigRefused is a kubeconfig that is not used, because it contains more than data.
	KubeconfigRefused FailureKind = "KubeconfigRefused"
	// Unauthorized are credentials that the cluster does not accept, or no longer.
	Unauthorized FailureKind = "Unauthorized"
	// Untrusted is a certificate of the API server that the kubeconfig does not trust.
	Untrusted FailureKind = "Untrusted"
	// Unreachable is any other failure.
	Unreachable FailureKind = "Unreachable"
)

// Failure is why there is no connection to a cluster.
type Failure struct {
	Kind FailureKind
	// Message describes it in our own words for messages: the response of a server must not reach everyone
	// who reads conditions.
	Message string
	// Silent is true if no server answered at all: no connection was accepted, or no response arrived in
	// time.
	Silent bool
	// KubeconfigVersion is the resource version of the Secret that was used.
	KubeconfigVersion string
}
