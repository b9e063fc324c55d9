package faultproxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// download returns the answer that a client with a time-out gets.
func download(t *testing.T, c *Connection, method string, patience time.Duration) (code int, body string, err error) {
	t.Helper()
	front := httptest.NewServer(c.Wrap("an image", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Docker-Content-Digest", "sha256:abc")
		_, _ = io.WriteString(rw, "all of it")
	})))
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code, body, _, err = send(ctx, method, front.URL, "")
	return code, body, err
}

func TestEachFaultOfADownload(t *testing.T) {
	t.Parallel()
	for fault, wanted := range map[Fault]struct {
		code int
		body string
		lost bool
	}{
		None:            {code: http.StatusOK, body: "all of it"},
		TooManyRequests: {code: http.StatusTooManyRequests, body: "Too Many Requests\n"},
		Unavailable:     {code: http.StatusServiceUnavailable, body: "Service Unavailable\n"},
		Unauthorized:    {code: http.StatusUnauthorized, body: "Unauthorized\n"},
		NotFound:        {code: http.StatusNotFound, body: "Not Found\n"},
		RequestLost:     {lost: true},
		Hung:            {lost: true},
		AnswerForeign:   {code: http.StatusOK, body: "<html><body>Sign in to use this network.</body></html>"},
		AnswerCut:       {code: http.StatusOK, body: "all ", lost: true},
		AnswerShort:     {code: http.StatusOK, body: "all "},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := NewConnection()
			c.Storm(1, Rates{fault: 1})
			patience := time.Minute
			if fault == Hung {
				patience = shortestDelay
			}
			code, body, err := download(t, c, http.MethodGet, patience)
			g.Expect(err != nil).To(Equal(wanted.lost), "%v", err)
			g.Expect(code).To(Equal(wanted.code))
			g.Expect(body).To(Equal(wanted.body))
			if fault == Hung {
				g.Expect(err).To(MatchError(context.DeadlineExceeded))
			}
			g.Expect(c.TakeRequests()).To(Equal(map[Request]int{{http.MethodGet, "an image"}: 1}))
			if fault != None {
				g.Expect(c.Counts()).To(Equal(map[Fault]int{fault: 1}))
			}
		})
	}
}

func TestSlowAnswerArrivesWhenStormEnds(t *testing.T) {
	g := NewWithT(t)
	c := NewConnection()
	c.Storm(1, Rates{Slow: 1})
	time.AfterFunc(shortestDelay/2, c.Calm)
	begin := time.Now()
	_, body, err := download(t, c, http.MethodGet, time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(body).To(Equal("all of it"))
	g.Expect(time.Since(begin)).To(BeNumerically("~", shortestDelay/2, shortestDelay/2-time.Millisecond))
}

// The answer to HEAD has no body that could be cut.
func TestHeadIsNotCut(t *testing.T) {
	g := NewWithT(t)
	c := NewConnection()
	c.Storm(1, Rates{AnswerCut: 0.5, AnswerShort: 0.5})
	code, _, err := download(t, c, http.MethodHead, time.Minute)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(http.StatusOK))
	g.Expect(c.Counts()).To(BeEmpty())
}
