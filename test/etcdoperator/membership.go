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
)

// controlPlaneSize is with how many members of Nodes the bootstrap's is not needed any more.
const controlPlaneSize = 3

var errNoMember = errors.New("no etcd member answers")

// anyMember calls members until one answers.
func (o *Operator) anyMember(ctx context.Context, call func(context.Context, *clientv3.Client) error) error {
	result := errNoMember
	for name, url := range o.options.Etcd.Serving() {
		c, err := o.client(url)
		if err != nil {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, answer)
		err = call(bounded, c)
		cancel()
		if err == nil {
			return nil
		}
		result = fmt.Errorf("etcd member %s: %w", name, err)
	}
	return result
}

// lookAtMembers lists the members, which takes a quorum, and asks each for its health.
func (o *Operator) lookAtMembers(ctx context.Context, v *view) error {
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
	o.options.Etcd.Vote(v.voting())
	var asking sync.WaitGroup
	for i := range v.members {
		m := &v.members[i]
		if m.Name == "" || !o.options.Etcd.Running(m.Name) || len(m.ClientURLs) == 0 {
			continue
		}
		c, err := o.client(m.ClientURLs[0])
		if err != nil {
			return err
		}
		asking.Go(func() { m.healthy = healthy(ctx, c, m.IsLearner) })
	}
	asking.Wait()
	return nil
}

// healthy asks as OpenShift does: for a key, through the member. A learner answers for its own state alone.
func healthy(ctx context.Context, c *clientv3.Client, learner bool) bool {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	if learner {
		_, err := c.Status(ctx, c.Endpoints()[0])
		return err == nil
	}
	_, err := c.Get(ctx, "health")
	return err == nil
}

// scaleUp takes the etcd one step towards one member for each node.
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

// candidate reports whether a node is to become a member: its etcd container runs, and waits to be one.
func (o *Operator) candidate(v *view, node *corev1.Node) bool {
	return node.DeletionTimestamp == nil && internalIP(node) != "" && v.memberAt(internalIP(node)) == nil &&
		o.options.Etcd.On(node.Name) && !o.options.Etcd.Placed(node.Name)
}

func (o *Operator) add(ctx context.Context, node *corev1.Node) error {
	err := o.anyMember(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberAddAsLearner(ctx, []string{members.PeerURL(internalIP(node))})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot add the member of %s: %w", node.Name, err)
	}
	o.options.Log.Info("added a learner", "node", node.Name)
	return nil
}

// promote starts a learner, and lets it vote as soon as etcd finds that it has caught up.
func (o *Operator) promote(ctx context.Context, v *view, learner member) error {
	for i := range v.nodes {
		node := &v.nodes[i]
		if !slices.Contains(learner.PeerURLs, members.PeerURL(internalIP(node))) {
			continue
		}
		if o.options.Etcd.On(node.Name) && !o.options.Etcd.Placed(node.Name) {
			return o.place(ctx, v, node)
		}
	}
	if !learner.healthy || o.holds(Promotion) {
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

// place is what the etcd container of a node does when it finds that it is a member. It takes the certificates that are
// there for the name of the node.
func (o *Operator) place(ctx context.Context, v *view, node *corev1.Node) error {
	peers := make([]members.Peer, 0, len(v.members))
	for _, m := range v.members {
		peer := members.Peer{Name: m.Name, URL: m.PeerURLs[0]}
		if peer.URL == members.PeerURL(internalIP(node)) {
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

// removeBootstrap ends the member that the installation began with.
func (o *Operator) removeBootstrap(ctx context.Context, v *view) error {
	i := slices.IndexFunc(v.members, func(m member) bool { return m.Name == members.BootstrapName })
	if i < 0 {
		return nil
	}
	o.makeWay(ctx, v, members.BootstrapName)
	err := o.anyMember(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.MemberRemove(ctx, v.members[i].ID)
		return err
	})
	if err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return fmt.Errorf("cannot remove the bootstrap's member: %w", err)
	}
	o.options.Log.Info("removed the bootstrap's member")
	return o.options.Etcd.Wipe(members.BootstrapName)
}

// makeWay lets another member lead before one ends, as etcd does that is asked to end. Where it does not lead it is
// refused, which is as well.
func (o *Operator) makeWay(ctx context.Context, v *view, name string) {
	i := slices.IndexFunc(v.members, func(m member) bool { return m.Name == name && len(m.ClientURLs) > 0 })
	j := slices.IndexFunc(v.voters(), func(m member) bool { return m.Name != name && m.healthy })
	if i < 0 || j < 0 {
		return
	}
	c, err := o.client(v.members[i].ClientURLs[0])
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	_, _ = c.MoveLeader(ctx, v.voters()[j].ID)
}

// restart starts containers again that ended, as kubelets do, which need no API for that.
func (o *Operator) restart(ctx context.Context) {
	for _, name := range o.due(o.options.Etcd.Ended()) {
		if err := o.options.Etcd.Restart(ctx, name); err != nil {
			o.options.Log.Error(err, "cannot restart etcd", "node", name)
		}
	}
}

// due returns the nodes whose containers, which ended, are started again now. One that others removed is left to
// discardRemoved. A node that is not among those that ended was installed again, or is off: what ends there later has
// ended then.
func (o *Operator) due(ended []string) (due []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.ended, func(name string, _ time.Time) bool { return !slices.Contains(ended, name) })
	for _, name := range ended {
		if o.ended[name].IsZero() {
			o.options.Log.Info("etcd ended", "node", name)
			o.ended[name] = time.Now()
		}
		if o.removed[name] || time.Since(o.ended[name]) < o.options.Restart {
			continue
		}
		delete(o.ended, name)
		due = append(due, name)
	}
	return due
}

// discardRemoved takes the data of members away that others removed: a container that is started again with such data
// puts it aside, and waits to be a member.
func (o *Operator) discardRemoved(_ context.Context, v *view) error {
	for i := range v.nodes {
		node := &v.nodes[i]
		if !o.discards(node.Name, o.options.Etcd.Placed(node.Name) && v.memberAt(internalIP(node)) == nil) {
			continue
		}
		if err := o.options.Etcd.Discard(node.Name); err != nil {
			return err
		}
	}
	return nil
}

// discards reports whether the container of a node is started again now that ended because others removed its member.
func (o *Operator) discards(name string, removed bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removed[name] = removed
	if !removed || o.ended[name].IsZero() || time.Since(o.ended[name]) < o.options.Restart {
		return false
	}
	delete(o.ended, name)
	return true
}
