package assistedsim

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// TestNodeOfAgentWithSkipSpokeCleanup uses a cluster that does not respond: each attempt to remove a Node
// returns an error.
func TestNodeOfAgentWithSkipSpokeCleanup(t *testing.T) {
	cluster := types.NamespacedName{Namespace: "ns", Name: "c"}
	for name, annotations := range map[string]map[string]string{
		"no annotation: its Node is removed":     nil,
		"annotation: its cluster is not queried": {skipSpokeCleanup: ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, skips := NewWithT(t), newSimulator(t, Options{}), annotations != nil
			scheme, err := Scheme()
			g.Expect(err).NotTo(HaveOccurred())
			now := metav1.Now()
			agent := &Agent{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "h", Annotations: annotations, Finalizers: []string{agentFinalizer}, DeletionTimestamp: &now,
			}}
			deployment := &hivev1.ClusterDeployment{ObjectMeta: objectMeta(cluster)}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(agent, deployment).WithStatusSubresource(agent).Build()
			s.client, s.live = hub, hub
			ie := &infraEnv{key: types.NamespacedName{Namespace: "ns", Name: "ie"}}
			h := &host{
				key: types.NamespacedName{Namespace: "ns", Name: "h"}, infraEnv: ie, cluster: cluster,
				state: models.HostStatusInstalled, stage: models.HostStageDone,
			}
			h.stages = stagesOf(models.HostRoleMaster, false, false)
			s.infraEnvs[ie.key], s.hosts[h.key] = ie, h

			h.deprovision = &AgentDeprovisionInfo{ClusterNamespace: "ns", ClusterName: "c", NodeName: "n"}
			view := *h
			s.removeFormerNode(t.Context(), agent, &view)
			g.Expect(h.deprovision).To(BeNil(), "one attempt suffices")
			tried := h.cleanup != ""
			g.Expect(tried).NotTo(Equal(skips), "unbound: %s", h.cleanup)

			err = s.releaseAgent(t.Context(), agent)
			g.Expect(err == nil).To(Equal(skips), "deleted: %v", err)
			g.Expect(s.hosts[h.key] == nil).To(Equal(skips))
			if !skips {
				g.Expect(agentConditionsOf(agent)).To(ContainElement("Cleanup"))
			}
		})
	}
}

// TestForgottenHost registers a host while its previous Agent is being deleted and the removal of its Node
// fails. The previous Agent is released, and no Agent is created before the host registers again. The real
// service behaves so (April 2025).
func TestForgottenHost(t *testing.T) {
	g, s := NewWithT(t), newSimulator(t, Options{})
	scheme, err := Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	now, key := metav1.Now(), types.NamespacedName{Namespace: "ns", Name: "h"}
	former := &Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "h", Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: "former"},
		Finalizers: []string{agentFinalizer}, DeletionTimestamp: &now,
	}}
	former.Status.Conditions = []conditionsv1.Condition{{Type: aiv1beta1.CleanupCondition, Status: corev1.ConditionFalse}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(former).WithStatusSubresource(former).Build()
	s.client, s.live = hub, hub
	env := &infraEnv{key: types.NamespacedName{Namespace: "ns", Name: "env"}, id: "1"}
	s.infraEnvs[env.key] = env
	s.hosts[key] = &host{
		key: key, infraEnv: &infraEnv{key: types.NamespacedName{Namespace: "ns", Name: "former"}},
		state: models.HostStatusInstalled,
	}

	guest := hosts.Agent{AgentConfig: hosts.AgentConfig{InfraEnvID: "1"}, HostID: "h"}
	g.Expect(s.Register(t.Context(), guest)).To(Succeed())
	g.Expect(hub.Get(t.Context(), key, &Agent{})).To(MatchError(apierrors.IsNotFound, "gone"))
	_, err = s.reconcileAgent(t.Context(), ctrl.Request{NamespacedName: key})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.hostOf("1", "h")).NotTo(BeNil(), "the host keeps polling")

	g.Expect(s.Register(t.Context(), guest)).To(Succeed())
	agent := &Agent{}
	g.Expect(hub.Get(t.Context(), key, agent)).To(Succeed(), "the restarted host registers")
	g.Expect(agent.Labels).To(HaveKeyWithValue(aiv1beta1.InfraEnvNameLabel, "env"))
	g.Expect(s.hosts[key].forgotten).To(BeFalse())
}
