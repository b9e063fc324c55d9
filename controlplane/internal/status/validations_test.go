package status

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// An AgentClusterInstall may ignore validations that no field of the control plane names. They are reported, too. The
// message names an action that is possible in the phase.
func TestIgnoredValidationsAreReported(t *testing.T) {
	const (
		cluster, hosts = assisted.IgnoredClusterValidationsAnnotation, assisted.IgnoredHostValidationsAnnotation
		mayFail        = ". The installation may fail and leave wiped hosts, and Red Hat does not support the cluster. "
		enforce        = mayFail + "To enforce the validations, remove "
		starts         = " before the installation starts"
	)
	var many []string
	for i := range 12 {
		many = append(many, "validation-"+strconv.Itoa(10+i))
	}
	ntpSynced := &controlplanev1.IgnoredValidations{Hosts: []string{"ntp-synced"}}
	for situation, tc := range map[string]struct {
		state      string
		phase      controlplanev1.InstallationPhase
		ignored    *controlplanev1.IgnoredValidations
		ofCP       map[string]string
		ofInstall  map[string]string
		imported   bool
		message    string
		notMessage string
	}{
		"none":            {state: "insufficient"},
		"none, stated so": {state: "insufficient", ofInstall: map[string]string{hosts: ""}},
		"before the registration": {
			ignored: &controlplanev1.IgnoredValidations{Hosts: []string{"ntp-synced", "has-memory-for-role"}},
			message: "assisted-service ignores failures of validations of its hosts: has-memory-for-role, ntp-synced" + enforce +
				"config.ignoredValidations" + starts,
		},
		"by the field and another client": {
			state: "insufficient", ignored: &controlplanev1.IgnoredValidations{Cluster: []string{"ntp-server-configured"}},
			ofInstall: map[string]string{cluster: "ntp-server-configured, dns-domain-defined", hosts: "all"},
			message: "of the cluster: dns-domain-defined, ntp-server-configured; of its hosts: all" + enforce +
				"config.ignoredValidations and the annotation " + hosts + " of AgentClusterInstall c1" + starts,
		},
		"by annotations of the control plane": {
			state: "insufficient", ofCP: map[string]string{hosts: "ntp-synced"}, ofInstall: map[string]string{hosts: "ntp-synced"},
			message: "of its hosts: ntp-synced" + enforce + "the annotation " + hosts + " of the control plane" + starts,
		},
		"installing": {
			state: "installing", phase: controlplanev1.InstallationInstalling, ignored: ntpSynced, ofInstall: map[string]string{hosts: "ntp-synced"},
			message: "of its hosts: ntp-synced" + mayFail + "Do not change them before the cluster is installed", notMessage: "remove",
		},
		"installing, by another client": {
			state: "finalizing", phase: controlplanev1.InstallationFinalizing, ofInstall: map[string]string{hosts: "ntp-synced"},
			message: "of its hosts: ntp-synced" + mayFail + "Do not change them before the cluster is installed", notMessage: "remove",
		},
		"failed": {
			state: "error", phase: controlplanev1.InstallationFailed, ignored: ntpSynced, ofInstall: map[string]string{hosts: "ntp-synced"},
			message: "To enforce the validations in another attempt, remove config.ignoredValidations before its installation starts",
		},
		"installed": {
			state: "adding-hosts", phase: controlplanev1.InstallationInstalled,
			ignored: ntpSynced, ofInstall: map[string]string{hosts: "ntp-synced"},
			message: "assisted-service ignores failures of validations of its hosts: ntp-synced, also for hosts that are added. The cluster was " +
				"installed with config.ignoredValidations, and Red Hat does not support it. To enforce the validations, remove the annotation " +
				hosts + " of AgentClusterInstall c1",
		},
		"installed, hosts cannot be added yet": {
			state: "installed", phase: controlplanev1.InstallationInstalled, ignored: ntpSynced, ofInstall: map[string]string{hosts: "ntp-synced"},
			message: "The cluster was installed with config.ignoredValidations, and Red Hat does not support it", notMessage: "remove",
		},
		"installed, for added hosts alone": {
			state: "adding-hosts", phase: controlplanev1.InstallationInstalled, ofInstall: map[string]string{hosts: "ntp-synced"},
			message: "ntp-synced, also for hosts that are added. To enforce the validations, remove the annotation " + hosts +
				" of AgentClusterInstall c1",
			notMessage: "was installed",
		},
		"installed, not ignored for added hosts": {
			state: "adding-hosts", phase: controlplanev1.InstallationInstalled, ignored: ntpSynced,
			message: "config.ignoredValidations names validations of its hosts: ntp-synced. The cluster was installed with " +
				"config.ignoredValidations, and Red Hat does not support it", notMessage: "remove",
		},
		"imported": {
			state: "adding-hosts", phase: controlplanev1.InstallationInstalled, ignored: ntpSynced, imported: true,
			message: "config.ignoredValidations names validations of its hosts: ntp-synced. If the cluster was installed with " +
				"config.ignoredValidations, Red Hat does not support it",
			notMessage: "assisted-service ignores",
		},
		"many": {
			state: "insufficient", ignored: &controlplanev1.IgnoredValidations{Cluster: many},
			message: "validation-16, validation-17 and 4 more. The installation",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Spec.Config.IgnoredValidations, cp.Annotations = tc.ignored, tc.ofCP
				cp.Status.Installation.Phase = tc.phase
			})
			if tc.state != "" {
				f.Install = installOf(tc.state)
				f.Owner().Mark(f.Install)
				f.Progress = assisted.Observe(f.Install)
				for key, value := range tc.ofInstall {
					metav1.SetMetaDataAnnotation(&f.Install.ObjectMeta, key, value)
				}
				if tc.imported {
					metav1.SetMetaDataAnnotation(&f.Install.ObjectMeta, facts.ImportedAnnotation, "")
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
			if tc.notMessage != "" {
				g.Expect(found.Message).NotTo(ContainSubstring(tc.notMessage))
			}
		})
	}
}
