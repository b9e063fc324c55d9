package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// seeInstalled replaces a message that repeats the message of Installed.
const seeInstalled = "see the condition " + controlplanev1.InstalledCondition

// refer replaces messages that repeat the blocker of the installation, which Installed reports. Available keeps the
// message, because the Cluster mirrors it.
func refer(all []metav1.Condition) {
	cause := meta.FindStatusCondition(all, controlplanev1.InstalledCondition)
	if cause == nil || cause.Message == "" {
		return
	}
	for i := range all {
		c := &all[i]
		if c.Type == controlplanev1.InstalledCondition || c.Type == controlplanev1.AvailableCondition {
			continue
		}
		if before, repeated := strings.CutSuffix(c.Message, cause.Message); repeated && (before == "" || strings.HasSuffix(before, ": ")) {
			c.Message = before + seeInstalled
		}
	}
}
