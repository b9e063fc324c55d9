package controlplane

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

func TestPhasesLeaveTheFactsAsTheyAre(t *testing.T) {
	for situation, bring := range map[string]func(h *hub){
		"everything is to be made": func(*hub) {},
		"two more Machines are to be made, and all to be marked": func(h *hub) {
			h.reconcile()
			cp := h.controlPlane()
			cp.Spec.Replicas = ptr.To[int32](5)
			h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
		},
		"its kubeconfig is to be published, and labels to be put back": func(h *hub) {
			h.reconcile()
			h.giveKubeconfig("assisted-service")
			h.setState("installing", hiveext.ClusterInstallationInProgressReason, 30)
			deployment, install := h.registration()
			h.relabelAll(nil, deployment, install)
		},
		"it is to be let go for a move, and its kubeconfig renewed": func(h *hub) {
			h.reconcile()
			h.giveKubeconfig("assisted-service")
			h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
			h.workloads.facts = facts.Workload{Connected: true, OpenShiftVersion: "4.19.3"}
		},
		"it is to be deregistered, and labels to be put back": func(h *hub) {
			h.install()
			h.Expect(h.Delete(h.t.Context(), h.controlPlane())).To(Succeed())
			h.reconcile()
			deployment, install := h.registration()
			h.relabelAll(nil, deployment, install)
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			bring(h)
			s, err := h.r.gather(t.Context(), h.controlPlane())
			h.Expect(err).NotTo(HaveOccurred())
			read, err := json.Marshal(s.Facts)
			h.Expect(err).NotTo(HaveOccurred())
			h.writes = nil
			h.Expect(h.r.advance(t.Context(), s)).To(Succeed())
			h.Expect(h.writes).NotTo(BeEmpty(), "there was something to do")
			h.Expect(json.Marshal(s.Facts)).To(MatchJSON(read))
		})
	}
}
