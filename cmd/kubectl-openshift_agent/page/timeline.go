package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Sizes of the picture in its own unit.
const (
	width, left, right   = 1200, 210, 14
	top, rowHeight       = 30, 20
	rowGap, laneGap      = 3, 16
	characterWidth       = 6.6
	maxTicks, maxMarks   = 10, 400
	maxLanes, labelBytes = 200, 28
)

// timeline is a picture of the stages of the cluster and its Machines.
type timeline struct {
	Width, Height, Left int
	Lanes               []*lane
	Ticks               []tick
	// Hidden is the number of Machines without a lane.
	Hidden int
}

// lane is a Machine, or the cluster.
type lane struct {
	Title, Subtitle string
	Y, Height       int
	Bars            []*bar
	Marks           []*mark
}

// Short returns the title as far as the picture has space for it.
func (l *lane) Short() string { return bound.Shorten(l.Title, labelBytes) }

// ShortSubtitle returns the subtitle as far as the picture has space for it.
func (l *lane) ShortSubtitle() string { return bound.Shorten(l.Subtitle, labelBytes) }

// bar is a stage.
type bar struct {
	X, Width             float64
	Y                    int
	Class, Label, Detail string
}

// TextX is where the text begins.
func (b *bar) TextX() float64 { return b.X + 6 }

// mark is a warning.
type mark struct {
	X      float64
	Y      int
	Detail string
}

// Path is a triangle that points down to the time.
func (m *mark) Path() string { return fmt.Sprintf("M%.1f %d l-4 -7 h8 z", m.X, m.Y+6) }

// tick is a time of the axis.
type tick struct {
	X     float64
	Label string
}

// track is a lane before its size is known.
type track struct {
	title, subtitle string
	rows            [][]span
	warnings        []entry
}

// scale is the range of time of a picture.
type scale struct{ from, to time.Time }

// x returns where a time is. A time outside the range is at its edge.
func (s scale) x(at time.Time) float64 {
	share := float64(at.Sub(s.from)) / float64(s.to.Sub(s.from))
	return left + min(1, max(0, share))*float64(width-left-right)
}

// timelineOf returns the picture of a cluster.
func timelineOf(in *Input, c *snapshot.Cluster, r *report.Cluster, entries []entry) *timeline {
	tracks := tracksOf(in, c, r, entries)
	t := &timeline{Width: width, Left: left, Hidden: max(0, len(tracks)-maxLanes)}
	tracks = tracks[:min(len(tracks), maxLanes)]
	s, found := scaleOf(c.CreationTimestamp.Time, tracks, in.Time)
	if !found {
		return nil
	}
	y := top
	for i := range tracks {
		l := draw(&tracks[i], s, y)
		y += l.Height + laneGap
		t.Lanes = append(t.Lanes, &l)
	}
	t.Height, t.Ticks = y, ticksOf(s)
	return t
}

// tracksOf returns the tracks of the cluster and its Machines.
func tracksOf(in *Input, c *snapshot.Cluster, r *report.Cluster, entries []entry) []track {
	all := []track{{title: "Cluster " + c.Name, subtitle: string(r.State)}}
	if c.ControlPlane != nil {
		all[0].rows = append(all[0].rows, withState(
			spansOf(c.ControlPlane.CreationTimestamp.Time, c.ControlPlane.Status.Conditions, clusterSteps), r.State))
		all[0].warnings = warningsOf(entries, snapshot.KindControlPlane+"/"+c.ControlPlane.Name, snapshot.KindCluster+"/"+c.Name)
	}
	hosts := map[string]*unstructured.Unstructured{}
	for i := range in.Objects {
		if in.Objects[i].GetKind() == snapshot.KindHost {
			hosts[in.Objects[i].GetName()] = in.Objects[i].Unstructured
		}
	}
	for i := range c.Machines {
		m := &c.Machines[i]
		row := track{title: "Machine " + m.Name, rows: [][]span{machineSpans(m, &r.Machines[i])}}
		names := []string{snapshot.KindMachine + "/" + m.Name, m.Spec.InfrastructureRef.Kind + "/" + m.Spec.InfrastructureRef.Name}
		if m.Config != nil {
			names = append(names, snapshot.KindConfig+"/"+m.Config.Name)
		}
		if m.Host != nil {
			row.subtitle = m.Host.Name
			row.rows = append(row.rows, hostSpans(hosts[m.Host.Name]))
			names = append(names, snapshot.KindHost+"/"+m.Host.Name)
		}
		if m.Agent != nil {
			row.subtitle = join(row.subtitle, r.Machines[i].Agent.Hostname)
			row.rows = append(row.rows, serviceSpans(in.ServiceEvents, m.Agent.Name))
			names = append(names, snapshot.KindAgent+"/"+m.Agent.Name)
		}
		row.warnings = warningsOf(entries, names...)
		all = append(all, row)
	}
	return all
}

func join(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(slices.Compact(parts), " · ")
}

// warningsOf returns the warnings about objects.
func warningsOf(entries []entry, objects ...string) []entry {
	var found []entry
	for _, e := range entries {
		if e.Warning && !e.Time.IsZero() && slices.Contains(objects, e.kind+"/"+e.name) && len(found) < maxMarks {
			found = append(found, e)
		}
	}
	return found
}

// scaleOf returns the range of the stages: up to the time of the archive if one continues. It is false if there are none.
func scaleOf(created time.Time, tracks []track, now time.Time) (scale, bool) {
	s, open := scale{from: created}, false
	for i := range tracks {
		if len(tracks[i].rows) == 0 {
			continue
		}
		for _, current := range tracks[i].rows[0] { // the operations on a host may be older than the cluster
			if s.from.IsZero() || current.from.Before(s.from) {
				s.from = current.from
			}
			open = open || current.to.IsZero()
			s.to = later(s.to, later(current.from, current.to))
		}
	}
	if open {
		s.to = now
	} else {
		s.to = s.to.Add(s.to.Sub(s.from) / 20)
	}
	return s, !s.from.IsZero() && s.to.After(s.from)
}

// draw returns a track at a height.
func draw(t *track, s scale, y int) lane {
	l := lane{Title: t.title, Subtitle: t.subtitle, Y: y}
	at := y
	for _, row := range t.rows {
		bars := drawRow(row, s, at)
		if len(bars) > 0 {
			l.Bars, at = append(l.Bars, bars...), at+rowHeight+rowGap
		}
	}
	l.Height = max(at-y-rowGap, 2*rowHeight-6)
	for _, w := range t.warnings {
		if !w.Time.Before(s.from) && !w.Time.After(s.to) {
			l.Marks = append(l.Marks, &mark{X: s.x(w.Time), Y: y - 7, Detail: w.At() + " " + w.Object() + " " + w.Reason + ": " + w.Text})
		}
	}
	return l
}

func drawRow(row []span, s scale, y int) []*bar {
	var bars []*bar
	for _, current := range row {
		end := current.to
		if end.IsZero() {
			end = s.to
		}
		if end.Before(s.from) || current.from.After(s.to) {
			continue
		}
		b := &bar{X: s.x(current.from), Y: y, Class: current.class}
		b.Width = max(1.5, s.x(end)-b.X)
		took := duration.HumanDuration(max(0, end.Sub(current.from)))
		b.Detail = current.label + ", " + took + " from " + current.from.UTC().Format(time.DateTime) + "\n" + current.detail
		b.Label = fit(current.label+" "+took, current.label, b.Width)
		bars = append(bars, b)
	}
	return bars
}

// fit returns the first text that fits into a width; "" if none does.
func fit(long, short string, space float64) string {
	for _, text := range []string{long, short} {
		if float64(len(text))*characterWidth+8 <= space {
			return text
		}
	}
	return ""
}

// ticksOf returns at most ten times of the axis.
func ticksOf(s scale) []tick {
	steps := []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
		15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
	total := s.to.Sub(s.from)
	const day = 24 * time.Hour
	every := cmp.Or(firstOf(steps, func(d time.Duration) bool { return total/d <= maxTicks }), (total/maxTicks).Round(day)+day)
	format := "15:04"
	switch {
	case every < time.Minute:
		format = "15:04:05"
	case every >= 24*time.Hour:
		format = "Jan 2"
	case total > 12*time.Hour:
		format = "Jan 2 15:04"
	}
	var ticks []tick
	for at := s.from.UTC().Truncate(every).Add(every); at.Before(s.to); at = at.Add(every) {
		ticks = append(ticks, tick{X: s.x(at), Label: at.Format(format)})
	}
	return ticks
}

func firstOf(steps []time.Duration, fits func(time.Duration) bool) time.Duration {
	if i := slices.IndexFunc(steps, fits); i >= 0 {
		return steps[i]
	}
	return 0
}

// number formats a number of the picture.
func number(value float64) string { return fmt.Sprintf("%.1f", value) }
