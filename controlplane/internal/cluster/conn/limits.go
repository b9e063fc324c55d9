package conn

import (
	"net/http"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Limits of the responses of a workload cluster, in bytes. An attacker may control a workload cluster, and
// one manager serves many clusters.
const (
	// smallResponse is for responses that are no objects: /version has 400 bytes, a health check less.
	smallResponse = 64 << 10
	// objectResponse is for one object. etcd stores objects of up to 1.5 MiB, and JSON escapes some characters.
	objectResponse = 4 << 20
	// listResponse is for a list: 2,000 Nodes have 16 KiB each.
	listResponse = 32 << 20
)

// limitOf returns how many bytes of a response are read. A watch that started is not limited here. Its reader
// limits the unprocessed data.
func limitOf(answer *http.Response) int64 {
	request := answer.Request
	if request.URL.Query().Get("watch") == "true" && answer.StatusCode == http.StatusOK {
		return 0
	}
	switch resource := resourceOf(request.URL.Path); {
	case len(resource) == 0 || answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated:
		return smallResponse
	case len(resource) == 1 && request.Method == http.MethodGet:
		return listResponse
	}
	return objectResponse
}

// resourceOf returns the segments of an API path after group, version and namespace: one for a list, more for
// an object. The server of a kubeconfig may have a path itself.
func resourceOf(path string) []string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i, segment := range segments {
		switch {
		case segment == "api" && len(segments) > i+2:
			segments = segments[i+2:]
		case segment == "apis" && len(segments) > i+3:
			segments = segments[i+3:]
		default:
			continue
		}
		if segments[0] == "namespaces" && len(segments) > 2 {
			segments = segments[2:]
		}
		return segments
	}
	return nil
}

// bounded limits the responses that pass a transport.
func bounded(transport http.RoundTripper) http.RoundTripper {
	return bound.LimitBodies(transport, limitOf)
}
