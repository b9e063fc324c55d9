package clusterversion

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzManagedFields checks that only the owner of the requested version counts as the requester, for
// arbitrary managed fields.
func FuzzManagedFields(f *testing.F) {
	for _, fields := range []string{
		`{"f:spec":{"f:desiredUpdate":{"f:version":{}}}}`, `{"f:spec":{"f:desiredUpdate":{"f:image":{}}}}`,
		`{"f:spec":{"f:desiredUpdate":null}}`, `{"f:spec":[]}`, `null`, ``,
	} {
		f.Add([]byte(fields))
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		g := NewWithT(t)
		entry := metav1.ManagedFieldsEntry{Manager: string(fieldOwner), FieldsV1: &metav1.FieldsV1{Raw: fields}}
		if isOurRequest([]metav1.ManagedFieldsEntry{entry}) {
			g.Expect(json.Valid(fields)).To(BeTrue())
			g.Expect(string(fields)).To(ContainSubstring("version"))
		}
		entry.Manager = "other"
		g.Expect(isOurRequest([]metav1.ManagedFieldsEntry{entry, {Manager: string(fieldOwner)}})).To(BeFalse())
	})
}
