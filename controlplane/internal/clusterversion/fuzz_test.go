package clusterversion

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	f.Fuzz(func(t *testing.T, fields []byte) {
		g := NewWithT(t)
		entry := metav1.ManagedFieldsEntry{Manager: string(fieldOwner), FieldsV1: metav1.NewFieldsV1(string(fields))}
		if ours := writtenUpdate([]metav1.ManagedFieldsEntry{entry}); ours.version || len(ours.risks) > 0 {
			g.Expect(json.Valid(fields)).To(BeTrue())
			g.Expect(string(fields)).To(Or(ContainSubstring("version"), ContainSubstring("acceptRisks")))
		}
		entry.Manager = "other"
		others := writtenUpdate([]metav1.ManagedFieldsEntry{entry, {Manager: string(fieldOwner)}})
		g.Expect(others.version).To(BeFalse())
		g.Expect(others.risks).To(BeEmpty())
	})
}
