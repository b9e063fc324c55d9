package clusterctl

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/semver"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/network"
)

// clusterctl reads versions from the proxy of the Go modules, before it queries GitHub. It reads files from GitHub.
const gitHubHost, moduleProxyHost = "github.com", "proxy.golang.org"

// gitHub serves releases at the addresses of GitHub. Clients reach it through an HTTP proxy. No other address exists.
type gitHub struct {
	// folder has the files of the releases: <owner>/<repository>/<version>/<file>.
	folder string
	// env are the variables with which clusterctl and curl use the proxy and trust its servers.
	env []string
}

func startGitHub(t *testing.T) *gitHub {
	t.Helper()
	g := NewWithT(t)
	hub := &gitHub{folder: t.TempDir()}
	authority, err := pki.New("simulated GitHub")
	g.Expect(err).NotTo(HaveOccurred())
	certificate, key, err := authority.Host(gitHubHost, false, gitHubHost, moduleProxyHost)
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, key)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(hub.handler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy, err := network.New(t.Context(), filepath.Join(t.TempDir(), "s"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(proxy.Close)
	for _, host := range []string{gitHubHost, moduleProxyHost} {
		proxy.Attach(host+":443", server.Listener.Addr().String())
	}
	trusted := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(trusted, authority.PEM(), 0o600)).To(Succeed())
	hub.env = []string{
		"HTTPS_PROXY=" + proxy.ProxyURL(""), "https_proxy=" + proxy.ProxyURL(""), "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
		"SSL_CERT_FILE=" + trusted, "CURL_CA_BUNDLE=" + trusted, "GOPROXY=https://" + moduleProxyHost, "GITHUB_TOKEN=",
	}
	return hub
}

// handler serves the addresses that clusterctl and users of a release query. As on GitHub, the address of a file of the
// newest release redirects.
func (h *gitHub) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+moduleProxyHost+"/github.com/{owner}/{repository}/@v/list", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(strings.Join(h.versions(r), "\n"))) // the client reports what is missing
	})
	const releases = "GET " + gitHubHost + "/{owner}/{repository}/releases/"
	mux.HandleFunc(releases+"download/{version}/{file}", func(w http.ResponseWriter, r *http.Request) {
		name := path.Join(r.PathValue("owner"), r.PathValue("repository"), r.PathValue("version"), r.PathValue("file"))
		http.ServeFileFS(w, r, os.DirFS(h.folder), name)
	})
	mux.HandleFunc(releases+"latest/download/{file}", func(w http.ResponseWriter, r *http.Request) {
		versions := h.versions(r)
		if len(versions) == 0 {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, "../../download/"+slices.MaxFunc(versions, semver.Compare)+"/"+r.PathValue("file"), http.StatusFound)
	})
	return mux
}

// versions are the released versions of the repository of a request.
func (h *gitHub) versions(r *http.Request) []string {
	entries, err := os.ReadDir(filepath.Join(h.folder, r.PathValue("owner"), r.PathValue("repository")))
	if err != nil {
		return nil
	}
	var versions []string
	for _, entry := range entries {
		versions = append(versions, entry.Name())
	}
	return versions
}

// release returns the folder for the files of a release.
func (h *gitHub) release(repository, version string) string {
	return filepath.Join(h.folder, repository, version)
}
