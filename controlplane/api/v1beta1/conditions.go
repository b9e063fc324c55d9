package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Conditions of an OpenshiftAssistedControlPlane.
const (
	// AvailableCondition is True when the cluster is installed and its control plane serves. Cluster API mirrors it into the
	// Cluster's ControlPlaneAvailable.
	AvailableCondition = clusterv1.AvailableCondition

	// InitializedCondition is True once the cluster's API server has answered. It stays True.
	InitializedCondition = "Initialized"

	// ReleaseImageResolvedCondition is True once the release image of spec.version is known.
	ReleaseImageResolvedCondition = "ReleaseImageResolved"

	// InstalledCondition is True once the cluster is installed. Until then its message tells phase, percentage, what fails, and where
	// assisted-service's events and logs are.
	InstalledCondition = "Installed"

	// KubeconfigAvailableCondition is True once the Secret <cluster>-kubeconfig exists.
	KubeconfigAvailableCondition = "KubeconfigAvailable"

	// ControlPlaneComponentsHealthyCondition is True when the cluster's operators for etcd and the API server say that they are available.
	ControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// EtcdClusterHealthyCondition is True when the cluster's etcd operator reports that the members of etcd serve, and every control-plane Node has a Machine. It does not
	// exist before the cluster is installed. Its name is that of KubeadmControlPlane.
	EtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// MachinesCreatedCondition is True when all wanted Machines exist.
	MachinesCreatedCondition = "MachinesCreated"

	// MachinesReadyCondition is True when all Machines are Ready.
	MachinesReadyCondition = clusterv1.MachinesReadyCondition

	// MachinesUpToDateCondition is True when all Machines are UpToDate.
	MachinesUpToDateCondition = clusterv1.MachinesUpToDateCondition

	// RollingOutCondition is True when Machines are not UpToDate.
	RollingOutCondition = clusterv1.RollingOutCondition

	// ScalingUpCondition is True when Machines are missing.
	ScalingUpCondition = clusterv1.ScalingUpCondition

	// ScalingDownCondition is True when there are too many Machines, or one that is being deleted waits for its host to leave etcd.
	ScalingDownCondition = clusterv1.ScalingDownCondition

	// RemediatingCondition is True when a MachineHealthCheck wants Machines to be remediated; the message tells what keeps them.
	RemediatingCondition = clusterv1.RemediatingCondition

	// CertificatesApprovedCondition is False while kubelets of the cluster's hosts ask for certificates that do not fit; else it is not there.
	CertificatesApprovedCondition = "CertificatesApproved"

	// HostsProgressingCondition is False while a host is much slower than the others that are installed beside it; else it is not there. It advises, and holds nothing up.
	HostsProgressingCondition = "HostsProgressing"

	// PreflightPassedCondition tells, until the cluster is installed, whether its names, addresses and registries look right from the hub. It advises, and holds
	// nothing up.
	PreflightPassedCondition = "PreflightPassed"

	// DeletingCondition is True while the object is being deleted; the message says what is waited for.
	DeletingCondition = clusterv1.DeletingCondition
)

// Reasons of the conditions above.
const (
	WaitingForClusterReason               = "WaitingForCluster"
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"
	WaitingForControlPlaneEndpointReason  = "WaitingForControlPlaneEndpoint"
	InvalidConfigurationReason            = "InvalidConfiguration"
	UnsupportedVersionReason              = "UnsupportedVersion"
	PullSecretMissingReason               = "PullSecretMissing"
	ManifestsMissingReason                = "ManifestsMissing"
	ClusterImageSetMissingReason          = "ClusterImageSetMissing"
	ReleaseImageNotFoundReason            = "ReleaseImageNotFound"
	RegistryUnavailableReason             = "RegistryUnavailable"
	ReleaseImageResolvedReason            = "ReleaseImageResolved"
	WaitingForReleaseImageReason          = "WaitingForReleaseImage"
	WaitingForAssistedServiceReason       = "WaitingForAssistedService"
	AssistedServiceNotRespondingReason    = "AssistedServiceNotResponding"
	InstallationNotOursReason             = "InstallationNotOurs"
	ForeignAgentsBoundReason              = "ForeignAgentsBound"
	InstallationRejectedReason            = "InstallationRejected"
	VersionChangeNotSupportedReason       = "VersionChangeNotSupported"
	VersionMismatchReason                 = "VersionMismatch"
	WaitingForHostsReason                 = "WaitingForHosts"
	WorkersNotCreatedReason               = "WorkersNotCreated"
	InstallationOnHoldReason              = "InstallationOnHold"
	ValidationFailedReason                = "ValidationFailed"
	PreparationFailedReason               = "PreparationFailed"
	PreparingReason                       = "Preparing"
	InstallingReason                      = "Installing"
	UserActionRequiredReason              = "UserActionRequired"
	FinalizingReason                      = "Finalizing"
	InstallationFailedReason              = "InstallationFailed"
	RetryingInstallationReason            = "RetryingInstallation"
	InstalledReason                       = "Installed"
	ReregisteredReason                    = "Reregistered"
	WaitingForImportReason                = "WaitingForImport"
	WaitingForKubeconfigReason            = "WaitingForKubeconfig"
	KubeconfigAvailableReason             = "KubeconfigAvailable"
	KubeconfigRefusedReason               = "KubeconfigRefused"
	KubeconfigUnauthorizedReason          = "KubeconfigUnauthorized"
	KubeconfigUntrustedReason             = "KubeconfigUntrusted"
	KubeconfigNotOursReason               = "KubeconfigNotOurs"
	WaitingForAPIServerReason             = "WaitingForAPIServer"
	InitializedReason                     = "Initialized"
	ControlPlaneRestartingReason          = "ControlPlaneRestarting"
	ConnectionDownReason                  = "ConnectionDown"
	HealthUnknownReason                   = "HealthUnknown"
	ComponentsHealthyReason               = "ComponentsHealthy"
	ComponentsNotHealthyReason            = "ComponentsNotHealthy"
	AvailableReason                       = clusterv1.AvailableReason
	NotAvailableReason                    = clusterv1.NotAvailableReason
	MachinesCreatedReason                 = "MachinesCreated"
	InfraTemplateMissingReason            = "InfraTemplateMissing"
	MachineCreationFailedReason           = "MachineCreationFailed"
	MachinesWithoutOwnerReason            = "MachinesWithoutOwner"
	BootstrapProviderOutdatedReason       = "BootstrapProviderOutdated"
	ArbiterMismatchReason                 = "ArbiterMismatch"
	WaitingForInstallationReason          = "WaitingForInstallation"
	NotDeletingReason                     = clusterv1.NotDeletingReason
	WaitingForWorkersDeletionReason       = "WaitingForWorkersDeletion"
	WaitingForMachinesDeletionReason      = "WaitingForMachinesDeletion"
	WaitingForInstallationDeletionReason  = "WaitingForInstallationDeletion"
	InfrastructureDeletionStuckReason     = "InfrastructureDeletionStuck"
	EtcdUnknownReason                     = "EtcdUnknown"
	EtcdClusterHealthyReason              = "Healthy"
	EtcdClusterNotHealthyReason           = "NotHealthy"
	NodeWithoutMachineReason              = "NodeWithoutMachine"
	WaitingForNodeDeletionReason          = "WaitingForNodeDeletion"
	EtcdQuorumAtRiskReason                = "EtcdQuorumAtRisk"
	EtcdTopologyNotSupportedReason        = "EtcdTopologyNotSupported"
	LastEtcdMemberReason                  = "LastEtcdMember"
	WaitingForDrainReason                 = "WaitingForDrain"
	WaitingForEtcdReason                  = "WaitingForEtcd"
	WaitingForReplacementReason           = "WaitingForReplacement"
	WaitingForMachineAPIReason            = "WaitingForMachineAPI"
	ClusterVersionUnavailableReason       = "ClusterVersionUnavailable"
	UpgradeInProgressReason               = "UpgradeInProgress"
	MachineConfigPoolDegradedReason       = "MachineConfigPoolDegraded"
	MachineConfigPoolPausedReason         = "MachineConfigPoolPaused"
	UpgradeFailingReason                  = "UpgradeFailing"
	UpgradeNotOfferedReason               = "UpgradeNotOffered"
	UpgradeRefusedReason                  = "UpgradeRefused"
	UpgradeRiskNotAcceptedReason          = "UpgradeRiskNotAccepted"
	WaitingForHealthyClusterReason        = "WaitingForHealthyCluster"
	PreflightPassedReason                 = "PreflightPassed"
	PreflightWarningsReason               = "PreflightWarnings"
	PreflightIncompleteReason             = "PreflightIncomplete"
	CertificateRequestMismatchReason      = "CertificateRequestMismatch"
	HostsLaggingReason                    = "HostsLagging"
)
