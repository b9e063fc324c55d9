package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// TestInstallationThatDoesNotChangeIsTouched: assisted-service loses a notification if its database does not answer. It
// publishes the AgentClusterInstall again when that changes.
func TestInstallationThatDoesNotChangeIsTouched(t *testing.T) {
	for state, touched := range map[string]bool{
		"insufficient": false, "ready": true, "preparing-for-installation": true, "installing": true, "finalizing": true,
		"error": false, "adding-hosts": false,
	} {
		t.Run(state, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.reconcile()
			h.setState(state, "", 40)
			now := time.Now()
			h.clock.now = func() time.Time { return now }
			h.reconcile()
			h.reconcile()
			mark := func() string {
				install := &hiveext.AgentClusterInstall{}
				h.get("c1", install)
				return install.Annotations[controlplanev1.RefreshAnnotation]
			}
			h.Expect(mark()).To(BeEmpty(), "the wait has begun only")
			now = now.Add(4 * time.Minute)
			h.reconcile()
			if touched {
				h.Expect(mark()).NotTo(BeEmpty())
			} else {
				h.Expect(mark()).To(BeEmpty())
			}
		})
	}
}
