package cluster

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
)

// FuzzLines checks that the lines do not depend on the parts in which a response arrives.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint(1), uint(2))
	f.Add([]byte("a\nbc\n"), uint(3), uint(4))
	f.Add([]byte("\n\na\n\nb"), uint(0), uint(4))
	f.Fuzz(func(t *testing.T, all []byte, first, second uint) {
		if len(all) >= maxPending {
			return
		}
		synctest.Test(t, func(t *testing.T) { expectSameLines(t, all, first, second) })
	})
}

// expectSameLines waits until each part is processed before it pushes the next.
func expectSameLines(t *testing.T, all []byte, first, second uint) {
	t.Helper()
	g := NewWithT(t)
	one, two := min(int(first%(1<<20)), len(all)), min(int(second%(1<<20)), len(all))
	var seen []string
	ended := make(chan error, 1)
	reader := &lineReader{
		handle: func(line []byte) error { seen = append(seen, string(line)); return nil },
		done:   func(err error) { ended <- err },
	}
	for _, part := range [][]byte{all[:min(one, two)], all[min(one, two):max(one, two)], all[max(one, two):]} {
		reader.push(bytes.Clone(part), nil)
		synctest.Wait()
	}
	reader.push(nil, io.EOF)
	err := <-ended
	var wanted []string
	parts := strings.Split(string(all), "\n")
	for _, line := range parts[:len(parts)-1] {
		if line != "" {
			wanted = append(wanted, line)
		}
	}
	g.Expect(seen).To(Equal(wanted))
	if parts[len(parts)-1] == "" {
		g.Expect(err).To(Equal(io.EOF))
	} else {
		g.Expect(err).To(Equal(io.ErrUnexpectedEOF))
	}
}
