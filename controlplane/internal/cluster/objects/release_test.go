package objects

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// clusterVersionOf returns the ClusterVersion of a cluster that runs a release.
func clusterVersionOf(release string) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
		History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: release, Image: "release:" + release}},
	}}
}

func TestRollout(t *testing.T) {
	condition := func(conditionType configv1.ClusterStatusConditionType, status configv1.ConditionStatus,
		message string,
	) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: conditionType, Status: status, Reason: "Reason", Message: message}
	}
	runs, requested := workload.Update{Version: "4.19.3", Force: true}, workload.Update{Version: "4.20.1", Image: "image", Force: true}
	request := func(v *configv1.ClusterVersion, update workload.Update) {
		v.Spec.DesiredUpdate = &configv1.Update{Version: update.Version, Image: update.Image, Force: update.Force}
	}
	for situation, tc := range map[string]struct {
		change  func(*configv1.ClusterVersion)
		rollout *workload.Rollout
	}{
		"requested release runs": {func(*configv1.ClusterVersion) {}, nil},
		"slow operator": {func(v *configv1.ClusterVersion) {
			v.Status.Conditions = append(v.Status.Conditions, condition("Failing", configv1.ConditionUnknown, "etcd is slow"))
		}, nil},
		"not observed yet": {func(v *configv1.ClusterVersion) { v.Generation = 3 }, &workload.Rollout{Requested: runs, Unseen: true}},
		"verification of a version": {
			func(v *configv1.ClusterVersion) { request(v, requested) },
			&workload.Rollout{Requested: requested, Pending: true},
		},
		"verification of an image": {
			func(v *configv1.ClusterVersion) { request(v, workload.Update{Image: "image"}) },
			&workload.Rollout{Requested: workload.Update{Image: "image"}, Pending: true},
		},
		"running image requested": {func(v *configv1.ClusterVersion) { request(v, workload.Update{Image: "release:4.19.3"}) }, nil},
		"nothing requested":       {func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = nil }, nil},
		"progressing": {func(v *configv1.ClusterVersion) {
			request(v, requested)
			v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.20.1"})
			v.Status.Conditions = append(v.Status.Conditions, condition("Progressing", configv1.ConditionTrue, "Working towards 4.20.1"))
		}, &workload.Rollout{Requested: requested, Progress: "Working towards 4.20.1"}},
		"failing": {func(v *configv1.ClusterVersion) {
			v.Status.Conditions = append(v.Status.Conditions, condition("Failing", configv1.ConditionTrue, "etcd is degraded"))
		}, &workload.Rollout{Requested: runs, Failing: "etcd is degraded"}},
		"refused": {func(v *configv1.ClusterVersion) {
			request(v, requested)
			v.Status.Conditions = append(v.Status.Conditions, condition("ReleaseAccepted", configv1.ConditionFalse, "Preconditions failed"),
				condition("Progressing", configv1.ConditionFalse, "Cluster version is 4.19.3"))
		}, &workload.Rollout{Requested: requested, Pending: true, Refused: "Preconditions failed"}},
		"refused without message": {func(v *configv1.ClusterVersion) {
			request(v, requested)
			v.Status.Conditions = append(v.Status.Conditions, condition("ReleaseAccepted", configv1.ConditionFalse, ""))
		}, &workload.Rollout{Requested: requested, Pending: true, Refused: "Reason"}},
		"ignored": {func(v *configv1.ClusterVersion) {
			v.Status.Conditions = append(v.Status.Conditions, condition("Invalid", configv1.ConditionTrue, "not in availableUpdates"))
		}, &workload.Rollout{Requested: runs, Refused: "not in availableUpdates"}},
	} {
		t.Run(situation, func(t *testing.T) {
			v := clusterVersionOf("4.19.3")
			v.Generation, v.Status.ObservedGeneration = 2, 2
			request(v, runs)
			tc.change(v)
			NewWithT(t).Expect(releaseOf(v).Rollout).To(Equal(tc.rollout))
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
	g.Expect([]string{r.Completed, r.Image, r.Upgrading}).To(HaveEach(BeEmpty()))
	g.Expect(len(r.Rollout.Failing)).To(BeNumerically("<=", bound.CauseBytes))
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
