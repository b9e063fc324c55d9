package bootmode

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ErrPending reports that a download has not ended.
var ErrPending = errors.New("the download has not ended")

// maxDownloads bounds the parallel connections to a service that hangs. Further downloads wait without
// blocking a worker of the manager.
const maxDownloads = 32

// Downloads holds the downloads for all hosts, at most one for each. No caller waits for a service. A result
// is kept until it is dropped.
type Downloads struct {
	slots chan struct{}

	mu   sync.Mutex
	byID map[types.NamespacedName]*download
}

type download struct {
	// attempt identifies the source of the download.
	attempt string
	cancel  context.CancelFunc
	ended   bool
	data    Data
	err     error
}

// NewDownloads returns the downloads of a manager.
func NewDownloads() *Downloads {
	return &Downloads{slots: make(chan struct{}, maxDownloads), byID: map[types.NamespacedName]*download{}}
}

// Get returns the download for a host without waiting. The first call starts the download, and returns
// ErrPending until it has ended. done is called then. Another attempt replaces the former one.
func (d *Downloads) Get(host types.NamespacedName, attempt string, fetch func(context.Context) (Data, error), done func()) (Data, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last, ok := d.byID[host]; ok {
		switch {
		case last.attempt != attempt:
			last.cancel()
		case last.ended:
			return last.data, last.err
		default:
			return Data{}, ErrPending
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	started := &download{attempt: attempt, cancel: cancel}
	d.byID[host] = started
	go d.run(ctx, host, started, fetch, done)
	return Data{}, ErrPending
}

// Drop forgets the download for a host, and cancels it if it is running.
func (d *Downloads) Drop(host types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last, ok := d.byID[host]; ok {
		last.cancel()
		delete(d.byID, host)
	}
}

func (d *Downloads) run(
	ctx context.Context,
	host types.NamespacedName,
	current *download,
	fetch func(context.Context) (Data, error),
	done func(),
) {
	defer current.cancel()
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	data, err := d.fetch(ctx, fetch)

	d.mu.Lock()
	wanted := d.byID[host] == current
	current.ended, current.data, current.err = true, data, err
	d.mu.Unlock()
	if wanted {
		done()
	}
}

func (d *Downloads) fetch(ctx context.Context, fetch func(context.Context) (Data, error)) (Data, error) {
	defer func() { <-d.slots }()
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	return fetch(ctx)
}
