// Package authorities decides which certificate authorities, and which other changes of the user, the published kubeconfig
// of a cluster gets. It records the authorities that accepted certificates of the API servers.
package authorities

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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// The ConfigMap with the authorities of certificates that the API server of an OpenShift cluster creates. It
	// does not contain those of user-provided certificates (APIServer cluster,
	// spec.servingCerts.namedCertificates).
	apiServerCANamespace, apiServerCAName, apiServerCAKey = "openshift-config-managed", "kube-apiserver-server-ca", "ca-bundle.crt"
	// maxAuthorities is the largest number of authorities in a renewed kubeconfig. maxBundle is the largest
	// bundle that is read, in bytes.
	maxAuthorities, maxBundle = 64, 256 << 10
	// shownFingerprint is the number of digits of a fingerprint in messages.
	shownFingerprint = 16
)

// Observed are the certificate authorities of the API server of a cluster.
type Observed struct {
	// Reported (PEM) are the published authorities; empty if the cluster publishes none.
	Reported []byte
	// Serving are the fingerprints of the authorities that accepted certificates of the API servers within the
	// last six hours. Since is when the record began: it does not survive a restart of the manager.
	Serving sets.Set[string]
	Since   time.Time
}

// Read reads the published authorities of the API server (PEM). The result is empty if the cluster publishes none.
func Read(ctx context.Context, remote client.Reader) ([]byte, error) {
	found, err := kube.Read(ctx, remote, client.ObjectKey{Namespace: apiServerCANamespace, Name: apiServerCAName}, &corev1.ConfigMap{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read ConfigMap %s/%s of the workload cluster: %w", apiServerCANamespace, apiServerCAName, err)
	case found == nil:
		return nil, nil
	}
	return []byte(found.Data[apiServerCAKey]), nil
}

// Trust decides which authorities a kubeconfig gets.
type Trust struct {
	// Stated (PEM) are the authorities in the spec. They must have passed Check.
	Stated []byte
	// Added are the fingerprints of those that are in the kubeconfig only because of the present or former spec.
	Added sets.Set[string]
	// Cluster is nil without a connection. Then no authority is removed, since the API server may need it.
	Cluster *Observed
	// Settled is true if enough connections were opened since authorities were removed from the spec. Then those
	// that accepted none are removed. A single connection proves nothing about the other API servers.
	Settled bool
}

// Result is a kubeconfig with the authorities of a Trust.
type Result struct {
	Kubeconfig []byte
	// Added are the fingerprints to record for the next Trust.
	Added sets.Set[string]
	// Pending is true while removed authorities of the spec wait for connections.
	Pending bool
}

// Update adds the authorities of the spec and of the cluster to a kubeconfig, and removes those that
// are not in the spec any more. An authority that accepts the API server stays. A kubeconfig without
// authorities stays unchanged: an authority would replace those of the system.
func Update(kubeconfig []byte, now time.Time, trust Trust) (Result, error) {
	config, _, err := conn.LoadKubeconfig(kubeconfig)
	if err != nil {
		return Result{}, err
	}
	to := clusterOf(config)
	before := certificatesIn(to.CertificateAuthorityData)
	if len(before) == 0 {
		return Result{Kubeconfig: kubeconfig}, nil
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

// apply returns the certificates for a kubeconfig. Expired certificates are dropped only together with
// another change.
func (t Trust) apply(before []*x509.Certificate, now time.Time) ([]*x509.Certificate, Result) {
	stated, reported := certificatesIn(t.Stated), t.reported()
	result := Result{Added: sets.New[string]()}
	var after []*x509.Certificate
	for _, c := range before {
		switch is := fingerprint(c); {
		case !t.Added.Has(is) || contains(reported, c): // it does not depend on the spec
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

// limited drops the oldest certificates above maxAuthorities. Those that accept the API server are dropped
// last, then those of the spec, then those of the cluster. Without a connection all stay.
func (t Trust) limited(all, stated, reported []*x509.Certificate) []*x509.Certificate {
	if t.Cluster == nil || len(all) <= maxAuthorities {
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
	return slices.DeleteFunc(all, func(c *x509.Certificate) bool { return !contains(ranked[:maxAuthorities], c) })
}

func (t Trust) reported() []*x509.Certificate {
	if t.Cluster == nil {
		return nil
	}
	return certificatesIn(t.Cluster.Reported)
}

// Check returns an error if the authorities of a spec (PEM) contain data other than certificates,
// which admission does not check.
func Check(bundle string) error {
	rest := []byte(bundle)
	for n := 1; len(bytes.TrimSpace(rest)) > 0; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != cert.CertificateBlockType {
			return fmt.Errorf("certificate %d of spec.kubeconfig.additionalTrustBundle is not a PEM certificate", n)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d of spec.kubeconfig.additionalTrustBundle cannot be parsed", n)
		}
	}
	return nil
}

// MergeChanges returns the kubeconfig of assisted-service with the user's changes to the published one: proxy,
// server name of the certificate, and authorities. If the published one was created from the same source, all
// differences belong to the user, including the server. Without changes the result equals the source.
func MergeChanges(published, source []byte, sameSource bool, now time.Time) ([]byte, error) {
	next, _, err := conn.LoadKubeconfig(source)
	if err != nil {
		return nil, err
	}
	last, _, err := conn.LoadKubeconfig(published)
	if err != nil {
		return source, nil //nolint:nilerr // the published one is replaced
	}
	from, to := clusterOf(last), clusterOf(next)
	merged := to.DeepCopy()
	merged.ProxyURL, merged.TLSServerName = cmp.Or(from.ProxyURL, to.ProxyURL), cmp.Or(from.TLSServerName, to.TLSServerName)
	merged.CertificateAuthorityData = joined(now, to.CertificateAuthorityData, from.CertificateAuthorityData)
	if sameSource {
		merged.Server, merged.InsecureSkipTLSVerify, merged.ProxyURL, merged.TLSServerName = from.Server, from.InsecureSkipTLSVerify,
			from.ProxyURL, from.TLSServerName
	}
	if sameSource && len(from.CertificateAuthorityData) == 0 ||
		merged.InsecureSkipTLSVerify { // the authorities of the system apply, or none
		merged.CertificateAuthorityData = nil
	}
	if sameAccess(merged, to) {
		return source, nil
	}
	next.Clusters[next.Contexts[next.CurrentContext].Cluster] = merged
	return clientcmd.Write(*next)
}

// clusterOf returns the cluster of the current context of a loaded kubeconfig.
func clusterOf(config *clientcmdapi.Config) *clientcmdapi.Cluster {
	return config.Clusters[config.Contexts[config.CurrentContext].Cluster]
}

// sameAccess reports whether two clusters of kubeconfigs are accessed in the same way.
func sameAccess(a, b *clientcmdapi.Cluster) bool {
	return a.Server == b.Server && a.ProxyURL == b.ProxyURL && a.TLSServerName == b.TLSServerName &&
		a.InsecureSkipTLSVerify == b.InsecureSkipTLSVerify &&
		bytes.Equal(a.CertificateAuthorityData, b.CertificateAuthorityData)
}

// joined returns the unexpired certificates of two bundles in their order, without duplicates. The first
// bundle is returned unchanged if the other adds nothing. An invalid bundle adds nothing. The number is not
// limited, because without a connection the authorities that the API server needs are unknown.
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
		_ = pem.Encode(&bundle, &pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw}) // a buffer does not fail
	}
	return bundle.Bytes()
}

// Fingerprints returns the SHA-256 fingerprints of the certificates in a bundle (PEM), in hexadecimal.
func Fingerprints(bundle string) sets.Set[string] {
	found := sets.New[string]()
	for _, c := range certificatesIn([]byte(bundle)) {
		found.Insert(fingerprint(c))
	}
	return found
}

// Names returns the authorities in a kubeconfig that have one of the fingerprints, with their subjects. It
// returns none for an invalid kubeconfig, with which no client connects.
func Names(kubeconfig []byte, fingerprints sets.Set[string]) []string {
	config, _, err := conn.LoadKubeconfig(kubeconfig)
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range certificatesIn(clusterOf(config).CertificateAuthorityData) {
		if is := fingerprint(c); fingerprints.Has(is) {
			names = append(names, fmt.Sprintf("%s (SHA-256 %s...)", bound.Value(c.Subject.String()), is[:shownFingerprint]))
		}
	}
	return names
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

func certificatesIn(bundle []byte) []*x509.Certificate {
	if len(bundle) > maxBundle {
		return nil
	}
	found, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return found
}
