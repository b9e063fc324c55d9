package hosts

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
)

// TestStages compares with the status.progress.progressStages of the real service.
func TestStages(t *testing.T) {
	for name, tc := range map[string]struct {
		instruction Instruction
		want        string
	}{
		"control plane": {
			Instruction{Role: models.HostRoleMaster},
			"Starting installation,Installing,Writing image to disk,Copying registry data to disk,Rebooting,Configuring,Joined,Done",
		},
		"bootstrap": {
			Instruction{Role: models.HostRoleMaster, Bootstrap: true},
			"Starting installation,Installing,Writing image to disk,Copying registry data to disk,Waiting for control " +
				"plane,Waiting for bootkube,Waiting for controller,Rebooting,Configuring,Joined,Done",
		},
		"arbiter": {
			Instruction{Role: models.HostRoleArbiter},
			"Starting installation,Installing,Writing image to disk,Copying registry data to disk,Rebooting,Configuring,Joined,Done",
		},
		"worker": {
			Instruction{Role: models.HostRoleWorker},
			"Starting installation,Installing,Writing image to disk,Waiting for control plane,Rebooting," +
				"Waiting for ignition,Configuring,Joined,Done",
		},
		"single node": {
			Instruction{Role: models.HostRoleMaster, Bootstrap: true, SingleNode: true},
			"Starting installation,Installing,Waiting for bootkube,Writing image to disk,Copying registry data to disk,Rebooting,Joined,Done",
		},
		"a service that knows fewer stages": {
			Instruction{
				Role:        models.HostRoleMaster,
				KnownStages: []models.HostStage{models.HostStageInstalling, models.HostStageRebooting, models.HostStageDone},
			},
			"Installing,Rebooting,Done",
		},
		"day-2 worker": {
			Instruction{Role: models.HostRoleWorker, DayTwo: true},
			"Starting installation,Installing,Writing image to disk,Rebooting,Joined,Done",
		},
		"day-2 control plane": {
			Instruction{Role: models.HostRoleMaster, DayTwo: true},
			"Starting installation,Installing,Writing image to disk,Copying registry data to disk,Rebooting,Joined,Done",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range Stages(tc.instruction) {
				got = append(got, string(s))
			}
			NewWithT(t).Expect(strings.Join(got, ",")).To(Equal(tc.want))
		})
	}
}
