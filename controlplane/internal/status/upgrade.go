package status

import (
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// complete finds how far an upgrade is in what the cluster says of it (cluster version operator: "Working towards 4.20.1: 312 of 903 done (34% complete)").
var complete = regexp.MustCompile(`\((\d{1,3})% complete\)`)

// upgradeStatus is how far the cluster is on its way to another release. While its API server does not answer it is what was seen last: hosts restart, and a single one takes the API server along.
func (v *View) upgradeStatus() controlplanev1.UpgradeStatus {
	before := v.ControlPlane.Status.Upgrade
	switch {
	case !v.Installed() || v.Workload.OpenShiftVersion == "":
		return before
	case v.Workload.Upgrading == "":
		return controlplanev1.UpgradeStatus{}
	}
	now := controlplanev1.UpgradeStatus{Version: "v" + v.Workload.Upgrading}
	if now.Version == before.Version {
		now.Percentage = before.Percentage // not each message has one
	}
	if r := v.Workload.Rollout; r != nil {
		if found := complete.FindStringSubmatch(r.Progress); found != nil {
			percentage, _ := strconv.Atoi(found[1])                        // digits
			now.Percentage = ptr.To(int32(min(percentage, 100) / 10 * 10)) //nolint:gosec // up to 100; every single percent would be a write for each cluster
		}
	}
	return now
}

// upgradeUnderWay says to which release the cluster is being brought, and how far it is; empty: to none.
func (v *View) upgradeUnderWay() string {
	under := v.upgradeStatus()
	if under.Version == "" {
		return ""
	}
	message := "upgrading the cluster to " + under.Version
	if v.Workload.OpenShiftVersion == "" {
		message += ", whose API server does not answer now"
		if v.Replicas() == 1 {
			message += ", as is to be expected while its only host restarts"
		}
		return message
	}
	message = fmt.Sprintf("upgrading the cluster from v%s to %s", v.Workload.OpenShiftVersion, under.Version)
	if r := v.Workload.Rollout; r != nil && r.Progress != "" {
		message += ": " + r.Progress
	}
	return message
}
