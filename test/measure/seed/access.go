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
	// authorities is the number of certificates in the kubeconfig of an OpenShift cluster. They are for load balancers,
	// the service network, localhost, the ingress, and the administrator.
	authorities = 5
	// serverName is in the certificate of the API server of all clusters.
	serverName = "kubernetes"
)

// access creates the kubeconfigs of clusters. All clusters have one API server. But each cluster has its own address and
// certificate authorities, so that clients share as little as between real clusters.
type access struct {
	// authority issued the certificate of the API server. The API server listens at port, on all loopback addresses.
	authority []byte
	port      int
	// silent is a port that accepts connections and never answers, and refusing a port that refuses connections.
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

// address returns the loopback address of a cluster.
func address(index int) string {
	return net.IPv4(127, byte(1+index>>16), byte(index>>8), byte(index)).String()
}

// portOf returns the port of the API of a cluster. Dead clusters are spread evenly, and one half of them is silent.
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

// rewrite returns a function that turns a kubeconfig of the installed cluster into one of another cluster. Credentials
// stay.
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

// bundle returns certificate authorities. Only the first one is used.
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
