package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// terminal runs the commands of a user of the hub: kubectl, with the plugin.
type terminal struct{ program, home string }

// openTerminal builds the programs if necessary. The terminal has its own home, in which kubectl caches the kinds of the hub.
func openTerminal(ctx context.Context) *terminal {
	GinkgoHelper()
	t := &terminal{home: GinkgoT().TempDir()}
	t.program = filepath.Join(t.home, "kubectl")
	for name, component := range map[string]components.Component{
		"kubectl": components.Kubectl, "kubectl-openshift_agent": components.Plugin,
	} {
		program, err := laboratory.Env.Components().Program(ctx, component)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Symlink(program, filepath.Join(t.home, name))).To(Succeed())
	}
	return t
}

// kubectl runs kubectl in a namespace, and returns the output and the exit code.
func (t *terminal) kubectl(ctx context.Context, namespace string, args ...string) (output string, code int) {
	command := exec.CommandContext(ctx, t.program, append(args, "--namespace", namespace)...)
	command.Env = append(os.Environ(), "PATH="+t.home+":"+os.Getenv("PATH"), "HOME="+t.home, "KUBECONFIG="+laboratory.Env.Kubeconfig())
	var written bytes.Buffer
	command.Stdout, command.Stderr = &written, &written
	_ = command.Run() // the exit code is returned
	return written.String(), command.ProcessState.ExitCode()
}

// column returns the values of a column of a table that kubectl printed. Empty values are part of it.
func column(table, title string) []string {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	begin := strings.Index(lines[0], title)
	if begin < 0 {
		return nil
	}
	end := begin + len(title)
	for end < len(lines[0]) && lines[0][end] == ' ' {
		end++
	}
	values := []string{}
	for _, line := range lines[1:] {
		if begin >= len(line) {
			values = append(values, "")
			continue
		}
		value := line[begin:]
		if end < len(lines[0]) && end < len(line) {
			value = line[begin:end]
		}
		values = append(values, strings.TrimSpace(value))
	}
	return values
}

// unwrapped returns a text of several lines as one line.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }
