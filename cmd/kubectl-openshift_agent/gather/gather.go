// Package gather writes what a person needs to analyze a cluster into one archive: objects, events, logs and a page that shows
// them. Everything is bounded, and nothing is written before its credentials are removed. What cannot be read is listed.
package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/archive"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/page"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/redact"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// LogReader opens the log of a container.
type LogReader func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)

// Sources are where an archive comes from.
type Sources struct {
	API  client.Reader
	Logs LogReader
	// Service connects to assisted-service. If it is nil, events and logs of assisted-service are not read.
	Service *http.Client
}

// Options select the cluster and the limits.
type Options struct {
	Namespace, Cluster string
	// Output is the name of the file.
	Output string
	// Since is the age of the oldest line of a log of a manager.
	Since time.Duration
	// LogBytes is the length of one log. The newest lines are kept.
	LogBytes int64
	// Timeout is the time for all requests. What is not read by then is listed as not readable.
	Timeout time.Duration
	// Version is the version of the plugin, Time the time of the archive.
	Version string
	Time    time.Time
	// Progress reports what is read. It may be nil.
	Progress func(step string)

	// archiveBytes is the size of the archive, unpacked the budget of host logs. Tests set smaller ones.
	archiveBytes int64
	unpacked     budget
}

var errTimeout = errors.New("the time of --timeout is over")

// gatherer gathers one cluster.
type gatherer struct {
	Sources
	Options

	archive  *archive.Archive
	redactor *redact.Redactor
	input    page.Input
	// used is what all sources have used of the budget of host logs.
	used budget
}

// Write writes the archive of a cluster, and returns what it does not contain. If the context ends, no archive exists.
func Write(ctx context.Context, s Sources, o Options) ([]page.Gap, error) {
	cluster, err := reader.Read(ctx, s.API, reader.Scope{Namespace: o.Namespace, Cluster: o.Cluster}, o.Time)
	if err != nil {
		return nil, err
	}
	root := "gather-" + o.Namespace + "-" + o.Cluster + "-" + o.Time.UTC().Format("20060102-150405")
	if o.unpacked == (budget{}) {
		o.unpacked = budget{entries: maxEntries, bytes: maxUnpacked}
	}
	a, err := archive.New(o.Output, root, o.Time, cmp.Or(o.archiveBytes, archive.MaxBytes))
	if err != nil {
		return nil, err
	}
	defer a.Discard()
	g := &gatherer{Sources: s, Options: o, archive: a, redactor: redact.New()}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	if err := g.write(limited, cluster); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: no archive was written: %w", context.Cause(ctx))
	}
	return g.input.Gaps, a.Commit()
}

// write writes all files of the archive.
func (g *gatherer) write(ctx context.Context, read *snapshot.Snapshot) error {
	g.step("objects")
	objects := members(g.Cluster, g.readObjects(ctx))
	if title := groupTitle(groupCore, snapshot.KindCluster); len(objects[title]) == 0 { // the user may get it, but not list
		cluster, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&read.Clusters[0])
		if err != nil {
			return fmt.Errorf("cannot convert the Cluster: %w", err)
		}
		objects[title] = []unstructured.Unstructured{{Object: cluster}}
		objects[title][0].SetGroupVersionKind(kinds()[0].version("v1beta2"))
	}
	sources := sourcesOf(objects) // before the redaction, because the URLs contain the key
	for _, title := range slices.Sorted(maps.Keys(objects)) {
		for i := range objects[title] {
			g.redactor.Learn(objects[title][i].Object)
		}
	}
	for _, k := range kinds() {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil // Write reports the interruption
		}
		if err := g.addObjects(k, objects[k.title()]); err != nil {
			return err
		}
	}
	if err := g.addService(ctx, sources); err != nil {
		return err
	}
	if err := g.addLogs(ctx); err != nil {
		return err
	}
	return g.addPage()
}

// step reports what is read next.
func (g *gatherer) step(name string) {
	if g.Progress != nil {
		g.Progress(name)
	}
}

// gap records what the archive does not contain.
func (g *gatherer) gap(what string, err error) {
	gap := page.Gap{What: g.redactor.Text(what), Cause: g.redactor.Text(causeOf(err))}
	if !slices.Contains(g.input.Gaps, gap) {
		g.input.Gaps = append(g.input.Gaps, gap)
	}
}

// addObjects redacts the objects of a kind and adds them. Events, and objects without content, are in one file for each kind.
func (g *gatherer) addObjects(k kind, objects []unstructured.Unstructured) error {
	slices.SortFunc(objects, func(a, b unstructured.Unstructured) int { return compareKeys(&a, &b) })
	var together strings.Builder
	for i := range objects {
		o := &objects[i]
		g.redactor.Object(o.Object)
		content, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("cannot write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if k.metadataOnly || k.name == kindEvent {
			together.WriteString("---\n" + string(content))
			continue
		}
		name, err := g.addFile(k.title()+" "+o.GetName(), string(content), "objects", k.title(), o.GetName()+".yaml")
		if err != nil {
			return err
		}
		g.input.Objects = append(g.input.Objects, page.Object{Unstructured: o, File: name})
	}
	if k.name == kindEvent {
		g.input.Events = objects
	}
	if together.Len() == 0 {
		return nil
	}
	_, err := g.addFile(k.title()+"s", together.String(), "objects", k.title()+"s.yaml")
	return err
}

// compareKeys compares the names of two objects.
func compareKeys(a, b *unstructured.Unstructured) int {
	key := func(o *unstructured.Unstructured) []string { return []string{o.GetNamespace(), o.GetName()} }
	return slices.Compare(key(a), key(b))
}

// addFile adds a file that is redacted already. A file for which the archive has no space is recorded.
func (g *gatherer) addFile(title, content string, elements ...string) (string, error) {
	for i := range elements {
		elements[i] = g.redactor.Text(elements[i])
	}
	name, err := g.archive.Add(content, elements...)
	if errors.Is(err, archive.ErrFull) {
		g.gap(title, err)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	g.input.Files = append(g.input.Files, page.File{Name: name, Title: g.redactor.Text(title), Bytes: len(content)})
	return name, nil
}

// addPage adds the page, and the list of what is missing.
func (g *gatherer) addPage() error {
	g.step("page")
	g.input.Namespace, g.input.Cluster, g.input.Time, g.input.Version = g.Namespace, g.Cluster, g.Time, g.Version
	html, err := page.Render(&g.input)
	if err != nil {
		return err
	}
	if _, err = g.archive.AddLast(html, "index.html"); errors.Is(err, archive.ErrFull) {
		g.gap("index.html", err)
	} else if err != nil {
		return err
	}
	summary, err := yaml.Marshal(map[string]any{
		"cluster": g.Cluster, "namespace": g.Namespace, "time": g.Time.UTC().Format(time.RFC3339), "version": g.Version,
		"notReadable": g.input.Gaps, "files": g.input.Files,
	})
	if err != nil {
		return fmt.Errorf("cannot write the summary: %w", err)
	}
	_, err = g.archive.AddLast(string(summary), "gather.yaml")
	return err
}
