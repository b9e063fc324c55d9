package bound

import (
	"fmt"
	"io"
	"net/http"
)

// HeaderBytes is the limit of the headers of one answer. net/http accepts 10 MiB.
const HeaderBytes = 64 << 10

// TooLargeError reports an answer that was not read to its end because it is larger than its limit. Its text holds no
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

// size is a number of bytes in the largest unit that keeps it whole.
func size(bytes int64) string {
	switch {
	case bytes > 0 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes > 0 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Answers limits the bodies of all answers. limit returns the limit of one answer in bytes; 0 is no limit, for a watch,
// whose reader has its own. A body beyond its limit fails with a TooLargeError instead of being read into memory.
func Answers(next http.RoundTripper, limit func(*http.Response) int64) http.RoundTripper {
	return answers{next: next, limit: limit}
}

type answers struct {
	next  http.RoundTripper
	limit func(*http.Response) int64
}

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := a.next.RoundTrip(request)
	if err != nil || answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, err
	}
	if answer.Request == nil {
		answer.Request = request
	}
	if limit := a.limit(answer); limit > 0 {
		answer.Body = &body{ReadCloser: answer.Body, left: limit, tooLarge: &TooLargeError{request.URL.Host, request.URL.Path, limit}}
	}
	return answer, nil
}

// body is the body of an answer as far as its limit.
type body struct {
	io.ReadCloser

	left     int64
	tooLarge *TooLargeError
}

// Read reads one byte beyond the limit, which shows whether the answer ends there.
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
