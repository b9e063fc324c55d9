package bench

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestLoadOfProcessors(t *testing.T) {
	g := NewWithT(t)
	before, err := parseProcessors("cpu  100 10 50 800 40 0 0 0 7 0\ncpu0 1 2 3\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(before).To(Equal(processors{busy: 160, total: 1000}))
	after, err := parseProcessors("cpu  160 10 60 820 50 0 0 0 9 0\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(busyPercent(before, after)).To(Equal(70.0))
	g.Expect(busyPercent(after, after)).To(BeZero())

	_, err = parseProcessors("cpu  1 2\n")
	g.Expect(err).To(MatchError(ContainSubstring("unknown form")))
	_, err = parseProcessors("cpu  1 2 3 x 5 6 7 8\n")
	g.Expect(err).To(HaveOccurred())
}
