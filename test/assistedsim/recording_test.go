package assistedsim

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// recorded reads a trimmed object that was recorded with the real service.
func recorded[T any](t *testing.T, file string) *T {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/" + file)
	g.Expect(err).NotTo(HaveOccurred())
	object := new(T)
	g.Expect(yaml.Unmarshal(data, object)).To(Succeed())
	return object
}
