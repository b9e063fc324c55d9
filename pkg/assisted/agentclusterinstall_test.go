package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestNTPSourcesOfAgentClusterInstall(t *testing.T) {
	g := NewWithT(t)
	for _, without := range []*hiveext.AgentClusterInstall{nil, {Spec: hiveext.AgentClusterInstallSpec{SSHPublicKey: "key"}}} {
		u, err := WithNTPSources(without)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(u).To(BeNil())
	}
	install := &hiveext.AgentClusterInstall{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: "c1", ResourceVersion: "7", Annotations: map[string]string{NTPSourcesAnnotation: "ntp.example,fd00::1"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "ours"}},
		},
		Spec: hiveext.AgentClusterInstallSpec{SSHPublicKey: "key"},
	}
	u, err := WithNTPSources(install)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.GetAPIVersion() + " " + u.GetKind()).To(Equal("extensions.hive.openshift.io/v1beta1 AgentClusterInstall"))
	sources, _, err := unstructured.NestedStringSlice(u.Object, "spec", "ntpSources")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sources).To(Equal([]string{"ntp.example", "fd00::1"}))
	g.Expect(u.Object["spec"]).To(HaveKeyWithValue("sshPublicKey", "key"))
	g.Expect(u.GetManagedFields()).To(HaveLen(1), "the record of what was applied saves requests")
	g.Expect(u.GetResourceVersion()).To(Equal("7"))
}
