package metal3

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestSizesHaveTheUnitsOfRequirements(t *testing.T) {
	for bytes, text := range map[int64]string{
		16 << 30: "16Gi", 1 << 40: "1Ti", 32100<<20 + 5: "32100Mi", 100_000_000_000: "95367Mi", 1000: "0",
	} {
		NewWithT(t).Expect(Size(bytes)).To(Equal(text))
	}
}
