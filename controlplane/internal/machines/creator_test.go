package machines

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// The deletion of an object of a former Machine takes long, because the host is deprovisioned. An object that is
// not deleted after that is a failure.
func TestFormerObjectIsFailureAfterMaxDeletionTime(t *testing.T) {
	for situation, tc := range map[string]struct {
		after  time.Duration
		reason string
		word   string
	}{
		"being deleted": {time.Minute, clusterv1.ScalingUpReason, "not created yet: OpenshiftAssistedConfig"},
		"deleted for too long": {
			maxDeletionTime, controlplanev1.MachineCreationFailedReason, "the controllers of its finalizers example.com/kept",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			now := time.Now()
			former := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{
				Namespace: "lab", Name: "c1-0", DeletionTimestamp: &metav1.Time{Time: now}, Finalizers: []string{"example.com/kept"},
			}}
			reason, message := describeDeletion(former, now.Add(tc.after))
			g.Expect(reason).To(Equal(tc.reason))
			g.Expect(message).To(ContainSubstring(tc.word))
		})
	}
}

func TestCreationBlocker(t *testing.T) {
	for phase, wanted := range map[controlplanev1.InstallationPhase]string{
		controlplanev1.InstallationFailed:     "no further Machines",
		controlplanev1.InstallationInstalled:  "accepts hosts",
		controlplanev1.InstallationInstalling: "is installed",
	} {
		NewWithT(t).Expect(creationBlocker(phase)).To(ContainSubstring(wanted))
	}
}
