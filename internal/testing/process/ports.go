package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/filelock"
)

// Ports are below the range of Linux for outgoing connections (32768-60999). So no connection of any process can take a
// port between its reservation and the start of its server.
const (
	firstPort = 20000
	lastPort  = 32000
)

// ports reserves TCP ports of 127.0.0.1. A port stays reserved until release or until this process ends. The
// reservation applies to all processes of this user that use this package.
type ports struct {
	mu    sync.Mutex
	locks []*os.File
}

// reserve returns a port on which nothing listens.
func (p *ports) reserve() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := filelock.Try(filepath.Join(lockDir(), strconv.Itoa(port)))
		if errors.Is(err, filelock.ErrHeld) {
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
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, lock := range p.locks {
		lock.Close()
	}
	p.locks = nil
}

// lockDir is the folder with the locks that all processes of this user share: empty files, one for each port ever used.
func lockDir() string {
	return filepath.Join(os.TempDir(), "openshift-agent-locks-"+strconv.Itoa(os.Getuid()))
}
