package bootmode

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
)

// private returns a server with a certificate of its own, and the certificate.
func private(t *testing.T) (*httptest.Server, []byte) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	t.Cleanup(server.Close)
	return server, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
}

func TestAuthoritiesOfTheManagerAreTrustedInAddition(t *testing.T) {
	g := NewWithT(t)
	server, ca := private(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, ca)
	found, err := ReadAuthorities(file, funcr.New(func(string, string) {}, funcr.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	for situation, bundles := range map[string][][]byte{
		"alone":                         {found.PEM()},
		"with an empty one of a config": {nil, found.PEM()},
		"with another one of a config":  {otherCA(t), found.PEM()},
	} {
		_, err := downloadIgnition(t.Context(), server.URL, bundles...)
		g.Expect(err).NotTo(HaveOccurred(), situation)
	}
	_, err = downloadIgnition(t.Context(), server.URL, otherCA(t))
	g.Expect(err).To(MatchError(ContainSubstring("certificate")))
	_, err = downloadIgnition(t.Context(), server.URL, []byte("x"), found.PEM())
	g.Expect(err).To(MatchError(ContainSubstring("no PEM certificate")), "the error of a config is not hidden")

	none, err := ReadAuthorities("", funcr.New(func(string, string) {}, funcr.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.PEM()).To(BeNil())
}

// otherCA returns an authority that verifies no server of these tests.
func otherCA(t *testing.T) []byte {
	t.Helper()
	authority, err := pki.New("another")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return authority.PEM()
}

// A manager that starts with unusable authorities would report a failed download for each host.
func TestUnusableAuthoritiesAreRejectedAtTheStart(t *testing.T) {
	_, ca := private(t)
	folder := t.TempDir()
	inFolder := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		write(t, path, content)
		return path
	}
	many, pipes := filepath.Join(folder, "many"), filepath.Join(folder, "pipes")
	g := NewWithT(t)
	for _, path := range []string{many, pipes, filepath.Join(folder, "empty")} {
		g.Expect(os.Mkdir(path, 0o700)).To(Succeed())
	}
	for i := range authorityFilesLimit + 1 {
		write(t, filepath.Join(many, strconv.Itoa(i)), ca)
	}
	g.Expect(syscall.Mkfifo(filepath.Join(pipes, "pipe"), 0o600)).To(Succeed())
	for want, path := range map[string]string{
		"no such file or directory": filepath.Join(folder, "missing"),
		"has no PEM certificate":    inFolder("text", []byte("no certificate")),
		"empty has no PEM":          filepath.Join(folder, "empty"),
		"larger than 1 MiB":         inFolder("large", append(bytes.Clone(ca), bytes.Repeat([]byte("\n"), authoritiesLimit)...)),
		"has 101 files":             many,
		"is not a regular file":     pipes,
	} {
		_, err := ReadAuthorities(path, funcr.New(func(string, string) {}, funcr.Options{}))
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
}

// The kubelet mounts a ConfigMap as links to a folder, and replaces the folder as a whole.
func TestAuthoritiesOfAMountedConfigMapFollowChanges(t *testing.T) {
	g := NewWithT(t)
	_, ca := private(t)
	folder := t.TempDir()
	publish := func(version string, files map[string][]byte) {
		g.Expect(os.Mkdir(filepath.Join(folder, version), 0o700)).To(Succeed())
		for name, content := range files {
			write(t, filepath.Join(folder, version, name), content)
			_ = os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name))
		}
		g.Expect(os.Symlink(version, filepath.Join(folder, "..new"))).To(Succeed())
		g.Expect(os.Rename(filepath.Join(folder, "..new"), filepath.Join(folder, "..data"))).To(Succeed())
	}
	var logged []string
	publish("..2026_01", map[string][]byte{"ca.crt": ca})
	found, err := ReadAuthorities(folder, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Count(found.PEM(), []byte("BEGIN"))).To(Equal(1), "not read twice through ..data")
	g.Expect(logged).To(BeEmpty())

	publish("..2026_02", map[string][]byte{"ca.crt": ca, "other.crt": otherCA(t)})
	g.Expect(bytes.Count(found.PEM(), []byte("BEGIN"))).To(Equal(2))
	g.Expect(logged).To(ConsistOf(ContainSubstring("Read the changed authorities")))

	publish("..2026_03", map[string][]byte{"ca.crt": []byte("broken"), "other.crt": otherCA(t)})
	for range 3 {
		g.Expect(bytes.Count(found.PEM(), []byte("BEGIN"))).To(Equal(2), "the former ones stay trusted")
	}
	g.Expect(logged).To(HaveLen(2), "logged once")
	g.Expect(logged[1]).To(And(ContainSubstring("has no PEM certificate"), ContainSubstring("stay trusted")))

	publish("..2026_04", map[string][]byte{"ca.crt": ca, "other.crt": otherCA(t)})
	g.Expect(bytes.Count(found.PEM(), []byte("BEGIN"))).To(Equal(2))
	g.Expect(strings.Join(logged[2:], "")).To(ContainSubstring("Read the changed authorities"))
}

// A damaged file that replaces a valid one, while another file is valid, must not remove an authority.
func TestDamagedFileKeepsTheFormerAuthorities(t *testing.T) {
	_, ca := private(t)
	damaged := bytes.Replace(ca, []byte("M"), []byte("!"), 1)
	for situation, tc := range map[string]struct {
		content []byte
		problem string
	}{
		"truncated":             {ca[:len(ca)/2], "has a damaged PEM block"},
		"damaged in the middle": {slices.Concat(otherCA(t), damaged, otherCA(t)), "has a damaged PEM block"},
		"not a certificate": {
			slices.Concat(otherCA(t), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), "PEM block 2 of ",
		},
		"text": {[]byte("no certificate"), "has no PEM certificate"},
	} {
		g := NewWithT(t)
		folder := t.TempDir()
		write(t, filepath.Join(folder, "ca.crt"), ca)
		write(t, filepath.Join(folder, "other.crt"), otherCA(t))
		var logged []string
		found, err := ReadAuthorities(folder, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
		g.Expect(err).NotTo(HaveOccurred())
		former := string(found.PEM())
		g.Expect(former).To(ContainSubstring(string(ca)))

		write(t, filepath.Join(folder, "ca.crt"), tc.content)
		g.Expect(string(found.PEM())).To(Equal(former), situation)
		g.Expect(logged).To(ConsistOf(And(ContainSubstring(tc.problem), ContainSubstring("ca.crt"))), situation)
		_, err = ReadAuthorities(folder, funcr.New(func(string, string) {}, funcr.Options{}))
		g.Expect(err).To(MatchError(ContainSubstring("ca.crt")), situation)
	}
}

// cert-manager leaves ca.crt of a Secret empty if the issuer is a public authority (ACME). A manager that rejects the
// empty file would not start after a change of the issuer.
func TestEmptyFileAddsNoAuthority(t *testing.T) {
	server, ca := private(t)
	for situation, tc := range map[string]struct {
		files   map[string][]byte
		path    string
		trusted bool
	}{
		"a file":                           {map[string][]byte{"ca.crt": nil}, "ca.crt", false},
		"a file with a line break":         {map[string][]byte{"ca.crt": []byte("\n")}, "ca.crt", false},
		"the only file of a folder":        {map[string][]byte{"ca.crt": nil}, "", false},
		"next to a file with an authority": {map[string][]byte{"ca.crt": nil, "other.crt": ca}, "", true},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			folder := t.TempDir()
			for name, content := range tc.files {
				write(t, filepath.Join(folder, name), content)
			}
			var logged []string
			found, err := ReadAuthorities(filepath.Join(folder, tc.path), funcr.New(func(_, args string) { logged = append(logged, args) },
				funcr.Options{}))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = downloadIgnition(t.Context(), server.URL, found.PEM())
			g.Expect(err == nil).To(Equal(tc.trusted), "%v", err)
			g.Expect(logged).To(ConsistOf(And(ContainSubstring("are empty"), ContainSubstring("ca.crt"), Not(ContainSubstring("other")))),
				"logged once")
		})
	}
}

// The result of a change is that of a start: the authority is not trusted any more.
func TestFileThatBecomesEmptyRemovesItsAuthority(t *testing.T) {
	g := NewWithT(t)
	_, ca := private(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, ca)
	var logged []string
	found, err := ReadAuthorities(file, funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	write(t, file, nil)
	for range 3 {
		g.Expect(found.PEM()).To(BeEmpty())
	}
	g.Expect(logged).To(ConsistOf(ContainSubstring("Read the changed authorities"), ContainSubstring("are empty")))
	write(t, file, ca)
	g.Expect(found.PEM()).To(Equal(ca))
}

// A Secret of type kubernetes.io/tls is mounted with its private key.
func TestOnlyCertificatesAreKept(t *testing.T) {
	g := NewWithT(t)
	_, ca := private(t)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "tls.crt"), slices.Concat([]byte("Issuer: lab\n"), ca, []byte("end\n")))
	write(t, filepath.Join(folder, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	found, err := ReadAuthorities(folder, funcr.New(func(string, string) {}, funcr.Options{}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(found.PEM())).To(Equal(string(ca)))
}
