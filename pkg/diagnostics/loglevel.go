package diagnostics

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/component-base/logs"
)

// maxLogLevel is the largest accepted request body in bytes: a number.
const maxLogLevel = 16

// setLogLevel sets the verbosity of the logs to the number in the body of a PUT request.
func setLogLevel(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPut {
		w.Header().Set("Allow", http.MethodPut)
		http.Error(w, "the log level is set with PUT", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxLogLevel))
	if err != nil {
		http.Error(w, "the body must be a number", http.StatusBadRequest)
		return
	}
	set, err := logs.GlogSetter(strings.TrimSpace(string(body)))
	if err != nil {
		http.Error(w, "the body must be a number", http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, set+"\n")
}
