package assisted

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestClusterImageSetName(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ClusterImageSetName("lab", "c1", "image")).To(Equal(ClusterImageSetName("lab", "c1", "image")))
	g.Expect(ClusterImageSetName("a-b", "c", "image")).
		NotTo(Equal(ClusterImageSetName("a", "b-c", "image")), "same prefix, other control plane")
	g.Expect(ClusterImageSetName("lab", "c1", "image")).
		NotTo(Equal(ClusterImageSetName("lab", "c1", "other")), "another image has another name")
	g.Expect(len(ClusterImageSetName(string(make([]byte, 63)), string(make([]byte, 253)), "image"))).To(BeNumerically("<=", 253))
}
