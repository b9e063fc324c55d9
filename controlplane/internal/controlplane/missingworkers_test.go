package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
)

// An old MachineDeployment that is scaled up lacks Machines from then on, not since its creation.
func TestMissingWorkersCountFromWhenTheyAreMissing(t *testing.T) {
	h := newHub(t, world(nil)...)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	old := clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "d", CreationTimestamp: metav1.NewTime(now.Add(-24 * time.Hour))},
	}
	set := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}
	since := func(missing ...workers.Missing) time.Time {
		h.r.recordMissing(missing, []clusterv1.MachineDeployment{old}, []clusterv1.MachineSet{set})
		if len(missing) == 0 {
			return time.Time{}
		}
		return missing[0].Since
	}
	for _, uid := range []workers.Missing{{UID: "d"}, {UID: "s"}} {
		began := now
		h.Expect(since(uid)).To(Equal(began), "scaled up just now")
		now = now.Add(time.Minute)
		h.Expect(since(uid)).To(Equal(began), "still missing")
		since()
		now = now.Add(time.Minute)
		h.Expect(since(uid)).To(Equal(now), "scaled up again after all existed")
		since()
	}
}
