package cluster

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// RefusedError says why a kubeconfig is not used.
type RefusedError string

func (e RefusedError) Error() string { return string(e) }

// CheckKubeconfig refuses a kubeconfig that is more than data. Whoever may write Secrets in a namespace writes kubeconfigs that this process uses: one
// that names a program would run it here, one that names the file of our own token would send that token to a server of the writer's choice.
// All users and clusters in it count, not only those of its current context. The error is a RefusedError, and holds nothing of the content.
func CheckKubeconfig(content []byte) error {
	_, _, err := load(content)
	return err
}

// load returns a kubeconfig that is not refused, and what its current context leads to.
func load(content []byte) (*clientcmdapi.Config, *rest.Config, error) {
	if len(content) == 0 {
		return nil, nil, RefusedError("it is empty")
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil, nil, RefusedError("it is no kubeconfig")
	}
	if found := foreign(config); len(found) > 0 {
		return nil, nil, RefusedError("it has " + strings.Join(found, ", ") + ", but no program is run and no file read for a kubeconfig: it must hold the credentials " +
			"(token, or client-certificate-data and client-key-data) and certificate-authority-data")
	}
	// From here on nothing in it leads out of it.
	current, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return nil, nil, RefusedError("its current context does not lead to a server and a user")
	}
	return config, current, nil
}

// foreign names what in a kubeconfig stands for programs and files, as it is spelt there.
func foreign(config *clientcmdapi.Config) []string {
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
	config, _, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{config.Contexts[config.CurrentContext].AuthInfo: {Token: token}}
	return clientcmd.Write(*config)
}
