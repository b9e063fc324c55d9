package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// repository creates a Git repository with the given files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(exec.Command("git", "init", "-q", root).Run()).To(Succeed())
	for path, content := range files {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(root, path), []byte(content), 0o600)).To(Succeed())
	}
	return root
}

const source = `// Package host knows hosts. The user is told of each of them.
package host

// nolint tells nothing to readers, nor do markers.
//
// +kubebuilder:validation:XValidation:rule="self != 'tells'"
type Host struct {
	toldName string ` + "`json:\"tells\"`" + `
}

func (h Host) message() string {
	// This sentence is far too long for a reader, because it goes on and on about many different objects and their owners, although two or three sentences would be understood at once.
	return "nobody waits" + "tells"
}
`

func TestFindingsOfEachKindAreReported(t *testing.T) {
	g := NewWithT(t)
	root := repository(t, map[string]string{
		"host/host.go":         source,
		"host/testdata/a.yaml": "message: tells",
		"docs/page.md": "# Page\n\nThe host is there.\n\nThe host is recognised.\n\n| a | " + strings.Repeat("cell ",
			40) + " |\n|---|---|\n",
		"config/policy.yaml": "message: fine\n# who is asked\n",
		"clean.md":           "# Add workers\n\nThe manager creates the Machine.\n",
	})
	var out bytes.Buffer
	c := checker{out: &out, root: root}
	g.Expect(c.run(t.Context())).To(MatchError("8 findings in the language of the repository"), out.String)
	g.Expect(strings.Split(strings.TrimSpace(out.String()), "\n")).To(HaveExactElements(
		HavePrefix("config/policy.yaml:2: Write request"),
		HavePrefix("docs/page.md:3: Write exists"),
		HavePrefix("docs/page.md:5: 'recognised' has a British spelling."),
		HavePrefix("host/host.go:1: Write report"),
		HavePrefix("host/host.go:8: Write report"), // the name of the field, not its tag
		HavePrefix("host/host.go:12: A sentence has at most 25 words."),
		HavePrefix("host/host.go:12: Wrap the line: it has 18"),
		HavePrefix("host/host.go:13: Write another client"),
	), out.String)
}

// TestKindsOfFiles: a recorded text of another program has no findings, but the comments on it have.
func TestKindsOfFiles(t *testing.T) {
	const script = "#!/bin/bash\necho fine\n# It tells.\n"
	for path, file := range map[string]struct {
		content string
		lines   []int
	}{
		"Dockerfile.manager":                {"# The image tells.\nFROM scratch\n", []int{1}},
		".ci/run":                           {script, []int{3}},
		".github/prepare-runner":            {script, []int{3}},
		"site/provide-node":                 {script, []int{3}},
		"site/.vitepress/config.mts":        {"const name = 1 // It tells.\n", []int{1}},
		"site/theme/style.css":              {"/* It tells. */\n", []int{1}},
		"page/index.html.tmpl":              {"<p>It tells.</p>\n", []int{1}},
		"go.mod":                            {"// It tells.\nmodule example.com/tells\n", []int{1}},
		"host/testdata/recorded.yaml":       {"# It tells.\nmessage: tells\nname: x # It tells.\n", []int{1, 3}},
		"host/testdata/journey.txt":         {"# It tells.\nIt tells.\n", []int{1}},
		"host/testdata/host.go":             {"package host // It tells.\n", nil},
		"config/monitoring/testdata/a.yaml": {"- name: It tells.\n", []int{1}},
		"config/argocd/testdata/a.yaml":     {"# It tells.\n", nil},
		"crd/crd/bases/a.yaml":              {"description: It tells.\n", nil},
		"LICENSE":                           {"It tells.\n", nil},
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			var out strings.Builder
			c := checker{out: &out, root: repository(t, map[string]string{path: file.content, "clean.md": "# Add workers\n"})}
			err := c.run(t.Context())
			var wanted []any
			for _, line := range file.lines {
				wanted = append(wanted, HavePrefix("%s:%d: Write report", path, line))
			}
			if len(wanted) == 0 {
				g.Expect(err).NotTo(HaveOccurred(), out.String)
				return
			}
			g.Expect(err).To(MatchError(HavePrefix("%d findings", len(wanted))), out.String)
			g.Expect(strings.Split(strings.TrimSpace(out.String()), "\n")).To(HaveExactElements(wanted...))
		})
	}
}

// TestWords: each row of the table has a sentence that it rejects. The sentences with "" are accepted.
func TestWords(t *testing.T) {
	g := NewWithT(t)
	sentences := []struct{ text, instead string }{
		{"The Machine is made by the provider.", "is made"},
		{"The name is made of two words.", ""},
		{"OpenShift takes in no other member.", "takes in"},
		{"It takes ten minutes in total.", ""},
		{"The member was taken out of etcd.", "taken out of"},
		{"Take off the annotation.", "Take off"},
		{"The user mends the host.", "mends"},
		{"The installation is held.", "installation is held"},
		{"The lock is held.", ""},
		{"The request is tried again.", "tried again"},
		{"The host is away, hence the wait.", "hence"},
		{"The host is perhaps away.", "perhaps"},
		{"The script sees to it.", "sees to it"},
		{"The host is out of touch.", "out of touch"},
		{"The Secret is in the way.", "in the way"},
		{"Look at the console.", "Look at"},
		{"The heirs of the leader vote.", "heirs"},
		{"The news of a host arrives.", "news"},
		{"This keeps OpenShift from an upgrade.", "keeps OpenShift from"},
	}
	var page strings.Builder
	var wanted []any
	for i, s := range sentences {
		page.WriteString(s.text + "\n\n")
		if s.instead != "" {
			wanted = append(wanted, And(HavePrefix("page.md:%d: ", 2*i+1), HaveSuffix(" instead of '%s'.", s.instead)))
		}
	}
	var out strings.Builder
	c := checker{out: &out, root: repository(t, map[string]string{"page.md": page.String()})}
	g.Expect(c.run(t.Context())).To(MatchError(HavePrefix("%d findings", len(wanted))), out.String)
	g.Expect(strings.Split(strings.TrimSpace(out.String()), "\n")).To(HaveExactElements(wanted...), out.String)
}

func TestSubjectsOfCommits(t *testing.T) {
	for line, problem := range map[string]string{
		"removal: skip drain of failed members":   "",
		"config, docs: embed the policies":        "",
		"controlplane: skips the drain":           "imperative",
		"controlplane: added a field":             "imperative",
		"pkg/metal3: reading of disks":            "imperative",
		"docs: address the review":                "",
		"Fix the drain":                           "form",
		"removal: Skip the drain":                 "form",
		"removal: " + strings.Repeat("skip ", 20): "limit is 72",
	} {
		if problem == "" {
			NewWithT(t).Expect(checkSubject(line)).To(BeEmpty(), line)
		} else {
			NewWithT(t).Expect(checkSubject(line)).To(ContainSubstring(problem), line)
		}
	}
}

func TestCommitsOfARangeAreChecked(t *testing.T) {
	g := NewWithT(t)
	root := repository(t, nil)
	commit := func(message string) {
		command := exec.Command("git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q",
			"--allow-empty", "-m", message)
		g.Expect(command.Run()).To(Succeed())
	}
	commit("An old subject")
	commit("docs: add a page")
	var out bytes.Buffer
	g.Expect(checkCommits(t.Context(), &out, root, "HEAD~1..HEAD")).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("1 subjects"))
	commit("docs: adds a page")
	g.Expect(checkCommits(t.Context(), &out, root, "HEAD~2..HEAD")).To(MatchError(ContainSubstring("1 of 2")))
}

func TestSignOffsOfARangeAreChecked(t *testing.T) {
	g := NewWithT(t)
	root := repository(t, nil)
	commit := func(trailers ...string) {
		command := exec.Command("git", "-C", root, "-c", "user.name=A Name", "-c", "user.email=a@example.com", "commit", "-q",
			"--allow-empty", "-m", "docs: add a page", "-m", strings.Join(trailers, "\n"))
		g.Expect(command.Run()).To(Succeed())
	}
	commit()
	commit("Reviewed-by: B <b@example.com>", "Signed-off-by: B <b@example.com>", "Signed-off-by: A Name <a@example.com>")
	var out strings.Builder
	g.Expect(checkSignOffs(t.Context(), &out, root, "HEAD~1..HEAD")).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("1 sign-offs"))
	g.Expect(checkSignOffs(t.Context(), &out, root, "HEAD..HEAD")).To(Succeed(), "no commits")
	commit("Signed-off-by: B <b@example.com>")
	commit("Signed-off-by: A Name <other@example.com>")
	commit()
	g.Expect(checkSignOffs(t.Context(), &out, root, "HEAD~4..HEAD")).To(MatchError(ContainSubstring("3 of 4")))
	g.Expect(out.String()).To(ContainSubstring(`the line "Signed-off-by: A Name <a@example.com>" is missing`))
}
