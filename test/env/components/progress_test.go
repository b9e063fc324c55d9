package components

import (
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
	after := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	p := newProgress([]Component{big, small}, begin)
	g.Expect(p.share(after(10))).To(BeZero(), "no build has begun")
	g.Expect(p.text(after(10))).To(BeEmpty())

	p.begin(small, begin)
	p.begin(big, after(5))
	g.Expect(p.share(after(10))).To(BeNumerically("~", 0.15), "ten and five seconds of 100")
	g.Expect(p.text(after(10))).To(Equal("big (5s), small (10s)"))
	g.Expect(p.share(after(1000))).To(BeNumerically("~", 0.95), "a build that takes longer than its cost is not done")

	p.end(small)
	g.Expect(p.share(after(5))).To(BeNumerically("~", 0.2), "a completed build counts fully, even if it was fast")
	g.Expect(p.text(after(65))).To(Equal("big (1m0s)"))
	p.end(big)
	g.Expect(p.share(after(66))).To(BeNumerically("~", 1))
	g.Expect(newProgress(nil, begin).share(begin)).To(BeZero())
}

func TestBar(t *testing.T) {
	g := NewWithT(t)
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := Component{binary: "kube-apiserver", cost: 100}
	p := newProgress([]Component{c}, begin)
	p.begin(c, begin)
	v := newBuildView(p)
	picture := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(v.at(begin.Add(time.Minute)), "")
	g.Expect(picture).To(MatchRegexp(`^█+░+ +60%  1m0s  building kube-apiserver \(1m0s\), once\n$`))

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
	shown := show(b, newProgress(nil, time.Now()))
	shown.builder.sayf("built something")
	shown.end()
	g.Expect(os.ReadFile(file.Name())).To(BeEquivalentTo("built something\n"))
}
