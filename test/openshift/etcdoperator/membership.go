package etcdoperator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// controlPlaneSize is the number of Node members from which the member of the bootstrap host is removed.
const controlPlaneSize = 3

var errNoMember = errors.New("no etcd member answers")

// anyMember calls one member after the other until a call succeeds.
func (o *Operator) anyMember(ctx context.Context, call func(context.Context, *clientv3.Client) error) error {
	result := errNoMember
	for name, url := range o.options.Etcd.Serving() {
		c, err := o.client(url)
		if err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, answerTimeout)
		err = call(bounded, c)
		cancel()
		if err == nil {
			return nil
		}
		result = fmt.Errorf("etcd member %s: %w", name, err)
	}
	return result
}

// gatherMembers lists the members, which requires a quorum, and queries the health of each.
func (o *Operator) gatherMembers(ctx context.Context, v *view) error {
	var list *clientv3.MemberListResponse
	err := o.anyMember(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
		list, err = c.MemberList(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot list the members of etcd: %w", err)
	}
	for _, m := range list.Members {
		v.members = append(v.members, member{Member: m})
	}
	slices.SortFunc(v.members, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
	o.forgetClients(v.members)
	o.options.Etcd.Vote(v.voterNames())
	var queries sync.WaitGroup
	for i := range v.members {
		m := &v.members[i]
		if m.Name == "" || !o.options.Etcd.Running(m.Name) || len(m.ClientURLs) == 0 {
			continue
		}
		c, err := o.client(m.ClientURLs[0])
		if err != nil {
			return err
		}
		queries.Go(func() { m.healthy = healthy(ctx, c, m.IsLearner) })
	}
	queries.Wait()
	return nil
}

// healthy reads a key through a member, as OpenShift does. A learner answers only queries of its status.
func healthy(ctx context.Context, c *clientv3.Client, learner bool) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if learner {
		_, err := c.Status(ctx, c.Endpoints()[0])
		return err == nil
	}
	_, err := c.Get(ctx, "health")
	return err == nil
}

// scaleUp makes one step towards one voter for each Node.
func (o *Operator) scaleUp(ctx context.Context, v *view) error {
	if len(v.unhealthy()) > 0 {
		return nil
	}
	if i := slices.IndexFunc(v.members, func(m member) bool { return m.IsLearner }); i >= 0 {
		return o.promote(ctx, v, v.members[i])
	}
	if len(v.voters()) >= controlPlaneSize && len(v.voters()) < len(v.members) {
		return o.removeBootstrap(ctx, v)
	}
	for i := range v.nodes {
		if node := &v.nodes[i]; o.candidate(v, node) {
			return o.add(ctx, node)
		}
	}
	return nil
}

// candidate reports whether a Node becomes a member: its etcd container runs, and waits for its membership.
func (o *Operator) candidate(v *view, node *corev1.Node) bool {
	return node.DeletionTimestamp == nil && openshift.InternalIP(node) != "" && v.memberAt(openshift.InternalIP(node)) == nil &&
		o.options.Etcd.On(node.Name) && !o.options.Etcd.Placed(node.Name)
}

func (o *Operator) add(ctx context.Context, node *corev1.Node) error {
	err := o.anyMember(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberAddAsLearner(ctx, []string{members.PeerURL(openshift.InternalIP(node))})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot add the member of %s: %w", node.Name, err)
	}
	o.options.Log.Info("added a learner", "node", node.Name)
	return nil
}

// promote starts a learner, and promotes it as soon as etcd accepts that it has caught up.
func (o *Operator) promote(ctx context.Context, v *view, learner member) error {
	for i := range v.nodes {
		node := &v.nodes[i]
		if !slices.Contains(learner.PeerURLs, members.PeerURL(openshift.InternalIP(node))) {
			continue
		}
		if o.options.Etcd.On(node.Name) && !o.options.Etcd.Placed(node.Name) {
			return o.place(ctx, v, node)
		}
	}
	if !learner.healthy || o.blocks(Promotion) {
		return nil
	}
	err := o.anyMember(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberPromote(ctx, learner.ID)
		return err
	})
	if errors.Is(err, rpctypes.ErrMemberLearnerNotReady) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot promote %s: %w", learner.Name, err)
	}
	o.options.Log.Info("promoted a learner", "node", learner.Name)
	return nil
}

// place starts the member of a Node, as its etcd container does. The member uses the certificates in the Secrets of the
// Node's name, which may be older than the Node.
func (o *Operator) place(ctx context.Context, v *view, node *corev1.Node) error {
	peers := make([]members.Peer, 0, len(v.members))
	for _, m := range v.members {
		peer := members.Peer{Name: m.Name, URL: m.PeerURLs[0]}
		if peer.URL == members.PeerURL(openshift.InternalIP(node)) {
			peer.Name = node.Name
		}
		peers = append(peers, peer)
	}
	serving, peer := v.secrets[servingPrefix+node.Name], v.secrets[peerPrefix+node.Name]
	return o.options.Etcd.Place(ctx, node.Name, credentialsOf(serving), credentialsOf(peer), peers)
}

func credentialsOf(secret *corev1.Secret) members.Credentials {
	return members.Credentials{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}

// removeBootstrap removes the member of the bootstrap host.
func (o *Operator) removeBootstrap(ctx context.Context, v *view) error {
	i := slices.IndexFunc(v.members, func(m member) bool { return m.Name == members.BootstrapName })
	if i < 0 {
		return nil
	}
	o.moveLeader(ctx, v, members.BootstrapName)
	err := o.anyMember(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberRemove(ctx, v.members[i].ID)
		return err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return fmt.Errorf("cannot remove the member of the bootstrap host: %w", err)
	}
	o.options.Log.Info("removed the member of the bootstrap host")
	return o.options.Etcd.Wipe(members.BootstrapName)
}

// moveLeader makes another member the leader before a member stops, as etcd does on SIGTERM. A member that is not the
// leader refuses, which is ignored.
func (o *Operator) moveLeader(ctx context.Context, v *view, name string) {
	i := slices.IndexFunc(v.members, func(m member) bool { return m.Name == name && len(m.ClientURLs) > 0 })
	j := slices.IndexFunc(v.voters(), func(m member) bool { return m.Name != name && m.healthy })
	if i < 0 || j < 0 {
		return
	}
	c, err := o.client(v.members[i].ClientURLs[0])
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, _ = c.MoveLeader(ctx, v.voters()[j].ID)
}

// restart restarts containers that exited, as kubelets do.
func (o *Operator) restart(ctx context.Context) {
	for _, name := range o.due(o.options.Etcd.Ended()) {
		if err := o.options.Etcd.Restart(ctx, name); err != nil {
			o.options.Log.Error(err, "cannot restart etcd", "node", name)
		}
	}
}

// due returns the Nodes whose exited containers are restarted now. discardRemoved handles the containers of removed
// members. A Node without exited container was installed again or is off, so its next exit counts from the beginning.
func (o *Operator) due(exited []string) (due []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.exited, func(name string, _ time.Time) bool { return !slices.Contains(exited, name) })
	for _, name := range exited {
		if o.exited[name].IsZero() {
			o.options.Log.Info("etcd exited", "node", name)
			o.exited[name] = time.Now()
		}
		if o.removed[name] || time.Since(o.exited[name]) < o.options.Restart {
			continue
		}
		delete(o.exited, name)
		due = append(due, name)
	}
	return due
}

// discardRemoved discards the data of members that other clients removed, as the restarted container of such a member
// does. Then the container waits for its membership.
func (o *Operator) discardRemoved(_ context.Context, v *view) error {
	for i := range v.nodes {
		node := &v.nodes[i]
		if !o.discards(node.Name, o.options.Etcd.Placed(node.Name) && v.memberAt(openshift.InternalIP(node)) == nil) {
			continue
		}
		if err := o.options.Etcd.Discard(node.Name); err != nil {
			return err
		}
	}
	return nil
}

// discards reports whether the container of a Node is restarted now that exited after the removal of its member.
func (o *Operator) discards(name string, removed bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removed[name] = removed
	if !removed || o.exited[name].IsZero() || time.Since(o.exited[name]) < o.options.Restart {
		return false
	}
	delete(o.exited, name)
	return true
}
