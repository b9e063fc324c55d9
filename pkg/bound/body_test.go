package bound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// Endless is an HTTP server whose answers do not end; it counts what it could send.
func endless(t *testing.T) (*httptest.Server, *atomic.Int64) {
	sent := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 32<<10); ; {
			n, err := w.Write(block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server, sent
}

func TestAnswerWithoutEndIsNotReadBeyondItsLimit(t *testing.T) {
	g := NewWithT(t)
	server, _ := endless(t)
	client := &http.Client{Transport: Answers(http.DefaultTransport, func(*http.Response) int64 { return 64 << 10 })}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/version?token=secret", nil)
	g.Expect(err).NotTo(HaveOccurred())
	answer, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	g.Expect(read).To(HaveLen(64 << 10))
	tooLarge := (*TooLargeError)(nil)
	g.Expect(errors.As(err, &tooLarge)).To(BeTrue())
	at, _ := url.Parse(server.URL)
	g.Expect(err).To(MatchError(at.Host + " answers a request for /version with more than 64 KiB"))
	n, err := answer.Body.Read(make([]byte, 1))
	g.Expect(n).To(BeZero())
	g.Expect(err).To(BeIdenticalTo(error(tooLarge)), "nor is more read later")
}

func TestAnswerOfExactlyTheLimitIsRead(t *testing.T) {
	g := NewWithT(t)
	for limit, fits := range map[int64]bool{10: true, 9: false, 0: true} {
		through := Answers(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("0123456789"))}, nil
		}), func(*http.Response) int64 { return limit })
		answer, err := through.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/version", nil))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(answer.Body)
		g.Expect(answer.Body.Close()).To(Succeed())
		g.Expect(err == nil).To(Equal(fits), "limit %d: %v", limit, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
