package assisted

import (
	"crypto/sha256"
	"encoding/hex"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxPrefix keeps ClusterImageSetName below the 253 characters of an object's name, with room for '-' and the
// hash.
const maxPrefix = 240

// ClusterImageSetName returns the name of the ClusterImageSet of a control plane and a release image. It is
// unique in the hub, because ClusterImageSets have no namespace. Another image has another name, because
// assisted-service reads a ClusterImageSet only once.
func ClusterImageSetName(namespace, name, releaseImage string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name + " " + releaseImage))
	prefix := namespace + "-" + name
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	return prefix + "-" + hex.EncodeToString(sum[:4])
}

// ClusterImageSet returns the desired ClusterImageSet of a release image.
func ClusterImageSet(name, releaseImage string, labels, annotations map[string]string) *hivev1.ClusterImageSet {
	return &hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: releaseImage},
	}
}
