package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestInstructionsListTags(t *testing.T) {
	g := NewWithT(t)
	required, err := (&release{root: root}).requiredAPI()
	g.Expect(err).NotTo(HaveOccurred())
	for version, want := range map[string]string{
		required: "Tags to push: " + required + " bootstrap/api/" + required + " controlplane/api/" + required + "\n",
		"v7.0.0": "Tags to push: v7.0.0 bootstrap/api/v7.0.0 controlplane/api/v7.0.0\n" +
			"Before you push, set the version of the other API module that controlplane/api requires to v7.0.0 (now " + required +
			`): see "Release" in CONTRIBUTING.md.` + "\n",
	} {
		text, err := (&release{root: root, version: version}).publishing()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(text).To(Equal(want))
	}
}

func TestControlPlaneAPIMustRequireBootstrapAPI(t *testing.T) {
	g := NewWithT(t)
	r := &release{root: t.TempDir(), version: "v0.1.0"}
	_, err := r.publishing()
	g.Expect(err).To(MatchError(ContainSubstring("cannot read the go.mod of the API types")))
	folder := filepath.Join(r.root, apiFolders[1])
	g.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	for content, want := range map[string]string{
		"module x\n":  "does not require " + apiFolders[0],
		"no go.mod\n": "cannot read the go.mod of the API types",
		"module x\n\nrequire example.com/bootstrap/api v0.1.0\n": "does not require " + apiFolders[0],
	} {
		g.Expect(os.WriteFile(filepath.Join(folder, "go.mod"), []byte(content), 0o600)).To(Succeed())
		_, err := r.publishing()
		g.Expect(err).To(MatchError(ContainSubstring(want)), content)
	}
}

func TestReleasePrintsTags(t *testing.T) {
	g := NewWithT(t)
	var want strings.Builder
	g.Expect(run(t.Context(), []string{
		"-root", root, "-out", filepath.Join(t.TempDir(), "out"), "-version", "v0.1.0", "-registry",
		"registry.example.com/team",
	}, &want)).To(Succeed())
	g.Expect(want.String()).To(ContainSubstring("Tags to push: v0.1.0 bootstrap/api/v0.1.0 controlplane/api/v0.1.0\n"))
}
