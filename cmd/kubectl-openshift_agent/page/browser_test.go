package page

import (
	"context"
	"image/color"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/browser"
)

// TestPageInABrowser checks that a browser draws the timeline from the file alone: no server, no scripts.
func TestPageInABrowser(t *testing.T) {
	g := NewWithT(t)
	program, err := browser.Path()
	if err != nil && !browser.Required() {
		t.Skip(err)
	}
	g.Expect(err).NotTo(HaveOccurred())
	html, err := Render(failed(t))
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "index.html")
	g.Expect(os.WriteFile(file, []byte(html), 0o644)).To(Succeed())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pixels, err := browser.Draw(ctx, program, file)
	g.Expect(err).NotTo(HaveOccurred())
	for what, c := range map[string]color.RGBA{
		"a stage of the installation": {0x7f, 0xbf, 0x9b, 255},
		"the boot of a host":          {0x8f, 0xb4, 0xe3, 255},
		"the failure":                 {0xe5, 0x8a, 0x84, 255},
	} {
		g.Expect(pixels[c]).To(BeNumerically(">", 1000), "pixels of "+what)
	}
}
