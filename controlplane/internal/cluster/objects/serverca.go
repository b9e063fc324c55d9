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
	// ServerCANamespace is the namespace of the ConfigMap with the certificate authorities of the machine config
	// server, which are renewed (machine-config-operator, from OpenShift 4.19 on).
	ServerCANamespace = "openshift-machine-config-operator"
	// ServerCAName is the name of that ConfigMap.
	ServerCAName = "machine-config-server-ca"
	serverCAKey  = "ca-bundle.crt"
	// largestCA is the largest accepted size of the certificate authorities, in bytes.
	largestCA = 64 << 10
	// The ConfigMap of older releases, which the installer creates once.
	rootCANamespace, rootCAName, rootCAKey = metav1.NamespaceSystem, "root-ca", "ca.crt"
)

// ReadServerCA reads the certificate authorities (PEM) of the machine config server, and the version at which to start the
// watch. They are empty if the cluster has none.
func ReadServerCA(ctx context.Context, c client.Client) (version, authorities string, err error) {
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list, client.InNamespace(ServerCANamespace),
		client.MatchingFields{metav1.ObjectNameField: ServerCAName}); err != nil {
		return "", "", fmt.Errorf("cannot read ConfigMap %s/%s of the workload cluster: %w", ServerCANamespace, ServerCAName, err)
	}
	var found string
	if len(list.Items) > 0 {
		found = list.Items[0].Data[serverCAKey]
	} else {
		root := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: rootCANamespace, Name: rootCAName}, root); client.IgnoreNotFound(err) != nil {
			return "", "", fmt.Errorf("cannot read ConfigMap %s/%s of the workload cluster: %w", rootCANamespace, rootCAName, err)
		}
		found = root.Data[rootCAKey]
	}
	if len(found) > largestCA { // it is copied into an annotation, and an object may have 256 KiB of those
		return "", "", fmt.Errorf("the certificate authorities of the machine config server of the workload cluster have %d bytes, more "+
			"than %d KiB",
			len(found), largestCA>>10)
	}
	if _, err := cert.ParseCertsPEM([]byte(found)); err != nil && found != "" {
		return "", "", fmt.Errorf("cannot parse the certificate authorities of the machine config server of the workload cluster: %w", err)
	}
	return list.ResourceVersion, found, nil
}
