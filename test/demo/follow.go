package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/term"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// follow shows the installation until the cluster is available.
func follow(ctx context.Context, cluster *lab.Cluster, begin time.Time) error {
	var err error
	if term.IsTerminal(int(os.Stdout.Fd())) {
		err = followLive(ctx, cluster, begin)
	} else {
		err = followPlainly(ctx, cluster, os.Stdout)
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return errInterrupted
	}
	return err
}

// followLive draws the tree in place.
func followLive(ctx context.Context, cluster *lab.Cluster, begin time.Time) error {
	// Without input the terminal stays as it is, and Ctrl-C reaches the program as a signal.
	program := tea.NewProgram(newView(cluster.Key().String(), begin), tea.WithInput(nil), tea.WithoutSignalHandler())
	result := make(chan error, 1)
	go func() {
		result <- cluster.Wait(ctx, "available", func(s *lab.State) bool {
			program.Send(s)
			return s.Available()
		})
		program.Quit()
	}()
	_, err := program.Run()
	return errors.Join(<-result, err)
}

// followPlainly writes a line for each change.
func followPlainly(ctx context.Context, cluster *lab.Cluster, out io.Writer) error {
	shown := map[string]string{}
	return cluster.Wait(ctx, "available", func(s *lab.State) bool {
		changes(out, shown, tell(s))
		return s.Available()
	})
}

// changes writes what is new in a tree and remembers it.
func changes(out io.Writer, shown map[string]string, i item) {
	text := i.state
	if i.waits != "" && !i.done {
		text += " [" + i.waits + "]"
	}
	if text != "" && shown[i.title] != text {
		shown[i.title] = text
		fmt.Fprintf(out, "%s %s: %s\n", time.Now().Format("15:04:05.000"), i.title, text)
	}
	for _, child := range i.children {
		changes(out, shown, child)
	}
}
