// Package retry decides whether a failed installation may be given up and retried, and which of its objects are
// deleted first. It has no client.
package retry

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Blockers returns what blocks giving up a failed installation; empty if nothing does. An object that may
// be a Node of a running cluster is not touched.
func Blockers(f *facts.Facts) []string {
	var against []string
	if !ownership.OwnsDeployment(f) || !ownership.OwnsInstall(f) || !f.Progress.Registered || f.Progress.Phase != assisted.PhaseFailed ||
		f.Deployment.Spec.Installed {
		against = append(against, "assisted-service does not report the failure now")
	}
	against = append(against, MayRun(f)...)
	if f.Kubeconfig == nil && facts.AdminKubeconfigOf(f.Install) != "" {
		against = append(against, "the kubeconfig is not published yet, which is necessary to check whether the cluster runs")
	} else if unknown := NotSilent(f); unknown != "" {
		against = append(against, unknown)
	}
	for _, m := range f.Workers {
		if m.Spec.Bootstrap.ConfigRef.Kind == workers.ConfigKind && metav1.GetControllerOf(m) == nil {
			against = append(
				against,
				fmt.Sprintf("no controller would create Machine %s again. Delete it, which wipes its host, and create it again afterwards", m.Name),
			)
		}
	}
	return against
}

// MayRun returns why a cluster whose installation failed may run nevertheless; empty if nothing shows that.
func MayRun(f *facts.Facts) []string {
	var against []string
	add := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }
	if f.Workload.Connected || ptr.Deref(f.ControlPlane.Status.Initialization.ControlPlaneInitialized, false) {
		add("the API of the cluster answers, or did")
	}
	for _, m := range f.AllMachines() {
		if metal3.HadNode(m) {
			add("Machine %s has, or had, a Node", m.Name)
		}
	}
	for i := range f.Agents {
		switch agent := &f.Agents[i]; agent.Status.Progress.CurrentStage {
		case aiv1beta1.HostStageJoined, aiv1beta1.HostStageDone:
			add("host %s has joined the cluster", bound.Value(facts.Hostname(agent)))
		}
	}
	return against
}

// NotSilent returns why it is uncertain that the API of the cluster does not answer. It is "" if that is
// certain, or if no host reached the stage in which a kubeconfig exists. An unresolvable address, a refusal
// or a foreign certificate prove nothing.
func NotSilent(f *facts.Facts) string {
	switch failure := f.Workload.Failure; {
	case f.Cluster == nil:
		return "the Cluster is missing"
	case f.Kubeconfig == nil || f.Workload.Connected:
		return ""
	case failure == nil || failure.KubeconfigVersion != f.Kubeconfig.ResourceVersion:
		return "it is not known yet whether the API of the cluster answers"
	case !failure.Silent:
		return "it is not sure that the cluster does not run: " + failure.Message
	}
	return ""
}

// ToGiveUp returns the objects to delete before a failed installation is retried. These are the Machines
// with hosts of our bootstrap provider, the objects in assisted-service, and the published kubeconfig.
func ToGiveUp(f *facts.Facts) []types.UID {
	var given []types.UID
	for _, m := range f.AllMachines() {
		if f.Controls(m) || m.Spec.Bootstrap.ConfigRef.Kind == workers.ConfigKind {
			given = append(given, m.UID)
		}
	}
	given = append(given, f.Deployment.UID, f.Install.UID)
	if published, _ := installationstate.PublishedBefore(f); published {
		given = append(given, f.Kubeconfig.UID)
	}
	return given
}
