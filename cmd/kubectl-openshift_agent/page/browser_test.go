package page

import (
	"context"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestPageInABrowser checks that a browser draws the timeline from the file alone: no server, no scripts. It needs Chromium
// (Debian: apt install chromium).
func TestPageInABrowser(t *testing.T) {
	browser := firstInPath("chromium", "chromium-browser", "google-chrome")
	if browser == "" {
		t.Skip("no Chromium in PATH")
	}
	g := NewWithT(t)
	html, err := Render(failed(t))
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "index.html"), filepath.Join(dir, "page.png")
	g.Expect(os.WriteFile(file, []byte(html), 0o644)).To(Succeed())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	output, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+dir,
		"--window-size=1300,1500", "--screenshot="+picture, "file://"+file).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	drawn, err := os.Open(picture)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = drawn.Close() }()
	decoded, err := png.Decode(drawn)
	g.Expect(err).NotTo(HaveOccurred())
	pixels := map[color.RGBA]int{}
	for y := decoded.Bounds().Min.Y; y < decoded.Bounds().Max.Y; y++ {
		for x := decoded.Bounds().Min.X; x < decoded.Bounds().Max.X; x++ {
			r, gr, b, _ := decoded.At(x, y).RGBA()
			pixels[color.RGBA{R: uint8(r >> 8), G: uint8(gr >> 8), B: uint8(b >> 8), A: 255}]++
		}
	}
	for what, c := range map[string]color.RGBA{
		"a stage of the installation": {0x7f, 0xbf, 0x9b, 255},
		"the boot of a host":          {0x8f, 0xb4, 0xe3, 255},
		"the failure":                 {0xe5, 0x8a, 0x84, 255},
	} {
		g.Expect(pixels[c]).To(BeNumerically(">", 1000), "pixels of "+what)
	}
}

// firstInPath returns the first program that is installed; "" without any.
func firstInPath(programs ...string) string {
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	return ""
}
