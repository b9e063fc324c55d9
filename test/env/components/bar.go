package components

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	bar "github.com/charmbracelet/bubbles/progress"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"golang.org/x/term"
)

// display shows the progress of a build.
type display struct {
	// builder writes its messages without disturbing the display.
	builder *Builder
	// built writes the progress after a component is built, where no bar shows it.
	built func(now time.Time)
	end   func()
}

// show draws a bar on a terminal during the build. Without terminal only messages appear.
func show(b *Builder, p *progress) display {
	file, ok := b.out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		built := func(now time.Time) {
			if now.Sub(p.started) >= time.Minute {
				b.sayf("%s", p.text(now))
			}
		}
		return display{builder: b, built: built, end: func() {}}
	}
	// Without input the terminal stays unchanged, and Ctrl-C reaches the program as a signal.
	program := tea.NewProgram(newBuildView(p), tea.WithOutput(file), tea.WithInput(nil), tea.WithoutSignalHandler())
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, _ = program.Run() // a failing display does not fail the build
	}()
	return display{
		builder: &Builder{root: b.root, out: above{program}},
		built:   func(time.Time) {},
		end: func() {
			program.Send(ended{})
			<-finished
		},
	}
}

// above writes lines above the display of a program.
type above struct{ program *tea.Program }

// Write implements io.Writer.
func (a above) Write(text []byte) (int, error) {
	// Program.Println would block after the program has ended
	a.program.Send(tea.Println(strings.TrimRight(string(text), "\n"))())
	return len(text), nil
}

var _ io.Writer = above{}

// buildView is the model of the display.
type buildView struct {
	progress *progress
	bar      bar.Model
	ended    bool
}

func newBuildView(p *progress) buildView {
	return buildView{progress: p, bar: bar.New(bar.WithSolidFill("2"), bar.WithWidth(50), bar.WithColorProfile(lipgloss.ColorProfile()))}
}

// tick updates the clock, ended ends the display.
type (
	tick  struct{}
	ended struct{}
)

func nextTick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} })
}

// Init implements tea.Model.
func (v buildView) Init() tea.Cmd { return nextTick() }

// Update implements tea.Model.
func (v buildView) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message.(type) {
	case tick:
		return v, nextTick()
	case ended:
		v.ended = true // clears the display
		return v, tea.Quit
	}
	return v, nil
}

// View implements tea.Model.
func (v buildView) View() string {
	if v.ended {
		return ""
	}
	return v.at(time.Now())
}

// at returns the display at a time.
func (v buildView) at(now time.Time) string {
	return fmt.Sprintf("%s  %s  %s\nbuilding %s, once\n", v.bar.ViewAs(v.progress.share()),
		now.Sub(v.progress.started).Round(time.Second), v.progress.text(now), v.progress.building())
}
