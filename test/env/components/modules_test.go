package components

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestModuleVersion(t *testing.T) {
	g := NewWithT(t)
	goMod := filepath.Join(t.TempDir(), "go.mod")
	g.Expect(os.WriteFile(goMod, []byte(`module example.com/m
require example.com/alone v1.0.0
require (
	example.com/block v1.2.3 // indirect
)
replace example.com/replaced => example.com/replaced v9.9.9
`), 0o600)).To(Succeed())
	for module, wanted := range map[string]string{"example.com/alone": "v1.0.0", "example.com/block": "v1.2.3"} {
		version, err := moduleVersion(goMod, module)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version).To(Equal(wanted))
	}
	_, err := moduleVersion(goMod, "example.com/replaced")
	g.Expect(err).To(MatchError(ContainSubstring("does not require example.com/replaced")))
}

func TestToolPackage(t *testing.T) {
	g := NewWithT(t)
	goMod := filepath.Join(t.TempDir(), "go.mod")
	g.Expect(os.WriteFile(goMod, []byte("module example.com/m\n\ntool example.com/tool/core\n"), 0o600)).To(Succeed())
	g.Expect(toolPackage(goMod)).To(Equal("example.com/tool/core"))
	g.Expect(os.WriteFile(goMod, []byte("module example.com/m\n"), 0o600)).To(Succeed())
	_, err := toolPackage(goMod)
	g.Expect(err).To(MatchError(ContainSubstring("has no tool")))
}

func TestFindRoot(t *testing.T) {
	g := NewWithT(t)
	root, err := findRoot(".")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.Join(root, "test", "env")).To(BeADirectory())
	_, err = findRoot(t.TempDir())
	g.Expect(err).To(HaveOccurred())
}
