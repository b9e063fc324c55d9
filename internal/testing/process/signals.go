package process

import (
	"os"
	"os/signal"
	"syscall"
)

// HandleSignals stops the group when this process receives SIGINT, SIGTERM or SIGHUP. Then the process ends in the
// usual way.
func (g *Group) HandleSignals() {
	g.signals = make(chan os.Signal, 1)
	signal.Notify(g.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		received, ok := <-g.signals
		if !ok {
			return
		}
		g.Sayf("%s: stopping", received)
		g.Stop()
		// The handler is removed now. The error would concern a process that is not ours.
		_ = syscall.Kill(os.Getpid(), received.(syscall.Signal))
	}()
}

// ignoreSignals gives the signals back: a second one during a shutdown ends this process at once, and with it its children.
func (g *Group) ignoreSignals() {
	if g.signals != nil {
		signal.Stop(g.signals)
		close(g.signals)
	}
}
