package installed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/attempt"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Condition returns the condition Installed: the state of the installation, its blocker or failure.
func (v *View) Condition() metav1.Condition {
	const t = controlplanev1.InstalledCondition
	switch {
	case v.Installed():
		return condition.True(t, controlplanev1.InstalledReason)
	case v.Reregistered:
		return condition.False(t, controlplanev1.ReregisteredReason, Reregistered(v.Facts))
	case v.Blocked != nil && (!v.Progress.Started || attempt.GivesUp(v.Facts)):
		return *v.Blocked
	case v.Install == nil || !v.Progress.Registered:
		return v.notRegistered()
	}
	switch v.Phase {
	case controlplanev1.InstallationPreparing:
		if v.anyHost(preparingFailedStates) || v.failedToPrepare() != nil {
			return v.preparationFailed()
		}
		return condition.False(t, controlplanev1.PreparingReason, v.withURLs("preparing the installation"))
	case controlplanev1.InstallationInstalling:
		if v.Progress.State == assisted.StateInstallingPendingForUser {
			return condition.False(
				t,
				controlplanev1.UserActionRequiredReason,
				v.withURLs(v.ofHosts("the installation waits for the user: "+v.Progress.StateInfo, pendingStates)),
			)
		}
		return condition.False(t, controlplanev1.InstallingReason, v.withURLs(fmt.Sprintf("%d%%: %s", Percentage(v.Facts), v.Progress.StateInfo)))
	case controlplanev1.InstallationFinalizing:
		return condition.False(t, controlplanev1.FinalizingReason, v.withURLs(fmt.Sprintf("%d%%: %s", Percentage(v.Facts), v.Progress.StateInfo)))
	case controlplanev1.InstallationFailed:
		return condition.False(
			t, controlplanev1.InstallationFailedReason, v.withURLs(v.ofHosts("the installation failed: "+v.Progress.StateInfo, failingStates)),
		)
	default:
		return v.pending()
	}
}

// Summary shortens the condition Installed to one line for the condition Available, which the Cluster
// mirrors. Counts of hosts replace a percentage, and links are left out.
func (v *View) Summary() string {
	switch c := v.Condition(); c.Reason {
	case controlplanev1.InstallingReason:
		return "installing " + cmp.Or(v.hostsOnTheirWay(), "its hosts")
	case controlplanev1.FinalizingReason:
		return strings.TrimSuffix("its operators come up, after "+v.hostsOnTheirWay(), ", after ")
	default:
		return withoutURLs(c.Message)
	}
}

// Registration returns the condition RegistrationHealthy of an installed cluster; nil without a problem. Hosts are added as
// soon as assisted-service has imported the cluster.
func (v *View) Registration() *metav1.Condition {
	const t = controlplanev1.RegistrationHealthyCondition
	switch {
	case !v.Installed():
		return nil
	case v.Reregistered:
		return ptr.To(condition.False(t, controlplanev1.ReregisteredReason, Reregistered(v.Facts)))
	}
	if why := v.notImported(); why != nil {
		return ptr.To(condition.False(t, why.Reason, why.Message))
	}
	if len(v.ForeignAgents) > 0 { // assisted-service adds their hosts once they are approved
		return ptr.To(condition.False(t, controlplanev1.ForeignAgentsBoundReason, ForeignAgents(v.Facts)))
	}
	return nil
}

// ForeignAgents reports the Agents of other namespaces that are bound to the ClusterDeployment.
func ForeignAgents(f *facts.Facts) string {
	return fmt.Sprintf("Agents of other namespaces are bound to ClusterDeployment %s, and assisted-service installs their servers as "+
		"hosts of this cluster: %s. "+
		"Remove spec.clusterDeploymentName of those that are not installed. If an Agent is installed, that wipes its server", f.ControlPlane.Name,
		bound.List(f.ForeignAgents))
}

// notImported returns the reason if assisted-service adds no hosts to an installed cluster that it did not
// install, or nil.
func (v *View) notImported() *metav1.Condition {
	const t = controlplanev1.InstalledCondition
	switch {
	case v.Install == nil:
		return v.Blocked
	case !ownership.Imported(v.Facts) || v.Progress.DayTwo:
		return nil
	}
	if c := installCondition(v.Install, hiveext.ClusterSpecSyncedCondition); c != nil && c.Status == corev1.ConditionFalse {
		refused := v.notSynced(c)
		if refused.Reason == controlplanev1.WaitingForAssistedServiceReason {
			refused.Reason = controlplanev1.WaitingForImportReason
		}
		refused.Message = "assisted-service does not import the installed cluster: " + refused.Message
		return &refused
	}
	if since, left := v.Unanswered(); !since.IsZero() && left <= 0 {
		return ptr.To(condition.False(
			t,
			controlplanev1.AssistedServiceNotRespondingReason,
			assisted.NotResponding("AgentClusterInstall "+v.Install.Name, v.Install.Namespace, since),
		))
	}
	return ptr.To(condition.False(
		t, controlplanev1.WaitingForImportReason, "waiting for assisted-service to import the installed cluster, so that hosts can be added",
	))
}

// notRegistered returns the condition until assisted-service has registered the cluster.
func (v *View) notRegistered() metav1.Condition {
	const t = controlplanev1.InstalledCondition
	if v.Failure != nil {
		return v.stepFailed()
	}
	if c := installCondition(v.Install, hiveext.ClusterSpecSyncedCondition); c != nil && c.Status == corev1.ConditionFalse {
		return v.notSynced(c)
	}
	if since, left := v.Unanswered(); !since.IsZero() && left <= 0 {
		return condition.False(
			t,
			controlplanev1.AssistedServiceNotRespondingReason,
			assisted.NotResponding("AgentClusterInstall "+v.Install.Name, v.Install.Namespace, since),
		)
	}
	return condition.False(t, controlplanev1.WaitingForAssistedServiceReason, "waiting for assisted-service to register the cluster")
}

// failedStep is the message for a step that failed before the cluster was registered.
const failedStep = "an earlier step failed. The provider retries: see the log of the manager"

// lasting are the problems before the registration that stay until the user acts.
var lasting = []string{
	controlplanev1.ClusterImageSetMissingReason, controlplanev1.InfraTemplateMissingReason, controlplanev1.InvalidConfigurationReason,
	controlplanev1.KubernetesVersionMismatchReason, controlplanev1.ManifestsMissingReason, controlplanev1.PullSecretMissingReason,
	controlplanev1.RegistryUnavailableReason, controlplanev1.ReleaseImageNotFoundReason,
}

// stepFailed returns the condition after a step that failed. A recorded problem stays: a single failed request does not end it.
func (v *View) stepFailed() metav1.Condition {
	const t = controlplanev1.InstalledCondition
	if recorded := conditions.Get(v.ControlPlane, t); recorded != nil && slices.Contains(lasting, recorded.Reason) {
		problem, _, _ := strings.Cut(recorded.Message, "; "+failedStep)
		return condition.False(t, recorded.Reason, bound.FitBefore(problem, "; "+failedStep)+"; "+failedStep)
	}
	return condition.False(t, controlplanev1.WaitingForAssistedServiceReason, failedStep)
}

// Unanswered returns the time since which assisted-service has not answered for an AgentClusterInstall, zero
// if it has. It also returns the time left until the silence counts.
func (v *View) Unanswered() (since time.Time, left time.Duration) {
	if v.Install == nil || v.Progress.Registered || !v.Install.DeletionTimestamp.IsZero() || !ownership.OwnsInstall(v.Facts) {
		return time.Time{}, 0
	}
	since = v.Install.CreationTimestamp.Time
	for i := range v.Install.Status.Conditions {
		if changed := v.Install.Status.Conditions[i].LastTransitionTime.Time; changed.After(since) {
			since = changed
		}
	}
	return since, assisted.ResponseTimeout - v.Now.Sub(since)
}

func (v *View) notSynced(c *hivev1.ClusterInstallCondition) metav1.Condition {
	reason := controlplanev1.WaitingForAssistedServiceReason
	if c.Reason == hiveext.ClusterInputErrorReason {
		reason = controlplanev1.InvalidConfigurationReason
	}
	return condition.False(controlplanev1.InstalledCondition, reason, c.Message)
}

// pending returns the condition between registration and start.
func (v *View) pending() metav1.Condition {
	const t = controlplanev1.InstalledCondition
	if c := installCondition(v.Install, hiveext.ClusterSpecSyncedCondition); c != nil && c.Status == corev1.ConditionFalse &&
		c.Reason == hiveext.ClusterInputErrorReason {
		return v.notSynced(c)
	}
	last := installCondition(v.Install, hiveext.ClusterLastInstallationPreparationFailedCondition)
	if last != nil && last.Status == corev1.ConditionTrue || v.anyHost(preparingFailedStates) {
		return v.preparationFailed()
	}
	validated := installCondition(v.Install, hiveext.ClusterValidatedCondition)
	invalid := validated != nil && validated.Status == corev1.ConditionFalse
	wanted := int(v.Replicas() + v.WorkerReplicas())
	if len(v.Agents) < wanted && !(invalid && v.reported(controlplanev1.ValidationFailedReason)) {
		return v.withMissingWorkers(v.waitingForHosts(fmt.Sprintf("hosts bound to the cluster: %d of %d", len(v.Agents), wanted)))
	}
	if v.failedToPrepare() != nil {
		return v.preparationFailed()
	}
	if invalid {
		return v.validationFailed(validated.Message)
	}
	if c := installCondition(v.Install, hiveext.ClusterCompletedCondition); c != nil && c.Reason == hiveext.ClusterInstallationOnHoldReason {
		if v.ClusterDeleting() {
			return condition.False(t, controlplanev1.InstallationOnHoldReason, "the cluster is being deleted: no installation is begun")
		}
		return condition.False(
			t, controlplanev1.InstallationOnHoldReason, "everything is ready; set config.holdInstallation to false to start the installation",
		)
	}
	message := "waiting until all hosts are known and approved"
	if c := installCondition(v.Install, hiveext.ClusterRequirementsMetCondition); c != nil && c.Status == corev1.ConditionFalse &&
		c.Message != "" {
		message = c.Message
	}
	return condition.False(t, controlplanev1.WaitingForHostsReason, v.ofHosts(message, failingStates))
}

// preparationFailed reports a failure before anything was written to a disk. assisted-service sets the state
// of the cluster only for failures of its own. A failure of a host, for example to pull an image, is reported
// by its Agent alone.
func (v *View) preparationFailed() metav1.Condition {
	message := "the preparation of the installation failed, and assisted-service retries it"
	last := installCondition(v.Install, hiveext.ClusterLastInstallationPreparationFailedCondition)
	switch failed := last != nil && last.Status == corev1.ConditionTrue; {
	case failed:
		message += ": " + last.Message
	case !v.anyHost(preparingFailedStates) && v.failedToPrepare() != nil:
		return *v.failedToPrepare()
	}
	return condition.False(
		controlplanev1.InstalledCondition, controlplanev1.PreparationFailedReason, v.withURLs(v.ofHosts(message, failingStates)),
	)
}

// failedToPrepare returns the condition that was reported when a preparation failed. It stays while assisted-service
// tries again, over and over, until a preparation succeeds.
func (v *View) failedToPrepare() *metav1.Condition {
	if v.reported(controlplanev1.PreparationFailedReason) {
		return conditions.Get(v.ControlPlane, controlplanev1.InstalledCondition)
	}
	return nil
}

// reported reports whether the condition was last written with a reason.
func (v *View) reported(reason string) bool {
	return conditions.GetReason(v.ControlPlane, controlplanev1.InstalledCondition) == reason
}

// The texts before the links of a message, and before the command that collects everything about a failed installation.
const eventsLabel, logsLabel, commandLabel = "; events: ", "; logs: ", "; to analyze the failure, run kubectl openshift-agent gather "

// withURLs adds the links to the events and logs of assisted-service. After a failure it also adds the command.
func (v *View) withURLs(message string) string {
	links := ""
	if v.Progress.EventsURL != "" {
		links = eventsLabel + v.Progress.EventsURL
	}
	if v.Progress.LogsURL != "" {
		links += logsLabel + v.Progress.LogsURL
	}
	if v.Phase == controlplanev1.InstallationFailed {
		links += commandLabel + v.ClusterName() + " -n " + v.ControlPlane.Namespace
	}
	return bound.FitBefore(message, links) + links
}

// withoutURLs returns a message without what withURLs added.
func withoutURLs(message string) string {
	message, _, _ = strings.Cut(message, eventsLabel)
	message, _, _ = strings.Cut(message, logsLabel)
	message, _, _ = strings.Cut(message, commandLabel)
	return message
}

func installCondition(
	install *hiveext.AgentClusterInstall, conditionType hivev1.ClusterInstallConditionType,
) *hivev1.ClusterInstallCondition {
	if install == nil {
		return nil
	}
	for i := range install.Status.Conditions {
		if install.Status.Conditions[i].Type == conditionType {
			c := install.Status.Conditions[i]
			c.Message = assisted.RedactURLs(c.Message)
			return &c
		}
	}
	return nil
}

// Reregistered reports a cluster that assisted-service has lost, and the ways to repair that. None of them
// deletes anything here.
func Reregistered(f *facts.Facts) string {
	kubeconfig := f.ControlPlane.Name + "-admin-kubeconfig"
	if name := facts.AdminKubeconfigOf(f.Install); name != "" {
		kubeconfig = name
	}
	return fmt.Sprintf("the installation has begun, but assisted-service has the cluster in state %q, in which it may be installed again. "+
		"Its database may be lost or outdated. The provider changes nothing, and adds no host. Delete no object of this hub. Restore the newer "+
		"database. If that is impossible and the cluster is installed, import it: check that ClusterDeployment %s has spec.installed, and that "+
		"Secret %s exists with a kubeconfig of the cluster, then deregister the cluster only in the REST API of assisted-service",
		f.Progress.State, f.ControlPlane.Name, kubeconfig)
}

// Start returns the time since which assisted-service prepares and installs the cluster. It is
// the transition time of a condition whose texts do not change until the installation ends.
func (v *View) Start() *metav1.Time {
	c := installCondition(v.Install, hiveext.ClusterRequirementsMetCondition)
	if c == nil || c.Reason != hiveext.ClusterAlreadyInstallingReason || !v.Progress.Started ||
		v.Phase == controlplanev1.InstallationInstalled {
		return nil
	}
	return c.LastTransitionTime.DeepCopy()
}

// Percentage returns the progress of the installation in full tens: every single percent would be a write for each
// cluster.
func Percentage(f *facts.Facts) int32 { return f.Progress.Percentage / 10 * 10 }
