package e2e

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/reader"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/recorded"
)

// record stores what the kubectl plugin reads of a cluster, in the folder snapshots of the logs. The demo stores the states
// that need no failure. Some of the files are the inputs of golden tests in cmd/kubectl-openshift_agent/report.
func record(ctx context.Context, cluster *lab.Cluster, name string) {
	GinkgoHelper()
	hub, err := reader.NewClient(laboratory.Env.Config(), nil)
	Expect(err).NotTo(HaveOccurred())
	read, err := reader.Read(ctx, hub, reader.Scope{Namespace: cluster.Namespace, Cluster: cluster.Name, Hosts: true}, time.Now())
	Expect(err).NotTo(HaveOccurred())
	Expect(recorded.Write(filepath.Join(laboratory.Dir(), "snapshots", name+".yaml"), read)).To(Succeed())
}
