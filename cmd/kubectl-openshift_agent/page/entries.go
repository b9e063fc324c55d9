package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// maxEntries is the number of rows in the list of what happened.
const maxEntries = 2000

// entry is what happened to an object: a condition changed, or an event.
type entry struct {
	Time time.Time
	// Source is Condition, Event or assisted-service.
	Source       string
	kind, name   string
	Reason, Text string
	Warning      bool
	// File is the file of the object.
	File string
	// Page is the documentation of the reason.
	Page string
}

// Object returns the object of an entry.
func (e entry) Object() string { return strings.TrimSpace(e.kind + " " + e.name) }

// At returns the time of an entry.
func (e entry) At() string { return e.Time.UTC().Format(time.DateTime) }

// entriesOf returns what happened, the oldest first.
func entriesOf(in *Input) []entry {
	var all []entry
	files := map[string]string{}
	for i := range in.Objects {
		o := &in.Objects[i]
		files[o.GetKind()+"/"+o.GetName()] = o.File
		for _, c := range conditionsOf(o) {
			if !c.since.IsZero() {
				all = append(all, entry{
					Time: c.since, Source: "Condition", kind: o.GetKind(), name: o.GetName(), Reason: c.Type + "=" + c.Status + " " + c.Reason,
					Text: c.Message, File: o.File, Page: c.Page,
				})
			}
		}
	}
	for i := range in.Events {
		e := eventEntry(&in.Events[i])
		e.File = files[e.kind+"/"+e.name]
		all = append(all, e)
	}
	for _, e := range in.ServiceEvents {
		kind := ""
		if e.Host != "" {
			kind = snapshot.KindAgent
		}
		all = append(all, entry{
			Time: e.Time, Source: "assisted-service", kind: kind, name: e.Host, Reason: e.Name, Text: e.Message,
			Warning: e.Severity != "info" && e.Severity != "", File: files[snapshot.KindAgent+"/"+e.Host],
		})
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(all, func(a, b entry) bool { return a == b })
}

// eventEntry returns the entry of an event of the management cluster.
func eventEntry(o *unstructured.Unstructured) entry {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, fields...)
		return value
	}
	e := entry{
		Source: "Event", kind: text("involvedObject", "kind"), name: text("involvedObject", "name"), Reason: text("reason"),
		Text: text("message"), Warning: text("type") == "Warning",
	}
	for _, at := range []string{
		text("series", "lastObservedTime"), text("lastTimestamp"), text("eventTime"), text("firstTimestamp"),
		text("metadata", "creationTimestamp"),
	} {
		if parsed, err := time.Parse(time.RFC3339, at); err == nil {
			e.Time = parsed
			break
		}
	}
	count, _, _ := unstructured.NestedInt64(o.Object, "count")
	if series, _, _ := unstructured.NestedInt64(o.Object, "series", "count"); series > count {
		count = series
	}
	if count > 1 {
		e.Text += " (" + strconv.FormatInt(count, 10) + " times)"
	}
	return e
}
