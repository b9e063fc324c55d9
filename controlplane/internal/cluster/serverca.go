package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

// serverCAs are the certificate authorities by which a joining host verifies the machine config server of the
// cluster.
var serverCAs = resource{
	name: "the ConfigMap " + objects.ServerCAName, path: "/api/v1/namespaces/" + objects.ServerCANamespace + "/configmaps",
	fields: metav1.ObjectNameField + "=" + objects.ServerCAName,
	demand: (*connection).hostsExpected, onlyIfNeeded: true,
	read: readServerCA,
}

func readServerCA(ctx context.Context, c client.Client) (string, func(*connection), error) {
	version, found, err := objects.ReadServerCA(ctx, c)
	return version, func(conn *connection) { conn.serverCA = found }, err
}
