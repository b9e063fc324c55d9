package cluster

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// behind is how many bytes may wait to be handled.
const behind = 1 << 20

// errBehind ends a watch that sends faster than what it tells is handled.
var errBehind = errors.New("too much came at once")

// lineReader passes on what comes line by line, one after the other; an empty line is none. Between them it costs nothing: what handles them is started again.
type lineReader struct {
	// handle is called with each line; an error ends it.
	handle func(line []byte) error
	// done is called last, with what handle returned, or why no more comes: io.EOF after the last line.
	done func(err error)

	mu sync.Mutex
	// pending is what came and is not handled, end why nothing more will come. working is true while something is handled, and after the end.
	pending []byte
	end     error
	working bool
}

// take is called with what comes, and does not wait.
func (l *lineReader) take(data []byte, end error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil {
		return
	}
	l.pending, l.end = append(l.pending, data...), end
	if len(l.pending) > behind {
		l.pending, l.end = nil, errBehind
	}
	if !l.working && (l.end != nil || bytes.IndexByte(data, '\n') >= 0) {
		l.working = true
		go l.work()
	}
}

func (l *lineReader) work() {
	for {
		line, end := l.next()
		switch {
		case end != nil:
			l.done(end)
			return
		case line == nil:
			return
		}
		if len(line) == 0 {
			continue
		}
		if err := l.handle(line); err != nil {
			l.done(err)
			return
		}
	}
}

// next is the next line, or why there is none; neither: it is to come.
func (l *lineReader) next() (line []byte, end error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	length := bytes.IndexByte(l.pending, '\n')
	switch {
	case length >= 0:
		line, l.pending = l.pending[:length], l.pending[length+1:]
		return line, nil
	case errors.Is(l.end, io.EOF) && len(l.pending) > 0:
		return nil, io.ErrUnexpectedEOF
	case l.end != nil:
		return nil, l.end
	}
	l.pending, l.working = bytes.Clone(l.pending), false // not what was handled
	return nil, nil
}
