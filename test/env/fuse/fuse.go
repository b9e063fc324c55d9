// Package fuse kills a manager at its writes to the management cluster, one after the other, and so tests whether it
// continues where it stopped.
package fuse

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/gateway"
)

// Moment is when a manager dies.
type Moment int

const (
	// AfterWrites is after each write that changed something, before the manager hears the answer.
	AfterWrites Moment = iota
	// AroundWrites is also before each write: what the manager has done elsewhere, it has not written down then. The
	// write that follows is passed on, whichever it is.
	AroundWrites
)

// Fuse stands between a manager and its API server. When it is set, it kills the manager at each write, and starts it again.
type Fuse struct {
	*gateway.Gateway

	mu        sync.Mutex
	process   *process.Process
	namespace string // empty: it is not set
	moment    Moment
	spare     bool // the write that was cut last is to be passed on
	blown     bool
	deaths    int
	restarts  sync.WaitGroup
}

// New listens for the manager that runs as a ServiceAccount (namespace:name); hub is where the kubeconfig of the hub will be.
func New(ctx context.Context, account, hub string) (*Fuse, error) {
	f := &Fuse{}
	var err error
	f.Gateway, err = gateway.New(ctx, account, hub, f)
	return f, err
}

// ServeHTTP passes a request on.
func (f *Fuse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	transport, target, err := f.Connect()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if f.isBlown() {
		panic(http.ErrAbortHandler) // the connection is cut
	}
	watched := f.watches(r)
	before := ""
	if watched {
		if f.cutsBefore() {
			f.blow()
			panic(http.ErrAbortHandler)
		}
		before = version(transport, target, r)
	}
	proxy := gateway.Proxy(transport, target)
	proxy.ModifyResponse = func(response *http.Response) error {
		if watched && f.changed(r, response, before) {
			f.blow()
			return http.ErrAbortHandler
		}
		return nil
	}
	proxy.ServeHTTP(w, r)
}

// watches reports whether the request is a write that counts. Events are written on the side, and may be lost.
func (f *Fuse) watches(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	write := r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch || r.Method == http.MethodDelete
	ours := strings.Contains(r.URL.Path, "/namespaces/"+f.namespace+"/") || strings.Contains(r.URL.Path, "/clusterimagesets")
	return f.namespace != "" && write && ours && !strings.Contains(r.URL.Path, "/events")
}

// version reads the resource version of the object that is about to be written; empty when there is none.
func version(transport http.RoundTripper, target *url.URL, r *http.Request) string {
	if r.Method == http.MethodPost {
		return ""
	}
	read := *target
	read.Path = strings.TrimSuffix(r.URL.Path, "/status")
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, read.String(), nil)
	if err != nil {
		return ""
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	return versionIn(response.Body)
}

func versionIn(body io.Reader) string {
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	// A body that is not an object has no version.
	_ = json.NewDecoder(body).Decode(&object)
	return object.Metadata.ResourceVersion
}

// changed reports whether a write did something: one that a manager repeats after each start would kill it for ever.
func (f *Fuse) changed(r *http.Request, response *http.Response, before string) bool {
	if response.StatusCode >= http.StatusBadRequest {
		return false
	}
	if r.Method == http.MethodDelete || r.Method == http.MethodPost {
		return true
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return false
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	return versionIn(bytes.NewReader(content)) != before
}

// cutsBefore reports whether the manager is to die instead of its write. One of two writes succeeds, or the manager
// would make no progress.
func (f *Fuse) cutsBefore() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moment == AfterWrites {
		return false
	}
	f.spare = !f.spare
	return f.spare
}

func (f *Fuse) isBlown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blown
}

// blow kills the manager and brings it back.
func (f *Fuse) blow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blown || f.namespace == "" {
		return
	}
	f.blown = true
	f.deaths++
	f.restarts.Go(func() {
		f.process.Kill()
		f.mu.Lock()
		f.blown = false
		f.mu.Unlock()
		for range 5 { // it may die again while it starts
			if f.process.Start(context.Background()) == nil {
				return
			}
		}
	})
}

// Set makes the process of the manager die at its writes to a namespace.
func (f *Fuse) Set(process *process.Process, namespace string, moment Moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process, f.namespace, f.moment, f.spare, f.deaths = process, namespace, moment, false, 0
}

// Unset stops killing the manager, and returns the number of its deaths.
func (f *Fuse) Unset() int {
	f.mu.Lock()
	f.namespace = ""
	deaths := f.deaths
	f.mu.Unlock()
	f.restarts.Wait()
	return deaths
}
