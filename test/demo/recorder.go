package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/recorded"
)

// recorder stores the objects of a cluster at each change of its state. The tests of the kubectl plugin read such files.
type recorder struct {
	dir    string
	last   string
	stored int
}

// newRecorder returns a recorder for a folder; nil without a folder.
func newRecorder(dir string) *recorder {
	if dir == "" {
		return nil
	}
	return &recorder{dir: dir}
}

// add stores a snapshot if the state of the cluster has changed.
func (r *recorder) add(s *snapshot.Snapshot, status *report.Cluster) {
	if r == nil || report.Line(&status.Cause) == r.last {
		return
	}
	r.last = report.Line(&status.Cause)
	if err := recorded.Write(filepath.Join(r.dir, fmt.Sprintf("%03d-%s.yaml", r.stored, status.Cause.Reason)), s); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	r.stored++
}
