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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
)

// kubeletSigners excludes the numerous requests of operators. A field selector cannot select one of several
// values.
var kubeletSigners = fields.OneTermNotEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientSignerName)

const (
	// requestsName is the name of the resource.
	requestsName = "CertificateSigningRequests"
	// requestsAge is the interval at which requests are read while they are not watched. The serving certificate
	// of a Ready Node may expire, and no object on the hub shows that.
	requestsAge = 24 * time.Hour
)

// requests are the CertificateSigningRequests of kubelets. Only the newest is kept. The requests are read
// when they are decided.
var requests = resource{
	name: requestsName, path: "/apis/" + certificatesv1.SchemeGroupVersion.String() + "/certificatesigningrequests",
	fields: kubeletSigners.String(), demand: (*connection).hostsExpected, outdated: (*connection).requestsOutdated,
	read: readRequests,
	readChange: func(_ context.Context, _ *connection, _ *conn.Access, e watchEvent) (func(*connection), error) {
		if e.Type != watch.Added {
			return nil, nil
		}
		return func(conn *connection) { conn.latestRequest = e.Object.Metadata.UID }, nil
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
	}, client.MatchingFieldsSelector{Selector: kubeletSigners})
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("cannot list the CertificateSigningRequests of the workload cluster: %w", err)
	case latest == nil:
		return version, func(conn *connection) { conn.requestsRead = conn.now() }, nil
	}
	uid := latest.UID
	return version, func(conn *connection) { conn.latestRequest, conn.requestsRead = uid, conn.now() }, nil
}

// requestsOutdated reports whether the requests must be read again although they are not watched. The caller
// holds the lock.
func (c *connection) requestsOutdated() bool {
	return !c.onDemand.Has(requestsName) && c.now().Sub(c.requestsRead) >= requestsAge
}
