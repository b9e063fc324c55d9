package components

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBuilt(t *testing.T) {
	g := NewWithT(t)
	program := filepath.Join(t.TempDir(), "program")
	g.Expect(built(program, "a")).To(BeFalse(), "nothing is there")
	g.Expect(os.WriteFile(program, nil, 0o600)).To(Succeed())
	g.Expect(built(program, "a")).To(BeFalse(), "nobody knows what it was built from")
	g.Expect(os.WriteFile(program+".inputs", []byte("a"), 0o600)).To(Succeed())
	g.Expect(built(program, "a")).To(BeTrue())
	g.Expect(built(program, "b")).To(BeFalse(), "its inputs changed")
}
