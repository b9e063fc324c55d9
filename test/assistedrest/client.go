package assistedrest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/openshift/assisted-service/models"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const (
	apiPath = "/api/assisted-install"
	// tokenHeader carries the token of an agent or of a controller in a cluster.
	tokenHeader = "X-Secret-Key"
	// maxResponse is more than the largest answer, a cluster with all its hosts.
	maxResponse = 32 << 20
	maxMessage  = 300
)

// endpoint is the address of a service for one kind of client.
type endpoint struct{ url, token string }

func (s *Service) agentEndpoint(config hosts.AgentConfig) endpoint {
	return endpoint{cmp.Or(config.ServiceURL, s.options.URL), config.Token}
}

func (s *Service) clusterEndpoint(clusterID string) (endpoint, error) {
	if s.options.ClusterToken == nil {
		return endpoint{url: s.options.URL}, nil
	}
	token, err := s.options.ClusterToken(clusterID)
	if err != nil {
		return endpoint{}, fmt.Errorf("cannot get the token of cluster %s: %w", clusterID, err)
	}
	return endpoint{s.options.URL, token}, nil
}

func (s *Service) get(ctx context.Context, to endpoint, path string) ([]byte, error) {
	return s.send(ctx, http.MethodGet, to, path, nil)
}

// send calls the service. A response that means that the client or the object is unknown is ErrNotFound.
func (s *Service) send(ctx context.Context, method string, to endpoint, path string, body any) ([]byte, error) {
	var payload io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("cannot encode a request: %w", err)
		}
		payload = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(to.url, "/")+apiPath+path, payload)
	if err != nil {
		return nil, fmt.Errorf("cannot call assisted-service: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if to.token != "" {
		request.Header.Set(tokenHeader, to.token)
	}
	response, err := s.http.Do(request)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return nil, fmt.Errorf("cannot call assisted-service: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer of assisted-service: %w", err)
	}
	return answer, statusError(response.StatusCode, answer)
}

func statusError(status int, answer []byte) error {
	if status < http.StatusMultipleChoices {
		return nil
	}
	message := strings.TrimSpace(string(answer))
	var explained struct{ Reason, Message string }
	if json.Unmarshal(answer, &explained) == nil {
		message = cmp.Or(explained.Reason, explained.Message, message)
	}
	message = fmt.Sprintf("assisted-service answers %d: %s", status, message[:min(len(message), maxMessage)])
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return fmt.Errorf("%s: %w", message, hosts.ErrNotFound)
	}
	return errors.New(message)
}

// cluster reads a cluster with its hosts.
func (s *Service) cluster(ctx context.Context, to endpoint, id string) (*models.Cluster, error) {
	raw, err := s.get(ctx, to, "/v2/clusters/"+id)
	if err != nil {
		return nil, fmt.Errorf("cannot read cluster %s: %w", id, err)
	}
	cluster := &models.Cluster{}
	if err := json.Unmarshal(raw, cluster); err != nil {
		return nil, fmt.Errorf("cannot read cluster %s: %w", id, err)
	}
	return cluster, nil
}

// Knows reports whether a cluster is registered, by its id in the service.
func (s *Service) Knows(ctx context.Context, clusterID string) (bool, error) {
	to, err := s.clusterEndpoint(clusterID)
	if err != nil {
		return false, err
	}
	_, err = s.cluster(ctx, to, clusterID)
	if errors.Is(err, hosts.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func hostPath(infraEnvID, hostID string) string {
	return "/v2/infra-envs/" + infraEnvID + "/hosts/" + hostID
}
