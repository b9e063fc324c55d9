package ownership

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
)

func TestOwnsKubeconfig(t *testing.T) {
	controller := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}
	}
	for situation, tc := range map[string]struct {
		secret metav1.ObjectMeta
		ours   bool
	}{
		"it has our owner reference":      {metav1.ObjectMeta{OwnerReferences: controller("cp-uid")}, true},
		"it has no mark of this provider": {metav1.ObjectMeta{}, false},
		"it was restored, a copy":         {metav1.ObjectMeta{Annotations: map[string]string{facts.KubeconfigSourceAnnotation: "u/1"}}, true},
		"it was restored, with token":     {metav1.ObjectMeta{Annotations: map[string]string{facts.KubeconfigRenewalAnnotation: "t"}}, true},
		"another controller owns it": {
			metav1.ObjectMeta{Annotations: map[string]string{facts.KubeconfigRenewalAnnotation: "t"}, OwnerReferences: controller("other")}, false,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			f := sample.Facts(nil)
			NewWithT(t).Expect(OwnsKubeconfig(f, &metav1.PartialObjectMetadata{ObjectMeta: tc.secret})).To(Equal(tc.ours))
		})
	}
	NewWithT(t).Expect(OwnsKubeconfig(&facts.Facts{}, nil)).To(BeFalse())
}
