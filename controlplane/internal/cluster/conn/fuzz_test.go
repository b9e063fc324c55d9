package conn

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// FuzzKubeconfig checks that an accepted kubeconfig contains only data and a server. With a token it contains
// no other credentials. An error quotes no value of the kubeconfig.
func FuzzKubeconfig(f *testing.F) {
	const whole = `{"apiVersion":"v1","kind":"Config","current-context":"a",` +
		`"clusters":[{"name":"c","cluster":{"server":"https://api:6443"}}],` +
		`"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":USER}]}`
	for _, user := range []string{
		`{"token":"t"}`, `{"client-certificate-data":"Yw==","client-key-data":"aw=="}`,
		`{"exec":{"command":"sh","apiVersion":"client.authentication.k8s.io/v1","interactiveMode":"Never"}}`,
		`{"tokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"}`, `{"client-certificate":"/etc/passwd"}`,
		`{"auth-provider":{"name":"oidc"}}`, `{"username":"u","password":"p"}`, `null`,
	} {
		f.Add([]byte(strings.Replace(whole, "USER", user, 1)))
	}
	f.Add([]byte("current-context: a\nclusters: [{name: c, cluster: {server: 'https://a', certificate-authority: /x}}]"))
	f.Add([]byte(strings.Replace(whole, "USER}", `{"token":"t"}},{"name":"other","user":{"tokenFile":"/x"}}`, 1)))
	f.Add([]byte("{"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		g := NewWithT(t)
		if err := CheckKubeconfig(content); err != nil {
			var refused RefusedError
			g.Expect(errors.As(err, &refused)).To(BeTrue())
			return
		}
		parsed, err := clientcmd.Load(content)
		g.Expect(err).NotTo(HaveOccurred())
		for _, user := range parsed.AuthInfos {
			g.Expect(user.Exec).To(BeNil())
			g.Expect(user.AuthProvider).To(BeNil())
			g.Expect([]string{user.TokenFile, user.ClientCertificate, user.ClientKey}).To(HaveEach(""))
		}
		for _, cluster := range parsed.Clusters {
			g.Expect(cluster.CertificateAuthority).To(BeEmpty())
		}
		ours, err := WithToken(content, "the-token")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(CheckKubeconfig(ours)).To(Succeed())
		changed, err := clientcmd.Load(ours)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(changed.AuthInfos).To(HaveLen(1))
		for _, user := range changed.AuthInfos {
			user.LocationOfOrigin, user.Extensions = "", nil
			g.Expect(*user).To(Equal(clientcmdapi.AuthInfo{Token: "the-token"}))
		}
		for name, cluster := range parsed.Clusters {
			g.Expect(changed.Clusters[name].Server).To(Equal(cluster.Server))
		}
	})
}
