package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// The clock of the manager may step, and those of others, whose times it reads, be off by hours. What is told may
// depend on that, and when a token is renewed: nothing else that is done does, and nobody is asked over and over.
func TestNothingIsDoneBecauseTheClockSteps(t *testing.T) {
	for situation, begin := range lastingSituations {
		for _, by := range []time.Duration{-400 * 24 * time.Hour, -26 * time.Hour, -time.Hour, time.Hour, 26 * time.Hour, 400 * 24 * time.Hour} {
			t.Run(situation+" "+by.String(), func(t *testing.T) {
				h := begin(t).withTime()
				h.settle()
				before := h.exist()
				now := time.Now().Add(by)
				h.clock.now = func() time.Time { return now }
				for n := range 5 {
					h.writes = nil
					h.Expect(h.reconcile().RequeueAfter).To(Or(BeZero(), BeNumerically(">=", time.Second)), "when it looks again")
					if n > 1 { // what was written is seen by the next
						h.Expect(h.writes).To(BeEmpty(), "what a step changes is written once")
					}
				}
				h.Expect(h.exist()).To(Equal(before))
			})
		}
	}
}

// lastingSituations are those in which a cluster may be for long.
var lastingSituations = map[string]func(*testing.T) *hub{
	"waits for hosts": func(t *testing.T) *hub { t.Helper(); return newHub(t, world(nil)...) },
	"installs": func(t *testing.T) *hub {
		t.Helper()
		h := newHub(t, world(nil)...)
		h.reconcile()
		h.setState("installing", "", 40)
		return h
	},
	"is installed": newInstalledHub,
	"a Machine waits for etcd": func(t *testing.T) *hub {
		t.Helper()
		h := newInstalledHub(t)
		h.etcds.Members[1].Problem = "it does not answer"
		h.deleteMachine(2)
		return h
	},
}

// A pause outlasts each timer there is: tokens to renew, looks at etcd, statuses that are held back.
func TestNothingIsDoneWhilePausedHoweverLongThatIs(t *testing.T) {
	for situation, begin := range lastingSituations {
		t.Run(situation, func(t *testing.T) {
			h := begin(t).withTime()
			h.settle()
			c := &clusterv1.Cluster{}
			h.get("cluster1", c)
			c.Spec.Paused = ptr.To(true)
			h.Expect(h.Update(t.Context(), c)).To(Succeed())
			h.reconcile()
			h.Expect(conditions.IsTrue(h.controlPlane(), clusterv1.PausedCondition)).To(BeTrue())
			looks, paused := h.etcds.inspections, time.Now()
			h.writes = nil
			for _, since := range []time.Duration{time.Second, reconcile.DeferralPeriod, time.Minute, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
				h.clock.now = func() time.Time { return paused.Add(since) }
				h.Expect(h.reconcile().RequeueAfter).To(BeZero(), "after %s", since)
			}
			h.Expect(h.writes).To(BeEmpty())
			h.Expect(h.etcds.inspections).To(Equal(looks))
		})
	}
}

// exist are the objects whose coming or going does something to hosts, and whether they are being deleted.
func (h *hub) exist() map[string]bool {
	h.t.Helper()
	found := map[string]bool{}
	for kind, list := range map[string]client.ObjectList{
		"Machine ": &clusterv1.MachineList{}, "ClusterDeployment ": &hivev1.ClusterDeploymentList{}, "AgentClusterInstall ": &hiveext.AgentClusterInstallList{}, "Secret ": &corev1.SecretList{},
	} {
		h.Expect(h.List(h.t.Context(), list)).To(Succeed())
		h.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object) //nolint:forcetypeassert // all are
			found[kind+object.GetName()+" "+string(object.GetUID())] = object.GetDeletionTimestamp() != nil
			return nil
		})).To(Succeed())
	}
	return found
}
