package docs_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
)

const root = "../.."

var elsewhere = regexp.MustCompile(`^[a-z]+:`)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	anchors := anchors(t)
	for _, d := range read(t) {
		for _, link := range d.Links() {
			if elsewhere.MatchString(link) {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			target := d.Path
			if file != "" {
				target = path.Join(path.Dir(d.Path), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, but there is no %s", d.Path, link, target)
			} else if anchor != "" && !slices.Contains(anchors[target], anchor) {
				t.Errorf("%s links to %s, but %s has no such anchor; it has #%s", d.Path, link, target, strings.Join(anchors[target], ", #"))
			}
		}
	}
}

// namedPath matches a path of the repository in backticks.
var namedPath = regexp.MustCompile("`((?:bootstrap|config|controlplane|docs|internal|pkg|release|site|test)/[A-Za-z0-9_./*-]+)`")

// madeLater are the paths that a command or an exercise of a document creates.
var madeLater = []string{"site/dist", "bootstrap/internal/hostconfig/released.go"}

func TestEveryNamedPathExists(t *testing.T) {
	g, named := NewWithT(t), 0
	for _, d := range read(t) {
		content, err := os.ReadFile(filepath.Join(root, d.Path))
		g.Expect(err).NotTo(HaveOccurred())
		for _, match := range namedPath.FindAllStringSubmatch(string(content), -1) {
			named++
			if found, err := filepath.Glob(filepath.Join(root, match[1])); err != nil || len(found) == 0 && !slices.Contains(madeLater, match[1]) {
				t.Errorf("%s names %s, which does not exist", d.Path, match[1])
			}
		}
	}
	g.Expect(named).To(BeNumerically(">=", 20), "paths that are named")
}

// Without its page the site also fails to build. This test needs no Node.js.
func TestEveryPageIsInTheNavigation(t *testing.T) {
	g := NewWithT(t)
	const file = "site/navigation.json"
	content, err := os.ReadFile(filepath.Join(root, file))
	g.Expect(err).NotTo(HaveOccurred())
	var sections []struct {
		Text, Folder string
		Pages        []string
	}
	g.Expect(json.Unmarshal(content, &sections)).To(Succeed())
	for _, d := range read(t) {
		found := 0
		for _, section := range sections {
			if section.Folder == path.Dir(d.Path) || slices.Contains(section.Pages, d.Path) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s is in %d sections of the navigation: name it once in the pages of a section of %s", d.Path, found, file)
		}
	}
	for _, section := range sections {
		for _, page := range section.Pages {
			g.Expect(filepath.Join(root, page)).To(BeAnExistingFile(), "section %s of %s names it", section.Text, file)
		}
	}
}

func read(t *testing.T) []*docs.Document {
	t.Helper()
	documents, err := docs.Read(root)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(len(documents)).To(BeNumerically(">", 40))
	return documents
}

// commands are the console blocks of a document.
func commands(d *docs.Document) []string {
	var texts []string
	for _, block := range d.Blocks("console") {
		texts = append(texts, block.Text)
	}
	return texts
}
