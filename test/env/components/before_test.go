package components

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// history is a checkout with its own git repository.
type history struct {
	*testing.T
	builder *Builder
}

func newHistory(t *testing.T) *history {
	t.Helper()
	h := &history{T: t, builder: &Builder{root: t.TempDir(), out: io.Discard}}
	h.git("init", "--quiet")
	NewWithT(t).Expect(os.MkdirAll(filepath.Join(h.builder.root, ".tools"), 0o755)).To(Succeed())
	return h
}

func (h *history) git(args ...string) {
	h.Helper()
	cmd := exec.CommandContext(h.Context(), "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...)
	cmd.Dir = h.builder.root
	out, err := cmd.CombinedOutput()
	NewWithT(h).Expect(err).NotTo(HaveOccurred(), string(out))
}

// commit commits a file whose content is the message.
func (h *history) commit(file, message string) {
	h.Helper()
	path := filepath.Join(h.builder.root, file)
	NewWithT(h).Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	NewWithT(h).Expect(os.WriteFile(path, []byte(message), 0o600)).To(Succeed())
	h.git("add", file)
	h.git("commit", "--quiet", "--message", message)
}

// expect checks the version of the previous release and the content of a file in it.
func (h *history) expect(version, file, content string) {
	h.Helper()
	g := NewWithT(h)
	before, is, err := h.builder.Before(h.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(is).To(Equal(version))
	found, err := os.ReadFile(filepath.Join(before.Root(), file))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(found)).To(Equal(content))
}

func TestPreviousRelease(t *testing.T) {
	const api, other = "config/controlplane/crd/bases/kind.yaml", "README.md"
	h := newHistory(t)
	h.commit(api, "first")
	h.commit(other, "text")
	_, _, err := h.builder.Before(t.Context())
	NewWithT(t).Expect(err).To(MatchError(ErrNoHistory), "no release before the first API")

	h.commit(other, "more text")
	h.commit(api, "second")
	h.commit(other, "yet more text")
	h.expect(firstVersion, api, "first")
	h.expect(firstVersion, other, "more text")

	h.git("tag", "v0.2.0")
	h.expect(firstVersion, api, "first") // a tag of the last commit does not count
	h.commit(other, "after the release")
	h.expect("v0.2.0", other, "yet more text")
	h.git("tag", "another-tag")
	h.commit(other, "later")
	h.expect("v0.2.0", other, "yet more text")

	clone := filepath.Join(t.TempDir(), "clone")
	h.git("clone", "--quiet", "--depth=1", "file://"+h.builder.root, clone)
	_, _, err = (&Builder{root: clone, out: io.Discard}).Before(t.Context())
	NewWithT(t).Expect(err).To(MatchError(ErrNoHistory), "a clone without history")

	_, _, err = (&Builder{root: t.TempDir(), out: io.Discard}).Before(t.Context())
	NewWithT(t).Expect(err).To(MatchError(ErrNoHistory), "no git")
}
