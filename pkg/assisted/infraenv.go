package assisted

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// ImageStatus is the state of the discovery image of an InfraEnv.
type ImageStatus struct {
	// ISOURL and IgnitionURL are set while they are valid. With some authentication types they carry
	// credentials.
	ISOURL, IgnitionURL string
	// Failure is the message of assisted-service when it could not create the image.
	Failure string
}

// ObserveImage returns the state of the discovery image. It ignores the URLs unless the condition
// ImageCreated is true: assisted-service keeps old URLs in some of its error states.
func ObserveImage(infraEnv *aiv1beta1.InfraEnv) ImageStatus {
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

// MinorOf returns the minor version (4.19) of an OpenShift release (4.19.3), under which assisted-service
// lists its OS images; "" if the release has none.
func MinorOf(release string) string {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[0] + "." + parts[1]
}
