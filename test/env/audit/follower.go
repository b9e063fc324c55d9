package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Follower reads an audit log during its writing, each request once.
type Follower struct {
	path string
	read int64
}

// Follow returns a Follower of the audit log at path, from its beginning.
func Follow(path string) *Follower {
	return &Follower{path: path}
}

// Next returns the requests that were completed since the last call; none if the file does not exist.
func (f *Follower) Next() (Requests, error) {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(f.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot continue reading the audit log: %w", err)
	}
	requests, size, err := read(file)
	f.read += size
	return requests, err
}
