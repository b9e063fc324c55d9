package env

import (
	"os"
	"os/signal"
	"syscall"
)

// handleSignals stops the environment when this process is told to end, and then lets it end in the usual way.
func (e *Env) handleSignals() {
	e.signals = make(chan os.Signal, 1)
	signal.Notify(e.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		received, ok := <-e.signals
		if !ok {
			return
		}
		e.tools.sayf("%s: stopping", received)
		e.Stop()
		// The handler is gone now; the error would be about a process that is not ours.
		_ = syscall.Kill(os.Getpid(), received.(syscall.Signal))
	}()
}

// ignoreSignals gives the signals back: a second one during a shutdown ends this process at once, and with it its children.
func (e *Env) ignoreSignals() {
	if e.signals != nil {
		signal.Stop(e.signals)
		close(e.signals)
	}
}
