package seed

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

const kubeconfig = `{"kind":"Config","apiVersion":"v1","current-context":"c",` +
	`"contexts":[{"name":"c","context":{"cluster":"x","user":"u"}}],` +
	`"clusters":[{"name":"x","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}]}`

func TestKubeconfigsShareOnlyCredentials(t *testing.T) {
	g := NewWithT(t)
	a, err := newAccess(nil, 6443)
	g.Expect(err).NotTo(HaveOccurred())
	authority, err := a.bundle("authority")
	g.Expect(err).NotTo(HaveOccurred())
	a.authority = authority[:len(authority)/(authorities-1)] // one certificate suffices
	seen := map[string]bool{}
	for _, index := range []int{1, 2} {
		rewrite, err := a.rewrite(index, siteOf(index).name)
		g.Expect(err).NotTo(HaveOccurred())
		content, err := rewrite([]byte(kubeconfig))
		g.Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.RESTConfigFromKubeConfig(content)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.BearerToken).To(Equal("t"))
		g.Expect(config.ServerName).To(Equal(serverName))
		seen[config.Host], seen[string(config.CAData)] = true, true
	}
	g.Expect(seen).To(HaveLen(4))
}

func TestBundleHasAsManyAuthoritiesAsOpenShift(t *testing.T) {
	g := NewWithT(t)
	a, err := newAccess(nil, 6443)
	g.Expect(err).NotTo(HaveOccurred())
	bundle, err := a.bundle("a")
	g.Expect(err).NotTo(HaveOccurred())
	certificates, err := certutil.ParseCertsPEM(bundle)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(certificates).To(HaveLen(authorities-1), "in addition to the authority of the API server")
}

func TestEachClusterHasItsOwnLoopbackAddress(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for i := 1; i <= 100000; i++ {
		seen[address(i)] = strings.HasPrefix(address(i), "127.")
	}
	g.Expect(seen).To(HaveLen(100000))
	g.Expect(seen).NotTo(ContainElement(false))
	g.Expect(address(1)).NotTo(Equal("127.0.0.1"))
}

func TestDeadClustersAreSpreadEvenly(t *testing.T) {
	for dead, wanted := range map[float64]map[int]int{
		0:   {1: 1000},
		0.3: {1: 700, 2: 150, 3: 150},
		1:   {2: 500, 3: 500},
	} {
		g := NewWithT(t)
		a := &access{port: 1, silent: 2, refusing: 3, dead: dead}
		counted := map[int]int{}
		for i := range 1000 {
			counted[a.portOf(i)]++
		}
		g.Expect(counted).To(Equal(wanted))
	}
}
