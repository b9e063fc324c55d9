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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// memberStatus is the status that one member reports.
type memberStatus struct {
	// key is the ID of the etcd cluster, and id that of the member. leader is the ID of the leader in a term, or
	// zero.
	key, id, leader, term uint64
	// serves is true if a read that needs quorum succeeded. problem describes why the member is not healthy.
	serves  bool
	problem string
	// alarms are the alarms that the member reports. All members report the same alarms, which are not about the
	// reporting member.
	alarms []workload.EtcdAlarm
	// members are the members that this member knows.
	members []*etcdserverpb.Member
}

// closeTime is how long a member may take to close its connection, and to report why it did not respond.
const closeTime = time.Second

// reply is the result of querying a member.
type reply struct {
	found *memberStatus
	err   error
}

// queryMembers queries all members concurrently, each through its own Pod, so that an unreachable member does
// not block others. Members that do not respond, or block their client, are omitted.
func queryMembers(ctx context.Context, credentials *tls.Config, forward forward, pods []corev1.Pod) []memberStatus {
	collectCtx, cancel := context.WithTimeout(ctx, memberTimeout+closeTime)
	defer cancel()
	replies := make([]chan reply, len(pods))
	for i := range pods {
		replies[i] = make(chan reply, 1)
		go func() {
			queryCtx, cancel := context.WithTimeout(collectCtx, memberTimeout)
			defer cancel()
			found, err := queryMember(queryCtx, credentials, forward, client.ObjectKeyFromObject(&pods[i]))
			replies[i] <- reply{found, err}
		}()
	}
	var statuses []memberStatus
	for i := range pods {
		got := awaitReply(collectCtx, replies[i])
		if got.err != nil {
			ctrl.LoggerFrom(ctx).V(4).Info("An etcd member does not answer", "Pod", pods[i].Name, "reason", got.err.Error())
			continue
		}
		statuses = append(statuses, *got.found)
	}
	return statuses
}

// awaitReply waits for a reply until ctx ends. A reply that has arrived by then counts.
func awaitReply(ctx context.Context, replies <-chan reply) reply {
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

// queryMember queries the member in a Pod. Its list of members is its own, with or without quorum. A read
// that needs quorum proves that the member serves.
func queryMember(ctx context.Context, credentials *tls.Config, forward forward, pod client.ObjectKey) (*memberStatus, error) {
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
	a := &memberStatus{key: status.Header.ClusterId, id: status.Header.MemberId, leader: status.Leader, term: status.RaftTerm}
	if status.IsLearner {
		// A learner does not serve the list of members (etcd, server/etcdserver/api/v3rpc/util.go:
		// isRPCSupportedForLearner).
		return a, nil
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

// maintenanceOf returns a maintenance client that uses the existing connection. The default one would open
// another.
func maintenanceOf(member *clientv3.Client) clientv3.Maintenance {
	return clientv3.NewMaintenanceFromMaintenanceClient(clientv3.RetryMaintenanceClient(member, member.ActiveConnection()), member)
}

// alarmsOf queries the alarms, which the status only describes as text. The query needs quorum. Therefore
// it is sent only if the status reports a problem.
func alarmsOf(ctx context.Context, maintenance clientv3.Maintenance) ([]workload.EtcdAlarm, error) {
	list, err := maintenance.AlarmList(ctx)
	if err != nil {
		return nil, err
	}
	var alarms []workload.EtcdAlarm
	for _, a := range list.Alarms {
		alarms = append(alarms, workload.EtcdAlarm{Kind: a.Alarm.String(), Member: a.MemberID})
	}
	return alarms, nil
}

// alarmsIn returns the alarms that any member reports.
func alarmsIn(statuses []memberStatus) []workload.EtcdAlarm {
	var alarms []workload.EtcdAlarm
	for _, a := range statuses {
		alarms = append(alarms, a.alarms...)
	}
	slices.SortFunc(alarms, func(a, b workload.EtcdAlarm) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Member, b.Member))
	})
	return slices.Compact(alarms)
}

// membersOf merges the lists of members. Serving members have authority over membership and leadership.
// Without any, all others except learners count. doubt describes why the lists are not reliable.
func membersOf(statuses []memberStatus) (members []workload.EtcdMember, doubt string) {
	statusByID := map[uint64]memberStatus{}
	for _, a := range statuses {
		statusByID[a.id] = a
	}
	statuses = slices.DeleteFunc(slices.Clone(statuses), func(a memberStatus) bool { return a.members == nil })
	if serving := slices.DeleteFunc(slices.Clone(statuses), func(a memberStatus) bool { return !a.serves }); len(serving) > 0 {
		statuses = serving
	}
	if len(statuses) == 0 {
		return nil, ""
	}
	first := statuses[0]
	for _, a := range statuses {
		if a.key != first.key || !slices.Equal(identitiesOf(a.members), identitiesOf(first.members)) {
			return nil, "the etcd members do not agree on the list of members: waiting until they do"
		}
	}
	leader := leaderOf(statuses)
	for _, m := range first.members {
		member := workload.EtcdMember{
			ID: m.ID, Name: m.Name, Hosts: hostsOf(m.PeerURLs), Learner: m.IsLearner, Leader: leader != 0 && m.ID == leader,
		}
		if a, found := statusByID[m.ID]; found {
			member.Problem = a.problem
		} else {
			member.Problem = "does not answer"
		}
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b workload.EtcdMember) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return members, ""
}

// leaderOf returns the leader in the latest term, or zero. Some members may not know that term yet.
func leaderOf(statuses []memberStatus) uint64 {
	latest := slices.MaxFunc(statuses, func(a, b memberStatus) int { return cmp.Compare(a.term, b.term) })
	for _, a := range statuses {
		if a.term == latest.term && a.leader != latest.leader {
			return 0
		}
	}
	return latest.leader
}

// identity identifies a member for decisions. A promoted learner has another identity.
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

// hostsOf returns the hosts in URLs.
func hostsOf(addresses []string) []string {
	var hosts []string
	for _, address := range addresses {
		if parsed, err := url.Parse(address); err == nil {
			hosts = append(hosts, parsed.Hostname())
		}
	}
	return hosts
}
