package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// ownerVariable makes the test binary the owner of a group with one process.
const ownerVariable = "OPENSHIFT_AGENT_TEST_LOGS"

func TestMain(m *testing.M) {
	dir := os.Getenv(ownerVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	g, p, err := own(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, p.PID(), g.Temp())
	select {} // until the signal
}

// own starts a group that ends with this process.
func own(logs string) (*Group, *Process, error) {
	g, err := NewGroup(logs, io.Discard)
	if err != nil {
		return nil, nil, err
	}
	g.HandleSignals()
	p := g.New("sleep", Storage, "/bin/sh", "-c", "exec sleep 600")
	p.Ready = func(context.Context) error { return nil }
	return g, p, g.Start(context.Background(), p)
}

func TestNothingOutlivesItsOwner(t *testing.T) {
	for _, c := range []struct {
		situation string
		signal    syscall.Signal
		dataGone  bool
	}{
		{"interrupted with Ctrl-C: stopped in order", syscall.SIGINT, true},
		{"receives SIGTERM: stopped in order", syscall.SIGTERM, true},
		{"killed: the kernel ends the processes, the next run removes the data", syscall.SIGKILL, false},
	} {
		t.Run(c.situation, func(t *testing.T) {
			g := NewWithT(t)
			owner := exec.CommandContext(t.Context(), os.Args[0])
			owner.Env = append(os.Environ(), ownerVariable+"="+t.TempDir())
			output, err := owner.StdoutPipe()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(owner.Start()).To(Succeed())
			line, err := bufio.NewReader(output).ReadString('\n')
			g.Expect(err).NotTo(HaveOccurred())
			first, temp, found := strings.Cut(strings.TrimSpace(line), " ")
			g.Expect(found).To(BeTrue(), line)
			pid, err := strconv.Atoi(first)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(gone(pid)).To(BeFalse())

			g.Expect(owner.Process.Signal(c.signal)).To(Succeed())
			g.Expect(owner.Wait()).NotTo(Succeed())
			g.Expect(owner.ProcessState.Sys().(syscall.WaitStatus).Signal()).To(Equal(c.signal), "the caller must see how it ended")
			g.Eventually(func() bool { return gone(pid) }, time.Minute).Should(BeTrue())
			if !c.dataGone {
				path, lock, err := newTempDir()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.RemoveAll(path)).To(Succeed())
				lock.Close()
			}
			_, err = os.Stat(temp)
			g.Expect(err).To(MatchError(os.ErrNotExist))
		})
	}
}

func TestProcessThatDoesNotBecomeReady(t *testing.T) {
	g := NewWithT(t)
	p := &Process{
		Name: "short", LogPath: filepath.Join(t.TempDir(), "log"), Path: "/bin/sh", Args: []string{"-c", "echo why it failed; exit 3"},
		Ready: func(context.Context) error { return errors.New("not yet") },
	}
	err := p.Start(t.Context())
	g.Expect(err).To(MatchError(And(ContainSubstring("exit status 3"), ContainSubstring("why it failed"), ContainSubstring(p.LogPath))))
	g.Expect(p.Running()).To(BeFalse())
}

func TestProcessThatEndsWithoutASignal(t *testing.T) {
	g := NewWithT(t)
	p := &Process{
		Name: "mortal", LogPath: filepath.Join(t.TempDir(), "log"), Path: "/bin/sh",
		Ready: func(context.Context) error { return nil },
	}
	g.Expect(p.Died()).To(BeFalse(), "it never ran")
	for _, end := range []string{"exit 0", "exit 3"} {
		p.Args = []string{"-c", end}
		g.Expect(p.Start(t.Context())).To(Or(Succeed(), MatchError(ContainSubstring("ended"))))
		g.Eventually(p.Died).Should(BeTrue(), end)
	}
	p.Args = []string{"-c", "exec sleep 600"}
	g.Expect(p.Start(t.Context())).To(Succeed())
	g.Expect(p.Died()).To(BeFalse(), "it runs again")
	p.Kill()
	g.Expect(p.Died()).To(BeFalse(), "it was killed")
}

// TestProcessIsRestarted: a process with Restart ends three times, and then stays until it is stopped.
func TestProcessIsRestarted(t *testing.T) {
	g, runs := NewWithT(t), filepath.Join(t.TempDir(), "runs")
	prepared := 0
	p := &Process{
		Name: "leader", LogPath: filepath.Join(t.TempDir(), "log"), Path: "/bin/sh", Restart: true,
		Args: []string{"-c", `echo run >> "$0"; sleep 0.2; [ "$(wc -l < "$0")" -gt 3 ] || exit 1; exec sleep 600`, runs},
		Before: func(context.Context) error {
			if prepared++; prepared == 3 {
				return errors.New("the lease cannot be deleted")
			}
			return nil
		},
		Ready: func(context.Context) error { return nil },
	}
	count := func() int {
		content, _ := os.ReadFile(runs)
		return strings.Count(string(content), "run")
	}
	g.Expect(p.Start(t.Context())).To(Succeed())
	first := p.PID()
	g.Eventually(count, time.Minute).Should(Equal(4), "restarted, also after a failed preparation")
	g.Consistently(p.Running, 2*restartDelay).Should(BeTrue())
	g.Expect(p.PID()).NotTo(Equal(first))
	p.Kill()
	g.Consistently(p.Running, 2*restartDelay).Should(BeFalse(), "killed by its owner")

	p.Args = []string{"-c", "exit 1"}
	g.Expect(p.Start(t.Context())).To(Or(Succeed(), MatchError(ContainSubstring("ended"))))
	p.Stop()
	g.Consistently(p.Running, 2*restartDelay).Should(BeFalse(), "stopped between two runs")
}

func TestUsage(t *testing.T) {
	stat := "42 (a (strange) name) S 1 42 42 0 -1 4194560 100 0 0 0 " +
		"250 50 0 0 20 0 9 0 100 1000000 500 0"
	t.Run("CPU time is user and kernel mode, memory is in bytes", func(t *testing.T) {
		g := NewWithT(t)
		usage, err := parseUsage(stat, "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\nThreads:\t9\n")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(usage).To(Equal(Usage{CPU: 3 * time.Second, PeakMemory: 2 << 20, Memory: 1 << 20, Anonymous: 512 << 10}))
	})
	t.Run("an unknown form is an error", func(t *testing.T) {
		g := NewWithT(t)
		_, err := parseUsage("42 (x) S", "")
		g.Expect(err).To(HaveOccurred())
		_, err = parseUsage(stat, "VmHWM:\tmuch\n")
		g.Expect(err).To(HaveOccurred())
	})
}

func TestPorts(t *testing.T) {
	g := NewWithT(t)
	var one, other ports
	t.Cleanup(one.release)
	t.Cleanup(other.release)
	seen := map[int]bool{}
	for range 20 {
		for _, p := range []*ports{&one, &other} {
			port, err := p.reserve()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(seen).NotTo(HaveKey(port), "a reserved port is not given away again")
			seen[port] = true
		}
	}
}

// gone reports whether there is no such process.
func gone(pid int) bool {
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
