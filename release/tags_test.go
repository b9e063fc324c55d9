package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheTagsOfARelease(t *testing.T) {
	g := NewWithT(t)
	required, err := (&release{root: root}).requiredAPI()
	g.Expect(err).NotTo(HaveOccurred())
	for version, told := range map[string]string{
		required: "tags to push with it: " + required + " bootstrap/api/" + required + " controlplane/api/" + required + "\n",
		"v7.0.0": "tags to push with it: v7.0.0 bootstrap/api/v7.0.0 controlplane/api/v7.0.0\n" +
			"before that, controlplane/api has to require the other API module at v7.0.0, not " + required + `: see "Release" in CONTRIBUTING.md` + "\n",
	} {
		text, err := (&release{root: root, version: version}).publishing()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(text).To(Equal(told))
	}
}

func TestAnAPIModuleHasToRequireTheOther(t *testing.T) {
	g := NewWithT(t)
	r := &release{root: t.TempDir(), version: "v0.1.0"}
	_, err := r.publishing()
	g.Expect(err).To(MatchError(ContainSubstring("cannot read what the API types require")))
	folder := filepath.Join(r.root, apiFolders[1])
	g.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	for content, told := range map[string]string{
		"module x\n":  "does not require " + apiFolders[0],
		"no go.mod\n": "cannot read what the API types require",
		"module x\n\nrequire example.com/bootstrap/api v0.1.0\n": "does not require " + apiFolders[0],
	} {
		g.Expect(os.WriteFile(filepath.Join(folder, "go.mod"), []byte(content), 0o600)).To(Succeed())
		_, err := r.publishing()
		g.Expect(err).To(MatchError(ContainSubstring(told)), content)
	}
}

func TestWhoReleasesIsToldTheTags(t *testing.T) {
	g := NewWithT(t)
	var told strings.Builder
	g.Expect(run(t.Context(), []string{"-root", root, "-out", filepath.Join(t.TempDir(), "out"), "-version", "v0.1.0", "-registry", "registry.example.com/team"}, &told)).To(Succeed())
	g.Expect(told.String()).To(ContainSubstring("tags to push with it: v0.1.0 bootstrap/api/v0.1.0 controlplane/api/v0.1.0\n"))
}
