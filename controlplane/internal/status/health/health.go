// Package health concludes whether an installed cluster is healthy, and for how long its health may be unknown. It also
// concludes which planned restarts explain that the cluster is not available. It has no client, and no clock.
package health

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// View contains the facts on which the health of a cluster depends.
type View struct {
	*facts.Facts
	Now time.Time
	// Started is when this process began to observe.
	Started time.Time
}

// GraceLeft returns the time until a cluster whose API server does not answer, or whose health cannot be
// read, counts as not healthy.
func (v *View) GraceLeft() time.Duration {
	last := v.Workload.LastSuccess
	if !v.Workload.UnreadSince.IsZero() {
		last = v.Workload.UnreadSince
	}
	if last.Before(v.Started) {
		last = v.Started
	}
	return workload.GracePeriod - v.Now.Sub(last)
}

// Known reports whether the health of the cluster could be read. Unknown health does not count as
// healthy.
func (v *View) Known() bool { return v.Workload.Known() }

// Healthy reports whether the health of the cluster could be read, and no component is unhealthy.
func (v *View) Healthy() bool { return v.Known() && len(v.Workload.Unhealthy) == 0 }

// beforeAvailable are the reasons of Available while a cluster has not been available yet.
var beforeAvailable = []string{
	controlplanev1.WaitingForInstallationReason,
	controlplanev1.InstallationFailedReason,
	controlplanev1.WaitingForAPIServerReason,
	controlplanev1.WaitingForHealthyClusterReason,
}

// ComingUp returns the time that a new cluster has left to become available: one that was just installed, or
// was just moved to this hub. API servers restart at the end of an installation, and the conditions of the
// operators may be older than the state in assisted-service. Zero: the time has passed, or the cluster is
// available.
func (v *View) ComingUp() time.Duration {
	available, installed := conditions.Get(v.ControlPlane, controlplanev1.AvailableCondition),
		conditions.Get(v.ControlPlane, controlplanev1.InstalledCondition)
	if !v.Installed() || v.Healthy() || available == nil || !slices.Contains(beforeAvailable, available.Reason) {
		return 0
	}
	if installed == nil || installed.Status != metav1.ConditionTrue { // this reconcile reports the installation
		return workload.GracePeriod
	}
	return max(0, workload.GracePeriod-v.Now.Sub(installed.LastTransitionTime.Time))
}

// Initialized reports whether the API server of the cluster answers, or did so before.
func (v *View) Initialized() bool {
	return ptr.Deref(v.ControlPlane.Status.Initialization.ControlPlaneInitialized, v.Workload.Connected)
}

// Unknown returns the condition that names the cause of the unknown health of the cluster.
func (v *View) Unknown(conditionType string) metav1.Condition {
	if !v.Workload.Connected {
		return condition.Unknown(conditionType, controlplanev1.ConnectionDownReason, v.connectionDown())
	}
	return condition.Unknown(conditionType, controlplanev1.HealthUnknownReason, fmt.Sprintf("the cluster's API server answers, but its "+
		"ClusterVersion, ClusterOperators or Nodes cannot be read since %s: "+
		"check that the credentials in Secret %s may read them; see the log of the manager", v.Workload.UnreadSince.UTC().Format(time.RFC3339),
		secret.Name(v.ClusterName(), secret.Kubeconfig)))
}

func (v *View) connectionDown() string {
	if v.Workload.LastSuccess.IsZero() {
		return v.Because(fmt.Sprintf("the cluster's API server has not answered for %s", workload.GracePeriod))
	}
	return v.Because("the cluster's API server has not answered since " + v.Workload.LastSuccess.UTC().Format(time.RFC3339))
}

// Because adds the known cause of the missing connection to the cluster to a message.
func (v *View) Because(message string) string {
	if v.Workload.Failure == nil {
		return message
	}
	return message + ": " + v.Workload.Failure.Message
}
