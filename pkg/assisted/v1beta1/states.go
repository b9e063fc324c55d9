package v1beta1

// HostRole is the role of a host in its cluster.
type HostRole string

// Roles of hosts.
const (
	HostRoleAutoAssign HostRole = "auto-assign"
	HostRoleMaster     HostRole = "master"
	HostRoleArbiter    HostRole = "arbiter"
	HostRoleWorker     HostRole = "worker"
)

// HostStage is a stage of the installation of a host.
type HostStage string

// Stages of the installation of a host. No host passes all of them.
const (
	HostStageStartingInstallation      HostStage = "Starting installation"
	HostStageInstalling                HostStage = "Installing"
	HostStageWritingImageToDisk        HostStage = "Writing image to disk"
	HostStageCopyingRegistryDataToDisk HostStage = "Copying registry data to disk"
	HostStageWaitingForControlPlane    HostStage = "Waiting for control plane"
	HostStageWaitingForBootkube        HostStage = "Waiting for bootkube"
	HostStageWaitingForController      HostStage = "Waiting for controller"
	HostStageRebooting                 HostStage = "Rebooting"
	HostStageWaitingForIgnition        HostStage = "Waiting for ignition"
	HostStageConfiguring               HostStage = "Configuring"
	HostStageJoined                    HostStage = "Joined"
	HostStageDone                      HostStage = "Done"
)

// States of a host, in [DebugInfo.State]. A host of an InfraEnv without cluster starts as unbound.
const (
	HostStatusKnownUnbound = "known-unbound"

	HostStatusBinding         = "binding"
	HostStatusDiscovering     = "discovering"
	HostStatusDisconnected    = "disconnected"
	HostStatusInsufficient    = "insufficient"
	HostStatusPendingForInput = "pending-for-input"
	HostStatusKnown           = "known"

	HostStatusPreparingForInstallation    = "preparing-for-installation"
	HostStatusPreparingFailed             = "preparing-failed"
	HostStatusPreparingSuccessful         = "preparing-successful"
	HostStatusInstalling                  = "installing"
	HostStatusInstallingInProgress        = "installing-in-progress"
	HostStatusInstallingPendingUserAction = "installing-pending-user-action"

	HostStatusInstalled              = "installed"
	HostStatusAddedToExistingCluster = "added-to-existing-cluster"
	HostStatusCanceled               = "cancelled"
	HostStatusError                  = "error"
)
