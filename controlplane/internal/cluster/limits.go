package cluster

import (
	"net/http"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// The limits of answers of a workload cluster, in bytes. A workload cluster may be in the hands of an attacker, and one manager serves many of them.
const (
	// smallAnswer is for what is not an object: /version has 400 bytes, a check of health less.
	smallAnswer = 64 << 10
	// objectAnswer is for one object. etcd takes objects of 1.5 MiB, and JSON escapes some characters.
	objectAnswer = 4 << 20
	// listAnswer is for a list: 2,000 Nodes have 16 KiB each.
	listAnswer = 32 << 20
)

// limitOf returns how many bytes of an answer are read. A watch that was begun has no end; its reader limits what waits to be handled.
func limitOf(answer *http.Response) int64 {
	request := answer.Request
	if request.URL.Query().Get("watch") == "true" && answer.StatusCode == http.StatusOK {
		return 0
	}
	switch resource := resourceOf(request.URL.Path); {
	case len(resource) == 0 || answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated:
		return smallAnswer
	case len(resource) == 1 && request.Method == http.MethodGet:
		return listAnswer
	}
	return objectAnswer
}

// resourceOf returns the segments of an API path behind group, version and namespace: one for a list, more for an object. A kubeconfig's server may have a path of its own.
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

// bounded limits the answers that come through a transport.
func bounded(transport http.RoundTripper) http.RoundTripper { return bound.Answers(transport, limitOf) }
