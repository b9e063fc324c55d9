package openshift

import "fmt"

// FirstRelease returns the first release with a version of Kubernetes.
func FirstRelease(kubernetesVersion string) (string, error) {
	for _, k := range kubernetes {
		if k.version == kubernetesVersion {
			return k.release, nil
		}
	}
	return "", fmt.Errorf("%w with Kubernetes %s", errUnknownRelease, kubernetesVersion)
}

// NextKubernetesVersion returns the version of Kubernetes that follows another one in the releases.
func NextKubernetesVersion(kubernetesVersion string) (string, error) {
	for i, k := range kubernetes[:len(kubernetes)-1] {
		if k.version == kubernetesVersion {
			return kubernetes[i+1].version, nil
		}
	}
	return "", fmt.Errorf("%w after Kubernetes %s", errUnknownRelease, kubernetesVersion)
}
