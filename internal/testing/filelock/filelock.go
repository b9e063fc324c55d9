// Package filelock has advisory locks (see flock(2)) that all processes of a user see. Closing the returned file or the end of
// the process gives a lock back. The file is never removed: another process may hold or wait for the lock of the same name.
package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld is the error of [Try] for a lock that is held.
var ErrHeld = errors.New("the lock is held")

// Wait takes the lock at path as soon as it is free.
func Wait(path string) (*os.File, error) {
	return lock(path, syscall.LOCK_EX)
}

// Try takes the lock at path if it is free.
func Try(path string) (*os.File, error) {
	file, err := lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return file, err
}

func lock(path string, how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), how); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
