package clusterversion

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// FuzzManagedFields checks with arbitrary managed fields that only the owner of the requested version counts as the
// requester. Only the owner of an accepted risk counts as its writer.
func FuzzManagedFields(f *testing.F) {
	for _, fields := range []string{
		`{"f:spec":{"f:desiredUpdate":{"f:version":{}}}}`, `{"f:spec":{"f:desiredUpdate":{"f:image":{}}}}`,
		`{"f:spec":{"f:desiredUpdate":{"f:acceptRisks":{"k:{\"name\":\"A\"}":{}}}}}`,
		`{"f:spec":{"f:desiredUpdate":null}}`, `{"f:spec":[]}`, `null`, ``,
	} {
		f.Add([]byte(fields))
	}
	read := func(entries ...metav1.ManagedFieldsEntry) (version, risk bool, err error) {
		seen := &workload.ClusterVersion{}
		err = readRequester(&configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{ManagedFields: entries},
			Spec:       configv1.ClusterVersionSpec{DesiredUpdate: &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}},
		}, seen)
		return seen.Ours, len(seen.AcceptedRisks) == 1 && seen.AcceptedRisks[0].Ours, err
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		g := NewWithT(t)
		entry := metav1.ManagedFieldsEntry{Manager: string(fieldOwner), FieldsV1: metav1.NewFieldsV1(string(fields))}
		version, risk, err := read(entry)
		if version || risk {
			g.Expect(json.Valid(fields)).To(BeTrue())
		}
		if !json.Valid(fields) && len(fields) > 0 {
			g.Expect(err).To(HaveOccurred(), "managed fields that cannot be decoded prove nothing")
		}
		entry.Manager = "other"
		version, risk, _ = read(entry, metav1.ManagedFieldsEntry{Manager: string(fieldOwner)})
		g.Expect(version).To(BeFalse())
		g.Expect(risk).To(BeFalse())
	})
}
