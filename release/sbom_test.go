package main

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestReadModulesOfGoList(t *testing.T) {
	g := NewWithT(t)
	found := map[string]module{}
	g.Expect(readModules([]byte(`
		{}
		{"Module": {"Path": "example.com/main", "Main": true}}
		{"Module": {"Path": "example.com/here", "Version": "v0.0.0", "Replace": {"Path": "./here"}}}
		{"Module": {"Path": "example.com/used", "Version": "v1.0.0", "Sum": "h1:a"}}
		{"Module": {"Path": "example.com/used", "Version": "v1.0.0", "Sum": "h1:a"}}
		{"Module": {"Path": "example.com/forked", "Version": "v1.0.0", "Sum": "h1:b",
			"Replace": {"Path": "example.com/fork", "Version": "v1.0.1", "Sum": "h1:c"}}}
	`), found)).To(Succeed())
	g.Expect(found).To(Equal(map[string]module{
		"example.com/used": {Path: "example.com/used", Version: "v1.0.0", Sum: "h1:a"},
		"example.com/fork": {Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:c"},
	}))
	g.Expect(readModules([]byte(`{"Module": {"Path`), found)).NotTo(Succeed())
}

func TestHashOfModuleIsHashInGoSum(t *testing.T) {
	g := NewWithT(t)
	sum := []byte(strings.Repeat("s", 32))
	component, err := module{Path: "example.com/used", Version: "v1.0.0", Sum: "h1:" + base64.StdEncoding.EncodeToString(sum)}.component()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*component.Hashes).To(ConsistOf(HaveField("Value", hex.EncodeToString(sum))))
	for _, none := range []string{"", "h1:?", "h2:" + base64.StdEncoding.EncodeToString(sum)} {
		_, err := module{Path: "example.com/used", Version: "v1.0.0", Sum: none}.component()
		g.Expect(err).To(MatchError(ContainSubstring("module example.com/used has no checksum in go.sum")), none)
	}
}

func TestGoVersionIsReadFromDockerfile(t *testing.T) {
	g := NewWithT(t)
	r, p := &release{root: t.TempDir()}, providers[0]
	write := func(content string) {
		g.Expect(os.WriteFile(filepath.Join(r.root, "Dockerfile."+p.folder), []byte(content), 0o600)).To(Succeed())
	}
	_, err := r.goVersion(p)
	g.Expect(err).To(MatchError(ContainSubstring("cannot read the Dockerfile")))
	write("FROM golang:1.2\n# ARG GO_VERSION=1.3\n")
	_, err = r.goVersion(p)
	g.Expect(err).To(MatchError(ContainSubstring("sets no GO_VERSION")))
	write("ARG OTHER=1\nARG GO_VERSION=1.26.1\nFROM golang:${GO_VERSION}\n")
	g.Expect(r.goVersion(p)).To(Equal("1.26.1"))
}
