package objects

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeletSigners excludes the numerous requests of operators. A field selector cannot select one of several
// values.
var kubeletSigners = fields.OneTermNotEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientSignerName)

// requestsAge is the interval at which requests are read while they are not watched. The serving certificate of
// a Ready Node may expire, and no object on the hub shows that.
const requestsAge = 24 * time.Hour

// requests are the CertificateSigningRequests of kubelets. Only the newest is kept. The requests are read
// when they are decided.
var requests = Resource{
	Name: "CertificateSigningRequests", Path: "/apis/" + certificatesv1.SchemeGroupVersion.String() + "/certificatesigningrequests",
	Fields: kubeletSigners.String(), Demand: (*State).needsHosts, Outdated: (*State).requestsOutdated,
	Read: readRequests,
	readChange: func(_ context.Context, _ Cluster, e Event) (func(*State), error) {
		if e.Type != watch.Added {
			return nil, nil
		}
		return func(s *State) { s.latestRequest = e.Object.Metadata.UID }, nil
	},
}

func readRequests(ctx context.Context, c client.Client) (string, func(*State), error) {
	var latest *metav1.PartialObjectMetadata
	version, _, err := EachPage(ctx, c, func() *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequestList"))
		return list
	}, func(page *metav1.PartialObjectMetadataList) {
		for i := range page.Items {
			if latest == nil || page.Items[i].CreationTimestamp.After(latest.CreationTimestamp.Time) {
				latest = &page.Items[i]
			}
		}
	}, client.MatchingFieldsSelector{Selector: kubeletSigners})
	if err != nil {
		return "", nil, fmt.Errorf("cannot list the CertificateSigningRequests of the workload cluster: %w", err)
	}
	return version, func(s *State) {
		s.requestsRead = s.clock.Now()
		if latest != nil {
			s.latestRequest = latest.UID
		}
	}, nil
}
