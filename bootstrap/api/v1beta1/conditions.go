package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Conditions of an OpenshiftAssistedConfig, in the order in which a host passes them.
const (
	// ReadyCondition is True once the host is installed. Its reason and message are those of the first other condition
	// that is not True. Cluster API mirrors the condition into BootstrapConfigReady of the Machine.
	ReadyCondition = "Ready"

	// DiscoveryImageReadyCondition is True once the InfraEnv offers the image or ignition that the host boots.
	DiscoveryImageReadyCondition = "DiscoveryImageReady"

	// DataSecretAvailableCondition is True once the boot image is in place and the bootstrap data secret exists.
	DataSecretAvailableCondition = "DataSecretAvailable"

	// HostIdentifiedCondition is True once an Agent is proven to run on the host of this Machine.
	HostIdentifiedCondition = "HostIdentified"

	// HostBoundCondition is True once the host belongs to the cluster.
	HostBoundCondition = "HostBound"

	// HostApprovedCondition is True once the host may be installed.
	HostApprovedCondition = "HostApproved"

	// HostInstalledCondition is True once the host runs the installed system and has joined the cluster. It stays True.
	HostInstalledCondition = "HostInstalled"

	// HostAvailableCondition reports, for a Machine with Metal3, whether a BareMetalHost is chosen for the Machine or
	// fits it. Before any server is started, the message names the BareMetalHosts that fit, or the reason why none
	// fits. The condition is advisory and blocks nothing: DataSecretAvailable reports what blocks the start of a
	// server. The condition is removed when the host is installed. It returns while the Bare Metal Operator reports an
	// error of the BareMetalHost.
	HostAvailableCondition = "HostAvailable"

	// DeletingCondition is True while the object is being deleted. The message names what blocks the deletion.
	DeletingCondition = "Deleting"
)

// HostStages returns the conditions that a host passes one after the other. Each is the blocker of those behind it.
func HostStages() []string {
	return []string{
		DiscoveryImageReadyCondition, DataSecretAvailableCondition, HostIdentifiedCondition, HostBoundCondition, HostApprovedCondition,
		HostInstalledCondition,
	}
}

// Reasons of the conditions above.
const (
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	WaitingForMachineReason               = "WaitingForMachine"
	ClusterDeploymentNotOursReason        = "ClusterDeploymentNotOurs"
	WaitingForAgentClusterInstallReason   = "WaitingForAgentClusterInstall"
	WaitingForClusterDeploymentReason     = "WaitingForClusterDeployment"
	WaitingForInfraMachineReason          = "WaitingForInfraMachine"
	WaitingForNMStateConfigReason         = "WaitingForNMStateConfig"
	WaitingForDiscoveryImageReason        = "WaitingForDiscoveryImage"
	PullSecretMissingReason               = "PullSecretMissing"
	DiscoveryImageFailedReason            = "DiscoveryImageFailed"
	DiscoveryImageReadyReason             = "DiscoveryImageReady"
	DiscoveryImageUnavailableReason       = "DiscoveryImageUnavailable"
	InfraEnvNotOursReason                 = "InfraEnvNotOurs"
	InvalidConfigurationReason            = "InvalidConfiguration"
	IgnitionDownloadFailedReason          = "IgnitionDownloadFailed"
	BootImageRejectedReason               = "BootImageRejected"
	BootImageOutdatedReason               = "BootImageOutdated"
	ServerInUseReason                     = "ServerInUse"
	BMCOfAnotherServerReason              = "BMCOfAnotherServer"
	DataSecretAvailableReason             = "DataSecretAvailable"
	WaitingForHostReason                  = "WaitingForHost"
	WaitingForHostIdentityReason          = "WaitingForHostIdentity"
	HostRefusedReason                     = "HostRefused"
	HostNotRespondingReason               = "HostNotResponding"
	HostIdentifiedReason                  = "HostIdentified"
	RoleConflictReason                    = "RoleConflict"
	HostBelowRequirementsReason           = "HostBelowRequirements"
	InstallationDiskNotFoundReason        = "InstallationDiskNotFound"
	ClusterNotAcceptingHostsReason        = "ClusterNotAcceptingHosts"
	ClusterReregisteredReason             = "ClusterReregistered"
	NodeNameTakenReason                   = "NodeNameTaken"
	FencingCredentialsUnusableReason      = "FencingCredentialsUnusable"
	HostBindingReason                     = "HostBinding"
	HostBoundReason                       = "HostBound"
	WaitingForHostValidationReason        = "WaitingForHostValidation"
	HostRestoredWithoutHistoryReason      = "HostRestoredWithoutHistory"
	HostApprovedReason                    = "HostApproved"
	WaitingForInstallationReason          = "WaitingForInstallation"
	HostInstallingReason                  = "HostInstalling"
	HostInstallationFailedReason          = "HostInstallationFailed"
	HostBootedDiscoveryAgainReason        = "HostBootedDiscoveryAgain"
	HostInstalledReason                   = "HostInstalled"
	AssistedServiceNotRespondingReason    = "AssistedServiceNotResponding"
	MachinePoolNotSupportedReason         = "MachinePoolNotSupported"
	InternalErrorReason                   = clusterv1.InternalErrorReason
	HostsFitReason                        = "HostsFit"
	HostChosenReason                      = "HostChosen"
	NoHostFitsReason                      = "NoHostFits"
	TooFewHostsReason                     = "TooFewHosts"
	NMStateConfigMismatchReason           = "NMStateConfigMismatch"
	HostFailedReason                      = "HostFailed"
	HostUnhealthyReason                   = "HostUnhealthy"
	HostUnmanagedReason                   = "HostUnmanaged"
	NotDeletingReason                     = "NotDeleting"
	DeletingAgentReason                   = "DeletingAgent"
	DeletingInfraEnvReason                = "DeletingInfraEnv"
	HostInAnotherClusterReason            = "HostInAnotherCluster"
)
