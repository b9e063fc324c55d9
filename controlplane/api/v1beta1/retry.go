package v1beta1

// Annotations of a control plane that control the retry of a failed installation.
const (
	// RetryInstallationAnnotation requests another attempt at a failed installation. All Machines of the cluster are
	// deleted, which wipes their hosts and switches them off. Then the installation starts again. The value is any new
	// value, such as a date. A value from before the failure requests nothing.
	RetryInstallationAnnotation = "controlplane.cluster.x-k8s.io/retry-installation"

	// RetriedInstallationAnnotation records the retry, as a JSON object. It contains the value of
	// RetryInstallationAnnotation that was accepted last. While a retry is in progress, it lists the UIDs of the
	// objects that are deleted for the retry (givenUp). No other objects are deleted.
	RetriedInstallationAnnotation = "controlplane.cluster.x-k8s.io/retried-installation"
)
