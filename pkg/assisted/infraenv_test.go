package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestMinorOf(t *testing.T) {
	for release, want := range map[string]string{"4.19.3": "4.19", "v4.19.0-okd-scos.5": "4.19", "4": "", "": ""} {
		NewWithT(t).Expect(MinorOf(release)).To(Equal(want), "%q", release)
	}
}
