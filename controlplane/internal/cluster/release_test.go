package cluster

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

func TestRollout(t *testing.T) {
	condition := func(conditionType configv1.ClusterStatusConditionType, status configv1.ConditionStatus,
		message string,
	) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: conditionType, Status: status, Reason: "Reason", Message: message}
	}
	runs, requested := facts.Update{Version: "4.19.3", Force: true}, facts.Update{Version: "4.20.1", Image: "image", Force: true}
	request := func(v *configv1.ClusterVersion, update facts.Update) {
		v.Spec.DesiredUpdate = &configv1.Update{Version: update.Version, Image: update.Image, Force: update.Force}
	}
	for situation, tc := range map[string]struct {
		change  func(*configv1.ClusterVersion)
		rollout *facts.Rollout
	}{
		"requested release runs": {func(*configv1.ClusterVersion) {}, nil},
		"slow operator": {func(v *configv1.ClusterVersion) {
			v.Status.Conditions = append(v.Status.Conditions, condition("Failing", configv1.ConditionUnknown, "etcd is slow"))
		}, nil},
		"not observed yet": {func(v *configv1.ClusterVersion) { v.Generation = 3 }, &facts.Rollout{Requested: runs, Unseen: true}},
		"verification of a version": {
			func(v *configv1.ClusterVersion) { request(v, requested) },
			&facts.Rollout{Requested: requested, Pending: true},
		},
		"verification of an image": {
			func(v *configv1.ClusterVersion) { request(v, facts.Update{Image: "image"}) },
			&facts.Rollout{Requested: facts.Update{Image: "image"}, Pending: true},
		},
		"running image requested": {func(v *configv1.ClusterVersion) { request(v, facts.Update{Image: "release:4.19.3"}) }, nil},
		"nothing requested":       {func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = nil }, nil},
		"progressing": {func(v *configv1.ClusterVersion) {
			request(v, requested)
			v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.20.1"})
			v.Status.Conditions = append(v.Status.Conditions, condition("Progressing", configv1.ConditionTrue, "Working towards 4.20.1"))
		}, &facts.Rollout{Requested: requested, Progress: "Working towards 4.20.1"}},
		"failing": {func(v *configv1.ClusterVersion) {
			v.Status.Conditions = append(v.Status.Conditions, condition("Failing", configv1.ConditionTrue, "etcd is degraded"))
		}, &facts.Rollout{Requested: runs, Failing: "etcd is degraded"}},
		"refused": {func(v *configv1.ClusterVersion) {
			request(v, requested)
			v.Status.Conditions = append(v.Status.Conditions, condition("ReleaseAccepted", configv1.ConditionFalse, "Preconditions failed"),
				condition("Progressing", configv1.ConditionFalse, "Cluster version is 4.19.3"))
		}, &facts.Rollout{Requested: requested, Pending: true, Refused: "Preconditions failed"}},
		"refused without message": {func(v *configv1.ClusterVersion) {
			request(v, requested)
			v.Status.Conditions = append(v.Status.Conditions, condition("ReleaseAccepted", configv1.ConditionFalse, ""))
		}, &facts.Rollout{Requested: requested, Pending: true, Refused: "Reason"}},
		"ignored": {func(v *configv1.ClusterVersion) {
			v.Status.Conditions = append(v.Status.Conditions, condition("Invalid", configv1.ConditionTrue, "not in availableUpdates"))
		}, &facts.Rollout{Requested: runs, Refused: "not in availableUpdates"}},
	} {
		t.Run(situation, func(t *testing.T) {
			v := clusterVersionOf("4.19.3")
			v.Generation, v.Status.ObservedGeneration = 2, 2
			request(v, runs)
			tc.change(v)
			NewWithT(t).Expect(releaseOf(v).rollout).To(Equal(tc.rollout))
		})
	}
}

// The CRD refuses a longer version or image, and thereby the whole status.
func TestOversizedValuesAreDropped(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 40000)
	v := clusterVersionOf("4.19.3-" + long)
	v.Status.History[0].Image = "registry/" + long
	v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.20.1-" + long})
	v.Status.Conditions = append(v.Status.Conditions, configv1.ClusterOperatorStatusCondition{
		Type:   "Failing",
		Status: configv1.ConditionTrue, Message: long,
	})
	r := releaseOf(v)
	g.Expect([]string{r.completed, r.image, r.upgrading}).To(HaveEach(BeEmpty()))
	g.Expect(len(r.rollout.Failing)).To(BeNumerically("<=", bound.CauseBytes))
	g.Expect(len(unavailable("ClusterOperator etcd", []configv1.ClusterOperatorStatusCondition{{
		Type:   configv1.OperatorAvailable,
		Reason: long,
	}}))).To(BeNumerically("<", 200))
	g.Expect(PoolOf(&machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: long}}).Name).To(BeEmpty())
}

func TestOffersChange(t *testing.T) {
	g := NewWithT(t)
	v := clusterVersionOf("4.19.3")
	seen := []uint64{offersOf(v)}
	g.Expect(seen[0]).To(BeZero())
	for _, change := range []func(){
		func() { v.Status.AvailableUpdates = []configv1.Release{{Version: "4.19.9"}} },
		func() {
			v.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.19.10"}}}
		},
		func() {
			v.Status.ConditionalUpdates[0].Conditions = []metav1.Condition{{Type: "Recommended", Status: "Unknown"}}
		},
		func() { v.Status.ConditionalUpdates[0].Conditions[0].Status = "True" },
		func() {
			v.Status.Conditions = append(v.Status.Conditions, configv1.ClusterOperatorStatusCondition{
				Type:   configv1.OperatorUpgradeable,
				Status: configv1.ConditionFalse, Message: "check the APIs",
			})
		},
		func() {
			v.Status.Conditions = append(v.Status.Conditions, configv1.ClusterOperatorStatusCondition{
				Type:   configv1.RetrievedUpdates,
				Status: configv1.ConditionFalse,
			})
		},
	} {
		change()
		g.Expect(seen).NotTo(ContainElement(offersOf(v)))
		seen = append(seen, offersOf(v))
	}
	v.Status.Conditions = append(v.Status.Conditions, configv1.ClusterOperatorStatusCondition{
		Type:    configv1.OperatorProgressing,
		Message: "1 of 900",
	})
	g.Expect(offersOf(v)).To(Equal(seen[len(seen)-1]), "progress does not change offers")
}

func nodeWith(config string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n0", UID: "n0", Labels: map[string]string{"metal3.io/uuid": "h0"},
			Annotations: map[string]string{CurrentConfigAnnotation: config},
		},
		Spec: corev1.NodeSpec{ProviderID: "metal3://h0"},
	}
}

func configOf(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: machineConfigs.GroupVersion().String(), Kind: machineConfigs.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{releaseVersionAnnotation: version}},
	}
}

func TestNodeReleaseIsReadDuringUpgrade(t *testing.T) {
	h, s := connectedHub(t)
	s.put(configsPath, configOf("old", "4.19.3"))
	s.put(configsPath, configOf("new", "4.20.1"))
	s.put(nodesPath, nodeWith("old"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(facts.Node{
		Name: "n0", UID: "n0", ProviderID: "metal3://h0",
		HostUID: "h0", Config: "old",
	})))
	h.Expect(s.requests()).NotTo(ContainElement(ContainSubstring(configsPath)), "no upgrade runs")

	upgrading := clusterVersionOf("4.19.3")
	upgrading.Status.History = slices.Insert(upgrading.Status.History, 0, configv1.UpdateHistory{
		State:   configv1.PartialUpdate,
		Version: "4.20.1",
	})
	s.put(versionsPath, upgrading)
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.19.3"))))
	s.put(nodesPath, nodeWith("new"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.20.1"))))
	h.Expect(s.countRequests(configsPath + "/new")).To(Equal(1))
	s.put(nodesPath, nodeWith("new"))
	h.Consistently(func() int { return s.countRequests(configsPath + "/new") }, "100ms").Should(Equal(1), "the Node has the newest release")

	s.put(versionsPath, clusterVersionOf("4.20.1"))
	h.Eventually(h.observeChange).Should(And(HaveField("OpenShiftVersion", "4.20.1"), HaveField("Rollout", BeNil())))
	h.Eventually(func() string { return h.Observe(clusterKey).Nodes[0].Release }).Should(BeEmpty(), "releases are not needed any more")
}

// countRequests counts the requests for an object.
func (s *apiServer) countRequests(path string) int {
	return len(slices.DeleteFunc(s.requests(), func(request string) bool { return request != "GET "+path }))
}

// The machine config operator names a configuration by its content. A release with the same content only
// changes the annotation.
func TestReleaseOfUnchangedConfigurationIsReadAgain(t *testing.T) {
	h, s := connectedHub(t)
	s.put(configsPath, configOf("same", "4.19.3"))
	s.put(nodesPath, nodeWith("same"))
	upgrading := clusterVersionOf("4.19.3")
	upgrading.Status.History = slices.Insert(upgrading.Status.History, 0, configv1.UpdateHistory{
		State:   configv1.PartialUpdate,
		Version: "4.19.4",
	})
	s.put(versionsPath, upgrading)
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.19.3"))))
	s.put(configsPath, configOf("same", "4.19.4"))
	s.put(versionsPath, upgrading.DeepCopy())
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.19.4"))))
}

func TestNodeReleaseIsReadWhileRequired(t *testing.T) {
	h, s := connectedHub(t)
	s.put(configsPath, configOf("old", "4.19.3"))
	s.put(nodesPath, nodeWith("old"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Config", "old"))))
	h.RequireReleases(clusterKey, true)
	h.Eventually(h.visits).Should(Receive(), "the cluster must be visited")
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Nodes).To(ConsistOf(HaveField("Release", "4.19.3")))

	h.RequireReleases(clusterKey, true)
	h.Consistently(h.visits, "100ms").ShouldNot(Receive(), "nothing changed")
	h.RequireReleases(clusterKey, false)
	h.Expect(h.Observe(clusterKey).Nodes).To(ConsistOf(HaveField("Release", "")))
}
