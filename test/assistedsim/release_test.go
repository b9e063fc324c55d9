package assistedsim

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestNodeOfAnAgentThatSkipsTheSpoke is about clusters that do not answer: whoever asks them for the removal of a Node gets an error.
func TestNodeOfAnAgentThatSkipsTheSpoke(t *testing.T) {
	cluster := types.NamespacedName{Namespace: "ns", Name: "c"}
	for name, annotations := range map[string]map[string]string{
		"an Agent that says nothing: its Node is asked for":      nil,
		"an Agent with the annotation: its cluster is not asked": {skipSpokeCleanup: ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, skips := NewWithT(t), newSimulator(t, Options{}), annotations != nil
			scheme, err := Scheme()
			g.Expect(err).NotTo(HaveOccurred())
			now := metav1.Now()
			agent := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "h", Annotations: annotations, Finalizers: []string{agentFinalizer}, DeletionTimestamp: &now,
			}}
			deployment := &hivev1.ClusterDeployment{ObjectMeta: objectMeta(cluster)}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(agent, deployment).WithStatusSubresource(agent).Build()
			s.client, s.live = hub, hub
			ie := &infraEnv{key: types.NamespacedName{Namespace: "ns", Name: "ie"}}
			h := &host{key: types.NamespacedName{Namespace: "ns", Name: "h"}, infraEnv: ie, cluster: cluster, state: models.HostStatusInstalled, stage: models.HostStageDone}
			h.stages = stagesOf(models.HostRoleMaster, false, false)
			s.infraEnvs[ie.key], s.hosts[h.key] = ie, h

			h.deprovision = &aiv1beta1.AgentDeprovisionInfo{ClusterNamespace: "ns", ClusterName: "c", NodeName: "n"}
			view := *h
			s.removeFormerNode(t.Context(), agent, &view)
			g.Expect(h.deprovision).To(BeNil(), "trying once is enough")
			asked := h.cleanup != ""
			g.Expect(asked).NotTo(Equal(skips), "unbound: %s", h.cleanup)

			err = s.releaseAgent(t.Context(), agent)
			g.Expect(err == nil).To(Equal(skips), "deleted: %v", err)
			g.Expect(s.hosts[h.key] == nil).To(Equal(skips))
			if !skips {
				g.Expect(agentConditionsOf(agent)).To(ContainElement("Cleanup"))
			}
		})
	}
}
