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

// endless returns an HTTP server whose responses do not end, and the number of bytes that it could send.
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

func TestEndlessResponseIsReadUpToItsLimit(t *testing.T) {
	g := NewWithT(t)
	server, _ := endless(t)
	client := &http.Client{Transport: LimitBodies(http.DefaultTransport, func(*http.Response) int64 { return 64 << 10 })}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/version?token=secret", nil)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	g.Expect(read).To(HaveLen(64 << 10))
	tooLarge := (*TooLargeError)(nil)
	g.Expect(errors.As(err, &tooLarge)).To(BeTrue())
	at, _ := url.Parse(server.URL)
	g.Expect(err).To(MatchError(at.Host + " answers a request for /version with more than 64 KiB"))
	n, err := response.Body.Read(make([]byte, 1))
	g.Expect(n).To(BeZero())
	g.Expect(err).To(BeIdenticalTo(error(tooLarge)), "a further read fails as well")
}

func TestResponseOfExactlyTheLimitIsRead(t *testing.T) {
	g := NewWithT(t)
	for limit, fits := range map[int64]bool{10: true, 9: false, 0: true} {
		transport := LimitBodies(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("0123456789"))}, nil
		}), func(*http.Response) int64 { return limit })
		response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/version", nil))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.ReadAll(response.Body)
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(err == nil).To(Equal(fits), "limit %d: %v", limit, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
