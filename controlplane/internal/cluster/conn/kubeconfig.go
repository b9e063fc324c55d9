package conn

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// RefusedError is the reason why a kubeconfig is not used.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// CheckKubeconfig refuses a kubeconfig that refers to programs or files. The manager uses kubeconfigs of all
// clients that can write Secrets in a namespace. A program would run in the manager. The path of the
// manager's own token would send that token to a foreign server. The check covers all users and clusters, not
// only those of the current context. The error is a RefusedError, and contains no value of the kubeconfig.
func CheckKubeconfig(content []byte) error {
	_, _, err := LoadKubeconfig(content)
	return err
}

// LoadKubeconfig returns a kubeconfig that passes CheckKubeconfig, and the client configuration of its current context.
func LoadKubeconfig(content []byte) (*clientcmdapi.Config, *rest.Config, error) {
	if len(content) == 0 {
		return nil, nil, RefusedError("it is empty")
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil, nil, RefusedError("it is no kubeconfig")
	}
	if found := externalFields(config); len(found) > 0 {
		return nil, nil, RefusedError("it has " + strings.Join(found, ", ") + ", but no program is run and no file read for a kubeconfig: it " +
			"must contain the credentials (token, or client-certificate-data and client-key-data) and certificate-authority-data")
	}
	// From here on the kubeconfig refers to no file or program.
	current, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return nil, nil, RefusedError("its current context does not lead to a server and a user")
	}
	return config, current, nil
}

// externalFields returns the names of the fields in a kubeconfig that refer to programs and files.
func externalFields(config *clientcmdapi.Config) []string {
	found := map[string]bool{}
	for _, user := range config.AuthInfos {
		found["exec"] = found["exec"] || user.Exec != nil
		found["auth-provider"] = found["auth-provider"] || user.AuthProvider != nil
		found["tokenFile"] = found["tokenFile"] || user.TokenFile != ""
		found["client-certificate"] = found["client-certificate"] || user.ClientCertificate != ""
		found["client-key"] = found["client-key"] || user.ClientKey != ""
	}
	for _, cluster := range config.Clusters {
		found["certificate-authority"] = found["certificate-authority"] || cluster.CertificateAuthority != ""
	}
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(found))
}

// WithToken replaces the credentials of a kubeconfig.
func WithToken(kubeconfig []byte, token string) ([]byte, error) {
	config, _, err := LoadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{config.Contexts[config.CurrentContext].AuthInfo: {Token: token}}
	return clientcmd.Write(*config)
}
