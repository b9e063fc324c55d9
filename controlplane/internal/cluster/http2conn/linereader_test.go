package http2conn

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestLineReader(t *testing.T) {
	stop := errors.New("enough")
	for situation, tc := range map[string]struct {
		came []string
		fail error
		seen []string
		end  error
	}{
		"one by one":       {[]string{"a\n", "b\n"}, nil, []string{"a", "b"}, io.EOF},
		"together":         {[]string{"a\nb\n"}, nil, []string{"a", "b"}, io.EOF},
		"in parts":         {[]string{"a", "b", "c\nd", "\n"}, nil, []string{"abc", "d"}, io.EOF},
		"unexpected end":   {[]string{"a\nb"}, nil, []string{"a"}, io.ErrUnexpectedEOF},
		"error of handler": {[]string{"a\nb\n", "c\n"}, stop, []string{"a"}, stop},
		"empty lines":      {[]string{"\n\na\n\n", "\nb\n"}, nil, []string{"a", "b"}, io.EOF},
		"nothing":          {nil, nil, nil, io.EOF},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			var seen []string
			ends := make(chan error, 2)
			reader := &LineReader{
				Handle: func(line []byte) error {
					seen = append(seen, string(line))
					return tc.fail
				},
				Done: func(err error) { ends <- err },
			}
			for _, part := range tc.came {
				reader.Push([]byte(part), nil)
			}
			reader.Push(nil, io.EOF)
			g.Eventually(ends).Should(Receive(MatchError(tc.end)))
			g.Expect(seen).To(Equal(tc.seen))
			g.Consistently(ends, 20*time.Millisecond).ShouldNot(Receive(), "it ends once")
		})
	}
}

func TestLineReaderLimit(t *testing.T) {
	g := NewWithT(t)
	ends, wait := make(chan error, 1), make(chan struct{})
	reader := &LineReader{Handle: func([]byte) error { <-wait; return nil }, Done: func(err error) { ends <- err }}
	line := []byte(strings.Repeat("x", 1<<10) + "\n")
	for range maxPendingLines / len(line) {
		reader.Push(line, nil)
	}
	g.Expect(reader.end).NotTo(HaveOccurred())
	reader.Push(line, nil)
	reader.Push(line, nil)
	g.Expect(reader.pending).To(BeEmpty(), "the resource is read again")
	close(wait)
	g.Eventually(ends).Should(Receive(MatchError(errTooFast)))
}

// The memory of large lines is released.
func TestLineReaderReleasesMemory(t *testing.T) {
	g := NewWithT(t)
	handled := make(chan int, 1)
	reader := &LineReader{Handle: func(line []byte) error { handled <- len(line); return nil }, Done: func(error) {}}
	reader.Push([]byte(strings.Repeat("x", 100<<10)+"\nrest"), nil)
	g.Eventually(handled).Should(Receive(Equal(100 << 10)))
	kept := func() int { reader.mu.Lock(); defer reader.mu.Unlock(); return cap(reader.pending) }
	g.Eventually(kept).Should(BeNumerically("<", 64))
	reader.Push([]byte("\n"), nil)
	g.Eventually(handled).Should(Receive(Equal(4)))
}
