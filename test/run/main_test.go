package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// module is one with packages that pass, fail, have no tests and cannot be built, two of them with the same name.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.24\n",
	"a/same/same_test.go": "package same\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestHere(t *testing.T) " +
		"{\n\tif _, err := os.Stat(\"same_test.go\"); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n",
	"b/same/same_test.go":    "package same\n\nimport \"testing\"\n\nfunc TestRed(t *testing.T) { t.Fatal(\"the reason\") }\n",
	"none/none.go":           "package none\n",
	"broken/wrong/w_test.go": "package wrong\n\nvar x int = \"\"\n",
}

// TestPackagesAreTested tests that all packages are tested in their own directories, and that failures are printed.
func TestPackagesAreTested(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	for name, content := range module {
		g.Expect(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	test := func(patterns ...string) (string, error) {
		var out bytes.Buffer
		r := &runner{out: &out, dir: dir, programs: filepath.Join(dir, "programs"), atOnce: 2, parallel: 1, timeout: time.Minute}
		err := r.run(t.Context(), patterns)
		return out.String(), err
	}

	output, err := test("./...")
	g.Expect(err).To(MatchError("FAIL"))
	g.Expect(output).To(And(
		ContainSubstring("ok  \texample.com/m/a/same\t"), ContainSubstring("--- FAIL: TestRed"), ContainSubstring("the reason"),
		ContainSubstring("FAIL\texample.com/m/b/same\t"),
		ContainSubstring("w_test.go:3"), ContainSubstring("FAIL\texample.com/m/broken [build failed]"), Not(ContainSubstring("none")),
	))

	program := filepath.Join(dir, "programs", "example.com", "m", "a", "same.test")
	linked, err := os.Stat(program)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = test("./a/...")
	g.Expect(err).NotTo(HaveOccurred())
	again, err := os.Stat(program)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.SameFile(linked, again)).To(BeTrue(), "it is not linked again")

	g.Expect(os.WriteFile(filepath.Join(dir, "a/same/same_test.go"), []byte(module["b/same/same_test.go"]), 0o600)).To(Succeed())
	output, err = test("./a/...")
	g.Expect(err).To(MatchError("FAIL"), "what changed is tested as it is now")
	g.Expect(output).To(ContainSubstring("FAIL\texample.com/m/a/same\t"))
	again, err = os.Stat(program)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.SameFile(linked, again)).To(BeFalse(), "it is linked again")
}

// TestPackagesOfReplacedModulesAreTested tests a package of another module with the requirements of that module, which
// the current one does not have.
func TestPackagesOfReplacedModulesAreTested(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	for name, content := range map[string]string{
		"go.mod":         "module example.com/m\n\ngo 1.24\n\nrequire example.com/m/other v0.0.0\n\nreplace example.com/m/other => ./other\n",
		"other/go.mod":   "module example.com/m/other\n\ngo 1.24\n\nrequire example.com/own v0.0.0\n\nreplace example.com/own => ../own\n",
		"other/of/of.go": "package of\n\nimport \"example.com/own\"\n\nconst Value = own.Value\n",
		"other/of/of_test.go": "package of\n\nimport \"testing\"\n\nfunc TestValue(t *testing.T) " +
			"{\n\tif Value != 1 {\n\t\tt.Fatal(Value)\n\t}\n}\n",
		"other/more/more.go": "package more\n",
		"own/go.mod":         "module example.com/own\n\ngo 1.24\n",
		"own/own.go":         "package own\n\nconst Value = 1\n",
	} {
		g.Expect(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	var out bytes.Buffer
	r := &runner{out: &out, dir: dir, programs: filepath.Join(dir, "programs"), atOnce: 1, parallel: 1, timeout: time.Minute}
	g.Expect(r.run(t.Context(), []string{"example.com/m/other/of", "example.com/m/other/more"})).To(Succeed(), out.String())
	g.Expect(out.String()).To(ContainSubstring("ok  \texample.com/m/other/of\t"))
	g.Expect(r.run(t.Context(), []string{"example.com/m/other/absent"})).NotTo(Succeed())
}
