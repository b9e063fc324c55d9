package workload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// The ConfigMap with the authorities of the certificates that the API server of an OpenShift cluster makes itself. It does not have those of certificates that the user named (APIServer cluster,
	// spec.servingCerts.namedCertificates).
	apiServerCANamespace, apiServerCAName, apiServerCAKey = "openshift-config-managed", "kube-apiserver-server-ca", "ca-bundle.crt"
	// mostAuthorities bounds how many authorities a kubeconfig gets, and mostOfBundle how many bytes of a bundle are read.
	mostAuthorities, mostOfBundle = 64, 256 << 10
)

// Authorities reads the certificate authorities (PEM) of the API server of a cluster, which must be connected. It returns nothing when there are none.
func (c *Clusters) Authorities(ctx context.Context, cluster client.ObjectKey) ([]byte, error) {
	var bundle []byte
	err := c.call(ctx, cluster, func(ctx context.Context, connection client.Client) error {
		found, err := kube.Read(ctx, connection, client.ObjectKey{Namespace: apiServerCANamespace, Name: apiServerCAName}, &corev1.ConfigMap{})
		if err != nil || found == nil {
			return err
		}
		bundle = []byte(found.Data[apiServerCAKey])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read ConfigMap %s/%s of the workload cluster: %w", apiServerCANamespace, apiServerCAName, err)
	}
	return bundle, nil
}

// WithAuthorities adds authorities to those of a kubeconfig. A kubeconfig without any stays so: there the authorities of the system count, which an authority would replace.
func WithAuthorities(kubeconfig []byte, now time.Time, bundles ...[]byte) ([]byte, error) {
	config, _, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	to := clusterOf(config)
	merged := joined(now, to.CertificateAuthorityData, bundles...)
	if len(to.CertificateAuthorityData) == 0 || bytes.Equal(merged, to.CertificateAuthorityData) {
		return kubeconfig, nil
	}
	to.CertificateAuthorityData = merged
	return clientcmd.Write(*config)
}

// Replace returns the kubeconfig of assisted-service with what the user added to the published one: proxy, name of the server's certificate, and authorities. Where the published one was made from the
// same content before, all that differs is the user's, also the server. Without additions the result is the content of assisted-service, byte for byte.
func Replace(published, source []byte, sameSource bool, now time.Time) ([]byte, error) {
	next, _, err := load(source)
	if err != nil {
		return nil, err
	}
	last, _, err := load(published)
	if err != nil {
		return source, nil //nolint:nilerr // nothing in it is used
	}
	from, to := clusterOf(last), clusterOf(next)
	merged := to.DeepCopy()
	merged.ProxyURL, merged.TLSServerName = cmp.Or(from.ProxyURL, to.ProxyURL), cmp.Or(from.TLSServerName, to.TLSServerName)
	merged.CertificateAuthorityData = joined(now, to.CertificateAuthorityData, from.CertificateAuthorityData)
	if sameSource {
		merged.Server, merged.InsecureSkipTLSVerify, merged.ProxyURL, merged.TLSServerName = from.Server, from.InsecureSkipTLSVerify, from.ProxyURL, from.TLSServerName
	}
	if sameSource && len(from.CertificateAuthorityData) == 0 || merged.InsecureSkipTLSVerify { // the authorities of the system are to count, or none
		merged.CertificateAuthorityData = nil
	}
	if sameAccess(merged, to) {
		return source, nil
	}
	next.Clusters[next.Contexts[next.CurrentContext].Cluster] = merged
	return clientcmd.Write(*next)
}

// clusterOf is the cluster to which the current context of a kubeconfig that was loaded leads.
func clusterOf(config *clientcmdapi.Config) *clientcmdapi.Cluster {
	return config.Clusters[config.Contexts[config.CurrentContext].Cluster]
}

// sameAccess reports whether two clusters of kubeconfigs lead to the same server in the same way.
func sameAccess(a, b *clientcmdapi.Cluster) bool {
	return a.Server == b.Server && a.ProxyURL == b.ProxyURL && a.TLSServerName == b.TLSServerName && a.InsecureSkipTLSVerify == b.InsecureSkipTLSVerify &&
		bytes.Equal(a.CertificateAuthorityData, b.CertificateAuthorityData)
}

// joined returns the certificates of bundles, each once, in their order, and without those that have expired. The first bundle is returned as it is when the others add nothing. What cannot be read adds
// nothing either.
func joined(now time.Time, first []byte, others ...[]byte) []byte {
	known := certificatesIn(first)
	count := len(known)
	for _, other := range others {
		for _, c := range certificatesIn(other) {
			if now.Before(c.NotAfter) && !slices.ContainsFunc(known, c.Equal) {
				known = append(known, c)
			}
		}
	}
	if len(known) == count || count == 0 && len(first) > 0 {
		return first
	}
	known = slices.DeleteFunc(known, func(c *x509.Certificate) bool { return !now.Before(c.NotAfter) })
	var bundle bytes.Buffer
	for _, c := range known[:min(len(known), mostAuthorities)] {
		_ = pem.Encode(&bundle, &pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw}) // a buffer takes everything
	}
	return bundle.Bytes()
}

func certificatesIn(bundle []byte) []*x509.Certificate {
	if len(bundle) > mostOfBundle {
		return nil
	}
	found, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return found
}
