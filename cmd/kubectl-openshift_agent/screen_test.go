package main

import (
	"bytes"
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestTextCannotControlATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"✓ Machine m0 · 5m\n\tGröße\n": "✓ Machine m0 · 5m\n\tGröße\n",
		"\x1b[2J":                      `\u001b[2J`,
		"over\rwritten\b\a\x7f":        `over\u000dwritten\u0008\u0007\u007f`,
		"\u009b2J":                     `\u009b2J`,
		"\x9b2J":                       `\ufffd2J`,
		"a\u202eb\u2066":               `a\u202eb\u2066`,
	} {
		g := NewWithT(t)
		var out bytes.Buffer
		n, err := io.WriteString(screen{&out}, text)
		g.Expect([]any{n, err}).To(Equal([]any{len(text), nil}))
		g.Expect(out.String()).To(Equal(want))
	}
}

func TestScreenReportsErrors(t *testing.T) {
	reader, writer := io.Pipe()
	NewWithT(t).Expect(reader.CloseWithError(errors.New("closed"))).To(Succeed())
	_, err := screen{writer}.Write([]byte("x"))
	NewWithT(t).Expect(err).To(MatchError("closed"))
}

// The completion scripts and the help are written through the same streams.
func TestOwnTextPassesTheScreen(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	for _, args := range [][]string{
		{"completion", "bash"},
		{"completion", "zsh"},
		{"completion", "fish"},
		{"completion", "powershell"},
		{"--help"},
		{"wait", "--help"},
		{"status", "ha"},
	} {
		w.Expect(w.run(t.Context(), args...)).To(Equal(exitDone), "%v", args)
		var shown bytes.Buffer
		_, err := screen{&shown}.Write(w.out.Bytes())
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(shown.String()).To(And(Equal(w.out.String()), Not(BeEmpty())), "%v", args)
	}
}
