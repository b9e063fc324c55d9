package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// TestInstallationAttemptStart: the alert for slow installations counts from the start of the attempt. After
// a retry the control plane may be days old.
func TestInstallationAttemptStart(t *testing.T) {
	created, retried := metav1.Unix(1_800_000_000, 0), metav1.Unix(1_800_100_000, 0)
	record := func(content string) map[string]string {
		return map[string]string{controlplanev1.RetriedInstallationAnnotation: content}
	}
	for situation, tc := range map[string]struct {
		annotations map[string]string
		phase       controlplanev1.InstallationPhase
		want        *metav1.Time
	}{
		"first attempt": {nil, controlplanev1.InstallationPending, &created},
		"retried": {
			record(`{"requested":"1","since":"` + retried.UTC().Format("2006-01-02T15:04:05Z") + `"}`),
			controlplanev1.InstallationInstalling, &retried,
		},
		"retry recorded without time":     {record(`{"requested":"1"}`), controlplanev1.InstallationInstalling, &created},
		"unreadable record":               {record(`since`), controlplanev1.InstallationInstalling, &created},
		"installed: no attempt":           {record(`{"requested":"1"}`), controlplanev1.InstallationInstalled, nil},
		"failed: the attempt that failed": {nil, controlplanev1.InstallationFailed, &created},
	} {
		t.Run(situation, func(t *testing.T) {
			v := viewOf(factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.CreationTimestamp, cp.Annotations = created, tc.annotations
			}))
			v.Phase = tc.phase
			cp := v.ControlPlane.DeepCopy()
			v.Compose(cp)
			NewWithT(t).Expect(cp.Status.Installation.AttemptTime.Equal(tc.want)).To(BeTrue(), "%v", cp.Status.Installation.AttemptTime)
		})
	}
}
