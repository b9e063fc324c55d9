package seed

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// authorities is how many certificates are in the kubeconfig of an OpenShift cluster: those of its load balancers,
	// of the service network, of localhost, of its ingress, and the one of the administrator.
	authorities = 5
	// serverName is in the certificate of the one API server that stands behind all clusters.
	serverName = "kubernetes"
)

// access makes the kubeconfigs of clusters. Behind all of them stands one API server, but nothing of it must look the
// same: each cluster has an address and certificate authorities of its own, so that no client shares between them what
// it could not share between real clusters.
type access struct {
	// authority is the one that the API server's certificate is from, port is where it listens, on all addresses of the loopback interface.
	authority []byte
	port      int
	// silent and refusing are ports at which a connection is accepted and never answered, and refused.
	silent, refusing int
	// dead is the share of clusters that do not answer.
	dead float64

	key *rsa.PrivateKey
}

func newAccess(authority []byte, port int) (*access, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("cannot create a key: %w", err)
	}
	return &access{authority: authority, port: port, key: key}, nil
}

// address is the loopback address of a cluster.
func address(index int) string {
	return net.IPv4(127, byte(1+index>>16), byte(index>>8), byte(index)).String()
}

// portOf is where a cluster's API is said to be: dead ones are spread evenly, and one half of them is silent.
func (a *access) portOf(index int) int {
	before, now := int(float64(index)*a.dead), int(float64(index+1)*a.dead)
	switch {
	case now == before:
		return a.port
	case now%2 == 0:
		return a.silent
	}
	return a.refusing
}

// rewrite returns a function that makes a kubeconfig of the installed cluster one of another. Its credentials stay.
func (a *access) rewrite(index int, name string) (func([]byte) ([]byte, error), error) {
	bundle, err := a.bundle(name)
	if err != nil {
		return nil, err
	}
	cluster := &clientcmdapi.Cluster{
		Server: "https://" + net.JoinHostPort(address(index), strconv.Itoa(a.portOf(index))), TLSServerName: serverName,
		CertificateAuthorityData: bundle,
	}
	return func(kubeconfig []byte) ([]byte, error) {
		config, err := clientcmd.Load(kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("cannot read a kubeconfig: %w", err)
		}
		context := config.Contexts[config.CurrentContext]
		if context == nil {
			return nil, fmt.Errorf("a kubeconfig has no context %q", config.CurrentContext)
		}
		config.Clusters = map[string]*clientcmdapi.Cluster{name: cluster}
		config.AuthInfos = map[string]*clientcmdapi.AuthInfo{"admin": config.AuthInfos[context.AuthInfo]}
		config.Contexts = map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: "admin"}}
		config.CurrentContext = name
		return clientcmd.Write(*config)
	}, nil
}

// bundle returns certificate authorities, of which only the first is of use.
func (a *access) bundle(name string) ([]byte, error) {
	bundle := bytes.NewBuffer(bytes.Clone(a.authority))
	for i := range authorities - 1 {
		serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
		if err != nil {
			return nil, fmt.Errorf("cannot create a serial number: %w", err)
		}
		template := &x509.Certificate{
			SerialNumber: serial, Subject: pkix.Name{OrganizationalUnit: []string{"openshift"}, CommonName: fmt.Sprintf("signer-%d-of-%s", i, name)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
		certificate, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
		if err != nil {
			return nil, fmt.Errorf("cannot create a certificate: %w", err)
		}
		if err := pem.Encode(bundle, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}); err != nil {
			return nil, fmt.Errorf("cannot encode a certificate: %w", err)
		}
	}
	return bundle.Bytes(), nil
}
