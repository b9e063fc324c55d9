package cluster

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

// otherSigners leaves out the requests of operators, which are many. Field selectors cannot say "one of these".
var otherSigners = fields.OneTermNotEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientSignerName)

const (
	// requestsName names the resource of the requests.
	requestsName = "CertificateSigningRequests"
	// requestsAge is how old what is known of the requests may be where they are not watched. The serving certificate of a Node that is Ready may expire too, and nothing on the hub shows that.
	requestsAge = 24 * time.Hour
)

// requests are what is known of the certificates that kubelets ask for: which of them was made last. They are read when they are decided.
var requests = resource{
	name: requestsName, path: "/apis/" + certificatesv1.SchemeGroupVersion.String() + "/certificatesigningrequests", fields: otherSigners.String(), demand: (*connection).hostsExpected, outdated: (*connection).requestsOutdated,
	read: readRequests,
	take: func(_ context.Context, _ *connection, _ *access, e watchEvent) (func(*connection), error) {
		if e.Type != watch.Added {
			return nil, nil
		}
		return func(l *connection) { l.requested = e.Object.Metadata.UID }, nil
	},
}

func readRequests(ctx context.Context, c client.Client) (string, func(*connection), error) {
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
	}, client.MatchingFieldsSelector{Selector: otherSigners})
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("cannot list the CertificateSigningRequests of the workload cluster: %w", err)
	case latest == nil:
		return version, func(l *connection) { l.requestsRead = l.now() }, nil
	}
	uid := latest.UID
	return version, func(l *connection) { l.requested, l.requestsRead = uid, l.now() }, nil
}

// requestsOutdated reports whether the requests are to be read again though nobody awaits any; the caller holds the lock.
func (l *connection) requestsOutdated() bool {
	return !l.onDemand.Has(requestsName) && l.now().Sub(l.requestsRead) >= requestsAge
}
