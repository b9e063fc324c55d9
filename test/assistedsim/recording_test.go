package assistedsim

import (
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// recorded reads a trimmed object of the real service.
func recorded[T any](t *testing.T, file string) *T {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	object := new(T)
	if err := yaml.Unmarshal(data, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// history is the sequence of values of each property of one object, without repetitions.
type history map[string][]string

func (h history) add(property, value string) {
	if seen := h[property]; len(seen) == 0 || seen[len(seen)-1] != value {
		h[property] = append(seen, value)
	}
}

// recordedHistory reads what happened to one object, e.g. aci/c1, in the log of the real service.
func recordedHistory(t *testing.T, object string) history {
	t.Helper()
	data, err := os.ReadFile("testdata/transitions.log")
	if err != nil {
		t.Fatal(err)
	}
	h := history{}
	for line := range strings.Lines(string(data)) {
		_, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		name, changes, _ := strings.Cut(rest, " ")
		if !ok || name != object {
			continue
		}
		for change := range strings.SplitSeq(changes, " | ") {
			property, value, _ := strings.Cut(change, "=")
			h.add(strings.TrimPrefix(property, "C."), value)
		}
	}
	if len(h) == 0 {
		t.Fatalf("nothing recorded of %s", object)
	}
	return h
}

// expectRecorded compares the order of values of the named properties.
func (h history) expectRecorded(t *testing.T, object string, properties ...string) {
	t.Helper()
	g := NewWithT(t)
	wanted := recordedHistory(t, object)
	for _, property := range properties {
		g.Expect(h[property]).To(Equal(wanted[property]), "order of %s of %s", property, object)
	}
}

func TestRecordedHistoryIsRead(t *testing.T) {
	g := NewWithT(t)
	h := recordedHistory(t, "aci/c1")
	g.Expect(h["state"]).To(Equal([]string{
		"insufficient", "ready", "preparing-for-installation", "installing", "finalizing", "installed", "adding-hosts",
	}))
	g.Expect(slices.Contains(h["pct"], "80")).To(BeTrue())
}
