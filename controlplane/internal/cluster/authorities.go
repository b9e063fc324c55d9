package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// The ConfigMap with the authorities of the certificates that the API server of an OpenShift cluster makes itself.
	// It does not have those of certificates that the user named (APIServer cluster,
	// spec.servingCerts.namedCertificates).
	apiServerCANamespace, apiServerCAName, apiServerCAKey = "openshift-config-managed", "kube-apiserver-server-ca", "ca-bundle.crt"
	// mostAuthorities bounds how many authorities a kubeconfig has after a renewal, and mostOfBundle how many bytes of a bundle are read.
	mostAuthorities, mostOfBundle = 64, 256 << 10
)

// Authorities are the certificate authorities of the API server of a cluster.
type Authorities struct {
	// Reported (PEM) are those that the cluster publishes; empty when it publishes none.
	Reported []byte
	// Serving are the fingerprints of the authorities by which certificates of the API servers were accepted within the
	// last six hours. Since is when the record began: it does not survive a restart of the manager.
	Serving sets.Set[string]
	Since   time.Time
}

// Authorities reads the certificate authorities of the API server of a cluster, which must be connected.
func (c *Clusters) Authorities(ctx context.Context, cluster client.ObjectKey) (Authorities, error) {
	var read Authorities
	err := c.callWithAccess(ctx, cluster, func(ctx context.Context, connection client.Client, access *access) error {
		found, err := kube.Read(ctx, connection, client.ObjectKey{Namespace: apiServerCANamespace, Name: apiServerCAName}, &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		if found != nil {
			read.Reported = []byte(found.Data[apiServerCAKey])
		}
		read.Serving, read.Since = access.serving.fingerprints(), access.serving.began
		return nil
	})
	if err != nil {
		return Authorities{}, fmt.Errorf("cannot read ConfigMap %s/%s of the workload cluster: %w", apiServerCANamespace, apiServerCAName, err)
	}
	return read, nil
}

// Trust decides which authorities a kubeconfig gets.
type Trust struct {
	// Stated (PEM) are those of the spec; they must have passed CheckAuthorities.
	Stated []byte
	// Added are the fingerprints of those that are in the kubeconfig only because the spec states or stated them.
	Added sets.Set[string]
	// Cluster is nil when there is no connection: then no authority is removed, since the API server may need it.
	Cluster *Authorities
	// Settled is true when enough connections were made since the spec has withdrawn authorities: those by which none
	// was accepted are removed. A single connection proves nothing of the other API servers.
	Settled bool
}

// Trusting is a kubeconfig with the authorities of a Trust.
type Trusting struct {
	Kubeconfig []byte
	// Added are the fingerprints to record for the next Trust.
	Added sets.Set[string]
	// Pending is true when authorities that the spec has withdrawn wait for connections.
	Pending bool
}

// WithAuthorities adds to a kubeconfig the authorities that the spec states and those that the cluster reports, and
// removes those that the spec has withdrawn. An authority by which the API server is accepted stays. A kubeconfig
// without any stays so: there the authorities of the system count, which an authority would replace.
func WithAuthorities(kubeconfig []byte, now time.Time, trust Trust) (Trusting, error) {
	config, _, err := load(kubeconfig)
	if err != nil {
		return Trusting{}, err
	}
	to := clusterOf(config)
	before := certificatesIn(to.CertificateAuthorityData)
	if len(before) == 0 {
		return Trusting{Kubeconfig: kubeconfig}, nil
	}
	after, result := trust.apply(before, now)
	result.Kubeconfig = kubeconfig
	if len(after) == 0 || slices.EqualFunc(after, before, (*x509.Certificate).Equal) {
		return result, nil
	}
	to.CertificateAuthorityData = encode(after)
	result.Kubeconfig, err = clientcmd.Write(*config)
	return result, err
}

// apply returns the certificates that a kubeconfig is to have in the place of others. What has expired is dropped only
// when something else changes.
func (t Trust) apply(before []*x509.Certificate, now time.Time) ([]*x509.Certificate, Trusting) {
	stated, reported := certificatesIn(t.Stated), t.reported()
	result := Trusting{Added: sets.New[string]()}
	var after []*x509.Certificate
	for _, c := range before {
		switch is := fingerprint(c); {
		case !t.Added.Has(is) || contains(reported, c): // it stays without the spec
			after = append(after, c)
		case contains(stated, c) || !t.settled() || t.Cluster.Serving.Has(is):
			after = append(after, c)
			result.Added.Insert(is)
			result.Pending = result.Pending || !t.settled() && !contains(stated, c)
		}
	}
	for _, c := range slices.Concat(stated, reported) {
		if contains(after, c) || !now.Before(c.NotAfter) {
			continue
		}
		after = append(after, c)
		if !contains(reported, c) {
			result.Added.Insert(fingerprint(c))
		}
	}
	if slices.EqualFunc(after, before, (*x509.Certificate).Equal) {
		return before, result
	}
	return t.limited(unexpired(after, now), stated, reported), result
}

func (t Trust) settled() bool { return t.Settled && t.Cluster != nil }

// limited drops the oldest of certificates beyond mostAuthorities: last those by which the API server is accepted,
// those of the spec, and those that the cluster reports. Without a connection all stay.
func (t Trust) limited(all, stated, reported []*x509.Certificate) []*x509.Certificate {
	if t.Cluster == nil || len(all) <= mostAuthorities {
		return all
	}
	rank := func(c *x509.Certificate) int {
		switch {
		case t.Cluster.Serving.Has(fingerprint(c)):
			return 0
		case contains(stated, c):
			return 1
		case contains(reported, c):
			return 2 //nolint:mnd // an order
		}
		return 3 //nolint:mnd // an order
	}
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b *x509.Certificate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.NotBefore.Compare(a.NotBefore))
	})
	return slices.DeleteFunc(all, func(c *x509.Certificate) bool { return !contains(ranked[:mostAuthorities], c) })
}

func (t Trust) reported() []*x509.Certificate {
	if t.Cluster == nil {
		return nil
	}
	return certificatesIn(t.Cluster.Reported)
}

// CheckAuthorities returns an error where the authorities of a spec (PEM) hold something that is no certificate, which no admission sees.
func CheckAuthorities(bundle string) error {
	rest := []byte(bundle)
	for n := 1; len(bytes.TrimSpace(rest)) > 0; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != cert.CertificateBlockType {
			return fmt.Errorf("certificate %d of spec.kubeconfig.additionalTrustBundle is no PEM certificate", n)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d of spec.kubeconfig.additionalTrustBundle cannot be parsed", n)
		}
	}
	return nil
}

// Replace returns the kubeconfig of assisted-service with what the user added to the published one: proxy, name of the
// server's certificate, and authorities. Where the published one was made from the same content before, all that
// differs is the user's, also the server. Without additions the result is the content of assisted-service, byte for
// byte.
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

// joined returns the certificates of two bundles, each once, in their order, and without those that have expired. The
// first bundle is returned as it is when the other adds nothing. What cannot be read adds nothing either. The number is
// not limited here: without a connection nobody knows which of them the API server needs.
func joined(now time.Time, first, other []byte) []byte {
	known := certificatesIn(first)
	count := len(known)
	for _, c := range unexpired(certificatesIn(other), now) {
		if !contains(known, c) {
			known = append(known, c)
		}
	}
	if len(known) == count || count == 0 && len(first) > 0 {
		return first
	}
	return encode(unexpired(known, now))
}

func unexpired(certificates []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(certificates, func(c *x509.Certificate) bool { return !now.Before(c.NotAfter) })
}

func contains(certificates []*x509.Certificate, c *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, c.Equal)
}

func encode(certificates []*x509.Certificate) []byte {
	var bundle bytes.Buffer
	for _, c := range certificates {
		_ = pem.Encode(&bundle, &pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw}) // a buffer takes everything
	}
	return bundle.Bytes()
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
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
