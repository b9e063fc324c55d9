package faultproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// server is an API server that records its writes. A watch gets an event every 10 ms.
type server struct {
	mu     sync.Mutex
	bodies []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		for n := 0; r.Context().Err() == nil; n++ {
			_, _ = fmt.Fprintf(w, "event %d\n", n)
			w.(http.Flusher).Flush()
			<-time.After(10 * time.Millisecond)
		}
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, string(body))
	_, _ = fmt.Fprintf(w, "answer %d", len(s.bodies))
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.bodies...)
}

// stormy returns a connection to a server with faults, and its URL.
func stormy(t *testing.T, rates Rates) (*Connection, *server, string) {
	t.Helper()
	s := &server{}
	c, front := connect(t, s)
	c.longestWatch = 2 * shortestWatch
	c.Storm(1, rates)
	return c, s, front + "/apis/x/v1/namespaces/lab/things"
}

// connect returns a connection to a server, and its URL.
func connect(t *testing.T, handler http.Handler) (*Connection, string) {
	t.Helper()
	behind := httptest.NewServer(handler)
	t.Cleanup(behind.Close)
	target, err := url.Parse(behind.URL)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c := NewConnection()
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		c.Pass(rw, r, http.DefaultTransport, target)
	}))
	t.Cleanup(front.Close)
	return c, front.URL
}

// send sends a request on a new TCP connection. A missing answer is an error.
func send(ctx context.Context, method, url, body string) (int, string, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), response.Header, err
}

func TestEachFaultOfAWrite(t *testing.T) {
	t.Parallel()
	for fault, wanted := range map[Fault]struct {
		code    int // 0: no answer
		reason  metav1.StatusReason
		writes  int
		retries bool
	}{
		None:            {code: http.StatusOK, writes: 1},
		Conflict:        {code: http.StatusConflict, reason: metav1.StatusReasonConflict},
		TooManyRequests: {code: http.StatusTooManyRequests, reason: metav1.StatusReasonTooManyRequests, retries: true},
		ServerError:     {code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError},
		Unavailable:     {code: http.StatusServiceUnavailable, reason: metav1.StatusReasonServiceUnavailable},
		TimedOut:        {code: http.StatusGatewayTimeout, reason: metav1.StatusReasonTimeout},
		RequestLost:     {},
		AnswerLost:      {writes: 1},
		AnswerWrong:     {code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError, writes: 1},
		Repeated:        {code: http.StatusOK, writes: 2},
		Belated:         {writes: 1},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c, s, target := stormy(t, Rates{fault: 1})
			begin := time.Now()
			code, body, header, err := send(t.Context(), http.MethodPatch, target+"/a", "wanted")
			if fault == TimedOut {
				g.Expect(time.Since(begin)).To(BeNumerically(">=", shortestDelay), "the client waits")
			}
			g.Expect(err != nil).To(Equal(wanted.code == 0), "%v", err)
			g.Expect(code).To(Equal(wanted.code))
			if fault == Belated {
				g.Expect(s.seen()).To(BeEmpty(), "the connection is cut before the write is executed")
			}
			calming := time.Now()
			c.Calm() // waits for belated writes
			if fault == Belated {
				g.Expect(time.Since(calming)).To(BeNumerically("<", shortestDelay/2), "calm ends the delay")
			}
			g.Expect(s.seen()).To(HaveLen(wanted.writes), "number of executions")
			for _, got := range s.seen() {
				g.Expect(got).To(Equal("wanted"))
			}
			if wanted.reason != "" {
				status := metav1.Status{}
				g.Expect(json.Unmarshal([]byte(body), &status)).To(Succeed(), body)
				g.Expect(status.Reason).To(Equal(wanted.reason))
				g.Expect(status.Kind).To(Equal("Status"))
			}
			if wanted.retries {
				g.Expect(header).To(HaveKey("Retry-After"))
			}
			if fault == Repeated {
				g.Expect(body).To(Equal("answer 2"))
			}
			if fault != None {
				g.Expect(c.Counts()).To(Equal(map[Fault]int{fault: 1}))
			}
		})
	}
}

func TestReadsGetNoFaultsOfWrites(t *testing.T) {
	for _, fault := range []Fault{Conflict, AnswerLost, AnswerWrong, Repeated, Belated} {
		_, s, target := stormy(t, Rates{fault: 1})
		code, _, _, err := send(t.Context(), http.MethodGet, target, "")
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), fault)
		NewWithT(t).Expect(code).To(Equal(http.StatusOK))
		NewWithT(t).Expect(s.seen()).To(HaveLen(1))
	}
}

// The answer 409 to a creation means that the object exists.
func TestCreationGetsNoConflict(t *testing.T) {
	_, _, target := stormy(t, Rates{Conflict: 1})
	code, _, _, err := send(t.Context(), http.MethodPost, target, "")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(code).To(Equal(http.StatusOK))
}

// watched reads the events of a watch until the watch ends or done returns true.
func watched(t *testing.T, target string, done func(n int, pause time.Duration) bool) (events int, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target+"?watch=true&resourceVersion=7", nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, errors.New(response.Status)
	}
	lines, last := bufio.NewReader(response.Body), time.Now()
	for {
		if _, err := lines.ReadString('\n'); err != nil {
			return events, err
		}
		events++
		if done(events, time.Since(last)) {
			return events, nil
		}
		last = time.Now()
	}
}

func TestSilenceLosesAllRequests(t *testing.T) {
	g := NewWithT(t)
	c, s, target := stormy(t, Silence)
	ctx, cancel := context.WithTimeout(t.Context(), shortestWatch) // a forwarded watch would not end
	defer cancel()
	for _, what := range []struct{ method, query string }{
		{http.MethodGet, ""}, {http.MethodPost, ""}, {http.MethodPatch, ""}, {http.MethodDelete, ""}, {http.MethodGet, "?watch=true"},
	} {
		_, _, _, err := send(ctx, what.method, target+what.query, "")
		g.Expect(err).To(HaveOccurred(), "%s %s", what.method, what.query)
	}
	g.Expect(s.seen()).To(BeEmpty())
	g.Expect(c.Counts()).To(Equal(map[Fault]int{RequestLost: 5}))
}

// The next storm ends the delays of the storm before.
func TestStormEndsPreviousStorm(t *testing.T) {
	g := NewWithT(t)
	c, _, target := stormy(t, Rates{TimedOut: 1})
	former := c.outcomeOf(http.MethodGet, "/a", reads)
	c.Storm(2, Rates{})
	g.Expect(former.calm).To(BeClosed())
	code, _, _, err := send(t.Context(), http.MethodGet, target, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(http.StatusOK))
	c.Calm()
}

func TestRunningWatchIsBroken(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c, _, target := stormy(t, Rates{WatchBroken: 1})
	events, err := watched(t, target, func(int, time.Duration) bool { return false })
	g.Expect(err).To(HaveOccurred())
	g.Expect(events).To(BeNumerically(">", 10))
	g.Expect(c.Counts()).To(Equal(map[Fault]int{WatchBroken: 1}))
}

func TestWatchExpires(t *testing.T) {
	g := NewWithT(t)
	c, _, target := stormy(t, Rates{WatchExpired: 1})
	_, err := watched(t, target, nil)
	g.Expect(err).To(MatchError("410 Gone"))
	g.Expect(c.Counts()).To(Equal(map[Fault]int{WatchExpired: 1}))
}

func TestStalledWatchContinues(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c, _, target := stormy(t, Rates{WatchStalled: 1})
	_, err := watched(t, target, func(_ int, pause time.Duration) bool {
		return c.Counts()[WatchStalled] == 1 && pause >= shortestDelay/2
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Counts()).To(Equal(map[Fault]int{WatchStalled: 1}))
}

func TestEventsAreDelayedOnce(t *testing.T) {
	g := NewWithT(t)
	c, calm := NewConnection(), make(chan struct{})
	s := &stalling{
		ReadCloser: io.NopCloser(strings.NewReader("event")), conn: c, ctx: t.Context(),
		from: time.Now().Add(-time.Second), outcome: outcome{Fault: WatchStalled, lasts: time.Hour, calm: calm},
	}
	read := func() <-chan string {
		got := make(chan string, 1)
		go func() {
			event := make([]byte, 3)
			n, _ := s.Read(event)
			got <- string(event[:n])
		}()
		return got
	}
	first := read()
	g.Consistently(first, "100ms").ShouldNot(Receive())
	close(calm)
	g.Eventually(first).Should(Receive(Equal("eve")))
	g.Eventually(read()).Should(Receive(Equal("nt")))
	g.Expect(c.Counts()).To(Equal(map[Fault]int{WatchStalled: 1}))
}

func TestExemptRequestGetsNoFault(t *testing.T) {
	g := NewWithT(t)
	c, _, target := stormy(t, Rates{RequestLost: 1})
	c.Exempt = func(r *http.Request) bool { return r.Method == http.MethodPatch }
	for method, wanted := range map[string]int{http.MethodPatch: http.StatusOK, http.MethodPost: 0} {
		code, _, _, err := send(t.Context(), method, target, "")
		g.Expect(err != nil).To(Equal(wanted == 0), "%s: %v", method, err)
		g.Expect(code).To(Equal(wanted))
	}
	g.Expect(c.Counts()).To(Equal(map[Fault]int{RequestLost: 1}))
}

func TestNoFaultAfterCalm(t *testing.T) {
	g := NewWithT(t)
	c, s, target := stormy(t, Rates{RequestLost: 1, WatchExpired: 1})
	c.Calm()
	for range 20 {
		code, _, _, err := send(t.Context(), http.MethodPost, target, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(code).To(Equal(http.StatusOK))
	}
	_, err := watched(t, target, func(int, time.Duration) bool { return true })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.seen()).To(HaveLen(20))
	g.Expect(c.Counts()).To(BeEmpty())
}

// The faults of a request depend on the seed, and not on concurrent other requests.
func TestSeedSelectsFaults(t *testing.T) {
	g := NewWithT(t)
	faultsWith := func(seed uint64, others int) (found []Fault) {
		c := NewConnection()
		c.Storm(seed, Storm)
		for range 1000 {
			for range others {
				c.outcomeOf(http.MethodPost, "/other", creates)
			}
			found = append(found, c.outcomeOf(http.MethodPatch, "/a", changes).Fault)
		}
		return found
	}
	g.Expect(faultsWith(7, 0)).To(Equal(faultsWith(7, 3)))
	g.Expect(faultsWith(7, 0)).NotTo(Equal(faultsWith(8, 0)))
	for _, fault := range faultsOf[changes] {
		g.Expect(faultsWith(7, 0)).To(ContainElement(fault))
	}
}
