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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/http2conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

const (
	// metadataOnly is the Accept header that requests only the metadata of objects.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	// watchLast is the longest interval between attempts to start a watch that ends at once.
	watchLast = time.Minute
	// watchTime is the duration that a watch requests. A proxy may have dropped a watch silently although the
	// connection works.
	watchTime = 2 * time.Hour
)

// errNoStream ends a watch that started over HTTP/1.1 because the server has just changed its protocol: see
// pollInterval.
var errNoStream = errors.New("a watch does not begin over HTTP/1.1")

// watcher keeps a resource of a cluster watched while there is a connection. A watch that ended resumes at
// its last version. The resource is read again if the API server does not have that version any more. A
// silent watch needs no goroutine.
type watcher struct {
	*connection
	resource objects.Resource
	ctx      context.Context //nolint:containedctx // of the connection
	access   *conn.Access
	// version is the resourceVersion to resume at. If it is empty, the resource must be read again.
	version string
	// triedAt is the time of the last attempt, retry the backoff to the next.
	triedAt time.Time
	retry   wait.Backoff
}

// run retries until the watch runs. The end of the watch calls run again.
func (w *watcher) run() {
	for w.ctx.Err() == nil && !w.isUnneeded() {
		w.triedAt = w.clock.Now()
		switch {
		case w.version == "":
			w.reread()
		case w.access.Transport.Broken():
			w.requestVisit() // a visit opens another connection, or polls
		default:
			if w.open() {
				return
			}
		}
		w.pause()
	}
}

// pause waits before the next attempt. The backoff restarts after a watch that lasted.
func (w *watcher) pause() {
	if w.clock.Now().Sub(w.triedAt) > watchLast/2 {
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
			w.applyResult(w.ctx, n)
		}
	})
	w.version = n.version
}

// open starts a watch, and reports whether it runs.
func (w *watcher) open() bool {
	lasts := wait.Jitter(w.watchTime, jitter)
	ctx, cancel := context.WithCancel(w.ctx)
	request := w.access.Get().AbsPath(w.resource.Path).SetHeader("Accept", metadataOnly).Param("watch", "true").
		Param("resourceVersion", w.version).Param("timeoutSeconds", strconv.Itoa(int(lasts.Seconds())))
	if w.resource.Selector != "" {
		request = request.Param("labelSelector", w.resource.Selector)
	}
	if w.resource.Fields != "" {
		request = request.Param("fieldSelector", w.resource.Fields)
	}
	timer := time.AfterFunc(conn.ResponseTimeout, cancel)
	body, err := request.Stream(ctx)
	if !timer.Stop() && err == nil {
		err = errors.Join(context.DeadlineExceeded, body.Close())
	}
	if err != nil {
		cancel()
		w.openFailed(err)
		return false
	}
	w.watchable(nil)
	w.consume(body, lasts+conn.ResponseTimeout, cancel)
	return true
}

// consume processes the events of a watch until it ends. After the timeout the watch counts as lost.
func (w *watcher) consume(body io.ReadCloser, timeout time.Duration, cancel context.CancelFunc) {
	lines := &http2conn.LineReader{Handle: w.handle}
	timer := time.AfterFunc(timeout, func() { lines.Push(nil, context.DeadlineExceeded) })
	lines.Done = func(err error) {
		timer.Stop()
		cancel()
		_ = body.Close() // nothing was written
		w.ended(err)
	}
	if !http2conn.Follow(body, lines.Push) {
		lines.Push(nil, errNoStream)
	}
	cancel() // the body does not depend on the context any more
}

// openFailed records why a watch did not start.
func (w *watcher) openFailed(err error) {
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
	w.requestVisit() // the API server may be down
}

// watchOf returns the name of the watch of a resource in unread.
func watchOf(r objects.Resource) string { return "watch of " + r.Name }

// watchable records whether the API server permits the watch of the resource. If not, the resource is read
// again, and its state is up to watchLast old.
func (w *watcher) watchable(err error) {
	w.update(func() {
		if w.ctx.Err() == nil {
			w.unreadable(w.ctx, w.resource, watchOf(w.resource), err)
		}
	})
}

// ended restarts a watch that has ended.
func (w *watcher) ended(err error) {
	if !errors.Is(err, io.EOF) && w.ctx.Err() == nil {
		w.requestVisit()
	}
	w.pause()
	w.run()
}

// Handle processes one event of the watch.
func (w *watcher) handle(line []byte) error {
	e := objects.Event{}
	err := json.Unmarshal(line, &e)
	switch {
	case err != nil:
		err = fmt.Errorf("the watch of %s sent an invalid event: %w", w.resource.Name, err)
	case e.Type == watch.Error:
		err = fmt.Errorf("the watch of %s ended: %s (%d)", w.resource.Name, e.Object.Reason, e.Object.Code)
	default:
		err = w.process(e)
	}
	w.version = e.Object.Metadata.ResourceVersion
	if err != nil {
		w.version = ""
	}
	return err
}

func (w *watcher) process(e objects.Event) error {
	inTime, cancel := context.WithTimeout(w.ctx, conn.ResponseTimeout)
	defer cancel()
	apply, err := w.resource.ReadChange(inTime, objects.Cluster{Call: w.access.Call, Node: w.node, Follows: w.follows}, e)
	if err != nil || apply == nil {
		return err
	}
	w.update(func() {
		if w.ctx.Err() == nil {
			apply(w.state)
		}
	})
	return nil
}

// follows reports whether a kubelet has the Kubernetes version of the API servers.
func (w *watcher) follows(kubelet string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return kubelet == w.kubernetes || versions.SameKubernetes(kubelet, w.state.APIServersVersion())
}

// node returns the Node with a name as it was last read.
func (w *watcher) node(name string) workload.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Node(name)
}
