package components

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	. "github.com/onsi/gomega"
)

func TestProgress(t *testing.T) {
	g := NewWithT(t)
	big, small := Component{binary: "big", cost: 80}, Component{binary: "small", cost: 20}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	p := newProgress([]Component{big, small}, begin)
	g.Expect(p.share()).To(BeZero(), "no build has begun")
	g.Expect(p.building()).To(BeEmpty())
	g.Expect(p.text(after(3))).To(Equal("0 of 2 programs built"), "the duration of the rest is unknown")

	compiled := p.begin(small)
	p.begin(big)
	g.Expect(p.building()).To(Equal("big, small"), "the packages are not listed yet")
	compiled.expect([]string{"a", "b", "c", "d"})
	fmt.Fprint(compiled, "a\n")
	g.Expect(p.text(after(1))).To(Equal("0 of 2 programs built"), "too little is known")
	fmt.Fprint(compiled, "b\n")
	g.Expect(p.building()).To(Equal("big, small (2 of 4 packages)"))
	g.Expect(p.share()).To(BeNumerically("~", 0.095), "half of the packages of a fifth of the work")
	g.Expect(p.text(after(1))).To(Equal("0 of 2 programs built, about 10 min left"))
	fmt.Fprint(compiled, "c\nd\n")
	g.Expect(p.share()).To(BeNumerically("~", 0.19), "the program is not linked yet")

	p.end(small)
	g.Expect(p.share()).To(BeNumerically("~", 0.2), "a completed build counts fully")
	g.Expect(p.building()).To(Equal("big"))
	g.Expect(p.text(after(2))).To(Equal("1 of 2 programs built, about 8 min left"))
	p.end(big)
	g.Expect(p.share()).To(BeNumerically("~", 1))
	g.Expect(p.text(after(2))).To(Equal("2 of 2 programs built"))
	g.Expect(newProgress(nil, begin).share()).To(BeZero())
}

func TestCompilation(t *testing.T) {
	g := NewWithT(t)
	c := &compilation{}
	fmt.Fprint(c, "go: downloading example.com/a v1.0.0\n")
	c.expect([]string{"fmt", "example.com/a", "example.com/b"})
	expect := func(compiled int) {
		t.Helper()
		n, total := c.packages()
		g.Expect(total).To(Equal(3))
		g.Expect(n).To(Equal(compiled))
	}
	expect(0)
	fmt.Fprint(c, "fmt\nexample.c")
	expect(1)
	fmt.Fprint(c, "om/a\nfmt\n")
	expect(2)
	fmt.Fprint(c, "# example.com/b\nb.go:1:1: undefined: x\nlast words")
	expect(2)
	g.Expect(c.String()).To(Equal(
		"go: downloading example.com/a v1.0.0\nfmt\n# example.com/b\nb.go:1:1: undefined: x\nlast words"),
		"only the first line of each package is left out of an error")
}

func TestBar(t *testing.T) {
	g := NewWithT(t)
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := Component{binary: "kube-apiserver", cost: 100}
	p := newProgress([]Component{c}, begin)
	compiled := p.begin(c)
	compiled.expect([]string{"a", "b"})
	fmt.Fprintln(compiled, "a")
	v := newBuildView(p)
	picture := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(v.at(begin.Add(time.Minute)), "")
	g.Expect(picture).To(MatchRegexp(
		`^█+░+ +48%  1m0s  0 of 1 programs built, about 1 min left\nbuilding kube-apiserver \(1 of 2 packages\), once\n$`))

	after, quit := v.Update(ended{})
	g.Expect(quit()).To(Equal(tea.QuitMsg{}))
	g.Expect(after.View()).To(BeEmpty(), "the display is cleared")
}

func TestBarIsForTerminals(t *testing.T) {
	g := NewWithT(t)
	file, err := os.Create(t.TempDir() + "/log")
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	b := &Builder{root: t.TempDir(), out: file}
	begin := time.Now()
	shown := show(b, newProgress(nil, begin))
	shown.builder.sayf("built something")
	shown.built(begin.Add(time.Second)) // a short build needs no progress
	shown.built(begin.Add(time.Minute))
	shown.end()
	g.Expect(os.ReadFile(file.Name())).To(BeEquivalentTo("built something\n0 of 0 programs built\n"))
}
