package tasks

import (
	"fmt"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// KubeconfigProblem returns the reason if the published kubeconfig, or the present one of assisted-service,
// does not work; nil if no problem is known.
func (f *Findings) KubeconfigProblem(known *facts.Facts) *findings.Outcome {
	if refused := f.Blocked(KubeconfigCopy); refused != nil && refused.Reason == controlplanev1.KubeconfigRefusedReason {
		return refused
	}
	failure := known.Workload.Failure
	if failure == nil || f.Kubeconfig == nil || failure.KubeconfigVersion != f.Kubeconfig.ResourceVersion {
		return nil
	}
	switch failure.Kind {
	case workload.KubeconfigRefused:
		return &findings.Outcome{
			Reason:  controlplanev1.KubeconfigRefusedReason,
			Message: fmt.Sprintf("Secret %s is not used: %s; %s", f.Kubeconfig.Name, failure.Message, f.kubeconfigRemedy(known)),
		}
	case workload.Unauthorized:
		return &findings.Outcome{
			Reason: controlplanev1.KubeconfigUnauthorizedReason,
			Message: fmt.Sprintf("the cluster cannot be connected to: %s; put a kubeconfig that works into Secret %s", failure.Message,
				f.Kubeconfig.Name),
		}
	}
	if f.blocksPublication(known) {
		return &findings.Outcome{
			Reason: controlplanev1.KubeconfigNotOursReason,
			Message: fmt.Sprintf("Secret %s was not created by this provider, and the cluster has never answered with it: %s; if it is left from a "+
				"former cluster of this name, delete it: its content is lost, and assisted-service's kubeconfig (Secret %s) replaces "+
				"it", f.Kubeconfig.Name,
				failure.Message,
				known.AdminKubeconfig.Name),
		}
	}
	if failure.Kind == workload.Untrusted && known.Installed() { // before the installation, another server may answer at the address
		return &findings.Outcome{
			Reason:  controlplanev1.KubeconfigUntrustedReason,
			Message: fmt.Sprintf("Secret %s does not accept the server: %s. %s", f.Kubeconfig.Name, failure.Message, f.trustRemedy(known)),
		}
	}
	return nil
}

// trustRemedy returns the user action for a kubeconfig that does not accept the certificate of the server.
func (f *Findings) trustRemedy(known *facts.Facts) string {
	switch invalid := f.Blocked(KubeconfigAuthorities); {
	case invalid != nil:
		return invalid.Message
	case ownership.OwnsKubeconfig(known, f.Kubeconfig):
		return "Add the authority of the certificate to spec.kubeconfig.additionalTrustBundle, or set tls-server-name in the Secret; " +
			"renewals keep both"
	}
	return "Add the authority of the certificate to certificate-authority-data in the Secret, or set tls-server-name"
}

// blocksPublication reports whether a foreign Secret prevents the publication of the kubeconfig of an installed
// cluster, and the cluster has never answered with it.
func (f *Findings) blocksPublication(known *facts.Facts) bool {
	return known.Installed() && ownership.HasAdminKubeconfig(known) && !ownership.OwnsKubeconfig(known, f.Kubeconfig) && !ptr.Deref(
		known.ControlPlane.Status.Initialization.ControlPlaneInitialized, false,
	)
}

// kubeconfigRemedy returns the user action for a published kubeconfig that does not work.
func (f *Findings) kubeconfigRemedy(known *facts.Facts) string {
	if ownership.OwnsKubeconfig(known, f.Kubeconfig) && ownership.HasAdminKubeconfig(known) {
		return fmt.Sprintf(
			"delete the Secret, whose content is lost, and assisted-service's kubeconfig (Secret %s) is published again, or put a working "+
				"kubeconfig into it",
			known.AdminKubeconfig.Name,
		)
	}
	return "put a kubeconfig that works into it"
}
