package hosts

import (
	"slices"

	"github.com/openshift/assisted-service/models"
)

// The stages of an installation by the role of the host in the cluster. Their order is that of the reports of
// the real installer and controller.
var (
	controlPlaneStages = []models.HostStage{
		models.HostStageStartingInstallation, models.HostStageInstalling, models.HostStageWritingImageToDisk,
		models.HostStageCopyingRegistryDataToDisk, models.HostStageRebooting, models.HostStageConfiguring,
		models.HostStageJoined, models.HostStageDone,
	}
	bootstrapStages = []models.HostStage{
		models.HostStageStartingInstallation, models.HostStageInstalling, models.HostStageWritingImageToDisk,
		models.HostStageCopyingRegistryDataToDisk, models.HostStageWaitingForControlPlane, models.HostStageWaitingForBootkube,
		models.HostStageWaitingForController, models.HostStageRebooting, models.HostStageConfiguring,
		models.HostStageJoined, models.HostStageDone,
	}
	workerStages = []models.HostStage{
		models.HostStageStartingInstallation, models.HostStageInstalling, models.HostStageWritingImageToDisk,
		models.HostStageWaitingForControlPlane, models.HostStageRebooting, models.HostStageWaitingForIgnition,
		models.HostStageConfiguring, models.HostStageJoined, models.HostStageDone,
	}
	singleNodeStages = []models.HostStage{
		models.HostStageStartingInstallation, models.HostStageInstalling, models.HostStageWaitingForBootkube,
		models.HostStageWritingImageToDisk, models.HostStageCopyingRegistryDataToDisk, models.HostStageRebooting,
		models.HostStageJoined, models.HostStageDone,
	}
	// notOnDayTwo are the stages that a day-2 host skips. It waits for no control plane, and reports nothing
	// after its reboot: the hub detects that its Node exists (Joined) and is Ready (Done).
	notOnDayTwo = []models.HostStage{
		models.HostStageWaitingForControlPlane, models.HostStageWaitingForIgnition, models.HostStageConfiguring,
	}
)

// Stages returns the installation stages of a host with this instruction, first to last.
func Stages(instruction Instruction) []models.HostStage {
	stages := workerStages
	switch {
	case instruction.SingleNode && !instruction.DayTwo:
		stages = singleNodeStages
	case instruction.Bootstrap && !instruction.DayTwo:
		stages = bootstrapStages
	case isControlPlane(instruction):
		stages = controlPlaneStages
	}
	return slices.DeleteFunc(slices.Clone(stages), func(s models.HostStage) bool {
		return instruction.DayTwo && slices.Contains(notOnDayTwo, s) ||
			len(instruction.KnownStages) > 0 && !slices.Contains(instruction.KnownStages, s)
	})
}

// isControlPlane reports whether a host runs the control plane of its cluster, or only its etcd.
func isControlPlane(instruction Instruction) bool {
	return isMaster(instruction) || isArbiter(instruction)
}

// isMaster reports whether a host serves the API of its cluster.
func isMaster(instruction Instruction) bool {
	return instruction.Bootstrap || instruction.SingleNode && !instruction.DayTwo ||
		instruction.Role == models.HostRoleMaster || instruction.Role == models.HostRoleBootstrap
}

// isArbiter reports whether a host is an etcd member but no master. It is installed as a master is.
func isArbiter(instruction Instruction) bool { return instruction.Role == models.HostRoleArbiter }

// untilReboot and afterReboot split stages: the first part runs in the discovery system, the second in the installed one.
func untilReboot(stages []models.HostStage) []models.HostStage {
	return stages[:slices.Index(stages, models.HostStageRebooting)+1]
}

func afterReboot(stages []models.HostStage) []models.HostStage {
	return stages[slices.Index(stages, models.HostStageRebooting)+1:]
}
