package desired

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// The applied object must have the record, because server-side apply removes omitted fields.
func TestRemediationRecordStays(t *testing.T) {
	g, f := NewWithT(t), factsOf(nil)
	observed := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{controlplanev1.RemediationForAnnotation: "record"}},
	}
	g.Expect(SyncedMachine(f, observed, "").Annotations).To(HaveKeyWithValue(controlplanev1.RemediationForAnnotation, "record"))
	g.Expect(SyncedMachine(f, &clusterv1.Machine{}, "").Annotations).NotTo(HaveKey(controlplanev1.RemediationForAnnotation))
}
