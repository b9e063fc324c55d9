package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/lightapi"
)

// versioned replaces the version of Kubernetes that an API server reports, unless the version is nil.
type versioned struct {
	next       http.RoundTripper
	kubernetes *atomic.Pointer[string]
}

// RoundTrip implements http.RoundTripper.
func (v versioned) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := v.next.RoundTrip(r)
	kubernetes := v.kubernetes.Load()
	if err != nil || r.URL.Path != "/version" || response.StatusCode != http.StatusOK || kubernetes == nil {
		return response, err //nolint:wrapcheck // a RoundTripper returns errors as they are
	}
	if err := response.Body.Close(); err != nil {
		return nil, fmt.Errorf("cannot read the version: %w", err)
	}
	body, err := json.Marshal(lightapi.VersionInfo(*kubernetes))
	if err != nil {
		return nil, fmt.Errorf("cannot write the version: %w", err)
	}
	response.Header.Del("Content-Length")
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return response, nil
}
