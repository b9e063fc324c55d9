package removal

import (
	"fmt"
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// inEtcdPod is where etcdctl is.
const inEtcdPod = "in a Pod with the label app=etcd in namespace openshift-etcd of the cluster"

// alarmed is about alarms, which take nobody down. Without room for data members come and go all the same, but whoever
// joins may need what is not written any more. Where members hold different data, one that is down may be the last with
// the right ones: then only the one goes that is known to have others.
func (v *view) alarmed(own facts.EtcdMember) *decision.Blocker {
	if own.Learner {
		return nil // it has nothing that others have not
	}
	for _, a := range v.Alarms {
		var blocker decision.Blocker
		switch {
		case a.Kind == facts.EtcdCorrupt && a.Member == own.ID, a.Kind == facts.EtcdNoSpace && !own.Healthy():
			continue
		case a.Kind == facts.EtcdNoSpace:
			blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "etcd has the alarm NOSPACE, it is full, and a healthy member is not removed meanwhile: %s, see etcdctl endpoint status and etcdctl alarm list, "+
				"make room with etcdctl defrag, one member after the other, then etcdctl alarm disarm", inEtcdPod)
		case a.Kind == facts.EtcdCorrupt:
			blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "etcd has the alarm CORRUPT, %s: see etcdctl alarm list %s, and etcdctl alarm disarm when that member is gone. If nobody knows which "+
				"data are right, restore etcd as OpenShift documents it", v.corrupt(a), inEtcdPod)
		default:
			blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "etcd has the alarm %s: see etcdctl alarm list %s, and etcdctl alarm disarm when its cause is gone", short(a.Kind), inEtcdPod)
		}
		return &blocker
	}
	return nil
}

// corrupt says which member has other data than the others.
func (v *view) corrupt(a facts.EtcdAlarm) string {
	at := slices.IndexFunc(v.Members, func(m facts.EtcdMember) bool { return m.ID == a.Member })
	switch {
	case a.Member == 0:
		return "its members hold different data, and it does not know which of them has the right ones"
	case at < 0:
		return fmt.Sprintf("about %x, which is no member any more", a.Member)
	}
	return fmt.Sprintf("its member %s holds other data than the others. Delete its Machine, which then comes first and whose host is wiped", nameOf(v.Members[at]))
}
