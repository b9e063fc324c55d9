package components

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBuilt(t *testing.T) {
	g := NewWithT(t)
	program := filepath.Join(t.TempDir(), "program")
	g.Expect(built(program, "a")).To(BeFalse(), "nothing is there")
	g.Expect(os.WriteFile(program, nil, 0o600)).To(Succeed())
	g.Expect(built(program, "a")).To(BeFalse(), "nobody knows what it was built from")
	g.Expect(os.WriteFile(program+".inputs", []byte("a"), 0o600)).To(Succeed())
	g.Expect(built(program, "a")).To(BeTrue())
	g.Expect(built(program, "b")).To(BeFalse(), "its inputs changed")
}

func TestOurOwnProgramsFollowTheirSources(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	b := &Builder{root: t.TempDir(), out: &out}
	write := func(name, content string) {
		path := filepath.Join(b.root, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	c := own("ours", 1)
	build := func(says string) string {
		out.Reset()
		write("ours/main.go", "package main\n\nfunc main() { println("+says+") }\n")
		program, err := b.Program(t.Context(), c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(program + ".new").NotTo(BeAnExistingFile())
		return program
	}
	write("go.mod", "module "+modulePath+"\n\ngo 1.24\n")

	program := build("1")
	g.Expect(out.String()).To(HavePrefix("built .tools/managers/ours in "))
	running := filepath.Join(b.root, "running")
	g.Expect(os.Link(program, running)).To(Succeed())
	first, err := os.ReadFile(program)
	g.Expect(err).NotTo(HaveOccurred())

	write(".tools/managers/ours.new", "half a program")
	build("1")
	g.Expect(out.String()).To(BeEmpty(), "nothing changed")
	g.Expect(same(program, running)).To(BeTrue(), "what is there was not linked again")

	build("2")
	g.Expect(out.String()).To(HavePrefix("built .tools/managers/ours in "))
	g.Expect(os.ReadFile(program)).NotTo(Equal(first))
	g.Expect(os.ReadFile(running)).To(Equal(first), "a program that runs is not written to")
}
