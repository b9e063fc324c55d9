package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func TestPicturesAreTakenOnceWhenTheirMomentComes(t *testing.T) {
	g := NewWithT(t)
	before := lipgloss.ColorProfile()
	defer lipgloss.SetColorProfile(before)
	dir := filepath.Join(t.TempDir(), "pictures")
	pictures, err := newAlbum(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lipgloss.ColorProfile()).To(Equal(termenv.ANSI))
	done := false
	installation := act{done: func(*observation) bool { return done }}
	s := &observation{State: &lab.State{Machines: []lab.Machine{
		{Machine: &clusterv1.Machine{}},
		{Machine: &clusterv1.Machine{}, Agent: &aiv1beta1.Agent{}},
	}}}

	pictures.add("demo/ha", installation, s)
	g.Expect(os.ReadDir(dir)).To(BeEmpty(), "no host is installed yet")
	g.Expect(pictures.complete()).To(MatchError(And(ContainSubstring(`"installing"`), ContainSubstring(`"installed"`))))

	s.Machines[1].Agent.Status.DebugInfo.State = aiv1beta1.HostStatusInstalled
	s.tree.Title = "first"
	pictures.add("demo/ha", installation, s)
	s.tree.Title = "second"
	pictures.add("demo/ha", installation, s)
	shown, err := os.ReadFile(filepath.Join(dir, "installing.ansi"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(shown)).To(And(ContainSubstring("\x1b[1mdemo/ha\x1b[0m"), ContainSubstring("first"), Not(ContainSubstring("second"))))

	done = true
	pictures.add("demo/ha", installation, s)
	g.Expect(filepath.Join(dir, "installed.ansi")).To(BeAnExistingFile())
}
