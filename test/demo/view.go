package main

import (
	"fmt"
	"time"

	"github.com/charmbracelet/bubbles/progress"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/lipgloss/tree"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var (
	titleStyle = lipgloss.NewStyle().Bold(true)
	doneStyle  = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
	stateStyle = lipgloss.NewStyle().Foreground(lipgloss.Color("6"))
	waitStyle  = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	faintStyle = lipgloss.NewStyle().Faint(true)
)

// view is the live picture of an installation.
type view struct {
	name  string
	act   act
	bar   progress.Model
	state *observation
	end   time.Time
}

func newView(name string, a act) view {
	return view{
		name: name, act: a,
		bar: progress.New(progress.WithSolidFill("2"), progress.WithWidth(50), progress.WithColorProfile(lipgloss.ColorProfile())),
	}
}

// tick lets the clock run.
type tick struct{}

func nextTick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} })
}

// Init implements tea.Model.
func (v view) Init() tea.Cmd { return nextTick() }

// Update implements tea.Model.
func (v view) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case *observation:
		v.state = m
		if v.act.done(m) {
			v.end = time.Now()
		}
	case tick:
		return v, nextTick()
	}
	return v, nil
}

// View implements tea.Model.
func (v view) View() string {
	now := v.end
	if now.IsZero() {
		now = time.Now()
	}
	head := fmt.Sprintf("%s  %s\n", titleStyle.Render(v.name), faintStyle.Render(now.Sub(v.act.begin).Round(time.Second).String()))
	if v.state == nil {
		return head
	}
	return fmt.Sprintf("\n%s%s\n\n%s\n", head, v.bar.ViewAs(percentage(v.state.State)), branch(v.state.tree))
}

// percentage is how much of the installation is done, from 0 to 1.
func percentage(s *lab.State) float64 {
	if s.ControlPlane == nil || s.ControlPlane.Status.Installation.Percentage == nil {
		return 0
	}
	return float64(*s.ControlPlane.Status.Installation.Percentage) / 100
}

// branch draws an item and what is below it.
func branch(i report.Item) *tree.Tree {
	label := titleStyle.Render(i.Title) + " " + stateStyle.Render(i.Text)
	if i.State == judge.Ready {
		label = doneStyle.Render(report.Mark(i.State)+" ") + label
	} else {
		label += faintStyle.Render(" " + i.Age)
	}
	if i.Problem != "" {
		label += "\n" + waitStyle.Render("  "+i.Problem)
	}
	t := tree.Root(label)
	for _, child := range i.Children {
		t.Child(branch(child))
	}
	return t
}
