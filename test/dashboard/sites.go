package main

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// site is a cluster, its delay after the previous one, and the state at which the next step starts.
type site struct {
	sample string
	after  time.Duration
	fails  bool
	until  string
	done   func(*lab.State) bool
}

// sites contain more than one cluster of each kind: Prometheus shows an increase of a counter only from its second
// value on.
var sites = []site{
	{sample: "sno", until: "available", done: (*lab.State).Available},
	{sample: "compact", after: 12 * time.Second, until: "available", done: (*lab.State).Available},
	{sample: "sno", after: 10 * time.Second, fails: true, until: "failed", done: failed},
	{sample: "okd", after: 8 * time.Second, until: "available", done: (*lab.State).Available},
	{sample: "sno", after: 15 * time.Second, fails: true, until: "failed", done: failed},
	{sample: "sno", after: 10 * time.Second, until: "available", done: (*lab.State).Available},
	{sample: "compact", after: 15 * time.Second, until: "being installed", done: someHostsAreInStages},
}

// failed is true when the preparation of the installation failed.
func failed(s *lab.State) bool {
	if s.ControlPlane == nil {
		return false
	}
	installed := meta.FindStatusCondition(s.ControlPlane.Status.Conditions, controlplanev1.InstalledCondition)
	return installed != nil && installed.Reason == controlplanev1.PreparationFailedReason
}

// someHostsAreInStages is true while hosts are being installed.
func someHostsAreInStages(s *lab.State) bool {
	for _, m := range s.Machines {
		if m.Agent != nil && m.Agent.Status.Progress.CurrentStage != "" {
			return true
		}
	}
	return false
}
