package kube

import (
	"strings"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// copies returns the same string several times, as if it had been decoded.
func copies(s string) (string, string) { return strings.Clone(s), strings.Clone(s) }

func TestWhatManyObjectsHaveIsKeptOnce(t *testing.T) {
	g := NewWithT(t)
	same := func(a, b string) {
		t.Helper()
		g.Expect(a).To(Equal(b))
		g.Expect(unsafe.StringData(a)).To(BeIdenticalTo(unsafe.StringData(b)))
	}
	same(func() (string, string) { a, b := copies("word"); return Word(a), Word(b) }())
	g.Expect(Word(metav1.ConditionTrue)).To(Equal(metav1.ConditionTrue))
	g.Expect(Word("True")).To(Equal("True"), "a string of another type")

	version, otherVersion := copies("v1")
	kind, otherKind := copies("Machine")
	first, second := Owners([]metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "a"}}), Owners([]metav1.OwnerReference{{APIVersion: otherVersion, Kind: otherKind, Name: "b"}})
	g.Expect(first).To(Equal([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Machine", Name: "a"}}))
	same(first[0].APIVersion, second[0].APIVersion)
	same(first[0].Kind, second[0].Kind)

	name, otherName := copies("Ready")
	reason, otherReason := copies("Installed")
	told, toldAgain := Conditions([]metav1.Condition{{Type: name, Reason: reason, Message: "m"}}), Conditions([]metav1.Condition{{Type: otherName, Reason: otherReason}})
	g.Expect(told).To(Equal([]metav1.Condition{{Type: "Ready", Reason: "Installed", Message: "m"}}))
	same(told[0].Type, toldAgain[0].Type)
	same(told[0].Reason, toldAgain[0].Reason)
	g.Expect(Conditions(nil)).To(BeNil())
}
