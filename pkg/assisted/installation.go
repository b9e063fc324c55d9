// Package assisted holds the contract with assisted-service: names, the objects for it, and the meaning of
// its objects.
package assisted

import (
	"net/url"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenShiftVersionAnnotation holds, on a ClusterDeployment, the OpenShift release of the cluster without
// leading v. The control plane provider writes it. The bootstrap provider reads the version of the discovery
// image from it.
const OpenShiftVersionAnnotation = "controlplane.cluster.x-k8s.io/openshift-version"

// States of a cluster in assisted-service (AgentClusterInstall.status.debugInfo.state). Only states with a
// meaning for the providers are listed.
const (
	StateInsufficient             = "insufficient"
	StatePendingForInput          = "pending-for-input"
	StateReady                    = "ready"
	StatePreparing                = "preparing-for-installation"
	StateInstalling               = "installing"
	StateInstallingPendingForUser = "installing-pending-user-action"
	StateFinalizing               = "finalizing"
	StateInstalled                = "installed"
	StateAddingHosts              = "adding-hosts"
	StateError                    = "error"
	StateCanceled                 = "cancelled"
)

// Phase is the phase of an installation.
type Phase string

// The phases of an installation, in order. Failed can follow Preparing, Installing and Finalizing.
const (
	PhasePending    Phase = "Pending"
	PhasePreparing  Phase = "Preparing"
	PhaseInstalling Phase = "Installing"
	PhaseFinalizing Phase = "Finalizing"
	PhaseInstalled  Phase = "Installed"
	PhaseFailed     Phase = "Failed"
)

// Installation is the state of the installation of a cluster, read from its AgentClusterInstall.
type Installation struct {
	Phase Phase
	// State and StateInfo are the state and its explanation, as assisted-service reports them.
	State, StateInfo string
	// Percentage of the installation, 0 to 100.
	Percentage int32
	// Registered is true once assisted-service has registered the cluster.
	Registered bool
	// AcceptsHosts is true while a host may be bound: before the installation starts and after it has ended (day-2).
	AcceptsHosts bool
	// Started is true from the preparation of the installation on: assisted-service rejects changes of the
	// spec of the AgentClusterInstall. A failed preparation makes it false again.
	Started bool
	// DayTwo is true once the cluster is installed: hosts that are bound join the installed cluster one by
	// one.
	DayTwo bool
	// EventsURL and LogsURL are the URLs of assisted-service's events and logs of the cluster, without
	// credentials.
	EventsURL, LogsURL string
}

// Observe returns the installation of an AgentClusterInstall; nil is a missing one.
//
// The states ready and installed may never be observed, because assisted-service leaves them within
// milliseconds. The end of the installation is therefore read from the condition Completed.
func Observe(aci *hiveext.AgentClusterInstall) Installation {
	if aci == nil {
		return Installation{Phase: PhasePending}
	}
	info := aci.Status.DebugInfo
	completed := conditionOf(aci, hiveext.ClusterCompletedCondition)
	i := Installation{
		Phase:      phaseOf(info.State, completed),
		State:      info.State,
		StateInfo:  RedactURLs(info.StateInfo),
		Percentage: int32(min(max(aci.Status.Progress.TotalPercentage, 0), 100)), //nolint:gosec // within 0..100
		Registered: info.State != "",
		EventsURL:  PublicURL(info.EventsURL),
		LogsURL:    PublicURL(info.LogsURL),
	}
	i.DayTwo = i.Phase == PhaseInstalled
	i.Started = i.Phase != PhasePending
	i.AcceptsHosts = slices.Contains([]string{StateInsufficient, StatePendingForInput, StateReady, StateAddingHosts}, info.State) &&
		(i.DayTwo || !i.Started)
	return i
}

func phaseOf(state string, completed *hivev1.ClusterInstallCondition) Phase {
	switch {
	case completed != nil && completed.Status == corev1.ConditionTrue, state == StateInstalled, state == StateAddingHosts:
		return PhaseInstalled
	case completed != nil && completed.Reason == hiveext.ClusterInstallationFailedReason, state == StateError, state == StateCanceled:
		return PhaseFailed
	case state == StateFinalizing:
		return PhaseFinalizing
	case state == StateInstalling, state == StateInstallingPendingForUser:
		return PhaseInstalling
	case state == StatePreparing, completed != nil && completed.Reason == hiveext.ClusterInstallationInProgressReason:
		return PhasePreparing
	default:
		return PhasePending
	}
}

// InstalledAt returns since when an AgentClusterInstall reports that its cluster is installed; nil if it does
// not.
func InstalledAt(aci *hiveext.AgentClusterInstall) *metav1.Time {
	if aci == nil {
		return nil
	}
	if c := conditionOf(aci, hiveext.ClusterCompletedCondition); c != nil && c.Status == corev1.ConditionTrue {
		return &c.LastTransitionTime
	}
	return nil
}

func conditionOf(aci *hiveext.AgentClusterInstall, conditionType hivev1.ClusterInstallConditionType) *hivev1.ClusterInstallCondition {
	for i := range aci.Status.Conditions {
		if aci.Status.Conditions[i].Type == conditionType {
			return &aci.Status.Conditions[i]
		}
	}
	return nil
}

// publicParameters are the query parameters of assisted-service's URLs that identify an object. All others
// (api_key, image_token...) may be credentials.
var publicParameters = []string{"cluster_id", "infra_env_id", "host_id", "logs_type", "file_name"}

// PublicURL returns rawURL without possible credentials: user information, and all query parameters that do
// not identify an object. It is empty if rawURL is not an absolute URL.
func PublicURL(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return ""
	}
	query := url.Values{}
	for _, name := range publicParameters {
		if u.Query().Has(name) {
			query.Set(name, u.Query().Get(name))
		}
	}
	u.User, u.Fragment, u.RawQuery = nil, "", query.Encode()
	return u.String()
}
