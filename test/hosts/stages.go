package hosts

import (
	"slices"

	"github.com/openshift/assisted-service/models"
)

// The stages of an installation by what the host is to the cluster, in the order in which the real installer and
// controller report them.
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
	// notOnDayTwo are the stages that a host does not pass that joins an installed cluster: it waits for no control plane, and
	// after its reboot it reports nothing; the hub sees its Node appear (Joined) and become Ready (Done).
	notOnDayTwo = []models.HostStage{
		models.HostStageWaitingForControlPlane, models.HostStageWaitingForIgnition, models.HostStageConfiguring,
	}
)

// Stages returns the installation stages that a host with this instruction passes, first to last.
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

// isControlPlane is true for a host that runs the control plane of its cluster, or only etcd of it.
func isControlPlane(instruction Instruction) bool {
	return isMaster(instruction) || isArbiter(instruction)
}

// isMaster is true for a host that serves the API of its cluster.
func isMaster(instruction Instruction) bool {
	return instruction.Bootstrap || instruction.SingleNode && !instruction.DayTwo ||
		instruction.Role == models.HostRoleMaster || instruction.Role == models.HostRoleBootstrap
}

// isArbiter is true for a member of etcd that is no master. It is installed as a master is.
func isArbiter(instruction Instruction) bool { return instruction.Role == models.HostRoleArbiter }

// untilReboot and afterReboot split stages: the first part runs in the discovery system, the second in the installed one.
func untilReboot(stages []models.HostStage) []models.HostStage {
	return stages[:slices.Index(stages, models.HostStageRebooting)+1]
}

func afterReboot(stages []models.HostStage) []models.HostStage {
	return stages[slices.Index(stages, models.HostStageRebooting)+1:]
}
