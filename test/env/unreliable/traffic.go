package unreliable

import (
	"net/http"
	"strings"
)

// Request is what a manager asks for: a method, or WATCH, and the path of an object or of a list.
type Request struct{ Method, Path string }

// Asked tells how often the manager asked for what since it was told last, whatever became of it.
func (w *Way) Asked() map[Request]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.traffic
	w.traffic = map[Request]int{}
	return asked
}

// Writes is how many writes of the manager were sent on to the API server.
func (w *Way) Writes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// countRequest counts a request.
func (w *Way) countRequest(method, path string, v verb) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v == watches {
		method = "WATCH"
	}
	w.traffic[Request{method, strings.TrimSuffix(path, "/")}]++
}

func (w *Way) countWrite(r *http.Request) {
	if verb := verbOf(r.Method, r.URL.Query()); verb != creates && verb != changes {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
}
