// Package browser draws pages with Chromium, as a person sees them.
package browser

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
)

// requiredVariable is the environment variable that makes tests fail, instead of skip, without a browser. make nightly
// sets it.
const requiredVariable = "REQUIRE_BROWSER"

// Required reports whether tests must not be skipped.
func Required() bool { return os.Getenv(requiredVariable) != "" }

// Path returns the path of Chromium.
func Path() (string, error) {
	for _, program := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the tests of the page of kubectl openshift-agent gather need Chromium, which is not installed: run " +
		requiredVariable + "=1 make components (Debian, as root), or install the package chromium or Google Chrome")
}

// Draw draws a page from a file, in a window of 1300 × 1500 pixels. It returns how many pixels each color has.
func Draw(ctx context.Context, program, file string) (map[color.RGBA]int, error) {
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	picture := filepath.Join(dir, "page.png")
	output, err := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+dir,
		"--window-size=1300,1500", "--screenshot="+picture, "file://"+file).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot draw %s: %w\n%s", file, err, output)
	}
	drawn, err := os.Open(picture)
	if err != nil {
		return nil, fmt.Errorf("the browser has drawn nothing: %w\n%s", err, output)
	}
	defer func() { _ = drawn.Close() }()
	decoded, err := png.Decode(drawn)
	if err != nil {
		return nil, fmt.Errorf("cannot read the picture of %s: %w", file, err)
	}
	pixels := map[color.RGBA]int{}
	for y := decoded.Bounds().Min.Y; y < decoded.Bounds().Max.Y; y++ {
		for x := decoded.Bounds().Min.X; x < decoded.Bounds().Max.X; x++ {
			pixels[color.RGBAModel.Convert(decoded.At(x, y)).(color.RGBA)]++
		}
	}
	return pixels, nil
}
