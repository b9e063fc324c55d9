package bootmode

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// soon is how long what happens at once may take on a busy machine.
const soon = 10 * time.Second

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(soon):
		t.Fatal(what)
	}
}

func hostNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "lab", Name: name}
}

func TestDownloads(t *testing.T) {
	d := NewDownloads()
	hanging, ended := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	fetch := func(context.Context) (Data, error) {
		asked.Add(1)
		<-hanging
		return Data{Value: []byte("data")}, nil
	}
	done := func() { close(ended) }
	for range 3 {
		if _, err := d.Get(hostNamed("a"), "first", fetch, done); !errors.Is(err, ErrPending) {
			t.Fatalf("not pending: %v", err)
		}
	}
	other := make(chan struct{})
	failure := errors.New("no such host")
	if _, err := d.Get(hostNamed("b"), "first", func(context.Context) (Data, error) { return Data{}, failure }, func() { close(other) }); !errors.Is(err, ErrPending) {
		t.Fatalf("not pending: %v", err)
	}
	wait(t, other, "a download waits for another that hangs")
	if _, err := d.Get(hostNamed("b"), "first", fetch, done); !errors.Is(err, failure) {
		t.Fatalf("got %v", err)
	}
	close(hanging)
	wait(t, ended, "nobody is told that the download ended")
	for range 2 {
		if data, err := d.Get(hostNamed("a"), "first", fetch, done); err != nil || string(data.Value) != "data" {
			t.Fatalf("got %q, %v", data.Value, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	d.Drop(hostNamed("a"))
	d.Drop(hostNamed("b"))
	if len(d.byID) != 0 {
		t.Error("kept although it was used")
	}
}

func TestDownloadThatIsNoLongerWanted(t *testing.T) {
	for name, stop := range map[string]func(d *Downloads){
		"dropped": func(d *Downloads) { d.Drop(hostNamed("a")) },
		"replaced": func(d *Downloads) {
			_, _ = d.Get(hostNamed("a"), "second", func(ctx context.Context) (Data, error) { <-ctx.Done(); return Data{}, ctx.Err() }, func() {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDownloads()
			running, cancelled := make(chan struct{}), make(chan struct{})
			_, _ = d.Get(hostNamed("a"), "first", func(ctx context.Context) (Data, error) {
				close(running)
				<-ctx.Done()
				close(cancelled)
				return Data{Value: []byte("old")}, nil
			}, func() { t.Error("told of what nobody wants") })
			wait(t, running, "not started")
			stop(d)
			wait(t, cancelled, "not ended")
		})
	}
}

func TestDownloadsAreBounded(t *testing.T) {
	d := NewDownloads()
	release := make(chan struct{})
	var running, most, ended atomic.Int32
	all := make(chan struct{})
	const hosts = 3 * downloadsAtATime
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
	for begin := time.Now(); running.Load() < downloadsAtATime && time.Since(begin) < soon; {
		runtime.Gosched()
	}
	close(release)
	wait(t, all, "some never had their turn")
	if most.Load() > downloadsAtATime {
		t.Errorf("%d at a time", most.Load())
	}
}
