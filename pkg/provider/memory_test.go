package provider

import (
	"math"
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestMemoryLimit(t *testing.T) {
	for situation, tc := range map[string]struct {
		container, runtime string
		limit              int64
		err                string
	}{
		"no limit":                    {"", "", 0, ""},
		"a limit of the container":    {"536870912", "", 483183821, ""},
		"the user set a limit of Go":  {"536870912", "200MiB", 0, ""},
		"a quantity is not a number":  {"512Mi", "", 0, `not "512Mi"`},
		"zero is no limit":            {"0", "", 0, `not "0"`},
		"a negative limit":            {"-1", "", 0, `not "-1"`},
		"an invalid limit is ignored": {"x", "200MiB", 0, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			limit, err := memoryLimit(func(name string) string {
				return map[string]string{containerLimit: tc.container, runtimeLimit: tc.runtime}[name]
			})
			g.Expect(limit).To(Equal(tc.limit))
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			}
		})
	}
}

func TestMemoryLimitIsBelowTheContainerLimit(t *testing.T) {
	g := NewWithT(t)
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv(runtimeLimit, "")
	t.Setenv(containerLimit, "1000000000")
	debug.SetMemoryLimit(math.MaxInt64)
	g.Expect(limitMemory()).To(Succeed())
	g.Expect(debug.SetMemoryLimit(-1)).To(Equal(int64(900000000)))
}
