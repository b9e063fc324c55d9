package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// serverCANamespace is the namespace of the ConfigMap with the certificate authorities of the machine config
	// server, which are renewed (machine-config-operator, from OpenShift 4.19 on).
	serverCANamespace = "openshift-machine-config-operator"
	// serverCAName is the name of that ConfigMap.
	serverCAName = "machine-config-server-ca"
	serverCAKey  = "ca-bundle.crt"
	// largestCA is the largest accepted size of the certificate authorities, in bytes.
	largestCA = 64 << 10
	// The ConfigMap of older releases, which the installer creates once.
	rootCANamespace, rootCAName, rootCAKey = metav1.NamespaceSystem, "root-ca", "ca.crt"
)

// serverCAs are the certificate authorities by which a joining host verifies the machine config server of the
// cluster.
var serverCAs = Resource{
	Name: "the ConfigMap " + serverCAName, Path: "/api/v1/namespaces/" + serverCANamespace + "/configmaps",
	Fields: metav1.ObjectNameField + "=" + serverCAName,
	Demand: (*State).needsHosts, OnlyIfNeeded: true,
	Read: readServerCA,
}

// readServerCA reads the certificate authorities (PEM). They are empty if the cluster has none.
func readServerCA(ctx context.Context, c client.Client) (string, func(*State), error) {
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list, client.InNamespace(serverCANamespace),
		client.MatchingFields{metav1.ObjectNameField: serverCAName}); err != nil {
		return "", nil, fmt.Errorf("cannot read ConfigMap %s/%s of the workload cluster: %w", serverCANamespace, serverCAName, err)
	}
	var found string
	if len(list.Items) > 0 {
		found = list.Items[0].Data[serverCAKey]
	} else {
		root := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: rootCANamespace, Name: rootCAName}, root); client.IgnoreNotFound(err) != nil {
			return "", nil, fmt.Errorf("cannot read ConfigMap %s/%s of the workload cluster: %w", rootCANamespace, rootCAName, err)
		}
		found = root.Data[rootCAKey]
	}
	if len(found) > largestCA { // it is copied into an annotation, and an object may have 256 KiB of those
		return "", nil, fmt.Errorf("the certificate authorities of the machine config server of the workload cluster have %d bytes, more "+
			"than %d KiB",
			len(found), largestCA>>10)
	}
	if _, err := cert.ParseCertsPEM([]byte(found)); err != nil && found != "" {
		return "", nil, fmt.Errorf("cannot parse the certificate authorities of the machine config server of the workload cluster: %w", err)
	}
	return list.ResourceVersion, func(s *State) { s.serverCA = found }, nil
}
