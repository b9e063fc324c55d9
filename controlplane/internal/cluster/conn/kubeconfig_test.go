package conn

import (
	"testing"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
)

func TestCheckKubeconfig(t *testing.T) {
	const path = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	user := func(u clientcmdapi.AuthInfo) func(*clientcmdapi.Config) {
		return func(c *clientcmdapi.Config) { c.AuthInfos["admin"] = &u }
	}
	for situation, tc := range map[string]struct {
		change func(*clientcmdapi.Config)
		refuse string
	}{
		"token":                {},
		"client certificate":   {change: user(clientcmdapi.AuthInfo{ClientCertificateData: []byte("c"), ClientKeyData: []byte("k")})},
		"token file":           {user(clientcmdapi.AuthInfo{TokenFile: path}), "it has tokenFile, "},
		"token file and token": {user(clientcmdapi.AuthInfo{Token: "t", TokenFile: path}), "it has tokenFile, "},
		"program": {user(clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			Command:    "sh",
			APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}), "it has exec, "},
		"auth provider": {
			user(clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc"}}),
			"it has auth-provider, ",
		},
		"client certificate in files": {
			user(clientcmdapi.AuthInfo{ClientCertificate: path, ClientKey: path}),
			"it has client-certificate, client-key, ",
		},
		"authority in a file": {
			func(c *clientcmdapi.Config) { c.Clusters["c"].CertificateAuthority = path },
			"it has certificate-authority, ",
		},
		"user of no context": {
			func(c *clientcmdapi.Config) { c.AuthInfos["other"] = &clientcmdapi.AuthInfo{TokenFile: path} },
			"it has tokenFile, ",
		},
		"no current context": {func(c *clientcmdapi.Config) { c.CurrentContext = ""; c.Contexts = nil }, "its current context"},
		"no context, but unnamed data": {func(c *clientcmdapi.Config) {
			c.CurrentContext, c.Contexts = "", nil
			c.Clusters[""], c.AuthInfos[""] = c.Clusters["c"], c.AuthInfos["admin"]
		}, "its current context"},
		"no server": {func(c *clientcmdapi.Config) { c.Clusters["c"].Server = "" }, "its current context"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			err := CheckKubeconfig(conntest.Kubeconfig(t, "https://foreign.example.com:6443", tc.change))
			if tc.refuse == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(HavePrefix(tc.refuse)))
			g.Expect(err).To(BeAssignableToTypeOf(RefusedError("")))
			g.Expect(err.Error()).NotTo(Or(ContainSubstring(path), ContainSubstring("foreign")), "no value is quoted")
		})
	}
	NewWithT(t).Expect(CheckKubeconfig([]byte("no: [kubeconfig"))).To(MatchError("it is no kubeconfig"))
	NewWithT(t).Expect(CheckKubeconfig(nil)).To(MatchError("it is empty"))
}
