package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// Item is an object of the tree with the objects below it.
type Item struct {
	// Title names the object, Text describes its state. Age is how long the object has been in its step.
	Title, Text, Age string
	State            judge.State
	// Problem is what the object waits for. It is empty if the object is Ready.
	Problem  string
	Children []Item
}

// Tree returns the tree of a cluster: the Cluster, its control plane, Machines, hosts, Agents and Nodes.
func Tree(r *Cluster) Item {
	machines := ""
	if r.machines() > 0 {
		machines = fmt.Sprintf("%d of %d Machines run", r.RunningMachines, r.machines())
	}
	root := Item{
		Title: "Cluster " + r.Namespace + "/" + r.Name, State: r.State, Problem: firstCause(r),
		Text: join(string(r.State), r.Phase, machines), Age: age(r.Time, r.Since, 0),
	}
	workers := Item{Title: "Workers", State: judge.Ready}
	controlPlane := controlPlaneItem(r)
	for i := range r.Machines {
		parent := &workers
		if r.Machines[i].ControlPlane {
			parent = &controlPlane
		}
		child := machineItem(r, &r.Machines[i])
		parent.Children = append(parent.Children, child)
		if child.State.Compare(workers.State) < 0 && parent == &workers {
			workers.State = child.State
		}
	}
	root.Children = append(root.Children, controlPlane)
	if len(workers.Children) > 0 {
		root.Children = append(root.Children, workers)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.NotReadable)) {
		root.Children = append(root.Children, Item{
			Title: kind + "s", Text: "not readable (" + r.NotReadable[kind] + ")", State: judge.Unknown,
		})
	}
	return root
}

// firstCause returns the cause of the state of a cluster with the object that reports it.
func firstCause(r *Cluster) string {
	if r.State == judge.Ready {
		return ""
	}
	return describe(r.Cause.Reason, r.Cause.Message) + " (" + reporter(&r.Cause) + ")"
}

// reporter names the object that reports a cause, with its host.
func reporter(c *judge.Cause) string {
	name := c.Object.Kind + " " + c.Object.Name
	if c.Host != "" {
		name += ", host " + oneLine(c.Host)
	}
	return name
}

// describe returns a reason with its message on one line.
func describe(reason, message string) string {
	message = oneLine(message)
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

func controlPlaneItem(r *Cluster) Item {
	cp := r.ControlPlane
	if cp == nil {
		if _, hidden := r.NotReadable[snapshot.KindControlPlane]; hidden {
			return Item{Title: "Control plane", State: judge.Unknown, Text: "not readable"}
		}
		return Item{Title: "Control plane", State: judge.Progressing, Text: "does not exist yet"}
	}
	i := Item{Title: "Control plane " + cp.Name, State: judge.Progressing, Text: join("release "+cp.Release, cp.Installation)}
	if cp.Available {
		i.State = judge.Ready
		i.Text = join("release "+cmp.Or(cp.Runs, cp.Release), "available")
	}
	if cp.StartTime != nil {
		i.Age = age(r.Time, *cp.StartTime, 0)
	}
	if r.Cause.Object.Kind == snapshot.KindControlPlane {
		i.State, i.Problem = r.State, describe(r.Cause.Reason, r.Cause.Message)
		i.Age = age(r.Time, ptr.Deref(r.Cause.Since, metav1.Time{}), r.Cause.Usual())
	}
	if u := cp.Upgrade; u != nil {
		i.Children = append(i.Children, upgradeItem(u))
	}
	if cp.Etcd != nil {
		i.Children = append(i.Children, etcdItem(cp.Etcd))
	}
	for _, n := range cp.Notes {
		i.Children = append(i.Children, Item{Title: "Note", Text: n.Condition + ": " + n.Message})
	}
	return i
}

func upgradeItem(u *Upgrade) Item {
	percentage, pools := "", ""
	if u.Percentage != nil {
		percentage = fmt.Sprintf("%d%%", *u.Percentage)
	}
	if len(u.PoolsBehind) > 0 {
		pools = "pools behind: " + strings.Join(u.PoolsBehind, ", ")
	}
	return Item{
		Title: "Upgrade to " + u.To, State: judge.Progressing,
		Text: join(percentage, fmt.Sprintf("%d of %d control-plane Machines up to date", u.UpToDate, u.Machines), pools),
	}
}

func etcdItem(e *Etcd) Item {
	i := Item{Title: "etcd", State: judge.Ready, Text: "healthy"}
	if e.Healthy != metav1.ConditionTrue {
		i.State, i.Text, i.Problem = judge.Blocked, "not healthy", e.Message
	}
	if e.Healthy == metav1.ConditionUnknown {
		i.State, i.Text = judge.Unknown, "unknown"
	}
	if members := int(e.HealthyMembers) + len(e.OtherMembers); members > 0 {
		i.Text = join(i.Text, fmt.Sprintf("%d of %d members healthy", e.HealthyMembers, members))
	}
	for _, m := range e.OtherMembers {
		i.Children = append(i.Children, Item{Title: "Member of Machine " + m.Machine, State: judge.Unknown, Text: describe(m.Reason, m.Message)})
	}
	return i
}

func machineItem(r *Cluster, m *Machine) Item {
	i := Item{Title: "Machine " + m.Name, State: m.State}
	parts := []string{m.Phase}
	if m.Arbiter {
		parts = append(parts, "arbiter")
	}
	if m.Stage != nil {
		stage := m.Stage.Name
		if m.Stage.Percentage != nil {
			stage += fmt.Sprintf(" %d%%", *m.Stage.Percentage)
		}
		parts = append(parts, stage)
		i.Age = age(r.Time, m.Stage.Since, time.Duration(m.Stage.UsualSeconds)*time.Second)
	}
	switch {
	case m.Host != nil:
		parts = append(parts, "BareMetalHost "+m.Host.Name+" "+m.Host.State)
	case m.HostName != "":
		parts = append(parts, "host "+m.HostName)
	}
	if m.Agent != nil && (m.Stage != nil || m.Node == nil) {
		parts = append(parts, "Agent "+cmp.Or(m.Agent.Hostname, m.HostName, m.Agent.Name)+" "+m.Agent.State)
	}
	if m.Node != nil {
		parts = append(parts, "Node "+m.Node.Name+" "+readiness[m.Node.Ready], m.Version)
	}
	i.Text = join(parts...)
	if m.State != judge.Ready {
		i.Problem = oneLine(m.Cause.Message)
		if m.Stage == nil || m.Stage.Name != m.Cause.Reason {
			i.Problem = describe(m.Cause.Reason, m.Cause.Message)
		}
	}
	return i
}

// readiness describes the condition Ready of a Node.
var readiness = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue: "ready", metav1.ConditionFalse: "not ready", metav1.ConditionUnknown: "of unknown readiness",
}

// age describes how long a step takes: "3m (usually up to 30m)".
func age(now, since metav1.Time, usual time.Duration) string {
	if since.IsZero() {
		return ""
	}
	text := duration.HumanDuration(max(0, now.Sub(since.Time)))
	if usual > 0 {
		text += " (usually up to " + duration.HumanDuration(usual) + ")"
	}
	return text
}

// join joins the parts that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

// Mark is the sign of a state in the tree.
func Mark(s judge.State) string {
	switch s {
	case judge.Ready:
		return "✓"
	case judge.Failed:
		return "✗"
	case judge.Blocked, judge.Slow:
		return "!"
	case judge.Unknown:
		return "?"
	case judge.Paused:
		return "="
	case judge.Progressing:
		return "·"
	}
	return " "
}

// WriteTree writes a tree as text.
func WriteTree(out io.Writer, i Item) error {
	var text strings.Builder
	writeItem(&text, i, "", "", "")
	_, err := io.WriteString(out, text.String())
	return err
}

// writeItem writes an item with its children. The prefixes precede its first line, its other lines and its children.
func writeItem(text *strings.Builder, i Item, first, other, below string) {
	text.WriteString(first + Mark(i.State) + " " + i.Title)
	if details := oneLine(join(i.Text, i.Age)); details != "" {
		text.WriteString("  " + details)
	}
	text.WriteString("\n")
	if i.Problem != "" {
		problem := other
		if len(i.Children) > 0 {
			problem = below + "│ "
		}
		text.WriteString(problem + "  " + oneLine(i.Problem) + "\n")
	}
	for n, child := range i.Children {
		if n == len(i.Children)-1 {
			writeItem(text, child, below+"└─", below+"    ", below+"  ")
		} else {
			writeItem(text, child, below+"├─", below+"│   ", below+"│ ")
		}
	}
}
