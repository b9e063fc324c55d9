package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Group is a set of processes that end together, with the ports and the temporary folder that are theirs alone.
type Group struct {
	logs     string
	out      io.Writer
	temp     string
	tempLock *os.File
	ports    ports

	// life ends with Stop.
	life context.Context
	end  context.CancelFunc

	mu        sync.Mutex
	processes []*Process // in the order of their first start
	signals   chan os.Signal
	once      sync.Once
}

// NewGroup makes a group without processes. Their logs go to the folder logs; out gets lines for people.
func NewGroup(logs string, out io.Writer) (*Group, error) {
	temp, tempLock, err := newTempDir()
	if err != nil {
		return nil, err
	}
	g := &Group{logs: logs, out: out, temp: temp, tempLock: tempLock}
	g.life, g.end = context.WithCancel(context.Background())
	return g, nil
}

// New prepares a process: its log is in the folder of the group.
func (g *Group) New(name string, layer Layer, path string, args ...string) *Process {
	return &Process{Name: name, Layer: layer, LogPath: filepath.Join(g.logs, name+".log"), Path: path, Args: args}
}

// Start runs a process and remembers it for Stop, also when it fails.
func (g *Group) Start(ctx context.Context, p *Process) error {
	ctx, cancel := g.Bound(ctx)
	defer cancel()
	g.mu.Lock()
	if g.life.Err() != nil {
		g.mu.Unlock()
		return errors.New("the group is stopped")
	}
	if !slices.Contains(g.processes, p) {
		g.processes = append(g.processes, p)
	}
	g.mu.Unlock()
	return p.Start(ctx)
}

// Processes returns all processes that were started, those that ended included.
func (g *Group) Processes() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.processes)
}

// Port reserves a TCP port for a process of the group, on which nothing listens.
func (g *Group) Port() (int, error) {
	return g.ports.reserve()
}

// Temp is the folder for what need not be kept; Stop removes it.
func (g *Group) Temp() string {
	return g.temp
}

// Sayf writes a line for people.
func (g *Group) Sayf(format string, args ...any) {
	fmt.Fprintf(g.out, format+"\n", args...)
}

// Bound returns a context that also ends with the group.
func (g *Group) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(g.life, cancel)
	return ctx, func() {
		unlink()
		cancel()
	}
}

// Stop ends all processes, those first that depend on others, and removes temporary data. Logs stay. It may be called more
// than once.
func (g *Group) Stop() {
	g.once.Do(func() {
		g.mu.Lock()
		g.end()
		processes := g.processes
		g.mu.Unlock()
		g.ignoreSignals()
		stopInOrder(processes)
		g.ports.release()
		if err := os.RemoveAll(g.temp); err != nil {
			g.Sayf("cannot remove temporary data: %v", err)
		}
		g.tempLock.Close()
	})
}

// stopInOrder stops the clients of the API servers, then the API servers, then their data stores. Otherwise API servers
// wait for the watches of their clients.
func stopInOrder(processes []*Process) {
	for _, layer := range []Layer{Clients, APIServers, Storage} {
		var group sync.WaitGroup
		for _, process := range processes {
			if process.Layer == layer {
				group.Go(process.Stop)
			}
		}
		group.Wait()
	}
}
