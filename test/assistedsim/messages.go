package assistedsim

// Reasons and messages of the conditions of Agents, as the real service writes them (testdata). A message that ends with
// a colon is followed by details.
const (
	agentConnectedReason = "AgentIsConnected"
	agentConnectedMsg    = "The agent's connection to the installation service is unimpaired"
	agentDisconnectedMsg = "The agent has not contacted the installation service in some time, user action should be taken"

	agentReadyReason               = "AgentIsReady"
	agentReadyMsg                  = "The agent is ready to begin the installation"
	agentNotReadyReason            = "AgentNotReady"
	agentNotReadyMsg               = "The agent is not ready to begin the installation"
	agentIsNotApprovedReason       = "AgentIsNotApproved"
	agentIsNotApprovedMsg          = "The agent is not approved"
	agentAlreadyInstallingReason   = "AgentAlreadyInstalling"
	agentAlreadyInstallingMsg      = "Installation already started and is in progress"
	agentInstallationStoppedReason = "AgentInstallationStopped"
	agentInstallationStoppedMsg    = "The agent installation stopped"

	validationsPassingReason     = "ValidationsPassing"
	agentValidationsPassingMsg   = "The agent's validations are passing"
	validationsUnknownReason     = "ValidationsUnknown"
	agentValidationsUnknownMsg   = "The agent's validations have not yet been calculated"
	agentValidationsFailingMsg   = "The agent's validations are failing:"
	installedReason              = "InstallationCompleted"
	installedMsg                 = "The installation has completed:"
	installationFailedReason     = "InstallationFailed"
	installationFailedMsg        = "The installation has failed:"
	installationNotStartedReason = "InstallationNotStarted"
	installationNotStartedMsg    = "The installation has not yet started"
	installationInProgressReason = "InstallationInProgress"
	installationInProgressMsg    = "The installation is in progress:"
	unknownStatusReason          = "UnknownStatus"
	unknownStatusMsg             = "The installation status is currently not recognized:"

	syncedOkReason     = "SyncOK"
	syncedOkMsg        = "The Spec has been successfully applied"
	backendErrorReason = "BackendError"
	backendErrorMsg    = "The Spec could not be synced due to backend error:"
	inputErrorMsg      = "The Spec could not be synced due to an input error:"

	boundReason                      = "Bound"
	boundMsg                         = "The agent is bound to a cluster deployment"
	unboundReason                    = "Unbound"
	unboundMsg                       = "The agent is not bound to any cluster deployment"
	bindingReason                    = "Binding"
	bindingMsg                       = "The agent is currently binding to a cluster deployment"
	unbindingReason                  = "Unbinding"
	unbindingMsg                     = "The agent is currently unbinding from a cluster deployment"
	unbindingPendingUserActionReason = "UnbindingPendingUserAction"
	unbindingPendingUserActionMsg    = "The agent is currently unbinding; Pending host reboot from infraenv image"

	cleanupFailedReason = "CleanupFailed"
)

// Reasons and messages of the condition ImageCreated of InfraEnvs.
const (
	imageCreationErrorReason          = "ImageCreationError"
	imageStateFailedToCreate          = "Failed to create image"
	imageStateCreated                 = "Image has been created"
	infraEnvAvailableReason           = "InfraEnvAvailable"
	infraEnvAvailableMessage          = "InfraEnv is available"
	missingClusterDeploymentReason    = "MissingClusterDeployment"
	missingClusterDeploymentReference = "ClusterDeployment is missing"
)

// Values of spec.ipxeScriptType of an InfraEnv.
const (
	bootOrderControl     = "BootOrderControl"
	discoveryImageAlways = "DiscoveryImageAlways"
)
