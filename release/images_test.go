package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// instructions are those of a Dockerfile, each in one line, without comments.
func instructions(t *testing.T, folder string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile."+folder))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var found []string
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", "")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	return found
}

// No container engine is needed to see this; whether the images can be built is not tried.
func TestImagesAreStaticUnprivilegedAndForManyPlatforms(t *testing.T) {
	for _, p := range providers {
		t.Run(p.folder, func(t *testing.T) {
			g := NewWithT(t)
			all := instructions(t, p.folder)
			var from []string
			last := 0
			for i, line := range all {
				if image, found := strings.CutPrefix(line, "FROM "); found {
					from, last = append(from, image), i
				}
			}
			g.Expect(from).To(HaveLen(2), "one stage builds, the other is shipped")
			g.Expect(from[0]).To(HavePrefix("--platform=${BUILDPLATFORM"), "Go compiles for other platforms, nothing is emulated")
			for _, image := range from {
				g.Expect(image).To(MatchRegexp(`[a-z]+\.[a-z]+/[^ :]+(:[^ ]+|@sha256:[0-9a-f]{64})( AS build)?$`), "an image with its registry, and a tag or digest")
				g.Expect(image).NotTo(ContainSubstring(":latest"))
			}

			build := all[last-1]
			g.Expect(build).To(ContainSubstring("CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false"), "static, and the same from every folder")
			g.Expect(build).To(HaveSuffix(" ./" + p.folder))

			shipped := all[last+1:]
			g.Expect(shipped).NotTo(ContainElement(HavePrefix("RUN ")), "there is no shell")
			g.Expect(shipped).To(ContainElements("USER 65532:65532", `ENTRYPOINT ["/manager"]`, "COPY --from=build /manager /manager"))
		})
	}
}

// The linker tells managers that make builds, and those in images, the same.
func TestImagesSayTheirVersionAsOtherBuildsDo(t *testing.T) {
	g := NewWithT(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	g.Expect(err).NotTo(HaveOccurred())
	pkg := regexp.MustCompile(`(?m)^BUILD_VARIABLES := (\S+)$`).FindSubmatch(makefile)
	flags := regexp.MustCompile(`(?m)^LDFLAGS = (.+)$`).FindSubmatch(makefile)
	g.Expect(pkg).NotTo(BeNil())
	g.Expect(flags).NotTo(BeNil())
	wanted := strings.NewReplacer("$(BUILD_VARIABLES)", string(pkg[1]), "$(", "${", ")", "}").Replace(string(flags[1]))
	for _, p := range providers {
		all := strings.Join(instructions(t, p.folder), "\n")
		g.Expect(all).To(ContainSubstring(`-ldflags "` + wanted + `"`))
		g.Expect(all).To(ContainSubstring("\nARG VERSION=dev REVISION\n"))
		g.Expect(string(makefile)).To(ContainSubstring("$(ENGINE) build $(BUILD_ARGS) -f Dockerfile." + p.folder))
		g.Expect(string(makefile)).To(ContainSubstring("/" + p.image + ":$(VERSION) ."))
	}
}

func TestImagesAreBuiltWithAGoThatTheModuleAllows(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	module, err := modfile.Parse("go.mod", content, nil)
	g.Expect(err).NotTo(HaveOccurred())
	versions := map[string]bool{}
	for _, p := range providers {
		version, err := (&release{root: root}).goVersion(p)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Count(version, ".")).To(Equal(2), "a version, not a series: %s", version)
		g.Expect(semver.Compare("v"+version, "v"+module.Go.Version)).To(BeNumerically(">=", 0))
		versions[version] = true
	}
	g.Expect(versions).To(HaveLen(1), "both are built with the same")
}
