package assisted

import (
	"crypto/sha256"
	"encoding/hex"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxPrefix keeps ClusterImageSetName below the 253 characters of an object's name, with room for '-' and the hash.
const maxPrefix = 240

// ClusterImageSetName is the name of the ClusterImageSet of a control plane and a release image: unique in the hub, for
// ClusterImageSets have no namespace, and another for another image, for assisted-service takes the content in once.
func ClusterImageSetName(namespace, name, releaseImage string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name + " " + releaseImage))
	prefix := namespace + "-" + name
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	return prefix + "-" + hex.EncodeToString(sum[:4])
}

// ClusterImageSet returns the wanted ClusterImageSet of a release image.
func ClusterImageSet(name, releaseImage string, labels, annotations map[string]string) *hivev1.ClusterImageSet {
	return &hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: releaseImage},
	}
}
