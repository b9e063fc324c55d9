// Package audit reads the audit log of an API server: users and their requests.
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

// Policy records every completed request to the API server with metadata only (no body, so no Secret),
// including health checks. It excludes anonymous requests and those of the API server to itself.
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
	// User is the authenticated or impersonated user, for example
	// "system:serviceaccount:capi-system:capi-manager".
	User string
	// UserAgent is the User-Agent header of the client.
	UserAgent string
	// Verb is the API verb: get, list, watch, create, update, patch, delete, deletecollection.
	Verb string
	// Group, Resource and Subresource of the object; all empty for discovery and other non-resource URLs.
	Group, Resource, Subresource string
	// Namespace and Name of the object; Name is empty for list, watch and create.
	Namespace, Name string
	// URI is the path with its query.
	URI string
	// Code is the HTTP status of the response.
	Code int
	// Time is when the request arrived.
	Time time.Time
}

// Requests are API requests in the order of their responses.
type Requests []Request

// Read returns the requests in the audit log at path; none if the file does not exist. A watch counts once,
// when it was opened.
func Read(path string) (Requests, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no request yet
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

// Work returns the requests that a unit of work causes. It excludes the watches of informers and the lists that
// begin them. client-go lists with resourceVersion=0, our managers with pages of [kube.PageSize]; an uncached
// read uses neither. It also excludes leases (leader election), discovery, and the token and access reviews of
// metrics endpoints.
func (r Requests) Work() Requests {
	page := fmt.Sprintf("limit=%d", kube.PageSize)
	return r.Where(func(request Request) bool {
		informer := request.Verb == "watch" || request.Verb == "list" &&
			(strings.Contains(request.URI, "resourceVersion=0") || strings.Contains(request.URI, page))
		return request.Resource != "" && !informer && !request.Housekeeping()
	})
}

// Housekeeping reports whether a request is one of those that never end: renewals of leases, and reviews of
// metrics endpoints.
func (r Request) Housekeeping() bool {
	return slices.Contains([]string{"leases", "tokenreviews", "subjectaccessreviews"}, r.Resource)
}

// Unrest returns the requests that an idle client does not send: all except housekeeping, including lists,
// discovery and health checks. The first of several watches of the same resource is excluded, because an
// informer restarts it every five to ten minutes (client-go, tools/cache/reflector.go: defaultMinWatchTimeout).
// It is meant for periods of a minute or two.
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

// Writes returns the requests for changes, including those without effect.
func (r Requests) Writes() Requests {
	return r.Where(func(request Request) bool {
		return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, request.Verb)
	})
}

// Count returns the number of requests by verb and resource; keys look like "patch machines/status".
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

// Over returns, in order, the verbs and resources with more requests than their bound; other is the bound of
// those without one. Keys are those of [Requests.Count].
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

// event has the used fields of an audit.k8s.io/v1 Event.
type event struct {
	Stage      string
	Verb       string
	UserAgent  string
	RequestURI string
	User       struct{ Username string }
	// ImpersonatedUser is empty without impersonation.
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// read reads an audit log in JSON lines, and returns the number of bytes read. The API server may be writing
// the log: an incomplete last line is left out.
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
		// A watch has two events, at its start and end; all other requests have one.
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
