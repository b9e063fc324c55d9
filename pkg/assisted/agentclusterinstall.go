package assisted

const (
	// InstallConfigOverridesAnnotation holds, on an AgentClusterInstall, a JSON object that is merged into the install-config.
	InstallConfigOverridesAnnotation = "agent-install.openshift.io/install-config-overrides"

	// Consumer is the value of the label with which assisted-service tags the cluster in its statistics.
	Consumer = "OpenshiftAssistedControlPlane"
)
