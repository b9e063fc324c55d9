package config

import (
	"testing"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestInstallationChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*hiveext.AgentClusterInstall)
		matters bool
	}{
		"its progress":          {func(i *hiveext.AgentClusterInstall) { i.Status.Progress.TotalPercentage = 50 }, false},
		"it accepts hosts":      {func(i *hiveext.AgentClusterInstall) { i.Status.DebugInfo.State = "adding-hosts" }, true},
		"it is to have workers": {func(i *hiveext.AgentClusterInstall) { i.Spec.ProvisionRequirements.WorkerAgents = 2 }, true},
		"its mirror registry is another": {func(i *hiveext.AgentClusterInstall) {
			i.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: "m"}
		}, true},
	} {
		before, _ := lab()["install"].(*hiveext.AgentClusterInstall)
		before.Spec.ProvisionRequirements.WorkerAgents = 0
		before.Status.DebugInfo.State = "installing"
		after := before.DeepCopy()
		tc.change(after)
		if got := installationChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.matters {
			t.Errorf("%s: %v", name, got)
		}
	}
}
