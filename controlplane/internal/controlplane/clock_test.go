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

// The clock of the manager may jump, and other clocks, whose times it reads, may be off by hours.
// Only messages and the renewal of a token may depend on that. No other action does, and no server is polled
// without pause.
func TestClockJumpCausesNoAction(t *testing.T) {
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
					h.Expect(h.reconcile().RequeueAfter).To(Or(BeZero(), BeNumerically(">=", time.Second)), "the next reconcile is not at once")
					if n > 1 { // the next reconcile reads what was written
						h.Expect(h.writes).To(BeEmpty(), "the effect of a jump is written once")
					}
				}
				h.Expect(h.exist()).To(Equal(before))
			})
		}
	}
}

// lastingSituations are situations in which a cluster may stay for a long time.
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

// A pause outlasts each timer: renewals of tokens, inspections of etcd, deferred statuses.
func TestPausedControlPlaneDoesNothingHoweverLongThePause(t *testing.T) {
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
			inspections, paused := h.etcds.inspections, time.Now()
			h.writes = nil
			for _, since := range []time.Duration{
				time.Second, reconcile.DeferralPeriod, time.Minute, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour,
			} {
				h.clock.now = func() time.Time { return paused.Add(since) }
				h.Expect(h.reconcile().RequeueAfter).To(BeZero(), "after %s", since)
			}
			h.Expect(h.writes).To(BeEmpty())
			h.Expect(h.etcds.inspections).To(Equal(inspections))
		})
	}
}

// exist returns the objects whose creation or deletion affects hosts, and whether they are being deleted.
func (h *hub) exist() map[string]bool {
	h.t.Helper()
	found := map[string]bool{}
	for kind, list := range map[string]client.ObjectList{
		"Machine ":             &clusterv1.MachineList{},
		"ClusterDeployment ":   &hivev1.ClusterDeploymentList{},
		"AgentClusterInstall ": &hiveext.AgentClusterInstallList{},
		"Secret ":              &corev1.SecretList{},
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
