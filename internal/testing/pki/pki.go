// Package pki has the certificate authorities of clusters on this machine, and what they issue.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
)

// certificateLifetime is far longer than any run.
const certificateLifetime = 30 * 24 * time.Hour

// Authority is the certificate authority of one cluster.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// New creates an authority.
func New(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create the key of CA %s: %w", name, err)
	}
	template, err := certificateTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot create CA %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read back CA %s: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key, pem: encodePEM("CERTIFICATE", der)}, nil
}

// Client issues a client certificate: the API server takes user and groups from its subject.
func (a *Authority) Client(user string, groups ...string) (certificate, key []byte, err error) {
	template, err := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return nil, nil, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// server issues a certificate for servers on this machine.
func (a *Authority) server() (certificate, key []byte, err error) {
	template, err := certificateTemplate(pkix.Name{CommonName: "localhost"})
	if err != nil {
		return nil, nil, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	return a.issue(template)
}

// Host issues a certificate for a server on a simulated host with these names and addresses and localhost. With client
// it is also valid as the certificate of a client, such as a peer.
func (a *Authority) Host(name string, client bool, hosts ...string) (certificate, key []byte, err error) {
	template, err := certificateTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, nil, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a key for %s: %w", template.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot issue a certificate for %s: %w", template.Subject.CommonName, err)
	}
	key, err = encodeKey(private)
	return encodePEM("CERTIFICATE", der), key, err
}

// ServerFiles writes a server certificate as tls.crt and tls.key into dir, with the authority as ca.crt. Webhook
// servers expect these names. Only the current user can read the files.
func (a *Authority) ServerFiles(dir string) error {
	certificate, key, err := a.server()
	if err != nil {
		return err
	}
	return process.WriteFiles(dir, map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": a.pem})
}

// ServerCertificate issues a certificate for a server on this machine.
func (a *Authority) ServerCertificate() (tls.Certificate, error) {
	chain, key, err := a.server()
	if err != nil {
		return tls.Certificate{}, err
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot use a new certificate: %w", err)
	}
	return certificate, nil
}

// ServerTLS is for a server on this machine, with a certificate of its own: clients may show one of the authority, and no other.
func (a *Authority) ServerTLS() (*tls.Config, error) {
	certificate, err := a.ServerCertificate()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: a.Pool(), ClientAuth: tls.VerifyClientCertIfGiven,
		MinVersion: tls.VersionTLS12,
	}, nil
}

// PEM is the certificate of the authority, which no client trusts automatically.
func (a *Authority) PEM() []byte {
	return a.pem
}

// Pool is the authority as all that is trusted.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// HTTPClient trusts the authority.
func (a *Authority) HTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}}}
}

// NewSigningKey creates the key pair with which an API server signs ServiceAccount tokens.
func NewSigningKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create a signing key: %w", err)
	}
	return encodeKey(key)
}

func certificateTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("cannot create a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certificateLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a private key: %w", err)
	}
	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
