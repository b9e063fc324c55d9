package env

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken from below the range that Linux uses for outgoing connections (32768-60999), so that no connection of
// any process can take one between its reservation and the start of the server that it is for.
const (
	firstPort = 20000
	lastPort  = 32000
)

// ports hands out TCP ports of 127.0.0.1. A port stays reserved, for every process of this user that uses this package,
// until release or until this process ends.
type ports struct {
	locks []*os.File
}

// reserve returns a port on which nothing listens.
func (p *ports) reserve() (int, error) {
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := lockFile(filepath.Join(lockDir(), strconv.Itoa(port)), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("cannot reserve port %d: %w", port, err)
		}
		// All addresses: some webhook servers listen on all of them.
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			lock.Close()
			continue
		}
		listener.Close()
		p.locks = append(p.locks, lock)
		return port, nil
	}
	return 0, errors.New("no free port found")
}

func (p *ports) release() {
	for _, lock := range p.locks {
		lock.Close()
	}
	p.locks = nil
}

// lockDir is the folder with the locks that all processes of this user share: empty files, one for each port ever used.
func lockDir() string {
	return filepath.Join(os.TempDir(), "openshift-agent-locks-"+strconv.Itoa(os.Getuid()))
}

// lockFile takes an advisory lock (see flock(2)) on the file at path, which it creates. Closing the file or the end of the
// process gives the lock back. The file is never removed: another process may hold or wait for the lock of the same name.
func lockFile(path string, how int) (*os.File, error) {
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
