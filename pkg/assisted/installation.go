// Package assisted holds what the providers know about assisted-service: names, the objects that they hand to it, and what its objects say.
package assisted

import (
	"net/url"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenShiftVersionAnnotation holds, on a ClusterDeployment, the OpenShift release of the cluster without leading v. The
// control plane provider writes it; the bootstrap provider takes the version of the discovery image from it.
const OpenShiftVersionAnnotation = "controlplane.cluster.x-k8s.io/openshift-version"

// States of a cluster in assisted-service (AgentClusterInstall.status.debugInfo.state). Others exist; these are the
// ones that decide something.
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
	StateCancelled                = "cancelled"
)

// Phase is where an installation is.
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

// Installation is what an AgentClusterInstall says about the installation of its cluster.
type Installation struct {
	Phase Phase
	// State and StateInfo are assisted-service's own words.
	State, StateInfo string
	// Percentage of the installation, 0 to 100.
	Percentage int32
	// Registered is true once assisted-service has taken the cluster in.
	Registered bool
	// AcceptsHosts is true while a host may be bound: before the installation starts and after it has ended (day-2).
	AcceptsHosts bool
	// Started is true from the preparation of the installation on: assisted-service refuses changes of the AgentClusterInstall's spec. A
	// preparation that failed makes it false again.
	Started bool
	// DayTwo is true once the cluster is installed: hosts that are bound join the installed cluster, each on its own.
	DayTwo bool
	// EventsURL and LogsURL lead to assisted-service's events and logs of the cluster; credentials are removed.
	EventsURL, LogsURL string
}

// Observe reads an AgentClusterInstall; nil is one that does not exist.
//
// The states ready and installed may never be seen (assisted-service leaves them within milliseconds), so the end of the installation is
// read from the Completed condition.
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
	case completed != nil && completed.Reason == hiveext.ClusterInstallationFailedReason, state == StateError, state == StateCancelled:
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

// InstalledAt is since when an AgentClusterInstall says that its cluster is installed; nil when it does not.
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

// publicParameters are the query parameters of assisted-service's URLs that say which object is meant. All others
// (api_key, image_token...) may be credentials.
var publicParameters = []string{"cluster_id", "infra_env_id", "host_id", "logs_type", "file_name"}

// PublicURL returns rawURL without what may be a credential: user information and all query parameters that do not name an object. It is
// empty for what is not an absolute URL.
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
