package components

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
)

func TestLanes(t *testing.T) {
	component := func(name, family string, cost int) Component {
		return Component{binary: name, family: family, cost: cost}
	}
	for name, test := range map[string]struct {
		components []Component
		lanes      [][]string
	}{
		"nothing": {},
		"a family is one lane in the given order": {
			components: []Component{component("a", "x", 1), component("b", "y", 9), component("c", "x", 3)},
			lanes:      [][]string{{"b"}, {"a", "c"}},
		},
		"the lane with the highest total cost begins": {
			components: []Component{component("a", "x", 5), component("b", "y", 3), component("c", "y", 4)},
			lanes:      [][]string{{"b", "c"}, {"a"}},
		},
		"components without family have separate lanes": {
			components: []Component{component("a", "", 1), component("b", "", 1)},
			lanes:      [][]string{{"a"}, {"b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			for _, lane := range lanes(test.components) {
				var names []string
				for _, c := range lane {
					names = append(names, c.binary)
				}
				got = append(got, names)
			}
			NewWithT(t).Expect(got).To(Equal(test.lanes))
		})
	}
}

// A component without cost would not show in the progress.
func TestEachComponentHasCost(t *testing.T) {
	for _, c := range slices.Concat(All(""), Demo(), []Component{StateMetrics}) {
		NewWithT(t).Expect(c.cost).To(BeNumerically(">", 0), c.binary)
	}
}

func TestDemoBuildsOnlyComponentsThatItStarts(t *testing.T) {
	g := NewWithT(t)
	var names []string
	for _, c := range Demo() {
		names = append(names, c.binary)
	}
	g.Expect(names).To(ConsistOf("kustomize", "controller-gen", "etcd", "kube-apiserver", "kube-controllers", "demo",
		"cluster-api", "capm3", "bootstrap", "controlplane"))
}

// The go command compiles a package once for all modules that have the package and its imports at the same versions.
// Another version of one leaf like k8s.io/utils triples the build time of Cluster API core. Tests and product have the
// same versions also because the tests must test the shipped code.
func TestFamiliesShareModuleVersions(t *testing.T) {
	g := NewWithT(t)
	root, err := findRoot(".")
	g.Expect(err).NotTo(HaveOccurred())
	product, err := buildList(root)
	g.Expect(err).NotTo(HaveOccurred())
	ours, err := buildList(filepath.Join(root, "test"))
	g.Expect(err).NotTo(HaveOccurred())
	for module, version := range ours {
		if own, common := product[module]; common {
			g.Expect(version).To(Equal(own), "%s in test: go -C test mod edit -require=%[1]s@%[2]s, and make tidy", module, own)
		}
	}
	suite, err := buildList(filepath.Join(root, "test", "conformance"))
	g.Expect(err).NotTo(HaveOccurred())
	for module, version := range suite {
		if own, common := ours[module]; common {
			g.Expect(version).To(Equal(own), "%s in test/conformance: make tidy", module)
		}
	}
	core, err := buildList(filepath.Join(root, "test", "tools", Core("").tools))
	g.Expect(err).NotTo(HaveOccurred())
	clusterctl, err := buildList(filepath.Join(root, "test", "tools", Clusterctl.tools))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(clusterctl)).To(BeNumerically(">", 50), "modules of clusterctl")
	for module, version := range clusterctl {
		if own, common := core[module]; common {
			g.Expect(version).To(Equal(own),
				"%s in test/tools/clusterctl: go -C test/tools/clusterctl mod edit -require=%[1]s@%[2]s, and build it with -mod=mod", module, own)
		}
	}
}

// Of the modules that client-go requires, most libraries of Kubernetes need some.
func TestFamiliesShareLibrariesOfKubernetes(t *testing.T) {
	b, err := NewBuilder(".", t.Output())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for family, folders := range foldersOfFamilies() {
		t.Run(family, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(folders).NotTo(BeEmpty())
			libraries, err := requirementsOfClient(t.Context(), b, filepath.Join(b.root, folders[0]))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(libraries)).To(BeNumerically(">", 20))
			found := map[string]map[string][]string{} // the folders by library and version
			for _, folder := range folders {
				versions, err := buildList(filepath.Join(b.root, folder))
				g.Expect(err).NotTo(HaveOccurred())
				for _, library := range libraries {
					if version, required := versions[library]; required {
						if found[library] == nil {
							found[library] = map[string][]string{}
						}
						found[library][version] = append(found[library][version], folder)
					}
				}
			}
			for library, folders := range found {
				g.Expect(folders).To(HaveLen(1), "raise %s with go mod edit -require and go mod tidy", library)
			}
		})
	}
}

// foldersOfFamilies returns the folders of the modules of each family.
func foldersOfFamilies() map[string][]string {
	folders := map[string][]string{}
	for _, c := range slices.Concat(All(""), Demo(), []Component{StateMetrics}) {
		folder := cmp.Or(c.own, ".")
		if c.tools != "" {
			folder = filepath.Join("test", "tools", c.tools)
		}
		if c.family != "" && !slices.Contains(folders[c.family], folder) {
			folders[c.family] = append(folders[c.family], folder)
		}
	}
	return folders
}

// requirementsOfClient returns client-go and the modules that it requires, in the version of a module.
func requirementsOfClient(ctx context.Context, b *Builder, dir string) ([]string, error) {
	const client = "k8s.io/client-go"
	output, err := b.goCommand(ctx, dir, "mod", "download", "-json", client)
	if err != nil {
		return nil, err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal(output, &downloaded); err != nil {
		return nil, err
	}
	file, err := readModule(downloaded.GoMod)
	if err != nil {
		return nil, err
	}
	modules := []string{client}
	for _, required := range file.Require {
		modules = append(modules, required.Mod.Path)
	}
	return modules, nil
}

// buildList returns the versions in a go.mod, with its replacements.
func buildList(dir string) (map[string]string, error) {
	file, err := readModule(filepath.Join(dir, modFile))
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, required := range file.Require {
		versions[required.Mod.Path] = required.Mod.Version
	}
	for _, replaced := range file.Replace {
		if _, wanted := versions[replaced.Old.Path]; wanted && !modfile.IsDirectoryPath(replaced.New.Path) {
			versions[replaced.Old.Path] = replaced.New.Version
		}
	}
	return versions, nil
}

const modFile = "go.mod"
