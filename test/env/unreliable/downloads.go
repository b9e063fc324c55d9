package unreliable

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// Before stands before a server that is no API server. What it is asked for has a name, by which chance decides, as by
// the path of a request to an API server.
func (w *Way) Before(what string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		v := downloads
		if r.Method == http.MethodHead {
			v = looks
		}
		w.countRequest(r.Method, what, v)
		f := w.fateOf(r.Method, what, v)
		switch f.Fault {
		case RequestLost:
			panic(http.ErrAbortHandler) // the connection is cut
		case Hung:
			select {
			case <-r.Context().Done():
			case <-f.calm:
			}
			panic(http.ErrAbortHandler)
		case Slow:
			pause(r.Context(), f.after, f.calm)
		case AnswerForeign:
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, "<html><body>This network asks you to sign in.</body></html>")
			return
		case AnswerCut, AnswerShort:
			answerHalf(rw, r, next, f.Fault == AnswerCut)
			return
		}
		if status := statuses[f.Fault]; status != 0 {
			rw.Header().Set("Retry-After", "1")
			http.Error(rw, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// statuses are those of the faults that are an answer.
var statuses = map[Fault]int{
	TooManyRequests: http.StatusTooManyRequests, Unavailable: http.StatusServiceUnavailable,
	Unauthorized: http.StatusUnauthorized, NotFound: http.StatusNotFound,
}

// answerHalf gives the first half of an answer: one that is cut promises more.
func answerHalf(rw http.ResponseWriter, r *http.Request, next http.Handler, cut bool) {
	whole := httptest.NewRecorder()
	next.ServeHTTP(whole, r)
	half := whole.Body.Len() / 2
	promised := half
	if cut {
		promised = whole.Body.Len() + 1 // nothing has no half
	}
	maps.Copy(rw.Header(), whole.Header())
	rw.Header().Set("Content-Length", strconv.Itoa(promised))
	rw.WriteHeader(whole.Code)
	_, _ = rw.Write(whole.Body.Bytes()[:half])
	if cut {
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}
}
