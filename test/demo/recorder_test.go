package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

func TestRecorderStoresEachStateOnce(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "recorded")
	r := newRecorder(dir)
	status := &report.Cluster{Cause: judge.Cause{State: judge.Progressing, Reason: "Installing"}}
	r.add(&snapshot.Snapshot{}, status)
	r.add(&snapshot.Snapshot{}, status)
	status.Cause.Reason = "Finalizing"
	r.add(&snapshot.Snapshot{}, status)
	g.Expect(os.ReadDir(dir)).To(HaveLen(2))
	g.Expect(filepath.Join(dir, "001-Finalizing.yaml")).To(BeAnExistingFile())
	newRecorder("").add(&snapshot.Snapshot{}, status)
}
