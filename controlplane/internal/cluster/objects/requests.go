package objects

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubeletSigners excludes the numerous requests of operators. A field selector cannot select one of several
// values.
var KubeletSigners = fields.OneTermNotEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientSignerName)

// ReadLatestRequest returns the newest request of a kubelet, or no UID, and the version at which to start the watch.
func ReadLatestRequest(ctx context.Context, c client.Client) (version string, uid types.UID, err error) {
	var latest *metav1.PartialObjectMetadata
	version, _, err = EachPage(ctx, c, func() *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequestList"))
		return list
	}, func(page *metav1.PartialObjectMetadataList) {
		for i := range page.Items {
			if latest == nil || page.Items[i].CreationTimestamp.After(latest.CreationTimestamp.Time) {
				latest = &page.Items[i]
			}
		}
	}, client.MatchingFieldsSelector{Selector: KubeletSigners})
	switch {
	case err != nil:
		return "", "", fmt.Errorf("cannot list the CertificateSigningRequests of the workload cluster: %w", err)
	case latest == nil:
		return version, "", nil
	}
	return version, latest.UID, nil
}
