package cluster

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

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

// FuzzLines checks that the lines do not depend on the parts in which a response arrives.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint(1), uint(2))
	f.Add([]byte("a\nbc\n"), uint(3), uint(4))
	f.Add([]byte("\n\na\n\nb"), uint(0), uint(4))
	f.Fuzz(func(t *testing.T, all []byte, first, second uint) {
		if len(all) >= maxPending {
			return
		}
		synctest.Test(t, func(t *testing.T) { expectSameLines(t, all, first, second) })
	})
}

// expectSameLines waits until each part is processed before it pushes the next.
func expectSameLines(t *testing.T, all []byte, first, second uint) {
	t.Helper()
	g := NewWithT(t)
	one, two := min(int(first%(1<<20)), len(all)), min(int(second%(1<<20)), len(all))
	var seen []string
	ended := make(chan error, 1)
	reader := &lineReader{
		handle: func(line []byte) error { seen = append(seen, string(line)); return nil },
		done:   func(err error) { ended <- err },
	}
	for _, part := range [][]byte{all[:min(one, two)], all[min(one, two):max(one, two)], all[max(one, two):]} {
		reader.push(bytes.Clone(part), nil)
		synctest.Wait()
	}
	reader.push(nil, io.EOF)
	err := <-ended
	var wanted []string
	parts := strings.Split(string(all), "\n")
	for _, line := range parts[:len(parts)-1] {
		if line != "" {
			wanted = append(wanted, line)
		}
	}
	g.Expect(seen).To(Equal(wanted))
	if parts[len(parts)-1] == "" {
		g.Expect(err).To(Equal(io.EOF))
	} else {
		g.Expect(err).To(Equal(io.ErrUnexpectedEOF))
	}
}
