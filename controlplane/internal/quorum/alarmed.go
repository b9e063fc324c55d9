package quorum

import (
	"fmt"
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// inEtcdPod is the place to run etcdctl.
const inEtcdPod = "in a Pod with the label app=etcd in namespace openshift-etcd of the cluster"

// alarmed blocks on alarms, which take no member down. Members can be added and removed without room for
// data, but a joining member may need data that can no longer be written. If members hold different data, a
// member that is down may be the last one with the right data. Then only the member with the wrong data may
// be removed.
func (v *View) alarmed(own workload.EtcdMember) *decision.Blocker {
	if own.Learner {
		return nil // a learner has no unique data
	}
	for _, a := range v.Alarms {
		var blocker decision.Blocker
		switch {
		case a.Kind == workload.EtcdCorrupt && a.Member == own.ID, a.Kind == workload.EtcdNoSpace && !own.Healthy():
			continue
		case a.Kind == workload.EtcdNoSpace:
			blocker = decision.Wait(
				controlplanev1.EtcdAlarmReason,
				"etcd has the alarm NOSPACE: it is full, and no healthy member is removed. See etcdctl endpoint status and etcdctl alarm list %s. Run "+
					"etcdctl defrag on one member after the other, then etcdctl alarm disarm",
				inEtcdPod,
			)
		case a.Kind == workload.EtcdCorrupt:
			blocker = decision.Wait(
				controlplanev1.EtcdAlarmReason,
				"etcd has the alarm CORRUPT, %s: see etcdctl alarm list %s, and etcdctl alarm disarm when that member is removed. If it "+
					"is unknown which data are right, restore etcd as OpenShift documents it",
				v.corrupt(a),
				inEtcdPod,
			)
		default:
			blocker = decision.Wait(
				controlplanev1.EtcdAlarmReason,
				"etcd has the alarm %s: see etcdctl alarm list %s, and etcdctl alarm disarm when its cause is fixed",
				Shorten(a.Kind),
				inEtcdPod,
			)
		}
		return &blocker
	}
	return nil
}

// corrupt describes which member has other data than the others.
func (v *View) corrupt(a workload.EtcdAlarm) string {
	at := slices.IndexFunc(v.Members, func(m workload.EtcdMember) bool { return m.ID == a.Member })
	switch {
	case a.Member == 0:
		return "its members have different data, and etcd does not know which data are right"
	case at < 0:
		return fmt.Sprintf("about %x, which is no member any more", a.Member)
	}
	return fmt.Sprintf(
		"its member %s has other data than the others. Delete its Machine, which is then handled first and whose host is wiped",
		NameOf(v.Members[at]),
	)
}
