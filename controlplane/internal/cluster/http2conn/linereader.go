package http2conn

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxPendingLines is how many bytes of a LineReader may wait to be processed.
const maxPendingLines = 1 << 20

// errTooFast ends a watch that sends events faster than they are processed.
var errTooFast = errors.New("the watch sends events faster than they are processed")

// LineReader processes the lines of a body that [Follow] passes on, one after the other. It ignores empty lines. It has a
// goroutine only while there is a line to process.
type LineReader struct {
	// Handle is called with each line. An error ends the reader.
	Handle func(line []byte) error
	// Done is called last, with the error of Handle or the reason for the end: io.EOF after the last line.
	Done func(err error)

	mu sync.Mutex
	// pending is the unprocessed data, end the reason why no more follows. working is true while lines are
	// processed, and after the end.
	pending []byte
	end     error
	working bool
}

// Push adds data, and does not wait.
func (r *LineReader) Push(data []byte, end error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		return
	}
	r.pending, r.end = append(r.pending, data...), end
	if len(r.pending) > maxPendingLines {
		r.pending, r.end = nil, errTooFast
	}
	if !r.working && (r.end != nil || bytes.IndexByte(data, '\n') >= 0) {
		r.working = true
		go r.work()
	}
}

func (r *LineReader) work() {
	for {
		line, end := r.next()
		switch {
		case end != nil:
			r.Done(end)
			return
		case line == nil:
			return
		}
		if len(line) == 0 {
			continue
		}
		if err := r.Handle(line); err != nil {
			r.Done(err)
			return
		}
	}
}

// next returns the next line, or the error at the end. Both are nil if the next line is incomplete.
func (r *LineReader) next() (line []byte, end error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	length := bytes.IndexByte(r.pending, '\n')
	switch {
	case length >= 0:
		line, r.pending = r.pending[:length], r.pending[length+1:]
		return line, nil
	case errors.Is(r.end, io.EOF) && len(r.pending) > 0:
		return nil, io.ErrUnexpectedEOF
	case r.end != nil:
		return nil, r.end
	}
	r.pending, r.working = bytes.Clone(r.pending), false // releases the memory of processed lines
	return nil, nil
}
