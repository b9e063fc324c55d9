package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// pages is the address of the documents of the newest version, which alerts link to.
const pages = "https://github.com/openshift-agent/cluster-api-provider-openshift-agent/blob/main/"

// labelOfReason is replaced by the reason of the condition when the alert fires.
const labelOfReason = "{{ $labels.reason }}"

// reasonsOfAlert matches the reasons for which the expression of an alert is true.
var reasonsOfAlert = regexp.MustCompile(`\breason=~?"([A-Za-z|]+)"`)

// alert is a rule of config/monitoring/prometheusrule.yaml.
type alert struct {
	Name        string `json:"alert"`
	Expr        string
	Annotations map[string]string
}

func TestEveryAlertLeadsToItsRunbook(t *testing.T) {
	g, anchors := NewWithT(t), anchors(t)
	var rule struct {
		Spec struct{ Groups []struct{ Rules []alert } }
	}
	g.Expect(yaml.Unmarshal([]byte(file(t, "config/monitoring/prometheusrule.yaml")), &rule)).To(Succeed())
	checked := 0
	for _, group := range rule.Spec.Groups {
		for _, alert := range group.Rules {
			checked++
			for _, runbook := range runbooks(alert) {
				page, found := strings.CutPrefix(runbook, pages)
				g.Expect(found).To(BeTrue(), "runbook_url %q of %s begins with %s", runbook, alert.Name, pages)
				page, anchor, _ := strings.Cut(page, "#")
				g.Expect(anchors[path.Clean(page)]).To(ContainElement(anchor), "runbook_url %q of %s leads to no anchor", runbook, alert.Name)
			}
		}
	}
	g.Expect(checked).To(BeNumerically(">=", 20))
}

// runbooks are the addresses to which an alert may lead: one for each reason, if its address has the reason.
func runbooks(alert alert) []string {
	url := alert.Annotations["runbook_url"]
	if !strings.Contains(url, labelOfReason) {
		return []string{url}
	}
	var urls []string
	for _, match := range reasonsOfAlert.FindAllStringSubmatch(alert.Expr, -1) {
		for reason := range strings.SplitSeq(match[1], "|") {
			urls = append(urls, strings.ReplaceAll(url, labelOfReason, reason))
		}
	}
	if urls == nil { // an alert about each reason of a condition
		urls = []string{strings.ReplaceAll(url, labelOfReason, "NotHealthy")}
	}
	return urls
}

var (
	reasonRow = regexp.MustCompile("(?m)^\\| (?:<a id=\"([A-Za-z-]+)\"></a>)?`([A-Za-z]+)` \\|")
	chapter   = regexp.MustCompile(`(?m)^## `)
)

// A tool that prints a reason can link to its row.
func TestEveryReasonHasItsAnchor(t *testing.T) {
	g := NewWithT(t)
	var seen []string
	for _, text := range chapter.Split(file(t, "docs/conditions.md"), -1) {
		kind, _, _ := strings.Cut(text, "\n")
		_, table, _ := strings.Cut(text, "| Reason |")
		for _, row := range reasonRow.FindAllStringSubmatch(table, -1) {
			wanted := row[2]
			if slices.Contains(seen, wanted) {
				wanted = kind + "-" + wanted
			}
			g.Expect(row[1]).To(Equal(wanted), "the anchor of %s of %s: write <a id=%q></a> before the reason", row[2], kind, wanted)
			seen = append(seen, wanted)
		}
	}
	g.Expect(len(seen)).To(BeNumerically(">", 140))
}

// anchors are the anchors of each document.
func anchors(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, d := range read(t) {
		all[d.Path] = d.Anchors()
	}
	return all
}
