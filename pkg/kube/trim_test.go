package kube

import (
	"strings"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// copies returns two copies of a string, as if each had been decoded.
func copies(s string) (string, string) { return strings.Clone(s), strings.Clone(s) }

func TestEqualStringsShareOneCopy(t *testing.T) {
	g := NewWithT(t)
	same := func(a, b string) {
		t.Helper()
		g.Expect(a).To(Equal(b))
		g.Expect(unsafe.StringData(a)).To(BeIdenticalTo(unsafe.StringData(b)))
	}
	same(func() (string, string) { a, b := copies("kind"); return Intern(a), Intern(b) }())
	g.Expect(Intern(metav1.ConditionTrue)).To(Equal(metav1.ConditionTrue))
	g.Expect(Intern("True")).To(Equal("True"), "a string of another type")

	version, otherVersion := copies("v1")
	kind, otherKind := copies("Machine")
	first, second := InternOwners(
		[]metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "a"}},
	), InternOwners(
		[]metav1.OwnerReference{{APIVersion: otherVersion, Kind: otherKind, Name: "b"}},
	)
	g.Expect(first).To(Equal([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Machine", Name: "a"}}))
	same(first[0].APIVersion, second[0].APIVersion)
	same(first[0].Kind, second[0].Kind)

	name, otherName := copies("Ready")
	reason, otherReason := copies("Installed")
	conditions, others := InternConditions(
		[]metav1.Condition{{Type: name, Reason: reason, Message: "m"}},
	), InternConditions(
		[]metav1.Condition{{Type: otherName, Reason: otherReason}},
	)
	g.Expect(conditions).To(Equal([]metav1.Condition{{Type: "Ready", Reason: "Installed", Message: "m"}}))
	same(conditions[0].Type, others[0].Type)
	same(conditions[0].Reason, others[0].Reason)
	g.Expect(InternConditions(nil)).To(BeNil())
}
