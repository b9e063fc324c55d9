package bound

import (
	"fmt"
	"io"
	"net/http"
)

// HeaderBytes is the limit of the headers of one response. net/http accepts 10 MiB.
const HeaderBytes = 64 << 10

// TooLargeError reports a response that exceeds its limit and was not read to the end. Its text holds no
// query and no user information of the URL.
type TooLargeError struct {
	// Host and Path are those of the request.
	Host, Path string
	// Limit is in bytes.
	Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s answers a request for %s with more than %s", Value(e.Host), Value(e.Path), size(e.Limit))
}

// size returns a number of bytes in the largest unit in which it is a whole number.
func size(bytes int64) string {
	switch {
	case bytes > 0 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes > 0 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// LimitBodies limits the bodies of all responses. limit returns the limit of a response in bytes; 0 is no
// limit, for a watch, whose reader has its own. A body beyond its limit fails with a TooLargeError.
func LimitBodies(next http.RoundTripper, limit func(*http.Response) int64) http.RoundTripper {
	return bodyLimiter{next: next, limit: limit}
}

type bodyLimiter struct {
	next  http.RoundTripper
	limit func(*http.Response) int64
}

// RoundTrip implements http.RoundTripper.
func (a bodyLimiter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	if response.Request == nil {
		response.Request = request
	}
	if limit := a.limit(response); limit > 0 {
		response.Body = &body{ReadCloser: response.Body, left: limit, tooLarge: &TooLargeError{request.URL.Host, request.URL.Path, limit}}
	}
	return response, nil
}

// body reads the body of a response up to its limit.
type body struct {
	io.ReadCloser

	left     int64
	tooLarge *TooLargeError
}

// Read reads up to one byte beyond the limit, to detect whether the body ends there.
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.tooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, b.tooLarge
	}
	return n, err
}
