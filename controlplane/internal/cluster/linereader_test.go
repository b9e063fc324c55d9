package cluster

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestLines(t *testing.T) {
	stop := errors.New("enough")
	for situation, tc := range map[string]struct {
		came []string
		fail error
		seen []string
		end  error
	}{
		"one by one":            {[]string{"a\n", "b\n"}, nil, []string{"a", "b"}, io.EOF},
		"at once":               {[]string{"a\nb\n"}, nil, []string{"a", "b"}, io.EOF},
		"in parts":              {[]string{"a", "b", "c\nd", "\n"}, nil, []string{"abc", "d"}, io.EOF},
		"it breaks off":         {[]string{"a\nb"}, nil, []string{"a"}, io.ErrUnexpectedEOF},
		"the first is the last": {[]string{"a\nb\n", "c\n"}, stop, []string{"a"}, stop},
		"with empty lines":      {[]string{"\n\na\n\n", "\nb\n"}, nil, []string{"a", "b"}, io.EOF},
		"nothing":               {nil, nil, nil, io.EOF},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			var seen []string
			ends := make(chan error, 2)
			l := &lineReader{
				handle: func(line []byte) error {
					seen = append(seen, string(line))
					return tc.fail
				},
				done: func(err error) { ends <- err },
			}
			for _, part := range tc.came {
				l.take([]byte(part), nil)
			}
			l.take(nil, io.EOF)
			g.Eventually(ends).Should(Receive(MatchError(tc.end)))
			g.Expect(seen).To(Equal(tc.seen))
			g.Consistently(ends, 20*time.Millisecond).ShouldNot(Receive(), "it ends once")
		})
	}
}

func TestLinesThatComeTooFast(t *testing.T) {
	g := NewWithT(t)
	ends, wait := make(chan error, 1), make(chan struct{})
	l := &lineReader{handle: func([]byte) error { <-wait; return nil }, done: func(err error) { ends <- err }}
	line := []byte(strings.Repeat("x", 1<<10) + "\n")
	for range behind / len(line) {
		l.take(line, nil)
	}
	g.Expect(l.end).NotTo(HaveOccurred())
	l.take(line, nil)
	l.take(line, nil)
	g.Expect(l.pending).To(BeEmpty(), "it is read anew")
	close(wait)
	g.Eventually(ends).Should(Receive(MatchError(errBehind)))
}

// What was large once is not kept.
func TestLinesKeepNothing(t *testing.T) {
	g := NewWithT(t)
	handled := make(chan int, 1)
	l := &lineReader{handle: func(line []byte) error { handled <- len(line); return nil }, done: func(error) {}}
	l.take([]byte(strings.Repeat("x", 100<<10)+"\nrest"), nil)
	g.Eventually(handled).Should(Receive(Equal(100 << 10)))
	kept := func() int { l.mu.Lock(); defer l.mu.Unlock(); return cap(l.pending) }
	g.Eventually(kept).Should(BeNumerically("<", 64))
	l.take([]byte("\n"), nil)
	g.Eventually(handled).Should(Receive(Equal(4)))
}
