package components

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBuilt(t *testing.T) {
	g := NewWithT(t)
	program := filepath.Join(t.TempDir(), "program")
	g.Expect(built(program, "a")).To(BeFalse(), "the program does not exist")
	g.Expect(os.WriteFile(program, nil, 0o600)).To(Succeed())
	g.Expect(built(program, "a")).To(BeFalse(), "its inputs are unknown")
	g.Expect(os.WriteFile(program+".inputs", []byte("a"), 0o600)).To(Succeed())
	g.Expect(built(program, "a")).To(BeTrue())
	g.Expect(built(program, "b")).To(BeFalse(), "its inputs changed")
}

func TestOwnProgramsAreRebuiltAfterChanges(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	b := &Builder{root: t.TempDir(), out: &out}
	write := func(name, content string) {
		path := filepath.Join(b.root, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	c := own("ours", 1)
	build := func(text string) string {
		out.Reset()
		write("ours/main.go", "package main\n\nfunc main() { println("+text+") }\n")
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
	g.Expect(same(program, running)).To(BeTrue(), "an unchanged program is not linked again")
	_, err = b.Manager(t.Context(), c.binary)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.String()).To(BeEmpty(), "a manager is built with the same flags in both ways")

	build("2")
	g.Expect(out.String()).To(HavePrefix("built .tools/managers/ours in "))
	g.Expect(os.ReadFile(program)).NotTo(Equal(first))
	g.Expect(os.ReadFile(running)).To(Equal(first), "a running program is not overwritten")
}

func TestModulesAreFetchedDuringOtherBuilds(t *testing.T) {
	g := NewWithT(t)
	b := &Builder{root: t.TempDir(), out: io.Discard}
	// The go command of the test records its arguments. During the first builds, the modules of the last builds
	// are fetched.
	log, bin := filepath.Join(b.root, "log"), t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(bin, "go"), []byte(`#!/bin/sh
echo "$1 $2 $(basename $PWD)" >>`+log+`
[ $1 = build ] || exit 0
tries=0
until grep -q "list -deps third" `+log+` && grep -q "list -deps fourth" `+log+`; do
  tries=$((tries+1)); [ $tries -lt 100 ] || exit 1
  sleep 0.1
done
while [ "$1" != -o ]; do shift; done
touch $2
`), 0o755)).To(Succeed())
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	var components []Component
	for i, name := range []string{"first", "second", "third", "fourth"} {
		folder := filepath.Join(b.root, "test", "tools", name)
		g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, modFile), []byte("module "+name+"\nrequire example.com/"+name+" v1.0.0\n"),
			0o600)).To(Succeed())
		components = append(components, Component{tools: name, module: "example.com/" + name, binary: name, pkg: ".", cost: 10 - i})
	}
	components[2].family, components[0].family = "one", "one"

	g.Expect(b.Build(t.Context(), components...)).To(Succeed())
	content, err := os.ReadFile(log)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).NotTo(Or(ContainSubstring("list -deps first"), ContainSubstring("list -deps second")), "these are built first")
}

// The managers of tests have the build tags of the shipped managers.
func TestManagersHaveTagsOfMakefile(t *testing.T) {
	g := NewWithT(t)
	makefile, err := os.ReadFile("../../../Makefile")
	g.Expect(err).NotTo(HaveOccurred())
	tags := regexp.MustCompile(`(?m)^TAGS := (\S+)$`).FindSubmatch(makefile)
	g.Expect(tags).NotTo(BeNil())
	g.Expect(string(tags[1])).To(Equal(managerTags))
}
