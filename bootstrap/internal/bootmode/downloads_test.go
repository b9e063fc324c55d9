package bootmode

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// soon is how long what happens at once may take on a busy machine.
const soon = time.Minute

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	NewWithT(t).Eventually(c).WithTimeout(soon).Should(BeClosed(), what)
}

func hostNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "lab", Name: name}
}

func TestDownloads(t *testing.T) {
	g := NewWithT(t)
	d := NewDownloads()
	hanging, ended := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	fetch := func(context.Context) (Data, error) {
		calls.Add(1)
		<-hanging
		return Data{Value: []byte("data")}, nil
	}
	done := func() { close(ended) }
	for range 3 {
		_, err := d.Get(hostNamed("a"), "first", fetch, done)
		g.Expect(err).To(MatchError(ErrPending))
	}
	other := make(chan struct{})
	failure := errors.New("no such host")
	_, err := d.Get(hostNamed("b"), "first", func(context.Context) (Data, error) { return Data{}, failure }, func() { close(other) })
	g.Expect(err).To(MatchError(ErrPending))
	wait(t, other, "a download does not wait for one that hangs")
	_, err = d.Get(hostNamed("b"), "first", fetch, done)
	g.Expect(err).To(MatchError(failure))
	close(hanging)
	wait(t, ended, "done is called after the download")
	for range 2 {
		data, err := d.Get(hostNamed("a"), "first", fetch, done)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(data.Value)).To(Equal("data"))
	}
	g.Expect(calls.Load()).To(Equal(int32(1)), "one download")
	d.Drop(hostNamed("a"))
	d.Drop(hostNamed("b"))
	g.Expect(d.byID).To(BeEmpty(), "no dropped download is kept")
}

func TestReplacedDownloadIsCanceled(t *testing.T) {
	for name, stop := range map[string]func(d *Downloads){
		"dropped": func(d *Downloads) { d.Drop(hostNamed("a")) },
		"replaced": func(d *Downloads) {
			_, _ = d.Get(hostNamed("a"), "second", func(ctx context.Context) (Data, error) { <-ctx.Done(); return Data{}, ctx.Err() }, func() {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDownloads()
			running, canceled := make(chan struct{}), make(chan struct{})
			_, _ = d.Get(hostNamed("a"), "first", func(ctx context.Context) (Data, error) {
				close(running)
				<-ctx.Done()
				close(canceled)
				return Data{Value: []byte("old")}, nil
			}, func() { t.Error("done was called for a dropped download") }) // an Expect may end only the goroutine of its test
			wait(t, running, "the download is started")
			stop(d)
			wait(t, canceled, "the download is canceled")
		})
	}
}

func TestDownloadsAreBounded(t *testing.T) {
	d := NewDownloads()
	release := make(chan struct{})
	var running, most, ended atomic.Int32
	all := make(chan struct{})
	const hosts = 3 * maxDownloads
	for i := range hosts {
		_, _ = d.Get(hostNamed(strconv.Itoa(i)), "", func(context.Context) (Data, error) {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			<-release
			running.Add(-1)
			return Data{}, nil
		}, func() {
			if ended.Add(1) == hosts {
				close(all)
			}
		})
	}
	for begin := time.Now(); running.Load() < maxDownloads && time.Since(begin) < soon; {
		runtime.Gosched()
	}
	close(release)
	wait(t, all, "all downloads end")
	NewWithT(t).Expect(most.Load()).To(BeNumerically("<=", maxDownloads), "running at the same time")
}
