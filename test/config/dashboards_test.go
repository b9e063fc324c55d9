package config_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// dashboard has the tested fields of Grafana's model.
type dashboard struct {
	UID        string          `json:"uid"`
	Links      []dashboardLink `json:"links"`
	Panels     []panel         `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
	Query      any    `json:"query"`
}

type dashboardLink struct {
	URL string `json:"url"`
}

type panel struct {
	ID          int             `json:"id"`
	Title       string          `json:"title"`
	Type        string          `json:"type"`
	Links       []dashboardLink `json:"links"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
		Overrides []struct {
			Matcher struct {
				Options any `json:"options"`
			} `json:"matcher"`
			Properties []struct {
				ID    string          `json:"id"`
				Value json.RawMessage `json:"value"`
			} `json:"properties"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool   `json:"excludeByName"`
			RenameByName  map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
}

const (
	monitoring    = "../../config/monitoring/"
	fleet         = "grafana-dashboard.json"
	pageOfCluster = "grafana-dashboard-cluster.json"
)

// dashboards returns the dashboards of the monitoring manifests, by their file.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(monitoring + "grafana-*.json")
	g.Expect(err).NotTo(HaveOccurred())
	all := map[string]dashboard{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		var one dashboard
		g.Expect(json.Unmarshal(content, &one)).To(Succeed())
		all[filepath.Base(file)] = one
	}
	g.Expect(all).To(And(HaveKey(fleet), HaveKey(pageOfCluster)))
	return all
}

func TestConfigMapHasAllDashboards(t *testing.T) {
	g := NewWithT(t)
	for _, object := range components(t, "monitoring") {
		if object["kind"] == "ConfigMap" && object["metadata"].(map[string]any)["name"] == "openshift-agent-grafana-dashboard" {
			g.Expect(slices.Collect(maps.Keys(object["data"].(map[string]any)))).To(ConsistOf(slices.Collect(maps.Keys(dashboards(t)))))
			return
		}
	}
	t.Error("no ConfigMap has the dashboards")
}

func TestPanelsHaveUnits(t *testing.T) {
	for file, shown := range dashboards(t) {
		for _, panel := range shown.Panels {
			if panel.Type != "row" && panel.FieldConfig.Defaults.Unit == "" {
				t.Errorf("panel %q of %s has no unit: Grafana shows seconds and bytes as bare numbers", panel.Title, file)
			}
		}
	}
}

// A column without a name of its own has that of a label, or is called Value.
func TestColumnsOfTablesHaveNames(t *testing.T) {
	g, tables := NewWithT(t), 0
	for file, shown := range dashboards(t) {
		for _, panel := range shown.Panels {
			if panel.Type != "table" {
				continue
			}
			tables++
			g.Expect(panel.Transformations).To(HaveLen(1), "%s: %s", file, panel.Title)
			organize := panel.Transformations[0]
			g.Expect(organize.ID).To(Equal("organize"), panel.Title)
			g.Expect(panel.Targets).To(HaveLen(1), panel.Title)
			for _, column := range columnsOf(panel.Targets[0].Expr) {
				name, renamed := organize.Options.RenameByName[column]
				g.Expect(renamed).NotTo(Equal(organize.Options.ExcludeByName[column]),
					"%s: %s: column %s has neither a name nor is it hidden, or both", file, panel.Title, column)
				g.Expect(name).NotTo(ContainSubstring("_"), panel.Title)
			}
			for column := range organize.Options.RenameByName {
				g.Expect(columnsOf(panel.Targets[0].Expr)).To(ContainElement(column), "%s: %s: no such column", file, panel.Title)
			}
		}
	}
	g.Expect(tables).To(BeNumerically(">", 6))
}

var added = regexp.MustCompile(`group_left \(([^)]*)\)`)

// columnsOf returns the columns that Grafana shows of an instant query: time and value, and the labels. These are the
// labels of the first grouping and those that a join adds.
func columnsOf(expression string) []string {
	columns := append([]string{"Time", "Value"}, strings.Split(grouping.FindStringSubmatch(expression)[1], ", ")...)
	for _, labels := range added.FindAllStringSubmatch(expression, -1) {
		if labels[1] != "" {
			columns = append(columns, strings.Split(labels[1], ", ")...)
		}
	}
	return columns
}

var (
	fieldInLink    = regexp.MustCompile(`\$\{__data\.fields\["([^"]*)"\]\}`)
	variableInLink = regexp.MustCompile(`=\$([a-z]+)`)
)

// Links lead to a dashboard of the manifests, set its variables, and take their values from columns and variables
// that exist.
func TestLinksOfDashboardsLeadSomewhere(t *testing.T) {
	all, links := dashboards(t), 0
	for file, shown := range all {
		for _, link := range shown.Links {
			links++
			checkLink(t, all, file, link.URL, nil)
		}
		for _, panel := range shown.Panels {
			var columns []string
			for _, transformation := range panel.Transformations {
				columns = slices.Collect(maps.Values(transformation.Options.RenameByName))
			}
			for _, link := range linksOf(t, panel, columns) {
				links++
				checkLink(t, all, file, link.URL, columns)
			}
		}
	}
	NewWithT(t).Expect(links).To(BeNumerically(">=", 6))
}

// linksOf returns the links of a panel and of its columns.
func linksOf(t *testing.T, panel panel, columns []string) []dashboardLink {
	t.Helper()
	g, links := NewWithT(t), panel.Links
	for _, override := range panel.FieldConfig.Overrides {
		g.Expect(columns).To(ContainElement(override.Matcher.Options), panel.Title)
		for _, property := range override.Properties {
			if property.ID == "links" {
				var found []dashboardLink
				g.Expect(json.Unmarshal(property.Value, &found)).To(Succeed())
				links = append(links, found...)
			}
		}
	}
	return links
}

func checkLink(t *testing.T, all map[string]dashboard, from, link string, columns []string) {
	t.Helper()
	g := NewWithT(t)
	uid, query, _ := strings.Cut(strings.TrimPrefix(link, "/d/"), "?")
	var target *dashboard
	for _, shown := range all {
		if shown.UID == uid {
			target = &shown
		}
	}
	g.Expect(target).NotTo(BeNil(), "no dashboard has the uid of %s", link)
	set, err := url.ParseQuery(query)
	g.Expect(err).NotTo(HaveOccurred())
	for parameter := range set {
		g.Expect(variables(*target)).To(ContainElement(strings.TrimPrefix(parameter, "var-")), link)
	}
	for _, name := range variables(*target) {
		if columns != nil {
			g.Expect(set).To(HaveKey("var-"+name), "%s does not select what it shows", link)
		}
	}
	for _, field := range fieldInLink.FindAllStringSubmatch(link, -1) {
		g.Expect(columns).To(ContainElement(field[1]), link)
	}
	for _, value := range variableInLink.FindAllStringSubmatch(link, -1) {
		g.Expect(variables(all[from])).To(ContainElement(value[1]), link)
	}
}

func variables(of dashboard) []string {
	names := make([]string, 0, len(of.Templating.List))
	for _, variable := range of.Templating.List {
		names = append(names, variable.Name)
	}
	return names
}

// advisory are urgent reasons that need no attention: nothing is blocked, and a user may have decided for them.
var advisory = []string{"PreflightWarnings", "ValidationsIgnored"}

// alsoBlocked are reasons without urgency in the conditions, and a reason that conditions of Machines have, too.
var alsoBlocked = []string{"MachineConfigPoolPaused", "CannotBeRemediated"}

var reasonsInQuery = regexp.MustCompile(`reason=~"([^"]*)"`)

// A cluster that is installed without a problem has none of the listed reasons, a blocked one has.
func TestTablesOfAttentionListReasonsThatNeedAction(t *testing.T) {
	g, all := NewWithT(t), dashboards(t)
	late := namesIn(t, "../../controlplane/internal/status/urgency.go", "deferrable")
	wanted := slices.Clone(alsoBlocked)
	for name, reason := range reasonsOf(t, "../../controlplane/api/v1beta1/conditions.go") {
		if !slices.Contains(late, name) && !slices.Contains(advisory, reason) {
			wanted = append(wanted, reason)
		}
	}
	for file, title := range map[string]string{fleet: clustersNeedAttention, pageOfCluster: "Needs attention"} {
		listed := reasonsInQuery.FindStringSubmatch(queryOf(t, all[file], title))
		g.Expect(strings.Split(listed[1], "|")).To(ConsistOf(wanted), file)
	}
	_, expressions := rules(t)
	alerted := reasonsInQuery.FindStringSubmatch(expressions["OpenshiftAgentHostNeedsAttention"])
	listed := reasonsInQuery.FindStringSubmatch(queryOf(t, all[fleet], hostsNeedAttention))
	g.Expect(strings.Split(listed[1], "|")).To(ConsistOf(append(strings.Split(alerted[1], "|"), "AssistedServiceNotResponding")))
}

const (
	clustersNeedAttention = "Clusters that need attention"
	hostsNeedAttention    = "Hosts that need attention"
)

// queryOf returns the query of the panel with a title.
func queryOf(t *testing.T, shown dashboard, title string) string {
	t.Helper()
	for _, panel := range shown.Panels {
		if panel.Title == title {
			return panel.Targets[0].Expr
		}
	}
	t.Fatalf("no panel has the title %q", title)
	return ""
}
