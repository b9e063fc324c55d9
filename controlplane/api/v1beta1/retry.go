package v1beta1

// Annotations of a control plane with which a failed installation is tried again.
const (
	// RetryInstallationAnnotation asks for another attempt at an installation that failed. All Machines of the cluster are deleted, which wipes and switches off their hosts, and it begins
	// again. The value is any that was not there before, such as a date; one that was there before the installation failed asks for nothing.
	RetryInstallationAnnotation = "controlplane.cluster.x-k8s.io/retry-installation"

	// RetriedInstallationAnnotation is how the provider keeps the books of that, a JSON object: asked is the value that was taken up last; givenUp are the UIDs of what is deleted for it,
	// and of nothing else, until it is gone.
	RetriedInstallationAnnotation = "controlplane.cluster.x-k8s.io/retried-installation"
)
