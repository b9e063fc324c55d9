package assisted

import (
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

// ImageStatus is what an InfraEnv says about its discovery image.
type ImageStatus struct {
	// ISOURL and IgnitionURL are set while they can be used. They carry credentials under some authentication types.
	ISOURL, IgnitionURL string
	// Failure is assisted-service's message when it could not make the image.
	Failure string
}

// ObserveImage reads the state of the discovery image. URLs count only together with a condition that says that the image was made:
// assisted-service keeps old URLs in some of its error states.
func ObserveImage(infraEnv *InfraEnv) ImageStatus {
	for i := range infraEnv.Status.Conditions {
		c := &infraEnv.Status.Conditions[i]
		if c.Type != aiv1beta1.ImageCreatedCondition {
			continue
		}
		switch c.Status {
		case corev1.ConditionTrue:
			return ImageStatus{ISOURL: infraEnv.Status.ISODownloadURL, IgnitionURL: infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL}
		case corev1.ConditionFalse:
			return ImageStatus{Failure: RedactURLs(c.Message)}
		}
	}
	return ImageStatus{}
}

// MinorOf returns the minor version (4.19) of an OpenShift release (4.19.3): the name under which assisted-service keeps its OS images.
func MinorOf(release string) string {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}
