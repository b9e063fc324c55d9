package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// pane is a terminal of tmux in which a program runs.
type pane struct {
	tmux, socket string
}

// openPane runs a command of a shell in a terminal of 120 columns and 30 lines.
func openPane(t *testing.T, command string) *pane {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed: run make components (Debian, Ubuntu, as root), or install the package tmux")
	}
	folder, err := os.MkdirTemp("", "tmux") //nolint:usetesting // the path of a socket must be short
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	p := &pane{tmux: tmux, socket: filepath.Join(folder, "s")}
	t.Cleanup(func() { _, _ = p.run(context.WithoutCancel(t.Context()), "kill-server") })
	output, err := p.run(t.Context(), "-u", "-f", os.DevNull, "new-session", "-d", "-x", "120", "-y", "30", command)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), output)
	return p
}

func (p *pane) run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, p.tmux, append([]string{"-S", p.socket}, args...)...)
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	output, err := command.CombinedOutput()
	return string(output), err
}

// text returns what the terminal shows, without empty lines at the end.
func (p *pane) text(ctx context.Context) string {
	shown, err := p.run(ctx, "capture-pane", "-p", "-J")
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(shown, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// The terminal shows what status shows, and nothing that it showed before. A message of another client must not move the
// cursor.
func TestWatchInATerminal(t *testing.T) {
	g, hub := NewWithT(t), newHubServer(t)
	program := filepath.Join(t.TempDir(), "kubectl-openshift_agent")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	t.Setenv("HOME", t.TempDir())
	flags := []string{"--server", hub.URL, "--namespace", "lab", "status", "ha"}
	status := func() string {
		shown, err := exec.CommandContext(t.Context(), program, flags...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(shown))
		return strings.TrimRight(string(shown), "\n")
	}

	hub.put(t, watchedCluster(controlplanev1.PullSecretMissingReason, "Secret lab/x is missing.\x1b[2J\x1b[H\rgone", "m0", "m1", "m2")...)
	first := status()
	g.Expect(first).To(And(ContainSubstring("PullSecretMissing: Secret lab/x is missing."), ContainSubstring("Machine m2")))
	p := openPane(t, "trap : INT; "+program+" "+strings.Join(flags, " ")+" -w; echo exit code $?; sleep 600")
	shown := func() string { return p.text(t.Context()) }
	g.Eventually(shown).WithTimeout(time.Minute).Should(Equal(first))

	hub.remove("machines", "m1", "m2")
	hub.put(t, watchedCluster(controlplanev1.InstallingReason, "45%", "m0")...)
	second := status()
	g.Expect(strings.Count(second, "\n")).To(BeNumerically("<", strings.Count(first, "\n")), "lines of the first text would remain")
	g.Eventually(shown).WithTimeout(time.Minute).Should(Equal(second))

	_, err = p.run(t.Context(), "send-keys", "C-c")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(shown).WithTimeout(time.Minute).Should(And(HavePrefix(second), HaveSuffix("exit code 0")))
}

// watchedCluster returns Cluster lab/ha with a condition of its control plane, and Machines. Ages of days do not change
// during a test.
func watchedCluster(reason, message string, machines ...string) []client.Object {
	created := metav1.NewTime(time.Now().Add(-10 * 24 * time.Hour))
	object := metav1.ObjectMeta{Namespace: "lab", Name: "ha", CreationTimestamp: created}
	cluster := &clusterv1.Cluster{ObjectMeta: object}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: controlplanev1.GroupVersion.Group, Kind: snapshot.KindControlPlane, Name: "ha",
	}
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: object}
	controlPlane.Spec.DistributionVersion = "4.19.3"
	controlPlane.Status.Conditions = []metav1.Condition{{
		Type: controlplanev1.InstalledCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: created,
	}}
	objects := []client.Object{cluster, controlPlane}
	for _, name := range machines {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: name, CreationTimestamp: created, Labels: map[string]string{clusterv1.ClusterNameLabel: "ha"},
		}}
		m.Spec.ClusterName = "ha"
		objects = append(objects, m)
	}
	return objects
}
