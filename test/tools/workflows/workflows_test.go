package workflows

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v4"
)

const folder = ".github/workflows"

// read returns the sources of all workflows, by file name.
func read(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, folder))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	sources := map[string]string{}
	for _, entry := range entries {
		sources[entry.Name()] = file(path.Join(folder, entry.Name()))
	}
	return sources
}

func TestWorkflowsFollowRules(t *testing.T) {
	g := NewWithT(t)
	sources := read(t)
	g.Expect(slices.Sorted(maps.Keys(sources))).To(Equal([]string{"ci.yaml", "nightly.yaml", "release.yaml"}))
	for file, source := range sources {
		g.Expect(check(file, source)).To(BeEmpty(), file)
	}
}

// valid is a workflow without violations. Each case of TestViolationsAreFound changes one line of it.
const valid = `
on:
  push:
permissions:
  contents: read
jobs:
  publish:
    permissions:
      packages: write
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    steps:
    - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
      with:
        persist-credentials: false
    - run: make release IMAGES=bin/images.txt && .ci/run
      env:
        TOKEN: ${{ github.token }}
`

func TestViolationsAreFound(t *testing.T) {
	NewWithT(t).Expect(check("release.yaml", valid)).To(BeEmpty())
	const (
		secret      = "    env: {TOKEN: '${{ secrets.TOKEN }}'}\n    timeout"
		pin         = "3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
		permissions = "permissions:\n  contents: read\n"
	)
	for name, tc := range map[string]struct{ old, new, finding string }{
		"an action by tag":                        {pin, "v7.0.1", "not pinned"},
		"an action by a short commit":             {pin, "3d3c42e # v7.0.1", "not pinned"},
		"a pin without its version":               {" # v7.0.1", "", "not pinned"},
		"a pin of a moving version":               {"# v7.0.1", "# v7", "not pinned"},
		"rights for a pull request":               {"push:", "pull_request_target:", "event pull_request_target"},
		"no permissions":                          {permissions, "", "declares no permissions"},
		"permissions for everything":              {permissions, "permissions: write-all\n", "permissions write-all of everything"},
		"a workflow that may write":               {"contents: read", "contents: write", "the workflow may write contents"},
		"a job that may write more":               {"packages: write", "contents: write", "job publish may write contents"},
		"a job of another name":                   {"publish:", "test:", "job test may write packages"},
		"no timeout":                              {"    timeout-minutes: 5\n", "", "has no timeout-minutes"},
		"a runner that changes":                   {"ubuntu-24.04", "ubuntu-latest", "does not run on"},
		"a checkout with its token":               {"false", "true", "keeps its token"},
		"a checkout with its token by default":    {"      with:\n        persist-credentials: false\n", "", "keeps its token"},
		"an expression in a script":               {"bin/images.txt", "${{ github.ref_name }}", "contains an expression"},
		"an unknown target":                       {"make release", "make releases", "no target releases"},
		"an unknown second target":                {"make release", "make release nothing", "no target nothing"},
		"an unknown target after another command": {"make release", "true; make nothing", "no target nothing"},
		"an unknown variable":                     {"IMAGES=", "IMAGE_LIST=", "no variable IMAGE_LIST"},
		"a script that does not exist":            {".ci/run", ".ci/nothing", ".ci/nothing does not exist"},
		"a script that is not executable":         {".ci/run", ".github/CODEOWNERS", "not executable"},
		"a secret in a job":                       {"    timeout", secret, "gives the secret TOKEN"},
		"a secret in a workflow":                  {"jobs:", "env:\n  TOKEN: ${{ github.token }}\njobs:", "gives the secret TOKEN"},
		"a secret that is echoed":                 {"make release", "echo $TOKEN; make release", "could print the secret TOKEN"},
		"a secret as an argument":                 {"make release", "login ${TOKEN}; make release", "could print the secret TOKEN"},
		"a script that prints commands":           {"make release", "set -eux; make release", "could print the secret TOKEN"},
		"no workflow":                             {"jobs:", "job:", "jobs"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(valid).To(ContainSubstring(tc.old))
			g.Expect(check("release.yaml", strings.Replace(valid, tc.old, tc.new, 1))).To(ContainElement(ContainSubstring(tc.finding)))
		})
	}
}

func TestEachActionHasOneVersion(t *testing.T) {
	g := NewWithT(t)
	versions := map[string]string{}
	for file, source := range read(t) {
		for _, match := range uses.FindAllStringSubmatch(source, -1) {
			action, version, _ := strings.Cut(match[1], "@")
			if versions[action] == "" {
				versions[action] = version
			}
			g.Expect(version).To(Equal(versions[action]), "%s of %s", action, file)
		}
	}
	g.Expect(len(versions)).To(BeNumerically(">=", 5), "actions that are used")
}

// A second definition of the CI would differ from .ci/run sooner or later.
func TestWorkflowsRunScriptsOfCI(t *testing.T) {
	g := NewWithT(t)
	sources := read(t)
	g.Expect(sources["ci.yaml"]).To(ContainSubstring("\n    - run: .ci/run\n"))
	g.Expect(sources["nightly.yaml"]).To(ContainSubstring("\n    - run: .ci/nightly\n"))
}

// A release publishes nothing before its tests pass, and the GitHub release is its last step.
func TestReleaseNeedsTests(t *testing.T) {
	g := NewWithT(t)
	var release struct {
		On struct {
			Push struct{ Tags []string }
		}
		Jobs map[string]struct {
			Needs, Environment string
			Steps              []struct {
				Run string
				Env map[string]string
			}
		}
	}
	g.Expect(yaml.Unmarshal([]byte(read(t)["release.yaml"]), &release)).To(Succeed())
	g.Expect(release.On.Push.Tags).To(Equal([]string{"v*"}))
	g.Expect(release.Jobs["release"].Needs).To(Equal("publish"))
	g.Expect(release.Jobs["publish"].Needs).To(Equal("test"))
	g.Expect(release.Jobs["publish"].Environment).To(Equal("release"))
	runs := map[string]string{}
	for name, job := range release.Jobs {
		for _, step := range job.Steps {
			runs[name] += step.Run + "\n"
			for variable := range step.Env {
				known := knows(file("Makefile"), variable) || strings.HasPrefix(variable, "GH_")
				g.Expect(known).To(BeTrue(), "neither make nor gh reads %s of job %s", variable, name)
			}
		}
	}
	g.Expect(runs["test"]).To(ContainSubstring("make quick"))
	g.Expect(runs["publish"]).To(MatchRegexp(`(?s)make push\n.*make release IMAGES=bin/images\.txt ASSETS=bin/assets\n.*make push-chart\n`))
	g.Expect(runs["release"]).To(MatchRegexp(`(?s)sha256sum --check .*gh release create .* assets/\*`))
}

// Programs in test/tools are pinned on purpose. No user gets them.
func TestDependabotKnowsAllModules(t *testing.T) {
	g := NewWithT(t)
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	g.Expect(yaml.Unmarshal([]byte(file(".github/dependabot.yml")), &config)).To(Succeed())
	known := map[string][]string{}
	for _, update := range config.Updates {
		known[update.Ecosystem] = append(update.Directories, update.Directory)
	}
	found := map[string][]string{"github-actions": {"/"}}
	listed, err := exec.Command("git", "-C", root, "ls-files", "*go.mod", "*package.json").Output()
	g.Expect(err).NotTo(HaveOccurred())
	for name := range strings.FieldsSeq(string(listed)) {
		ecosystem := map[string]string{"go.mod": "gomod", "package.json": "npm"}[path.Base(name)]
		if !strings.HasPrefix(name, "test/tools/") {
			found[ecosystem] = append(found[ecosystem], path.Join("/", path.Dir(name)))
		}
	}
	for ecosystem, folders := range found {
		g.Expect(slices.DeleteFunc(known[ecosystem], func(dir string) bool { return dir == "" })).To(ConsistOf(folders), ecosystem)
	}
	g.Expect(known).To(HaveLen(len(found)))
}

func TestOwnersExist(t *testing.T) {
	g := NewWithT(t)
	rule := regexp.MustCompile(`^(\S+)( @openshift-agent/[a-z-]+)+$`)
	everything := false
	for line := range strings.Lines(file(".github/CODEOWNERS")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		match := rule.FindStringSubmatch(line)
		g.Expect(match).NotTo(BeNil(), "a pattern and teams of the organization: %s", line)
		found, err := filepath.Glob(filepath.Join(root, match[1]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).NotTo(BeEmpty(), line)
		everything = everything || match[1] == "*"
	}
	g.Expect(everything).To(BeTrue(), "each file has an owner")
}

// form is an issue form: https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests.
type form struct {
	Name, Description string
	Labels            []string
	Body              []struct {
		Type, ID   string
		Attributes struct {
			Label, Description, Value, Render string
			Options                           []string
		}
		Validations struct{ Required bool }
	}
}

func TestIssueFormsAreComplete(t *testing.T) {
	for _, name := range []string{"bug", "feature", "question"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var f form
			decoder := yaml.NewDecoder(strings.NewReader(file(".github/ISSUE_TEMPLATE/" + name + ".yml")))
			decoder.KnownFields(true)
			g.Expect(decoder.Decode(&f)).To(Succeed())
			g.Expect([]string{f.Name, f.Description}).NotTo(ContainElement(""))
			g.Expect(f.Labels).To(Equal([]string{name}))
			ids := map[string]bool{}
			required := 0
			for _, field := range f.Body {
				switch field.Type {
				case "markdown":
					g.Expect(field.Attributes.Value).NotTo(BeEmpty())
					continue
				case "dropdown":
					g.Expect(len(field.Attributes.Options)).To(BeNumerically(">", 1), field.ID)
				default:
					g.Expect(field.Type).To(BeElementOf("textarea", "input"), field.ID)
				}
				g.Expect(field.ID).To(MatchRegexp(`^[a-z-]+$`))
				g.Expect(ids[field.ID]).To(BeFalse(), "GitHub refuses a second field %s", field.ID)
				ids[field.ID] = true
				g.Expect(field.Attributes.Label).NotTo(BeEmpty(), field.ID)
				if field.Validations.Required {
					required++
				}
			}
			g.Expect(required).To(BeNumerically(">", 0), "an empty issue is refused")
		})
	}
}

// A bug report has the output of the commands with which troubleshooting begins, and the archive that it recommends.
func TestBugFormRequestsStatus(t *testing.T) {
	g := NewWithT(t)
	page := file("docs/troubleshooting.md")
	commands := regexp.MustCompile("(?s)```console\n(.*?)```").FindStringSubmatch(page)
	g.Expect(commands).NotTo(BeNil())
	bug := file(".github/ISSUE_TEMPLATE/bug.yml")
	for command := range strings.Lines(commands[1]) {
		g.Expect(bug).To(ContainSubstring(command))
	}
	const gather = "`kubectl openshift-agent gather lab --namespace lab`"
	g.Expect(page).To(ContainSubstring(gather))
	g.Expect(bug).To(ContainSubstring(gather))
}

// GitHub shows these files outside of the repository, so their links are absolute.
func TestLinksToThisRepositoryExist(t *testing.T) {
	g := NewWithT(t)
	link := regexp.MustCompile(`https://github\.com/openshift-agent/cluster-api-provider-openshift-agent/blob/main/([\w./-]+)(?:#([\w-]+))?`)
	checked := 0
	g.Expect(fs.WalkDir(os.DirFS(filepath.Join(root, ".github")), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		for _, match := range link.FindAllStringSubmatch(file(path.Join(".github", name)), -1) {
			checked++
			content := file(match[1])
			g.Expect(content).NotTo(BeEmpty(), "%s links to %s", name, match[1])
			g.Expect(match[2] == "" || strings.Contains(content, "\n#") && slices.Contains(anchors(content), match[2])).To(BeTrue(),
				"%s links to %s", name, match[0])
		}
		return nil
	})).To(Succeed())
	g.Expect(checked).To(BeNumerically(">=", 3), "links that are found")
}

// anchors returns the fragments of the headings of a page.
func anchors(page string) []string {
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(match[1]), "")
		found = append(found, strings.ReplaceAll(text, " ", "-"))
	}
	return found
}
