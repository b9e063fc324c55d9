package dockerfile

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/moby/buildkit/solver/pb"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

const root = "../../.."

// providers are the ends of the names of the Dockerfiles, which are the folders of the managers.
var providers = []string{"bootstrap", "controlplane"}

// images is a registry that has every image, all of them empty.
type images struct{ requested []string }

// ResolveImageConfig implements [sourceresolver.ImageMetaResolver].
func (i *images) ResolveImageConfig(_ context.Context, ref string, opt sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	i.requested = append(i.requested, ref+" for "+opt.ImageOpt.Platform.Architecture)
	config, err := json.Marshal(ocispecs.Image{
		Platform: *opt.ImageOpt.Platform,
		Config:   ocispecs.ImageConfig{Env: []string{"PATH=/usr/local/go/bin:/bin"}},
	})
	return ref, digest.FromBytes(config), config, err
}

// image is the result of BuildKit for a Dockerfile. It contains the configuration of the image, its commands, the
// copied files, and the base images with their architectures.
type image struct {
	ocispecs.ImageConfig
	commands      []*pb.Meta
	copies, bases []string
}

// translate has a Dockerfile translated for an architecture, by an engine of linux/amd64, with the arguments that make gives it.
func translate(t *testing.T, provider, architecture string) image {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile."+provider))
	g.Expect(err).NotTo(HaveOccurred())
	registry := &images{}
	target := ocispecs.Platform{OS: "linux", Architecture: architecture}
	state, config, _, _, err := dockerfile2llb.Dockerfile2LLB(t.Context(), content, dockerfile2llb.ConvertOpt{
		Config: dockerui.Config{
			BuildArgs:       map[string]string{"VERSION": "v0.1.0", "REVISION": "0123", "SOURCE_DATE_EPOCH": "1700000000"},
			BuildPlatforms:  []ocispecs.Platform{{OS: "linux", Architecture: "amd64"}},
			TargetPlatforms: []ocispecs.Platform{target},
		},
		TargetPlatform: &target, MetaResolver: registry,
		Warn: func(rule, _, _, message string, location []parser.Range) {
			t.Errorf("Dockerfile.%s:%d: %s: %s", provider, location[0].Start.Line, rule, message)
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	definition, err := state.Marshal(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	made := image{ImageConfig: config.Config.ImageConfig, bases: registry.requested}
	for _, content := range definition.Def {
		op := &pb.Op{}
		g.Expect(op.UnmarshalVT(content)).To(Succeed())
		if command := op.GetExec(); command != nil {
			made.commands = append(made.commands, command.Meta)
		}
		for _, action := range op.GetFile().GetActions() {
			if c := action.GetCopy(); c != nil {
				made.copies = append(made.copies, c.Src+" to "+c.Dest)
			}
		}
	}
	return made
}

func TestImagesAreTranslatedForEveryPlatform(t *testing.T) {
	for _, provider := range providers {
		for _, architecture := range []string{"amd64", "arm64"} {
			t.Run(provider+" "+architecture, func(t *testing.T) {
				g := NewWithT(t)
				made := translate(t, provider, architecture)
				g.Expect(made.bases).To(ConsistOf(MatchRegexp(`^docker\.io/library/golang:1\.\S+ for amd64$`),
					MatchRegexp(`^gcr\.io/distroless/static:\S+ for `+architecture+`$`)), "what is built for others is not emulated")
				g.Expect(made.copies).To(ContainElements("/ to /src/", "/manager to /manager", "/LICENSE to /licenses/LICENSE"))
				g.Expect(made.Entrypoint).To(Equal([]string{"/manager"}))
				g.Expect(made.Cmd).To(BeEmpty())
				g.Expect(made.User).To(Equal("65532:65532"))
				g.Expect(made.Labels).To(HaveKeyWithValue("org.opencontainers.image.licenses", "Apache-2.0"))
				g.Expect(calls(t, made)).To(Equal([]string{
					"mod download",
					"build -trimpath -buildvcs=false -tags grpcnotrace -ldflags -s -w -buildid= -X github.com/prometheus/common/version.Version=v0.1.0 " +
						"-X github.com/prometheus/common/version.Revision=0123" +
						" -o /manager ./" + provider + " for linux/" + architecture + " with CGO_ENABLED=0",
				}))
			})
		}
	}
}

// calls runs the commands of an image, and returns the calls of go. Files that the commands write at the top of the
// file system are written into a folder, where they have the time of the commit.
func calls(t *testing.T, of image) []string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	const program = `#!/bin/sh
line="$*"
[ -z "$GOOS" ] || line="$line for $GOOS/$GOARCH with CGO_ENABLED=$CGO_ENABLED"
echo "$line" >> "$CALLS"
[ "$1" != build ] || touch "$CALLS.manager"
`
	g.Expect(os.WriteFile(filepath.Join(dir, "go"), []byte(program), 0o700)).To(Succeed())
	written := filepath.Join(dir, "calls")
	for _, command := range of.commands {
		g.Expect(command.Args[:2]).To(Equal([]string{"/bin/sh", "-c"}))
		script := strings.NewReplacer("/manager /LICENSE", written+".manager "+written+".LICENSE", "LICENSE /LICENSE",
			"LICENSE "+written+".LICENSE").Replace(command.Args[2])
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		cmd.Dir = root
		cmd.Env = append(slices.Clone(command.Env), "PATH="+dir+":/usr/bin:/bin", "CALLS="+written)
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s\n%s", script, out)
	}
	for _, file := range []string{written + ".manager", written + ".LICENSE"} {
		info, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.ModTime().Unix()).To(BeEquivalentTo(1700000000), file)
	}
	content, err := os.ReadFile(written)
	g.Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// What .dockerignore keeps out of the build is nothing that is built.
func TestTheContextHasAllThatIsBuilt(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	copyContext(t, dir)
	g.Expect(filepath.Join(dir, "LICENSE")).To(BeARegularFile())
	for _, left := range []string{".git", ".tools", "_artifacts", "docs", "test"} {
		g.Expect(filepath.Join(dir, left)).NotTo(BeAnExistingFile())
	}
	for _, provider := range providers {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+provider)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0", "GOOS=linux")
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
}

// copyContext copies the part of the checkout that an engine gets according to .dockerignore.
func copyContext(t *testing.T, into string) {
	t.Helper()
	g := NewWithT(t)
	file, err := os.Open(filepath.Join(root, ".dockerignore"))
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	g.Expect(err).NotTo(HaveOccurred())
	ignored, err := patternmatcher.New(patterns)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ignored.Exclusions()).To(BeFalse(), "a folder that is ignored is ignored as a whole")
	g.Expect(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil || relative == "." {
			return err
		}
		left, err := ignored.MatchesOrParentMatches(relative)
		switch {
		case err != nil:
			return err
		case left && entry.IsDir():
			return fs.SkipDir
		case left || !entry.Type().IsRegular() && !entry.IsDir():
			return nil
		case entry.IsDir():
			return os.Mkdir(filepath.Join(into, relative), 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(into, relative), content, 0o600)
	})).To(Succeed())
}
