package gather

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/page"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

const (
	// maxServiceEvents is the length of the events of assisted-service for one object.
	maxServiceEvents = 32 << 20
	// maxServiceLogs is the compressed length of the logs of the hosts.
	maxServiceLogs = 128 << 20
	// serviceTimeout is the time for one answer of assisted-service.
	serviceTimeout = 3 * time.Minute
	// maxRedirects is the number of redirects of a request, each to the same host.
	maxRedirects = 3
)

// source is an object with the addresses at which assisted-service has more about it. They contain an API key.
type source struct{ kind, name, events, logs string }

// sourcesOf returns the addresses of the objects. The logs of an AgentClusterInstall contain those of its hosts.
func sourcesOf(objects map[string][]unstructured.Unstructured) []source {
	var found []source
	clusterHasLogs := false
	for _, at := range []struct{ group, kind string }{
		{groupInstall, kindInstall}, {groupAgents, kindInfraEnv}, {groupAgents, snapshot.KindAgent},
	} {
		list := objects[groupTitle(at.group, at.kind)]
		for i := range list {
			s := source{kind: at.kind, name: list[i].GetName()}
			s.events, _, _ = unstructured.NestedString(list[i].Object, "status", "debugInfo", "eventsURL")
			s.logs, _, _ = unstructured.NestedString(list[i].Object, "status", "debugInfo", "logsURL")
			clusterHasLogs = clusterHasLogs || at.kind == kindInstall && s.logs != ""
			if at.kind == snapshot.KindAgent && clusterHasLogs {
				s.logs = ""
			}
			if at.kind == snapshot.KindAgent {
				s.events = "" // those of the AgentClusterInstall and the InfraEnv contain them
			}
			if s.events != "" || s.logs != "" {
				found = append(found, s)
			}
		}
	}
	return found
}

// addService adds the events and logs of assisted-service.
func (g *gatherer) addService(ctx context.Context, sources []source) error {
	if g.Service == nil {
		if len(sources) > 0 {
			g.gap("events and logs of assisted-service", errors.New("not requested"))
		}
		return nil
	}
	g.step("events and logs of assisted-service")
	for _, s := range sources {
		if s.events != "" {
			if err := g.addServiceEvents(ctx, s); err != nil {
				return err
			}
		}
		if s.logs != "" {
			if err := g.addServiceLogs(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gatherer) addServiceEvents(ctx context.Context, s source) error {
	title := "events of assisted-service for " + s.kind + " " + s.name
	content, err := g.fetch(ctx, s.events, maxServiceEvents)
	if err != nil {
		g.gap(title, err)
		return nil
	}
	events := eventsOf(content)
	if events == nil {
		g.gap(title, errors.New("the answer is no list of events"))
		return nil
	}
	for _, event := range events {
		g.redactor.Object(event)
	}
	content, err = json.MarshalIndent(events, "", " ")
	if err != nil {
		return fmt.Errorf("cannot write the %s: %w", title, err)
	}
	g.input.ServiceEvents = append(g.input.ServiceEvents, page.ParseServiceEvents(events)...)
	_, err = g.addFile(title, string(content), "assisted-service", s.kind+"-"+s.name+"-events.json")
	return err
}

// eventsOf returns the events in an answer of assisted-service; nil if the answer is no list.
func eventsOf(content []byte) []map[string]any {
	var events []map[string]any
	if json.Unmarshal(content, &events) != nil {
		return nil
	}
	return events
}

func (g *gatherer) addServiceLogs(ctx context.Context, s source) error {
	title := "logs of assisted-service for " + s.kind + " " + s.name
	content, err := g.fetch(ctx, s.logs, maxServiceLogs)
	if err != nil {
		g.gap(title, err)
		return nil
	}
	u := unpacker{gatherer: g, title: title, folder: []string{"assisted-service", s.kind + "-" + s.name + "-logs"}}
	return u.unpack(ctx, nil, bytes.NewReader(content), 0)
}

// fetch reads an address of assisted-service. No error contains the address, because of its API key.
func (g *gatherer) fetch(ctx context.Context, address string, limit int64) ([]byte, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("the address is no URL of assisted-service")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, serviceTimeout, fmt.Errorf("assisted-service did not answer within %s", serviceTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address is no URL of assisted-service")
	}
	client := *g.Service
	client.CheckRedirect = sameHost
	response, err := client.Do(request)
	if err != nil {
		if cause := (*url.Error)(nil); errors.As(err, &cause) {
			err = cause.Err // without the address
		}
		return nil, errors.Join(err, context.Cause(ctx))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("assisted-service answers %s", response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("the answer is longer than %d MiB", limit>>20)
	}
	return content, nil
}

// sameHost allows redirects to the host that the object names, and no others: another host would receive the API key.
func sameHost(request *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxRedirects || !strings.EqualFold(request.URL.Host, first.Host) || request.URL.Scheme != first.Scheme {
		return errors.New("assisted-service redirects to another host")
	}
	return nil
}
