package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/chart"
)

// instructions returns the instructions of a Dockerfile, each on one line, without comments.
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

// expand replaces arguments with their values.
func expand(text string, values map[string]string) string {
	for argument, value := range values {
		text = strings.ReplaceAll(text, argument, value)
	}
	return text
}

// This test needs no container engine. test/tools/dockerfile tests that an engine accepts the Dockerfiles, and
// what the images run.
func TestImagesAreStaticUnprivilegedAndMultiPlatform(t *testing.T) {
	for _, p := range providers {
		t.Run(p.folder, func(t *testing.T) {
			g := NewWithT(t)
			all := instructions(t, p.folder)
			var from []string
			last := 0
			defaults := map[string]string{}
			for i, line := range all {
				if argument, found := strings.CutPrefix(line, "ARG "); found && len(from) == 0 {
					name, value, _ := strings.Cut(argument, "=")
					defaults["${"+name+"}"] = expand(value, defaults)
				}
				if image, found := strings.CutPrefix(line, "FROM "); found {
					from, last = append(from, expand(image, defaults)), i
				}
			}
			g.Expect(all).To(ContainElements("ARG GO_IMAGE=docker.io/library/golang:${GO_VERSION}", HavePrefix("ARG BASE_IMAGE=")),
				"the user may set both images by digest")
			g.Expect(from).To(HaveLen(2), "one stage builds, the other is the image")
			g.Expect(from[0]).To(HavePrefix("--platform=${BUILDPLATFORM"), "Go cross-compiles; no emulation")
			for _, image := range from {
				g.Expect(image).To(MatchRegexp(`[a-z]+\.[a-z]+/[^ :]+(:[^ ]+|@sha256:[0-9a-f]{64})( AS build)?$`),
					"an image with its registry, and a tag or digest")
				g.Expect(image).NotTo(ContainSubstring(":latest"))
			}

			build, rest, _ := strings.Cut(all[last-1], " && ")
			g.Expect(rest).To(HavePrefix("cp LICENSE /LICENSE && touch --date=@${SOURCE_DATE_EPOCH} /manager /LICENSE"),
				"no file has the build time")
			g.Expect(all[:last]).To(ContainElement("ARG SOURCE_DATE_EPOCH=0"))
			g.Expect(build).To(ContainSubstring("CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false -tags "),
				"static, and independent of the folder")
			g.Expect(build).To(HaveSuffix(" ./" + p.folder))

			shipped := all[last+1:]
			g.Expect(shipped).NotTo(ContainElement(HavePrefix("RUN ")), "the image has no shell")
			g.Expect(shipped).To(ContainElements("USER 65532:65532", `ENTRYPOINT ["/manager"]`, "COPY --from=build /manager /manager"))
			g.Expect(shipped).NotTo(ContainElement(MatchRegexp("^(COPY|ADD) [^-]")), "files of the checkout have different times in each checkout")
		})
	}
}

// The build tags and linker flags for managers are the same in the Makefile and in the Dockerfiles.
func TestImagesHaveFlagsOfMakefile(t *testing.T) {
	g := NewWithT(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	g.Expect(err).NotTo(HaveOccurred())
	pkg := regexp.MustCompile(`(?m)^BUILD_VARIABLES := (\S+)$`).FindSubmatch(makefile)
	flags := regexp.MustCompile(`(?m)^LDFLAGS = (.+)$`).FindSubmatch(makefile)
	g.Expect(pkg).NotTo(BeNil())
	g.Expect(flags).NotTo(BeNil())
	tags := regexp.MustCompile(`(?m)^TAGS := (\S+)$`).FindSubmatch(makefile)
	g.Expect(tags).NotTo(BeNil())
	wanted := strings.NewReplacer("$(BUILD_VARIABLES)", string(pkg[1]), "$(", "${", ")", "}").Replace(string(flags[1]))
	for _, p := range providers {
		all := strings.Join(instructions(t, p.folder), "\n")
		g.Expect(all).To(ContainSubstring(`-tags ` + string(tags[1]) + ` -ldflags "` + wanted + `"`))
		g.Expect(all).To(ContainSubstring("\nARG VERSION=dev REVISION\n"))
		g.Expect(string(makefile)).To(ContainSubstring("$(ENGINE) build $(BUILD_ARGS) -f Dockerfile." + p.folder))
		g.Expect(string(makefile)).To(ContainSubstring("/" + p.image + ":$(VERSION) ."))
	}
}

// Modules are downloaded before the sources are copied, so that changed sources do not download them again. The
// folders that go.mod uses as replacements must exist by then.
func TestImagesHaveAllGoModFilesBeforeDownload(t *testing.T) {
	for _, p := range providers {
		t.Run(p.folder, func(t *testing.T) {
			g := NewWithT(t)
			image := t.TempDir()
			all := instructions(t, p.folder)
			download := slices.IndexFunc(all, func(line string) bool { return strings.HasSuffix(line, " go mod download") })
			for _, line := range all[:download] {
				if copied := strings.Fields(line); copied[0] == "COPY" {
					into := filepath.Join(image, copied[len(copied)-1])
					g.Expect(os.MkdirAll(into, 0o700)).To(Succeed())
					for _, file := range copied[1 : len(copied)-1] {
						content, err := os.ReadFile(filepath.Join(root, file))
						g.Expect(err).NotTo(HaveOccurred())
						g.Expect(os.WriteFile(filepath.Join(into, filepath.Base(file)), content, 0o600)).To(Succeed())
					}
				}
			}
			_, err := goCommand(t.Context(), image, nil, "list", "-m", "all")
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestGoVersionOfImagesFitsGoMod(t *testing.T) {
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
		g.Expect(module.Toolchain).To(HaveField("Name", "go"+version), "make vulnerabilities checks the toolchain of go.mod")
		versions[version] = true
	}
	g.Expect(versions).To(HaveLen(1), "both images are built with the same version")
}

// engine is a script that plays the container engine: it records its arguments and returns a digest for each image.
const engine = `#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
digest=sha256:$(printf '%064d' "$(wc -l < "$(dirname "$0")/calls")")
case "$1 $2" in
"push "*) [ "$2" != --digestfile ] || echo "$digest" > "$3" ;;
"buildx imagetools") echo "$digest" ;;
esac
`

// makeIn runs targets of a copy of the Makefile in a folder.
func makeIn(t *testing.T, dir string, env []string, args ...string) error {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), content, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// callsOf runs targets of the Makefile with a script as engine, and returns the calls of the engine.
func callsOf(t *testing.T, dir, name string, targets ...string) string {
	t.Helper()
	g := NewWithT(t)
	script := filepath.Join(dir, name)
	g.Expect(os.WriteFile(script, []byte(engine), 0o700)).To(Succeed())
	g.Expect(os.RemoveAll(filepath.Join(dir, "calls"))).To(Succeed())
	g.Expect(makeIn(t, dir, nil, append(targets, "ENGINE="+script, "VERSION=v0.1.0", "REGISTRY=registry.example.com/team", "REVISION=0123",
		"SOURCE_DATE_EPOCH=1700000000")...)).To(Succeed())
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	g.Expect(err).NotTo(HaveOccurred())
	return string(calls)
}

func TestImagesAreBuiltAndPushedByMake(t *testing.T) {
	for name, wanted := range map[string]string{
		"podman": "push --digestfile bin/digest registry.example.com/team/agent-bootstrap-provider:v0.1.0\n" +
			"push --digestfile bin/digest registry.example.com/team/agent-control-plane-provider:v0.1.0\n",
		"docker": "push registry.example.com/team/agent-bootstrap-provider:v0.1.0\n" +
			"buildx imagetools inspect --format {{.Manifest.Digest}} registry.example.com/team/agent-bootstrap-provider:v0.1.0\n" +
			"push registry.example.com/team/agent-control-plane-provider:v0.1.0\n" +
			"buildx imagetools inspect --format {{.Manifest.Digest}} registry.example.com/team/agent-control-plane-provider:v0.1.0\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			g.Expect(callsOf(t, dir, name, "push")).To(Equal(wanted))
			g.Expect(filepath.Join(dir, "bin", "images.txt")).To(BeARegularFile())
			r := &release{imagesFile: filepath.Join(dir, "bin", "images.txt"), registry: "registry.example.com/team", version: "v0.1.0"}
			g.Expect(r.readImages()).To(Succeed(), "a release reads the file")
			g.Expect(r.imageOf(providers[0])).NotTo(Equal(r.imageOf(providers[1])))

			built := callsOf(t, dir, name, "images", "BASE_IMAGE=registry.example.com/static@sha256:0123")
			g.Expect(strings.Count(built, "\n")).To(Equal(len(providers)))
			for line := range strings.Lines(built) {
				g.Expect(line).To(ContainSubstring("--build-arg VERSION=v0.1.0 --build-arg REVISION=0123 --build-arg SOURCE_DATE_EPOCH=1700000000 " +
					"--build-arg BASE_IMAGE=registry.example.com/static@sha256:0123 "))
				g.Expect(strings.Contains(line, "--timestamp 1700000000")).To(Equal(name == "podman"), line)
			}
		})
	}
}

// docker builds and pushes an image for several platforms at once: no such image exists outside of a registry.
func TestImagesForPlatformsArePushedWithAttestations(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	calls := strings.Split(strings.TrimSpace(callsOf(t, dir, "docker", "push", "PLATFORMS=linux/amd64,linux/arm64")), "\n")
	g.Expect(calls).To(HaveLen(2*len(providers)), "a build and a query for the digest of each image, and no push: %q", calls)
	for i, p := range providers {
		g.Expect(calls[i]).To(And(HavePrefix("buildx build --build-arg VERSION=v0.1.0 "), ContainSubstring(
			" --platform=linux/amd64,linux/arm64 --provenance=mode=max --sbom=true --output=type=registry,rewrite-timestamp=true "+
				"-f Dockerfile."+p.folder+" -t registry.example.com/team/"+p.image+":v0.1.0 .")))
		g.Expect(calls[len(providers)+i]).To(Equal(
			"buildx imagetools inspect --format {{.Manifest.Digest}} registry.example.com/team/" + p.image + ":v0.1.0"))
	}
	g.Expect((&release{imagesFile: filepath.Join(dir, "bin", "images.txt"), registry: "registry.example.com/team"}).readImages()).To(Succeed())

	g.Expect(makeIn(t, t.TempDir(), nil, "push", "PLATFORMS=linux/amd64,linux/arm64", "ENGINE=podman")).
		To(MatchError(ContainSubstring("PLATFORMS needs ENGINE=docker")))
}

func TestImagesByDigest(t *testing.T) {
	const bootstrap, controlPlane = "registry.example.com/team/agent-bootstrap-provider",
		"registry.example.com/team/agent-control-plane-provider"
	one, other := "@sha256:"+strings.Repeat("1", 64), "@sha256:"+strings.Repeat("2", 64)
	list := func(t *testing.T, lines ...string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "images.txt")
		NewWithT(t).Expect(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)).To(Succeed())
		return path
	}
	release := func(t *testing.T, images string) (string, error) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "out")
		return out, run(t.Context(), []string{
			"-root", root, "-out", out, "-version", "v0.1.0", "-registry", "registry.example.com/team",
			"-images", images,
		}, t.Output())
	}
	t.Run("all files of the release have the digests", func(t *testing.T) {
		g := NewWithT(t)
		out, err := release(t, list(t, controlPlane+other, "", bootstrap+one))
		g.Expect(err).NotTo(HaveOccurred())
		files := contents(t, out)
		for file, image := range map[string]string{
			"bootstrap-openshift-agent/v0.1.0/bootstrap-components.yaml":                    bootstrap + one,
			"bootstrap-openshift-agent/v0.1.0/bootstrap-components-namespaced.yaml":         bootstrap + one,
			"bootstrap-openshift-agent/v0.1.0/cluster-api-operator.yaml":                    bootstrap + one,
			"control-plane-openshift-agent/v0.1.0/control-plane-components.yaml":            controlPlane + other,
			"control-plane-openshift-agent/v0.1.0/control-plane-components-namespaced.yaml": controlPlane + other,
			"control-plane-openshift-agent/v0.1.0/cluster-api-operator.yaml":                controlPlane + other,
		} {
			g.Expect(files[file]).To(ContainSubstring("image: "+image+"\n"), file)
			g.Expect(files[file]).NotTo(ContainSubstring("-provider:"), file)
		}
		values := string(unpack(t, filepath.Join(out, chart.File("v0.1.0")))["values.yaml"])
		for image, digest := range map[string]string{bootstrap: one, controlPlane: other} {
			g.Expect(values).To(MatchRegexp("repository: " + regexp.QuoteMeta(image) + "\n    # .*\n    tag: \"\"\n"))
			g.Expect(values).To(ContainSubstring("digest: " + digest[1:] + "\n"))
		}
	})
	for situation, tc := range map[string]struct {
		lines []string
		err   string
	}{
		"an image is missing": {[]string{bootstrap + one}, "IMAGES has no " + controlPlane},
		"an image is listed twice": {
			[]string{bootstrap + one, bootstrap + other, controlPlane + one},
			"IMAGES has " + bootstrap + " twice",
		},
		"an image has only a tag": {
			[]string{bootstrap + ":v0.1.0", controlPlane + one},
			"IMAGES must have lines such as " + bootstrap + "@sha256:...",
		},
		"an image in another registry path": {
			[]string{"registry.example.com/other/agent-bootstrap-provider" + one, controlPlane + one},
			"which is not an image of this release",
		},
		"half a digest":     {[]string{bootstrap + "@sha256:0123", controlPlane + one}, "IMAGES must have lines such as"},
		"the file is empty": {nil, "IMAGES has no " + bootstrap},
		"the name of another image": {
			[]string{"registry.example.com/team/manager" + one, bootstrap + one, controlPlane + one},
			"which is not an image of this release",
		},
	} {
		t.Run("refused: "+situation, func(t *testing.T) {
			_, err := release(t, list(t, tc.lines...))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.err)))
		})
	}
	t.Run("refused: the file does not exist", func(t *testing.T) {
		_, err := release(t, filepath.Join(t.TempDir(), "images.txt"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("cannot read IMAGES")))
	})
}

// This test runs the commands of the Dockerfiles in two folders, with separate caches. It takes some minutes,
// and only make nightly runs it.
func TestManagerBuildsAreReproducible(t *testing.T) {
	if os.Getenv("REPRODUCE") == "" {
		t.Skip("builds everything twice: only with REPRODUCE=1")
	}
	var sums [2]map[string][sha256.Size]byte
	for i := range sums {
		sums[i] = map[string][sha256.Size]byte{}
		g := NewWithT(t)
		dir, cache := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i+1)), t.TempDir()
		g.Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		for _, file := range []string{"go.mod", "go.sum", "bootstrap", "controlplane", "pkg"} {
			out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(root, file), dir).CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(out))
		}
		for _, p := range providers {
			all := strings.Join(instructions(t, p.folder), "\n")
			command := regexp.MustCompile(`CGO_ENABLED=0 .* -o /manager ./` + p.folder).FindString(all)
			g.Expect(command).NotTo(BeEmpty())
			program := filepath.Join(dir, "manager")
			cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, "-o /manager", "-o "+program, 1))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH=amd64", "VERSION=v0.1.0", "REVISION=0123", "GOWORK=off", "GOCACHE="+cache)
			out, err := cmd.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(out))
			content, err := os.ReadFile(program)
			g.Expect(err).NotTo(HaveOccurred())
			sums[i][p.folder] = sha256.Sum256(content)
		}
	}
	NewWithT(t).Expect(sums[0]).To(Equal(sums[1]))
}
