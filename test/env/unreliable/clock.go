package unreliable

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// clock is that of a manager. All its times are counted from that of the API server: to be ahead is to find everything
// older than it is, and to write what is later than it is.
type clock struct {
	// ahead is negative for a clock that is behind.
	ahead time.Duration
	// step is closed when the clock steps; listed are the paths that were read since it did last.
	step   chan struct{}
	listed map[string]bool
	// stepped: it did once.
	stepped bool
	// moved is how many times of objects were moved.
	moved int
}

// Step sets the clock of the manager: it is ahead of the API server's by a duration, or behind it where that is
// negative. Whatever the manager knows of the API server it has to read again, as what it keeps of it has times too. A
// manager tells time spans within its own process by another clock, which never steps.
func (w *Way) Step(ahead time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clock.ahead == ahead {
		return
	}
	close(w.clock.step)
	w.clock.ahead, w.clock.step, w.clock.stepped = ahead, make(chan struct{}), true
	clear(w.clock.listed)
}

// Ahead is how much the clock of the manager is ahead.
func (w *Way) Ahead() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.ahead
}

// Moved is how many times of objects a manager saw, or wrote, by a clock that was wrong.
func (w *Way) Moved() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.moved
}

// clocked returns the transport of a request, by the clock of the manager, and what ends its watches: the next step.
// old: the manager watches from where it read by another clock.
func (w *Way) clocked(r *http.Request, transport http.RoundTripper) (clocked http.RoundTripper, step <-chan struct{}, old bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
	case verbOf(r.Method, query) != watches || beginsWithAll(query):
		w.clock.listed[r.URL.Path] = true
	case w.clock.stepped && !w.clock.listed[r.URL.Path]:
		old = true
	}
	if w.clock.ahead != 0 {
		transport = &moving{RoundTripper: transport, way: w, ahead: w.clock.ahead}
	}
	return transport, w.clock.step, old
}

// beginsWithAll tells a watch that is a list as well.
func beginsWithAll(query url.Values) bool { return query.Get("sendInitialEvents") == "true" }

// moving moves the times in requests and answers.
type moving struct {
	http.RoundTripper

	way   *Way
	ahead time.Duration
}

// RoundTrip implements http.RoundTripper. Only text is moved, which is therefore asked for; the kinds of which a
// manager writes anything else have no times that somebody else goes by.
func (m *moving) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), runtime.ContentTypeProtobuf, runtime.ContentTypeJSON))
	r.Header.Del("Accept-Encoding")
	if r.Body != nil && r.Header.Get("Content-Type") != runtime.ContentTypeProtobuf {
		r.Body = m.move(r.Body, m.ahead)
	}
	response, err := m.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = m.move(response.Body, -m.ahead)
	return response, nil
}

func (m *moving) move(body io.ReadCloser, by time.Duration) io.ReadCloser {
	return &moved{Closer: body, lines: bufio.NewReader(body), move: func(line []byte) []byte {
		line, n := later(line, by)
		m.way.mu.Lock()
		defer m.way.mu.Unlock()
		m.way.clock.moved += n
		return line
	}}
}

// moved is a body with other times, line by line: an event of a watch is one.
type moved struct {
	io.Closer

	lines *bufio.Reader
	move  func([]byte) []byte
	rest  []byte
	err   error
}

// Read implements io.Reader.
func (m *moved) Read(p []byte) (int, error) {
	if len(m.rest) == 0 && m.err == nil {
		m.rest, m.err = m.lines.ReadBytes('\n')
		m.rest = m.move(m.rest)
	}
	if len(m.rest) == 0 {
		return 0, m.err
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

const seconds = "2006-01-02T15:04:05"

// times are those of RFC 3339, up to the second: fractions and zones stay.
var times = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

// later moves all times in a text, which does not change its length, and tells how many there were.
func later(text []byte, by time.Duration) (moved []byte, n int) {
	moved = times.ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse(seconds, string(found))
		if err != nil {
			return found
		}
		n++
		return at.Add(by).AppendFormat(nil, seconds)
	})
	return moved, n
}
