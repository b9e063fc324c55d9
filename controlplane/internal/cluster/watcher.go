package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/streams"
)

const (
	// metadataOnly asks an API server for the metadata of objects alone.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	// watchLast is when a watch that ends at once, again and again, is begun again at the latest.
	watchLast = time.Minute
	// watchTime is for how long an API server is asked to watch; somebody between may have lost a watch without a word, though the connection is well.
	watchTime = 2 * time.Hour
)

// errNoStream ends a watch that began over HTTP/1.1, when the server has just changed its protocol: see pollInterval.
var errNoStream = errors.New("a watch does not begin over HTTP/1.1")

// watcher keeps a resource of a cluster watched as long as there is a connection. What broke off is taken up where it ended, or read again where the API server does
// not know that any more. While a watch runs, and is silent, no goroutine is its own.
type watcher struct {
	*connection
	resource resource
	ctx      context.Context //nolint:containedctx // of the connection
	access   *access
	// version is where to go on; empty: the resource is to be read again.
	version string
	// began is when that was tried last, retry when to try it again.
	began time.Time
	retry wait.Backoff
}

// run tries until the watch runs; when it ends, it is run again.
func (w *watcher) run() {
	for w.ctx.Err() == nil && !w.rests() {
		w.began = w.now()
		switch {
		case w.version == "":
			w.reread()
		case w.access.transport.Broken():
			w.again() // a visit makes another connection, or polls
		default:
			if w.open() {
				return
			}
		}
		w.pause()
	}
}

// pause waits, the longer the more often the watch ended at once.
func (w *watcher) pause() {
	if w.now().Sub(w.began) > watchLast/2 {
		w.retry = wait.Backoff{}
	}
	select {
	case <-w.ctx.Done():
	case <-time.After(after(&w.retry, watchLast)):
	}
}

// reread reads the resource again.
func (w *watcher) reread() {
	n := w.read(w.ctx, w.access, w.resource)[0]
	w.update(func() {
		if w.ctx.Err() == nil {
			w.applyNews(w.ctx, n)
		}
	})
	w.readReleases(w.ctx, w.access)
	w.version = n.version
}

// open begins a watch, and reports whether it runs.
func (w *watcher) open() bool {
	lasts := wait.Jitter(w.watchTime, spread)
	ctx, cancel := context.WithCancel(w.ctx)
	request := w.access.lasting.Get().AbsPath(w.resource.path).SetHeader("Accept", metadataOnly).Param("watch", "true").
		Param("resourceVersion", w.version).Param("timeoutSeconds", strconv.Itoa(int(lasts.Seconds())))
	if w.resource.selector != "" {
		request = request.Param("labelSelector", w.resource.selector)
	}
	if w.resource.fields != "" {
		request = request.Param("fieldSelector", w.resource.fields)
	}
	late := time.AfterFunc(answerTime, cancel)
	body, err := request.Stream(ctx)
	if !late.Stop() && err == nil {
		err = errors.Join(context.DeadlineExceeded, body.Close())
	}
	if err != nil {
		cancel()
		w.refused(err)
		return false
	}
	w.watchable(nil)
	w.follow(body, lasts+answerTime, cancel)
	return true
}

// follow takes in a watch until it ends; after a time it is taken for lost.
func (w *watcher) follow(body io.ReadCloser, lost time.Duration, cancel context.CancelFunc) {
	came := &lineReader{handle: w.handle}
	late := time.AfterFunc(lost, func() { came.take(nil, context.DeadlineExceeded) })
	came.done = func(err error) {
		late.Stop()
		cancel()
		_ = body.Close() // it was only read
		w.ended(err)
	}
	if !streams.Follow(body, came.take) {
		came.take(nil, errNoStream)
	}
	cancel() // it counts no more
}

// refused notes why a watch did not begin.
func (w *watcher) refused(err error) {
	if w.ctx.Err() != nil {
		return
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		w.version = ""
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			w.watchable(err)
		}
	}
	w.again() // perhaps nothing else answers either
}

// watchOf names the watch of a resource among what cannot be read.
func watchOf(r resource) string { return "watch of " + r.name }

// watchable notes whether the API server lets the resource be watched: if it does not, what is known is read again, and old by up to watchLast.
func (w *watcher) watchable(err error) {
	w.update(func() {
		if w.ctx.Err() == nil {
			w.unreadable(w.ctx, w.resource, watchOf(w.resource), err)
		}
	})
}

// ended goes on after the end of a watch.
func (w *watcher) ended(err error) {
	if !errors.Is(err, io.EOF) && w.ctx.Err() == nil {
		w.again()
	}
	w.pause()
	w.run()
}

// handle takes in what the watch tells of an object.
func (w *watcher) handle(line []byte) error {
	e := watchEvent{}
	err := json.Unmarshal(line, &e)
	switch {
	case err != nil:
		err = fmt.Errorf("the watch of %s told nothing that can be read: %w", w.resource.name, err)
	case e.Type == watch.Error:
		err = fmt.Errorf("the watch of %s ended: %s (%d)", w.resource.name, e.Object.Reason, e.Object.Code)
	default:
		err = w.take(e)
	}
	w.version = e.Object.Metadata.ResourceVersion
	if err != nil {
		w.version = ""
	}
	return err
}

// readAgain reads all of a resource, whatever changed.
func (w *watcher) readAgain(ctx context.Context, _ *connection, access *access, _ watchEvent) (put func(*connection), err error) {
	err = access.call(func(c client.Client) error {
		_, put, err = w.resource.read(ctx, c)
		return err
	})
	return put, err
}

func (w *watcher) take(e watchEvent) error {
	inTime, cancel := context.WithTimeout(w.ctx, answerTime)
	defer cancel()
	take := w.resource.take
	if take == nil {
		take = w.readAgain
	}
	put, err := take(inTime, w.connection, w.access, e)
	if err != nil || put == nil {
		return err
	}
	w.update(func() {
		if w.ctx.Err() == nil {
			put(w.connection)
		}
	})
	w.readReleases(inTime, w.access)
	return nil
}
