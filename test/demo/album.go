package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// album stores the live view of a cluster at selected moments. Each file contains the escape sequences of a terminal.
type album struct {
	dir     string
	moments []moment
	err     error
}

// moment is one that is worth a picture.
type moment struct {
	name  string
	comes func(act, *observation) bool
	taken bool
}

// newAlbum creates the folder of an album. From then on the view has colors on any output.
func newAlbum(dir string) (*album, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the pictures: %w", err)
	}
	lipgloss.SetColorProfile(termenv.ANSI)
	return &album{dir: dir, moments: []moment{
		{name: "installing", comes: func(_ act, s *observation) bool { return someAreInstalled(s.Machines) }},
		{name: "installed", comes: func(current act, s *observation) bool { return current.done(s) }},
	}}, nil
}

// someAreInstalled is true while hosts are at different stages of their installation.
func someAreInstalled(machines []lab.Machine) bool {
	installed := 0
	for _, m := range machines {
		if m.Agent != nil && m.Agent.Status.DebugInfo.State == aiv1beta1.HostStatusInstalled {
			installed++
		}
	}
	return installed > 0 && installed < len(machines)
}

// add takes the pictures whose moment has come, each once.
func (a *album) add(cluster string, current act, s *observation) {
	for i, m := range a.moments {
		if m.taken || !m.comes(current, s) {
			continue
		}
		shown, _ := newView(cluster, current).Update(s)
		a.err = errors.Join(a.err, os.WriteFile(filepath.Join(a.dir, m.name+".ansi"), []byte(shown.View()), 0o644))
		a.moments[i].taken = true
	}
}

// complete returns an error that names a failure or a missing moment.
func (a *album) complete() error {
	for _, m := range a.moments {
		if !m.taken {
			a.err = errors.Join(a.err, fmt.Errorf("there was no moment for the picture %q", m.name))
		}
	}
	return a.err
}
