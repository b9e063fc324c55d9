package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
)

// serverCA is the ConfigMap of a cluster with the CA certificates of its machine config server.
var serverCA = client.ObjectKey{Namespace: "openshift-machine-config-operator", Name: "machine-config-server-ca"}

const serverCAKey = "ca-bundle.crt"

// writeServerCA creates a certificate authority for the machine config server of a cluster, whose key is discarded. An
// existing one is kept.
func writeServerCA(ctx context.Context, c client.Client) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: serverCA.Namespace}}
	if err := c.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create Namespace %s: %w", namespace.Name, err)
	}
	authority, err := pki.New("simulated-machine-config-server")
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: serverCA.Namespace, Name: serverCA.Name},
		Data:       map[string]string{serverCAKey: string(authority.PEM())},
	}
	if err := c.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create ConfigMap %s: %w", serverCA, err)
	}
	return nil
}

// recognizeServer waits until a joining host may fetch its configuration. If it has CA certificates, the machine
// config server needs a certificate of one of them. Without any it uses plain HTTP.
func (h *Host) recognizeServer(ctx context.Context, inst *installation) bool {
	authorities := inst.ignition.Authorities
	return len(authorities) == 0 || h.withWorkload(ctx, inst, func(ctx context.Context, c client.Client) error {
		found := &corev1.ConfigMap{}
		if err := c.Get(ctx, serverCA, found); err != nil {
			return fmt.Errorf("cannot read ConfigMap %s: %w", serverCA, err)
		}
		if !slices.Contains(authorities, found.Data[serverCAKey]) {
			return errors.New("x509: the machine config server's certificate is signed by an unknown authority")
		}
		return nil
	})
}
