package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// answer is what one member says.
type answer struct {
	// key is the ID of etcd as a whole, id its own, leader that of the member that leads in a term; zero: none.
	key, id, leader, term uint64
	// serves is true when it answered a read that needs a quorum; problem is, for people, why it is not healthy.
	serves  bool
	problem string
	// alarms are those that it knows. They are the same for all members, and say nothing of the one that tells them.
	alarms []facts.EtcdAlarm
	// members are those that it knows.
	members []*etcdserverpb.Member
}

// partTime is how long one who has been asked has to let go of its connection, and to say why it did not answer.
const partTime = time.Second

// reply is what came of asking a member.
type reply struct {
	said *answer
	err  error
}

// queryMembers asks all members at once, each through its own Pod: one that is away must not keep the others from answering. Those that do not answer are left out, also when
// they hold whoever asks them.
func queryMembers(ctx context.Context, credentials *tls.Config, forward forward, pods []corev1.Pod) []answer {
	awaited, cancel := context.WithTimeout(ctx, memberTime+partTime)
	defer cancel()
	replies := make([]chan reply, len(pods))
	for i := range pods {
		replies[i] = make(chan reply, 1)
		go func() {
			asked, cancel := context.WithTimeout(awaited, memberTime)
			defer cancel()
			said, err := queryMember(asked, credentials, forward, client.ObjectKeyFromObject(&pods[i]))
			replies[i] <- reply{said, err}
		}()
	}
	var answers []answer
	for i := range pods {
		got := await(awaited, replies[i])
		if got.err != nil {
			ctrl.LoggerFrom(ctx).V(4).Info("An etcd member does not answer", "Pod", pods[i].Name, "reason", got.err.Error())
			continue
		}
		answers = append(answers, *got.said)
	}
	return answers
}

// await waits for a reply until the time is over. One that has come counts also then.
func await(ctx context.Context, replies <-chan reply) reply {
	select {
	case got := <-replies:
		return got
	case <-ctx.Done():
	}
	select {
	case got := <-replies:
		return got
	default:
		return reply{err: ctx.Err()}
	}
}

// queryMember asks the member of a Pod. Its list of members is the one that it has, whether or not there is a quorum; that it serves is proven by a read that needs one.
func queryMember(ctx context.Context, credentials *tls.Config, forward forward, pod client.ObjectKey) (*answer, error) {
	member, err := open(ctx, credentials, forward, pod)
	if err != nil {
		return nil, err
	}
	defer func() { _ = member.Close() }()
	maintenance := maintenanceOf(member)
	status, err := maintenance.Status(ctx, member.Endpoints()[0])
	if err != nil {
		return nil, err
	}
	a := &answer{key: status.Header.ClusterId, id: status.Header.MemberId, leader: status.Leader, term: status.RaftTerm}
	if status.IsLearner {
		return a, nil // which serves nothing yet, not even the list of members (etcd, server/etcdserver/api/v3rpc/util.go: isRPCSupportedForLearner)
	}
	list, err := member.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil, err
	}
	a.members = list.Members
	_, err = member.Get(ctx, "health")
	a.serves = err == nil || errors.Is(err, rpctypes.ErrPermissionDenied)
	if a.serves && len(status.Errors) > 0 {
		a.alarms, err = alarmsOf(ctx, maintenance)
		a.serves = err == nil
	}
	if !a.serves {
		a.problem = "does not serve"
	}
	return a, nil
}

// maintenanceOf asks a member how it is by the connection that there is. The client itself would make another for that.
func maintenanceOf(member *clientv3.Client) clientv3.Maintenance {
	return clientv3.NewMaintenanceFromMaintenanceClient(clientv3.RetryMaintenanceClient(member, member.ActiveConnection()), member)
}

// alarmsOf asks for what the status has in words. It goes through the quorum, therefore it is asked only where there is something.
func alarmsOf(ctx context.Context, maintenance clientv3.Maintenance) ([]facts.EtcdAlarm, error) {
	list, err := maintenance.AlarmList(ctx)
	if err != nil {
		return nil, err
	}
	var alarms []facts.EtcdAlarm
	for _, a := range list.Alarms {
		alarms = append(alarms, facts.EtcdAlarm{Kind: a.Alarm.String(), Member: a.MemberID})
	}
	return alarms, nil
}

// alarmsIn are those that anybody knows of.
func alarmsIn(answers []answer) []facts.EtcdAlarm {
	var alarms []facts.EtcdAlarm
	for _, a := range answers {
		alarms = append(alarms, a.alarms...)
	}
	slices.SortFunc(alarms, func(a, b facts.EtcdAlarm) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Member, b.Member))
	})
	return slices.Compact(alarms)
}

// membersOf puts together what the members say. Who serves knows who is a member, and who leads; as long as nobody does, the others are asked, but for learners. doubt is why what they
// say cannot be relied on.
func membersOf(answers []answer) (members []facts.EtcdMember, doubt string) {
	answered := map[uint64]answer{}
	for _, a := range answers {
		answered[a.id] = a
	}
	answers = slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.members == nil })
	if serving := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return !a.serves }); len(serving) > 0 {
		answers = serving
	}
	if len(answers) == 0 {
		return nil, ""
	}
	first := answers[0]
	for _, a := range answers {
		if a.key != first.key || !slices.Equal(identitiesOf(a.members), identitiesOf(first.members)) {
			return nil, "the etcd members do not agree on who is a member: waiting until they do"
		}
	}
	leader := leaderOf(answers)
	for _, m := range first.members {
		member := facts.EtcdMember{ID: m.ID, Name: m.Name, Hosts: hostsOf(m.PeerURLs), Learner: m.IsLearner, Leader: leader != 0 && m.ID == leader}
		if a, found := answered[m.ID]; found {
			member.Problem = a.problem
		} else {
			member.Problem = "does not answer"
		}
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b facts.EtcdMember) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return members, ""
}

// leaderOf is the leader in the latest term, of which not all may have heard; zero: there is none.
func leaderOf(answers []answer) uint64 {
	latest := slices.MaxFunc(answers, func(a, b answer) int { return cmp.Compare(a.term, b.term) })
	for _, a := range answers {
		if a.term == latest.term && a.leader != latest.leader {
			return 0
		}
	}
	return latest.leader
}

// identity of a member: a learner that was promoted is another for those who decide.
type identity struct {
	id      uint64
	name    string
	learner bool
}

func identitiesOf(members []*etcdserverpb.Member) []identity {
	var ids []identity
	for _, m := range members {
		ids = append(ids, identity{m.ID, m.Name, m.IsLearner})
	}
	slices.SortFunc(ids, func(a, b identity) int { return cmp.Compare(a.id, b.id) })
	return ids
}

// hostsOf are the hosts of addresses.
func hostsOf(addresses []string) []string {
	var hosts []string
	for _, address := range addresses {
		if parsed, err := url.Parse(address); err == nil {
			hosts = append(hosts, parsed.Hostname())
		}
	}
	return hosts
}
