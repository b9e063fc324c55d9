package faultproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Moment is when a manager crashes.
type Moment int

const (
	// AfterWrites is after each write that changed an object, before the manager receives the answer.
	AfterWrites Moment = iota
	// AroundWrites is also before each write: after changes in other systems that the manager has not recorded yet.
	// The next write is forwarded.
	AroundWrites
)

// Process is the process of a manager.
type Process interface {
	Kill()
	Start(ctx context.Context) error
}

// crashes kill a manager at each of its writes to a namespace, and start it again.
type crashes struct {
	mu        sync.Mutex
	process   Process
	namespace string // empty: no crashes
	moment    Moment
	cutLast   bool // the last write was cut, so the next one is forwarded
	down      bool
	count     int
	restarts  sync.WaitGroup
}

// CrashAtWrites makes the process of the manager crash at its writes to a namespace.
func (p *Proxy) CrashAtWrites(process Process, namespace string, moment Moment) {
	c := &p.crashes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process, c.namespace, c.moment, c.cutLast, c.count = process, namespace, moment, false, 0
}

// StopCrashes ends the crashes, waits until the manager runs, and returns the number of crashes.
func (p *Proxy) StopCrashes() int {
	c := &p.crashes
	c.mu.Lock()
	c.namespace = ""
	count := c.count
	c.mu.Unlock()
	c.restarts.Wait()
	return count
}

// crashing is the transport of a manager.
type crashing struct {
	http.RoundTripper

	crashes *crashes
}

// errCrashed cuts the connection of a manager that crashes.
var errCrashed = errors.New("the manager crashes")

// RoundTrip implements http.RoundTripper.
func (t *crashing) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.crashes.isDown() {
		return nil, errCrashed
	}
	if !t.crashes.counts(r) {
		return t.RoundTripper.RoundTrip(r)
	}
	if t.crashes.cutsBefore() {
		t.crashes.crash()
		return nil, errCrashed
	}
	before := t.version(r)
	response, err := t.RoundTripper.RoundTrip(r)
	if err == nil && changed(r, response, before) && t.crashes.crash() {
		_ = response.Body.Close()
		return nil, errCrashed
	}
	return response, err
}

// counts reports whether a request is a write at which the manager crashes. A manager may lose Events. It repeats a dry
// run after each start, without progress.
func (c *crashes) counts(r *http.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	write := r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch || r.Method == http.MethodDelete
	ours := strings.Contains(r.URL.Path, "/namespaces/"+c.namespace+"/") || strings.Contains(r.URL.Path, "/clusterimagesets")
	return c.namespace != "" && write && ours && !strings.Contains(r.URL.Path, "/events") && !r.URL.Query().Has("dryRun")
}

// version reads the resource version of the object of a write; empty if the object does not exist.
func (t *crashing) version(r *http.Request) string {
	if r.Method == http.MethodPost {
		return ""
	}
	object := *r.URL
	object.Path, object.RawQuery = strings.TrimSuffix(r.URL.Path, "/status"), ""
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, object.String(), nil)
	if err != nil {
		return ""
	}
	response, err := t.RoundTripper.RoundTrip(request)
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

// changed reports whether a write changed its object. A manager that crashed at a write without effect, which it
// repeats after each start, would never get beyond the write.
func changed(r *http.Request, response *http.Response, before string) bool {
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

// cutsBefore reports whether the manager crashes instead of its write. Every second write is forwarded, so that the
// manager makes progress.
func (c *crashes) cutsBefore() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moment == AfterWrites {
		return false
	}
	c.cutLast = !c.cutLast
	return c.cutLast
}

func (c *crashes) isDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

// crash kills the manager and starts it again in the background. It reports false if the crashes ended meanwhile.
func (c *crashes) crash() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down || c.namespace == "" {
		return c.down
	}
	c.down = true
	c.count++
	process := c.process
	c.restarts.Go(func() {
		process.Kill()
		c.mu.Lock()
		c.down = false
		c.mu.Unlock()
		for range 5 { // the manager may crash again while it starts
			if process.Start(context.Background()) == nil {
				return
			}
		}
	})
	return true
}
