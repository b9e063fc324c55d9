package docs_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

// texts matches the texts of a picture.
var texts = regexp.MustCompile(`>([^<>]+)</text>`)

// uuid matches a UUID, or the beginning of one that a narrow column cuts.
var uuid = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-`)

// A picture of a former version shows panels, columns or names that a reader does not find.
func TestPictureOfTheDashboardHasItsPanels(t *testing.T) {
	g := NewWithT(t)
	var dashboard struct {
		Panels []struct{ Title string }
	}
	g.Expect(json.Unmarshal([]byte(file(t, "config/monitoring/grafana-dashboard.json")), &dashboard)).To(Succeed())
	shown := map[string]bool{}
	for _, match := range texts.FindAllStringSubmatch(file(t, "docs/pictures/dashboard.svg"), -1) {
		shown[match[1]] = true
	}
	g.Expect(len(dashboard.Panels)).To(BeNumerically(">", 20))
	for _, panel := range dashboard.Panels {
		g.Expect(shown).To(HaveKey(panel.Title), "take the picture again: make dashboard-picture")
	}
}

func TestPicturesNameHosts(t *testing.T) {
	g := NewWithT(t)
	pictures, err := filepath.Glob(filepath.Join(root, "docs", "pictures", "*.svg"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(pictures)).To(BeNumerically(">=", 3))
	for _, picture := range pictures {
		name, err := filepath.Rel(root, picture)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(uuid.FindString(file(t, name))).To(BeEmpty(), "%s: take the picture again: make pictures dashboard-picture", name)
	}
}
