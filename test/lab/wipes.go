package lab

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// WipedMember is an etcd member whose disk was wiped while it was a voter: the cluster lost a member that its
// quorum counts.
type WipedMember struct {
	Node string
	Time time.Time
	// Unknown is set if no other member was reachable.
	Unknown bool
}

// WipedMembers returns the members of the cluster's etcd that were wiped before their removal. A later cleanup
// would hide such a loss. When a Cluster is deleted, all members are wiped and none is returned.
func (c *Cluster) WipedMembers() []WipedMember {
	if c.workload.wipes == nil {
		return nil
	}
	c.workload.wipes.mu.Lock()
	defer c.workload.wipes.mu.Unlock()
	return slices.Clone(c.workload.wipes.wiped)
}

// wipes checks each wiped disk of a cluster.
type wipes struct {
	hub     client.Client
	cluster types.NamespacedName
	etcd    *members.Cluster

	mu    sync.Mutex
	wiped []WipedMember
}

// witness is the etcd of a cluster that gets notified of wiped disks.
type witness struct {
	*members.Cluster

	life  context.Context //nolint:containedctx // A disk is wiped at a time of its own.
	wipes *wipes
}

// Wipe implements [hosts.Site].
func (w witness) Wipe(node string) error {
	w.wipes.check(w.life, node)
	return w.Cluster.Wipe(node)
}

var errStillVotes = errors.New("the member votes")

// check records a wiped member that is a voter. A member that another member no longer lists was removed, even
// if others lag behind.
func (w *wipes) check(ctx context.Context, node string) {
	address := w.etcd.Address(node)
	if address == "" || w.deleting(ctx) {
		return
	}
	now, unknown := time.Now(), true
	for other, at := range w.etcd.Serving() {
		if other == node {
			continue
		}
		err := callMember(ctx, w.etcd, at, func(ctx context.Context, etcd *clientv3.Client) error {
			return votes(ctx, etcd, members.PeerURL(address))
		})
		switch {
		case err == nil:
			return
		case errors.Is(err, errStillVotes):
			unknown = false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wiped = append(w.wiped, WipedMember{Node: node, Time: now, Unknown: unknown})
}

// votes returns an error if a member lists another as voter. It reads the member's local state, because there
// may be no quorum.
func votes(ctx context.Context, etcd *clientv3.Client, peerURL string) error {
	answer, err := etcd.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return err
	}
	for _, m := range answer.Members {
		if !m.IsLearner && slices.Contains(m.PeerURLs, peerURL) {
			return errStillVotes
		}
	}
	return nil
}

func (w *wipes) deleting(ctx context.Context) bool {
	cluster := &clusterv1.Cluster{}
	err := w.hub.Get(ctx, w.cluster, cluster)
	return apierrors.IsNotFound(err) || err == nil && !cluster.DeletionTimestamp.IsZero()
}

// site returns the network of a cluster's Nodes, if the cluster has its own.
func (l *Lab) site(namespace, name string) hosts.Site {
	w, err := l.workload(types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil || w.wipes == nil {
		return nil
	}
	return witness{Cluster: w.wipes.etcd, life: l.life, wipes: w.wipes}
}
