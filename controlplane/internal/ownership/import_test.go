package ownership

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
)

func TestCopyIsNotTheKubeconfigOfAssistedService(t *testing.T) {
	g, f := NewWithT(t), sample.Facts(nil)
	f.Install = &hiveext.AgentClusterInstall{ObjectMeta: metav1.ObjectMeta{Labels: f.Labels()}}
	f.AdminKubeconfig = &metav1.PartialObjectMetadata{}
	g.Expect(HasAdminKubeconfig(f)).To(BeTrue())
	f.AdminKubeconfig.Annotations = map[string]string{facts.KubeconfigSourceAnnotation: "u/1"}
	g.Expect(HasAdminKubeconfig(f)).To(BeFalse())
}
