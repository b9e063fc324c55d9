package env

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig returns a kubeconfig for one user of the API server.
func (a *apiServer) kubeconfig(user string, credentials *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{a.name: {Server: a.url(), CertificateAuthorityData: a.ca.PEM()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: credentials},
		Contexts:       map[string]*clientcmdapi.Context{user: {Cluster: a.name, AuthInfo: user}},
		CurrentContext: user,
	}
}

// AdminKubeconfig writes the kubeconfig of an administrator with the given name to a folder, and returns its
// path.
func (e *Env) AdminKubeconfig(user, folder string) (string, error) {
	certificate, key, err := e.api.ca.Client(user, adminGroup)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, user+".kubeconfig")
	return path, writeKubeconfig(path, e.api.kubeconfig(user, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}))
}

func writeKubeconfig(path string, config *clientcmdapi.Config) error {
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return nil
}

// restConfig returns the client configuration of a kubeconfig, without client-side throttling.
func restConfig(config *clientcmdapi.Config) (*rest.Config, error) {
	result, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot use a kubeconfig: %w", err)
	}
	result.QPS = -1
	return result, nil
}
