package bootmode

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ErrPending says that a download has not ended.
var ErrPending = errors.New("the download has not ended")

// downloadsAtATime bounds the connections to a service that hangs. The others wait for their turn, without a worker of the manager.
const downloadsAtATime = 32

// Downloads are those of all hosts, at most one for each. No caller waits for a service. What was downloaded is kept until it is dropped.
type Downloads struct {
	slots chan struct{}

	mu   sync.Mutex
	byID map[types.NamespacedName]*download
}

type download struct {
	// attempt says what is downloaded.
	attempt string
	cancel  context.CancelFunc
	ended   bool
	data    Data
	err     error
}

// NewDownloads returns the downloads of a manager.
func NewDownloads() *Downloads {
	return &Downloads{slots: make(chan struct{}, downloadsAtATime), byID: map[types.NamespacedName]*download{}}
}

// Get returns what was downloaded for a host. It does not wait: the error is ErrPending until the download, which the first call starts, has ended, and done
// is called then. Another attempt takes the place of the one before.
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

// Drop forgets what was downloaded for a host, and ends a download that is going on.
func (d *Downloads) Drop(host types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last, ok := d.byID[host]; ok {
		last.cancel()
		delete(d.byID, host)
	}
}

func (d *Downloads) run(ctx context.Context, host types.NamespacedName, this *download, fetch func(context.Context) (Data, error), done func()) {
	defer this.cancel()
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	data, err := d.fetch(ctx, fetch)

	d.mu.Lock()
	wanted := d.byID[host] == this
	this.ended, this.data, this.err = true, data, err
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
