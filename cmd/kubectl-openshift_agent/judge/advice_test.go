package judge

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

const (
	documentFolder = "docs"
	document       = "../../../" + documentFolder + "/conditions.md"
)

var (
	section   = regexp.MustCompile(`(?m)^## (\w+)$`)
	reasonRow = regexp.MustCompile("(?m)^\\| <a id=\"([\\w-]+)\"></a>`(\\w+)` \\| (.*) \\|$")
	// more is a link whose text does not belong to the sentence.
	more = regexp.MustCompile(` ?\[More[^]]*\]\([^)]*\)(, \[[^]]*\]\([^)]*\))*\.`)
	link = regexp.MustCompile(`\[([^]]*)\]\(([^)]*)\)`)
)

// documentedAdvice reads the tables of reasons of docs/conditions.md, by kind and reason.
func documentedAdvice(g Gomega) map[string]map[string]Advice {
	content, err := os.ReadFile(document)
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]map[string]Advice{}
	sections := section.FindAllSubmatchIndex(content, -1)
	for i, at := range sections {
		end := len(content)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		_, table, hasReasons := strings.Cut(string(content[at[1]:end]), "| Reason | Meaning and action |\n")
		if !hasReasons {
			continue
		}
		kind := string(content[at[2]:at[3]])
		found[kind] = map[string]Advice{}
		for _, row := range reasonRow.FindAllStringSubmatch(table, -1) {
			a := adviceOf(row[3])
			a.Pages = append(a.Pages, path.Join(documentFolder, "conditions.md")+"#"+row[1])
			found[kind][row[2]] = a
		}
		g.Expect(len(found[kind])).To(BeNumerically(">", 20), "reasons of %s", kind)
	}
	return found
}

// adviceOf returns the text of a row without Markdown.
func adviceOf(row string) Advice {
	a := Advice{}
	for _, target := range link.FindAllStringSubmatch(row, -1) {
		page, anchor, _ := strings.Cut(target[2], "#")
		if page == "" {
			page = "conditions.md"
		}
		if anchor != "" {
			anchor = "#" + anchor
		}
		a.Pages = append(a.Pages, path.Join(documentFolder, page)+anchor)
	}
	text := link.ReplaceAllString(more.ReplaceAllString(row, ""), "$1")
	a.Text = strings.ReplaceAll(text, "`", "")
	return a
}

// With UPDATE_GOLDEN=1 the test writes advice.json, as make generate does.
func TestAdviceIsDocumentation(t *testing.T) {
	g := NewWithT(t)
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	g.Expect(encoder.Encode(documentedAdvice(g))).To(Succeed())
	if os.Getenv("UPDATE_GOLDEN") != "" {
		g.Expect(os.WriteFile("advice.json", content.Bytes(), 0o644)).To(Succeed())
		return
	}
	g.Expect(string(adviceJSON)).To(Equal(content.String()), "advice.json does not match docs/conditions.md. Run make generate.")
}

func TestAdviceHasNoMarkdown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(adviceOf("Of `A`: see [the other page](operations/b.md#c), and [below](#d). [More](e.md#f), [on g](g.md).")).To(Equal(Advice{
		Text:  "Of A: see the other page, and below.",
		Pages: []string{"docs/operations/b.md#c", "docs/conditions.md#d", "docs/e.md#f", "docs/g.md"},
	}))
	for _, reasons := range advice() {
		for reason, a := range reasons {
			g.Expect(a.Text).NotTo(ContainSubstring("]("), reason)
			g.Expect(a.Text).NotTo(HaveSuffix(" "), reason)
		}
	}
}

func TestAdviceIsFoundByObjectAndReason(t *testing.T) {
	g := NewWithT(t)
	host, found := AdviceFor(&Cause{Object: Object{Kind: snapshot.KindConfig}, Reason: bootstrapv1.PullSecretMissingReason})
	g.Expect(found).To(BeTrue())
	controlPlane, found := AdviceFor(&Cause{Object: Object{Kind: snapshot.KindControlPlane}, Reason: bootstrapv1.PullSecretMissingReason})
	g.Expect(found).To(BeTrue())
	g.Expect(host).NotTo(Equal(controlPlane))
	_, found = AdviceFor(&Cause{Object: Object{Kind: snapshot.KindCluster}, Reason: "NotAvailable"})
	g.Expect(found).To(BeFalse(), "Cluster API has its own documentation")
}
