package faultproxy

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// Wrap adds faults to the handler of a server that is no API server. The seed selects the faults of a request by its
// name, as by the path of a request to an API server.
func (c *Connection) Wrap(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		v := downloads
		if r.Method == http.MethodHead {
			v = heads
		}
		c.countRequest(r.Method, name, v)
		o := c.outcomeOf(r.Method, name, v)
		switch o.Fault {
		case RequestLost:
			panic(http.ErrAbortHandler) // the connection is cut
		case Hung:
			select {
			case <-r.Context().Done():
			case <-o.calm:
			}
			panic(http.ErrAbortHandler)
		case Slow:
			pause(r.Context(), o.after, o.calm)
		case AnswerForeign:
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, "<html><body>Sign in to use this network.</body></html>")
			return
		case AnswerCut, AnswerShort:
			answerHalf(rw, r, next, o.Fault == AnswerCut)
			return
		}
		if status := statuses[o.Fault]; status != 0 {
			rw.Header().Set("Retry-After", "1")
			http.Error(rw, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// statuses are the status codes of the faults that are an answer.
var statuses = map[Fault]int{
	TooManyRequests: http.StatusTooManyRequests, Unavailable: http.StatusServiceUnavailable,
	Unauthorized: http.StatusUnauthorized, NotFound: http.StatusNotFound,
}

// answerHalf writes the first half of an answer. The length of an answer that is cut announces more.
func answerHalf(rw http.ResponseWriter, r *http.Request, next http.Handler, cut bool) {
	whole := httptest.NewRecorder()
	next.ServeHTTP(whole, r)
	half := whole.Body.Len() / 2
	announced := half
	if cut {
		announced = whole.Body.Len() + 1 // an empty answer is cut too
	}
	maps.Copy(rw.Header(), whole.Header())
	rw.Header().Set("Content-Length", strconv.Itoa(announced))
	rw.WriteHeader(whole.Code)
	_, _ = rw.Write(whole.Body.Bytes()[:half])
	if cut {
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}
}
