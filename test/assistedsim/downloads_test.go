package assistedsim

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	ignition "github.com/coreos/ignition/v2/config/v3_1"
	. "github.com/onsi/gomega"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/apimachinery/pkg/types"
)

func TestDiscoveryIgnition(t *testing.T) {
	for name, opts := range map[string]Options{
		"open":                      {},
		"signed":                    {Auth: AuthLocal},
		"signed, private authority": {Auth: AuthLocal, HTTPS: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSimulator(t, opts)
			g.Expect(s.serve(t.Context())).To(Succeed())
			env := &infraEnv{key: types.NamespacedName{Namespace: "ns", Name: "ie"}, id: "some-id", pullSecret: []byte(`{"auths":{"a b":{}}}`)}
			env.spec.IgnitionConfigOverride = `{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/etc/extra"}]}}`
			g.Expect(s.generate(env, "4.19")).To(Succeed())
			s.infraEnvs[env.key] = env

			status, data := get(t, s, env.urls.DiscoveryIgnitionURL)
			g.Expect(status).To(Equal(http.StatusOK))
			config, _, err := ignition.Parse(data)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Ignition.Version).To(Equal("3.1.0"))
			unit := *config.Systemd.Units[0].Contents
			g.Expect(unit).To(ContainSubstring("ExecStart=/usr/local/bin/agent --url " + s.URL() + " --infra-env-id some-id "))
			g.Expect(strings.Contains(unit, "PULL_SECRET_TOKEN="+env.token)).To(Equal(opts.Auth == AuthLocal))
			files := map[string]string{}
			for _, file := range config.Storage.Files {
				if file.Contents.Source != nil {
					url, err := dataurl.DecodeString(*file.Contents.Source)
					g.Expect(err).NotTo(HaveOccurred())
					files[file.Path] = string(url.Data)
				} else {
					files[file.Path] = ""
				}
			}
			g.Expect(files).To(HaveKeyWithValue("/root/.docker/config.json", `{"auths":{"a b":{}}}`))
			g.Expect(files).To(HaveKey("/etc/extra"))

			before := env.urls
			g.Expect(s.generate(env, "4.19")).To(Succeed())
			if opts.Auth == AuthLocal {
				g.Expect(env.urls).NotTo(Equal(before), "signed URLs change")
				status, _ = get(t, s, strings.Split(env.urls.DiscoveryIgnitionURL, "&api_key")[0])
				g.Expect(status).To(Equal(http.StatusUnauthorized))
			} else {
				g.Expect(env.urls).To(Equal(before), "URLs without token stay")
			}
			s.FailDownload(env.key, Oversize(1<<20))
			_, data = get(t, s, env.urls.DiscoveryIgnitionURL)
			g.Expect(data).To(HaveLen(1 << 20))
		})
	}
}

func get(t *testing.T, s *Simulator, url string) (int, []byte) {
	t.Helper()
	g := NewWithT(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	resp, err := (&http.Client{Transport: transport}).Do(req)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return resp.StatusCode, data
}
