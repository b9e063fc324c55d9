package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestOnlyWords(t *testing.T) {
	before := &controlplanev1.OpenshiftAssistedControlPlaneStatus{
		Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](0), ObservedGeneration: 1,
		Installation: controlplanev1.InstallationStatus{Phase: controlplanev1.InstallationInstalling, Percentage: ptr.To[int32](10), Progress: "Installing 10%"},
		Conditions:   []metav1.Condition{no("A", "Waiting", "for one")},
	}
	for situation, tc := range map[string]struct {
		change func(*controlplanev1.OpenshiftAssistedControlPlaneStatus)
		words  bool
	}{
		"another message": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Conditions[0].Message = "for two" }, true},
		"another reason":  {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Conditions[0].Reason = "Failing" }, true},
		"something to act upon": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Conditions[0].Reason = controlplanev1.PreparationFailedReason
		}, false},
		"more is installed": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Installation.Percentage, s.Installation.Progress = ptr.To[int32](20), "Installing 20%"
		}, true},
		"one of three is ready": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.ReadyReplicas = ptr.To[int32](1) }, true},
		"a condition turns":     {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Conditions[0] = yes("A", "Done") }, false},
		"a new condition": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Conditions = append(s.Conditions, yes("B", "Done"))
		}, false},
		"the next phase": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Installation.Phase = controlplanev1.InstallationFinalizing
		}, false},
		"a Machine is made": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Replicas = ptr.To[int32](4) }, false},
		"another spec":      {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.ObservedGeneration = 2 }, false},
		"the version":       {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) { s.Version = "v4.19.3" }, false},
		"the cluster answers": {func(s *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
			s.Initialization.ControlPlaneInitialized = ptr.To(true)
		}, false},
	} {
		t.Run(situation, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			NewWithT(t).Expect(OnlyWords(before, after)).To(Equal(tc.words))
		})
	}
}

func TestWhatFailedIsToldAtOnce(t *testing.T) {
	g := NewWithT(t)
	before := &controlplanev1.OpenshiftAssistedControlPlaneStatus{
		Conditions: []metav1.Condition{no("A", controlplanev1.InstallationFailedReason, "it failed")},
	}
	after := before.DeepCopy()
	g.Expect(OnlyWords(before, after)).To(BeTrue(), "nothing new")
	after.Conditions[0].Message = "it failed: host rack1-u7 has no disk"
	g.Expect(OnlyWords(before, after)).To(BeFalse(), "the host is known by now")
}
