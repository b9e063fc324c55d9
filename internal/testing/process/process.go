package process

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyTimeout is generous: a kube-apiserver needs 3 s on an idle machine, and much longer on a busy one.
	readyTimeout = 5 * time.Minute
	// stopTimeout is the time that a process has to end after a signal. No process here has data to save. Cluster API
	// core waits for half a minute when a workload cluster does not answer any more.
	stopTimeout = 3 * time.Second
	// restartDelay is the time after which a process that ended runs again, see [Process.Restart].
	restartDelay = time.Second
	// readyInterval is the interval at which a starting process is probed.
	readyInterval = 50 * time.Millisecond
	// logTail is how much of a log goes into the error about a process that did not start.
	logTail = 4096
)

// Layer defines which processes depend on which: each depends on those of the layers before its own.
type Layer int

// The layers, in the order in which they start. [Group.Stop] goes the other way.
const (
	Storage Layer = iota
	APIServers
	Clients
)

// Process is a program that runs as a process of its own. It can be stopped or killed and started again: it keeps its
// arguments, ports and log. What is exported must not change while it runs.
type Process struct {
	// Name is the component, for example "kube-apiserver" or "bootstrap".
	Name string
	// User is the name by which the API server knows the process (and so the audit log); empty for those
	// that are not managers.
	User string
	// LogPath is the file to which standard output and standard error of all runs are appended.
	LogPath string
	// MetricsURL is where a manager serves its Prometheus metrics, without TLS or authentication; empty for the others.
	MetricsURL string

	// Layer defines when the process is stopped.
	Layer Layer
	// Path is the program, Args are its arguments, Env are variables in addition to our own.
	Path      string
	Args, Env []string
	// Dir is where the process runs; default: where we do.
	Dir string
	// Attributes changes how the process is created; nil for most.
	Attributes func(*syscall.SysProcAttr)
	// StopSignal is the signal by which the process ends as soon as it can; default SIGTERM.
	StopSignal syscall.Signal
	// Restart runs the process again if it ends without a signal of this package, as a Deployment does with a component
	// that loses its lease. The restart does not wait until it is ready.
	Restart bool
	// Before is done at every start, before the process runs; nil for most.
	Before func(context.Context) error
	// Ready fails until the process serves.
	Ready func(context.Context) error

	mu   sync.Mutex
	pid  int
	done chan struct{} // closed when the current run ended; nil before the first
	exit error         // why the current run ended; valid when done is closed
	// ending is true once the current run was requested to end.
	ending bool
	// wanted is true from a successful Start until Stop or Kill.
	wanted bool
}

// Start runs the process and returns when it serves. A process that runs already is left alone.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil
	}
	if p.Before != nil {
		if err := p.Before(ctx); err != nil {
			return fmt.Errorf("cannot prepare the start of %s: %w", p.Name, err)
		}
	}
	if err := p.launch(); err != nil {
		return fmt.Errorf("cannot start %s: %w", p.Name, err)
	}
	if err := p.awaitReady(ctx); err != nil {
		err = fmt.Errorf("%s did not become ready (log %s): %w\n%s", p.Name, p.LogPath, err, tail(p.LogPath))
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		<-p.done
		return err
	}
	p.wanted = true
	return nil
}

// restart runs a wanted process again that ended.
func (p *Process) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted || p.running() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if p.Before != nil && p.Before(ctx) != nil || p.launch() != nil {
		p.restartLater()
	}
}

func (p *Process) restartLater() { time.AfterFunc(restartDelay, p.restart) }

// launch starts the process from a thread that lives as long as the process. The kernel sends the parent death signal
// when the thread ends that created the child, not when the whole parent ends (prctl(2), PR_SET_PDEATHSIG).
func (p *Process) launch() error {
	log, err := os.OpenFile(p.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, log, log
	cmd.SysProcAttr = Attributes()
	if p.Attributes != nil {
		p.Attributes(cmd.SysProcAttr)
	}

	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.exit = cmd.Wait()
		close(done)
		if p.Restart {
			p.restartLater()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.pid, p.done, p.ending = cmd.Process.Pid, done, false
	return nil
}

func (p *Process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		err := p.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return errors.Join(errors.New("the process ended"), p.exit)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Stop sends SIGTERM to the process, and kills it after 3 s. It returns when the process has ended.
func (p *Process) Stop() {
	p.end(cmp.Or(p.StopSignal, syscall.SIGTERM))
}

// Kill ends the process immediately, like a crash. It returns when the process has ended.
func (p *Process) Kill() {
	p.end(syscall.SIGKILL)
}

func (p *Process) end(signal syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
	if !p.running() {
		return
	}
	p.ending = true
	// The error would mean that the process has just ended.
	_ = syscall.Kill(-p.pid, signal)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		<-p.done
	}
}

// Running reports whether the process runs. It is false for a process that ended without a signal of this package.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

func (p *Process) running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Died reports whether the process ended without a signal of this package, and was not started again. With Restart this
// lasts a second.
func (p *Process) Died() bool {
	if !p.mu.TryLock() {
		return false // it is being started or ended
	}
	defer p.mu.Unlock()
	return p.done != nil && !p.ending && !p.running()
}

// PID is the process id of the current or last run; 0 before the first.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// tail returns the last lines of a log.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	if len(content) > logTail {
		content = content[len(content)-logTail:]
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	return strings.TrimSpace(string(content))
}
