package workload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// metadataOnly asks an API server for the metadata of objects alone.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	// watchLast is when a watch that ends at once, again and again, is begun anew at the latest.
	watchLast = time.Minute
	// watchTime is for how long an API server is asked to watch; somebody between may have lost a watch without a word.
	watchTime = 30 * time.Minute
)

// resource is what is watched of a cluster.
type resource struct {
	// name is that of the kind, in the plural; path is where it is watched, and selector a label selector.
	name, path, selector string
	// read reads what is to be known, and the version from which on it is to be watched; empty: the cluster does not know the kind yet.
	read func(ctx context.Context, c client.Client) (version string, put func(*link), err error)
	// take reads what is to be known after a change; put is nil when it is nothing that matters.
	take func(ctx context.Context, l *link, access *access, e watchEvent) (put func(*link), err error)
}

var resources = []resource{nodes, tokens, clusterVersions, clusterOperators}

// watchEvent is what a watch tells of an object; of a problem, code says what it is.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object struct {
		Metadata struct {
			Name            string            `json:"name"`
			UID             types.UID         `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Labels          map[string]string `json:"labels"`
		} `json:"metadata"`
		Code    int32               `json:"code"`
		Reason  metav1.StatusReason `json:"reason"`
		Message string              `json:"message"`
	} `json:"object"`
}

// news is what was read of a resource.
type news struct {
	resource resource
	version  string
	put      func(*link)
	err      error
}

// follow makes all be watched that is not yet, after it was read, and tells whether that was possible.
func (l *link) follow(ctx context.Context, access *access, kubernetes string) bool {
	l.mu.Lock()
	watching := l.watching.Clone()
	l.mu.Unlock()
	missing := slices.DeleteFunc(slices.Clone(resources), func(r resource) bool { return watching.Has(r.name) })
	found := read(ctx, access, missing...)
	all := true
	l.update(func() {
		if l.access != access {
			return // it was closed meanwhile
		}
		if l.stop == nil {
			l.watches, l.stop = context.WithCancel(context.WithoutCancel(ctx))
			l.watching = sets.New[string]()
		}
		l.connected, l.failure = true, nil
		l.kubernetes, l.lastSuccess = kubernetes, l.now()
		for _, n := range found {
			l.putNews(ctx, n)
			if n.version == "" {
				all = false
				continue
			}
			l.watching.Insert(n.resource.name)
			go l.keep(l.watches, access, n.resource, n.version)
		}
	})
	return all
}

// read reads resources, if there are any.
func read(ctx context.Context, access *access, missing ...resource) []news {
	if len(missing) == 0 {
		return nil
	}
	found := make([]news, len(missing))
	err := access.call(func(c client.Client) error {
		for i, r := range missing {
			found[i] = r.readWith(ctx, c)
		}
		return nil
	})
	for i := range found {
		found[i].resource = missing[i]
		found[i].err = cmp.Or(found[i].err, err)
	}
	return found
}

func (r resource) readWith(ctx context.Context, c client.Client) (n news) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	n.version, n.put, n.err = r.read(ctx, c)
	return n
}

// keep watches a resource as long as there is a connection. What broke off is taken up where it ended, or read anew where the API server does not know that any more.
func (l *link) keep(ctx context.Context, access *access, r resource, version string) {
	retry := wait.Backoff{}
	for {
		began := l.now()
		if version == "" {
			version = l.reread(ctx, access, r)
		} else {
			var err error
			if version, err = l.stream(ctx, access, r, version); err != nil && ctx.Err() == nil {
				l.again() // perhaps nothing else answers either
			}
		}
		if l.now().Sub(began) > watchLast/2 {
			retry = wait.Backoff{}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(after(&retry, watchLast)):
		}
	}
}

// reread reads a resource anew.
func (l *link) reread(ctx context.Context, access *access, r resource) string {
	n := read(ctx, access, r)[0]
	l.update(func() {
		if ctx.Err() == nil {
			l.putNews(ctx, n)
		}
	})
	return n.version
}

// putNews takes in what was read.
func (l *link) putNews(ctx context.Context, n news) {
	l.unreadable(ctx, n.resource.name, n.err)
	if n.err == nil {
		n.put(l)
	}
}

// stream takes in what one watch tells, until it ends. It returns the version to go on from; empty: the resource is to be read anew.
func (l *link) stream(ctx context.Context, access *access, r resource, version string) (string, error) {
	lasts := wait.Jitter(watchTime, spread)
	ctx, cancel := context.WithTimeout(ctx, lasts+answerTime)
	defer cancel()
	request := access.lasting.Get().AbsPath(r.path).SetHeader("Accept", metadataOnly).Param("watch", "true").Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(int(lasts.Seconds())))
	if r.selector != "" {
		request = request.Param("labelSelector", r.selector)
	}
	body, err := request.Stream(ctx)
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		l.watchable(ctx, r, nil)
	case !errors.As(err, &answer):
		return version, err
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return "", err
	default:
		l.watchable(ctx, r, err)
		return "", err
	}
	defer body.Close() //nolint:errcheck // it was only read
	err = events(body, func(e watchEvent) error {
		if e.Type == watch.Error {
			version = ""
			return fmt.Errorf("the watch of %s ended: %s (%d)", r.name, e.Object.Reason, e.Object.Code)
		}
		if err := l.take(ctx, access, r, e); err != nil {
			version = ""
			return err
		}
		version = e.Object.Metadata.ResourceVersion
		return nil
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return version, err
}

// watchable notes whether an API server lets a resource be watched: if it does not, what is known is read anew, and old by up to watchLast.
func (l *link) watchable(ctx context.Context, r resource, err error) {
	l.update(func() {
		if ctx.Err() == nil {
			l.unreadable(ctx, "watch of "+r.name, err)
		}
	})
}

func (l *link) take(ctx context.Context, access *access, r resource, e watchEvent) error {
	inTime, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	put, err := r.take(inTime, l, access, e)
	if err != nil || put == nil {
		return err
	}
	l.update(func() {
		if ctx.Err() == nil {
			put(l)
		}
	})
	return nil
}

// events passes on what a watch tells, until it ends, which is io.EOF. Most watches are silent most of the time: in between nothing is held but a byte.
func events(body io.Reader, handle func(watchEvent) error) error {
	first := make([]byte, 1)
	for {
		if _, err := io.ReadFull(body, first); err != nil {
			return err
		}
		if first[0] == '\n' {
			continue
		}
		decoder := json.NewDecoder(io.MultiReader(bytes.NewReader(bytes.Clone(first)), body))
		for more := true; more; {
			e := watchEvent{}
			if err := decoder.Decode(&e); err != nil {
				return err
			}
			if err := handle(e); err != nil {
				return err
			}
			rest, err := io.ReadAll(decoder.Buffered())
			if err != nil {
				return err
			}
			more = len(bytes.TrimSpace(rest)) > 0
		}
	}
}
