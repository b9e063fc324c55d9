package faultproxy

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

// clock is the clock of a client relative to the clock of the API server. The proxy shifts the times of objects: a
// client whose clock is ahead reads older times, and writes later ones.
type clock struct {
	// offset is negative for a clock that is behind.
	offset time.Duration
	// stepped is closed when the clock steps. listed are the paths that the client read after the last step.
	stepped chan struct{}
	listed  map[string]bool
	// steps is the number of steps, shifted the number of times of objects that were shifted.
	steps, shifted int
}

// StepClock sets how far the clock of the client is ahead of the clock of the API server; negative: behind. The client
// has to read all objects again, because its cache contains times. Its monotonic clock never steps.
func (c *Connection) StepClock(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clock.offset == offset {
		return
	}
	close(c.clock.stepped)
	c.clock.offset, c.clock.stepped = offset, make(chan struct{})
	c.clock.steps++
	clear(c.clock.listed)
}

// ClockOffset returns how far the clock of the client is ahead.
func (c *Connection) ClockOffset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.offset
}

// ShiftedTimes returns how many times of objects the client read or wrote by a wrong clock.
func (c *Connection) ShiftedTimes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.shifted
}

// clocked returns the transport of a request with the clock of the client, and the channel that is closed at the next
// step. The next step ends watches. old reports that the request continues a watch from a version before a step.
func (c *Connection) clocked(r *http.Request, transport http.RoundTripper) (clocked http.RoundTripper, stepped <-chan struct{}, old bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
	case verbOf(r.Method, query) != watches || isWatchList(query):
		c.clock.listed[r.URL.Path] = true
	case c.clock.steps > 0 && !c.clock.listed[r.URL.Path]:
		old = true
	}
	if c.clock.offset != 0 {
		transport = &shifting{RoundTripper: transport, conn: c, offset: c.clock.offset}
	}
	return transport, c.clock.stepped, old
}

// isWatchList reports whether a watch begins with all objects.
func isWatchList(query url.Values) bool { return query.Get("sendInitialEvents") == "true" }

// shifting shifts the times in requests and answers.
type shifting struct {
	http.RoundTripper

	conn   *Connection
	offset time.Duration
}

// RoundTrip implements http.RoundTripper. It requests JSON, because only the times in text can be shifted. Managers
// write Protobuf only for kinds without times that another client reads.
func (s *shifting) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), runtime.ContentTypeProtobuf, runtime.ContentTypeJSON))
	r.Header.Del("Accept-Encoding")
	if r.Body != nil && r.Header.Get("Content-Type") != runtime.ContentTypeProtobuf {
		r.Body = s.shift(r.Body, s.offset)
	}
	response, err := s.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = s.shift(response.Body, -s.offset)
	return response, nil
}

func (s *shifting) shift(body io.ReadCloser, by time.Duration) io.ReadCloser {
	return &shifted{Closer: body, lines: bufio.NewReader(body), shift: func(line []byte) []byte {
		line, n := later(line, by)
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		s.conn.clock.shifted += n
		return line
	}}
}

// shifted is a body with shifted times. It is read by lines, because an event of a watch is a line.
type shifted struct {
	io.Closer

	lines *bufio.Reader
	shift func([]byte) []byte
	rest  []byte
	err   error
}

// Read implements io.Reader.
func (s *shifted) Read(p []byte) (int, error) {
	if len(s.rest) == 0 && s.err == nil {
		s.rest, s.err = s.lines.ReadBytes('\n')
		s.rest = s.shift(s.rest)
	}
	if len(s.rest) == 0 {
		return 0, s.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

const seconds = "2006-01-02T15:04:05"

// times matches times of RFC 3339 up to the second, so that fractions and zones stay.
var times = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

// later shifts all times in a text and returns their number. The length of the text stays the same.
func later(text []byte, by time.Duration) (shifted []byte, n int) {
	shifted = times.ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse(seconds, string(found))
		if err != nil {
			return found
		}
		n++
		return at.Add(by).AppendFormat(nil, seconds)
	})
	return shifted, n
}
