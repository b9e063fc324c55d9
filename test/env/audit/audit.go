// Package audit reads the audit log of an API server: who asked it for what.
package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Policy records every request to the API server once it is answered, with its metadata only (no body,
// so no Secret), health checks included. Requests of nobody and the API server's to itself are left out.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver", "system:anonymous"]
- level: Metadata
`

// Request is one API request, as the audit log has it.
type Request struct {
	// User is who asked, for example "system:serviceaccount:capi-system:capi-manager": the authenticated user, or whom that impersonated.
	User string
	// UserAgent is what the client says of itself.
	UserAgent string
	// Verb is the API verb: get, list, watch, create, update, patch, delete, deletecollection.
	Verb string
	// Group, Resource and Subresource say what the request was about; all empty for discovery and other non-resource URLs.
	Group, Resource, Subresource string
	// Namespace and Name of the object; Name is empty for list, watch and create.
	Namespace, Name string
	// URI is the path with its query.
	URI string
	// Code is the HTTP status of the answer.
	Code int
	// Time is when the request arrived.
	Time time.Time
}

// Requests is a list of API requests, in the order in which they were answered.
type Requests []Request

// Read returns the requests in the audit log at path; none while there is no log yet. A watch counts once, when it was opened.
func Read(path string) (Requests, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was requested yet
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	defer file.Close()
	requests, _, err := read(file)
	return requests, err
}

// Where returns the requests for which keep is true.
func (r Requests) Where(keep func(Request) bool) Requests {
	var kept Requests
	for _, request := range r {
		if keep(request) {
			kept = append(kept, request)
		}
	}
	return kept
}

// Work returns the requests that an amount of work causes: without the watches of informers and the lists that begin
// them (client-go asks for resourceVersion=0 there, our managers for pages of [kube.PageSize]; a read past the cache
// does neither), without leases (leader election), without discovery, and without the reviews of tokens and access by
// which a metrics endpoint protects itself.
func (r Requests) Work() Requests {
	page := fmt.Sprintf("limit=%d", kube.PageSize)
	return r.Where(func(request Request) bool {
		informer := request.Verb == "watch" || request.Verb == "list" &&
			(strings.Contains(request.URI, "resourceVersion=0") || strings.Contains(request.URI, page))
		return request.Resource != "" && !informer && !request.Housekeeping()
	})
}

// Housekeeping reports whether a request is one of those that never end: leases are renewed, and a metrics endpoint asks who may read it.
func (r Request) Housekeeping() bool {
	return slices.Contains([]string{"leases", "tokenreviews", "subjectaccessreviews"}, r.Resource)
}

// Unrest returns the requests that nobody makes who is idle: all, lists, discovery and health checks too, but
// housekeeping, and of those that watch the same the first, which an informer begins again every five to ten minutes
// (client-go, tools/cache/reflector.go: defaultMinWatchTimeout). It is meant for a minute or two.
func (r Requests) Unrest() Requests {
	watched := map[string]bool{}
	return r.Where(func(request Request) bool {
		if request.Verb != "watch" {
			return !request.Housekeeping()
		}
		what, _, _ := strings.Cut(request.URI, "?")
		again := watched[what]
		watched[what] = true
		return again
	})
}

// Writes returns the requests that ask for a change, whether or not it is one.
func (r Requests) Writes() Requests {
	return r.Where(func(request Request) bool {
		return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, request.Verb)
	})
}

// Count tells how many requests there are of each verb and resource; keys look like "patch machines/status".
func (r Requests) Count() map[string]int {
	counts := map[string]int{}
	for _, request := range r {
		key := request.Verb + " " + request.Resource
		if request.Subresource != "" {
			key += "/" + request.Subresource
		}
		counts[key]++
	}
	return counts
}

// Over tells, in order, of which verbs and resources there are more requests than may be: than other of what bounds do
// not name. Keys are those of [Requests.Count].
func (r Requests) Over(bounds map[string]int, other int) []string {
	var over []string
	for what, n := range r.Count() {
		bound, known := bounds[what]
		if !known {
			bound = other
		}
		if n > bound {
			over = append(over, fmt.Sprintf("%s: %d, at most %d", what, n, bound))
		}
	}
	slices.Sort(over)
	return over
}

// event is the part of audit.k8s.io/v1 Event that is of interest.
type event struct {
	Stage      string
	Verb       string
	UserAgent  string
	RequestURI string
	User       struct{ Username string }
	// ImpersonatedUser is empty where nobody is.
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// read reads an audit log in JSON lines, and tells how many bytes of it. The API server may be writing it: a last line
// without its end is left out.
func read(log io.Reader) (requests Requests, size int64, err error) {
	reader := bufio.NewReader(log)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, size, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("cannot read the audit log: %w", err)
		}
		size += int64(len(line))
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("cannot read an audit event: %w", err)
		}
		// A watch has two events, one when it is opened and one when it ends; everything else has one.
		if (e.Verb == "watch") != (e.Stage == "ResponseStarted") {
			continue
		}
		requests = append(requests, Request{
			User: cmp.Or(e.ImpersonatedUser.Username, e.User.Username), UserAgent: e.UserAgent, Verb: e.Verb, URI: e.RequestURI,
			Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
			Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
			Code: e.ResponseStatus.Code, Time: e.RequestReceivedTimestamp,
		})
	}
}
