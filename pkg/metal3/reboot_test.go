package metal3

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestRebootFailed(t *testing.T) {
	for situation, tc := range map[string]struct {
		phase   string
		machine types.UID
		change  func(u *unstructured.Unstructured)
		failed  bool
	}{
		"all reboots failed":                     {phase: "Deleting machine", machine: "1", failed: true},
		"it is rebooting":                        {phase: "Waiting", machine: "1"},
		"not rebooted: the host is switched off": {phase: "Failed", machine: "1"},
		"of a former Machine of the same name":   {phase: "Deleting machine", machine: "2"},
		"the request is being deleted": {phase: "Deleting machine", machine: "1", change: func(u *unstructured.Unstructured) {
			u.SetDeletionTimestamp(ptr.To(metav1.Now()))
		}},
	} {
		t.Run(situation, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": tc.phase}}}
			u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Machine", Name: "m", UID: "1"}})
			if tc.change != nil {
				tc.change(u)
			}
			NewWithT(t).Expect(RebootFailed(u, tc.machine)).To(Equal(tc.failed))
		})
	}
}
