package status

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// An AgentClusterInstall may ignore validations that no field of the control plane names. They are reported, too.
func TestIgnoredValidationsAreReported(t *testing.T) {
	var many []string
	for i := range 12 {
		many = append(many, "validation-"+strconv.Itoa(10+i))
	}
	for situation, tc := range map[string]struct {
		state       string
		ignored     *controlplanev1.IgnoredValidations
		annotations map[string]string
		message     string
	}{
		"none":            {state: "insufficient"},
		"none, stated so": {state: "insufficient", annotations: map[string]string{assisted.IgnoredHostValidationsAnnotation: ""}},
		"before the registration": {
			ignored: &controlplanev1.IgnoredValidations{Hosts: []string{"ntp-synced", "has-memory-for-role"}},
			message: "assisted-service ignores failures of validations of its hosts: has-memory-for-role, ntp-synced. The installation may fail",
		},
		"by the field and another client": {
			state: "insufficient", ignored: &controlplanev1.IgnoredValidations{Cluster: []string{"ntp-server-configured"}},
			annotations: map[string]string{
				assisted.IgnoredClusterValidationsAnnotation: "ntp-server-configured, dns-domain-defined",
				assisted.IgnoredHostValidationsAnnotation:    "all",
			},
			message: "of the cluster: dns-domain-defined, ntp-server-configured; of its hosts: all. The installation may fail",
		},
		"installed": {
			state: "adding-hosts", annotations: map[string]string{assisted.IgnoredHostValidationsAnnotation: "ntp-synced"},
			message: "of its hosts: ntp-synced. The cluster was installed in spite of them",
		},
		"many": {
			state: "insufficient", ignored: &controlplanev1.IgnoredValidations{Cluster: many},
			message: "validation-16, validation-17 and 4 more. The installation",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Spec.Config.IgnoredValidations = tc.ignored
				if tc.state == "adding-hosts" {
					cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
				}
			})
			if tc.state != "" {
				f.Install = installOf(tc.state)
				f.Owner().Mark(f.Install)
				for key, value := range tc.annotations {
					metav1.SetMetaDataAnnotation(&f.Install.ObjectMeta, key, value)
				}
			}
			found := viewOf(f).validationsEnforced()
			if tc.message == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found).To(And(
				HaveField("Type", controlplanev1.ValidationsEnforcedCondition), HaveField("Reason", controlplanev1.ValidationsIgnoredReason),
				HaveField("Status", BeEquivalentTo("False")), HaveField("Message", ContainSubstring(tc.message)),
			))
		})
	}
}
