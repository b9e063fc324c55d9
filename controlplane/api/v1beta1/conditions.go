package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Conditions of an OpenshiftAssistedControlPlane.
const (
	// AvailableCondition is True while the cluster is installed and its control plane serves. Cluster API mirrors it
	// into ControlPlaneAvailable of the Cluster.
	AvailableCondition = clusterv1.AvailableCondition

	// InitializedCondition is True once the cluster's API server has answered. It stays True.
	InitializedCondition = "Initialized"

	// ReleaseImageResolvedCondition is True once the release image of spec.distributionVersion is known.
	ReleaseImageResolvedCondition = "ReleaseImageResolved"

	// InstalledCondition is True once the cluster is installed. Until then its message contains the phase, the
	// percentage, failures, and the URLs of the events and logs of assisted-service.
	InstalledCondition = "Installed"

	// RegistrationHealthyCondition is False while assisted-service does not know the installed cluster, or knows it in a
	// state in which no host may be added. It is also False while Agents of other namespaces are bound to the cluster.
	// Otherwise the condition does not exist.
	RegistrationHealthyCondition = "RegistrationHealthy"

	// KubeconfigAvailableCondition is True once the Secret <cluster>-kubeconfig exists.
	KubeconfigAvailableCondition = "KubeconfigAvailable"

	// ControlPlaneComponentsHealthyCondition is True while the ClusterOperators etcd and kube-apiserver of the cluster
	// report that they are available.
	ControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// EtcdClusterHealthyCondition is True while the etcd operator of the cluster reports that the etcd members serve,
	// and every control-plane Node has a Machine. The condition does not exist before the cluster is installed.
	// KubeadmControlPlane uses the same name.
	EtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// MachinesCreatedCondition is True when all desired Machines exist.
	MachinesCreatedCondition = "MachinesCreated"

	// MachinesReadyCondition is True when all Machines are Ready.
	MachinesReadyCondition = clusterv1.MachinesReadyCondition

	// MachinesUpToDateCondition is True when all Machines are UpToDate.
	MachinesUpToDateCondition = clusterv1.MachinesUpToDateCondition

	// RollingOutCondition is True while Machines are not UpToDate.
	RollingOutCondition = clusterv1.RollingOutCondition

	// ScalingUpCondition is True while Machines are missing.
	ScalingUpCondition = clusterv1.ScalingUpCondition

	// ScalingDownCondition is True while more Machines than desired exist. The message names what blocks the deletion
	// of the next Machine.
	ScalingDownCondition = clusterv1.ScalingDownCondition

	// HostsReleasingCondition is True while hosts of an installed cluster are being released. The release begins with
	// the deletion of a Machine, and ends when nothing of its host is left in the cluster. The number of desired
	// Machines does not matter. The message names the hosts, or the blocker. The condition is False while the whole
	// cluster is being deleted: its hosts are released without checks.
	HostsReleasingCondition = "HostsReleasing"

	// RemediatingCondition is True while a MachineHealthCheck requests the remediation of Machines. The message names
	// what blocks the remediation.
	RemediatingCondition = clusterv1.RemediatingCondition

	// CertificatesApprovedCondition is False while kubelets of the hosts of the cluster request certificates that do
	// not match them. Otherwise the condition does not exist.
	CertificatesApprovedCondition = "CertificatesApproved"

	// HostsProgressingCondition is False while a host is much slower than the other hosts of the installation.
	// Otherwise the condition does not exist. It is advisory, and blocks nothing.
	HostsProgressingCondition = "HostsProgressing"

	// TopologyUpgradeableCondition is False while Cluster API cannot upgrade the topology of the Cluster to its end.
	// Otherwise the condition does not exist. It is advisory, and blocks nothing.
	TopologyUpgradeableCondition = "TopologyUpgradeable"

	// ValidationsEnforcedCondition is False if assisted-service ignores failures of validations, before and after the
	// installation. Otherwise the condition does not exist. It blocks nothing.
	ValidationsEnforcedCondition = "ValidationsEnforced"

	// PreflightPassedCondition reports, until the cluster is installed, whether names, addresses and registries of the
	// cluster are correct as seen from the hub. It is advisory, and blocks nothing.
	PreflightPassedCondition = "PreflightPassed"

	// DeletingCondition is True while the object is being deleted. The message names what blocks the deletion.
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
	KubernetesVersionMismatchReason       = "KubernetesVersionMismatch"
	UpgradeConcurrencyTooLowReason        = "UpgradeConcurrencyTooLow"
	TopologySkipsWorkersReason            = "TopologySkipsWorkers"
	ValidationsIgnoredReason              = "ValidationsIgnored"
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
	EtcdAlarmReason                       = "EtcdAlarm"
	EtcdHostNotIdentifiedReason           = "EtcdHostNotIdentified"
	ReleasedHostRunningReason             = "ReleasedHostRunning"
	NodeDeletionForbiddenReason           = "NodeDeletionForbidden"
	ControlPlaneLabelsMissingReason       = "ControlPlaneLabelsMissing"
	EtcdClusterHealthyReason              = "Healthy"
	EtcdClusterNotHealthyReason           = "NotHealthy"
	NodeWithoutMachineReason              = "NodeWithoutMachine"
	WaitingForNodeDeletionReason          = "WaitingForNodeDeletion"
	EtcdQuorumAtRiskReason                = "EtcdQuorumAtRisk"
	EtcdTopologyNotSupportedReason        = "EtcdTopologyNotSupported"
	LastEtcdMemberReason                  = "LastEtcdMember"
	WaitingForDrainReason                 = "WaitingForDrain"
	DrainRuleNotOursReason                = "DrainRuleNotOurs"
	HostsReleasingReason                  = "HostsReleasing"
	NotReleasingReason                    = "NotReleasing"
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
