package cluster

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

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
	fields: objects.KubeletSigners.String(), demand: (*connection).hostsExpected, outdated: (*connection).requestsOutdated,
	read: readRequests,
	readChange: func(_ context.Context, _ *connection, _ *conn.Access, e watchEvent) (func(*connection), error) {
		if e.Type != watch.Added {
			return nil, nil
		}
		return func(conn *connection) { conn.latestRequest = e.Object.Metadata.UID }, nil
	},
}

// requestsOutdated reports whether the requests must be read again although they are not watched. The caller
// holds the lock.
func (c *connection) requestsOutdated() bool {
	return !c.onDemand.Has(requestsName) && c.clock.Now().Sub(c.requestsRead) >= requestsAge
}

func readRequests(ctx context.Context, c client.Client) (string, func(*connection), error) {
	version, latest, err := objects.ReadLatestRequest(ctx, c)
	return version, func(conn *connection) {
		conn.requestsRead = conn.clock.Now()
		if latest != "" {
			conn.latestRequest = latest
		}
	}, err
}
