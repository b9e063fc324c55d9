package clusterctl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The documents whose blocks the journey runs as they are written.
const (
	readme        = "README.md"
	upgradePage   = "docs/operations/upgrading-the-providers.md"
	uninstallPage = "docs/operations/uninstalling.md"
	openShiftPage = "docs/operations/hub-on-openshift.md"
)

// documented is the name and the namespace of the cluster that the README installs, documentedServers the number of its
// servers.
const documented, documentedServers = "lab", 3

// run runs a block of a document as it is written, except for the replaced texts, and returns its output. It fails at the
// first command that fails.
func (w *world) run(document, name string, replaced ...string) string {
	w.Helper()
	g := NewWithT(w)
	path := filepath.Join(w.builder.Root(), document)
	source, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	block, err := docs.Parse(document, source).Named(name)
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(w.Context(), "bash", "-euo", "pipefail", "-c", strings.NewReplacer(replaced...).Replace(block.Text))
	cmd.Dir, cmd.Env = w.folder, w.env
	out, err := cmd.CombinedOutput()
	g.Expect(errors.Join(err, w.failure())).NotTo(HaveOccurred(), "%s:%d\n%s\n%s", document, block.Line, block.Text, out)
	w.Logf("%s:%d\n%s\n%s", document, block.Line, block.Text, out)
	return string(out)
}

// makeDocumented registers servers and creates a cluster with the commands of the README.
func (w *world) makeDocumented() *lab.Cluster {
	w.Helper()
	g := NewWithT(w)
	w.run(readme, "namespace")
	for i := range documentedServers {
		w.run(readme, "server", "rack1-u1", fmt.Sprintf("rack1-u%d", i+1), "aa:00:01", fmt.Sprintf("aa:00:%02d", i+1),
			"111.101", fmt.Sprintf("111.%d", 101+i))
	}
	w.run(readme, "inspection")
	g.Expect(os.WriteFile(filepath.Join(w.folder, "pull-secret.json"), []byte(lab.PullSecretContent()), 0o600)).To(Succeed())
	w.run(readme, "cluster")
	manifests, err := os.ReadFile(filepath.Join(w.folder, documented+".yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	// The simulated network has no DNS and no virtual addresses: the lab applies the file with the address of its API server.
	cluster, err := w.lab.ApplyManifests(w.Context(), manifests,
		lab.Mutations{Namespace: documented, ClusterName: documented, LightAPI: true, ExtraHosts: -documentedServers})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Hosts).To(BeEmpty())
	servers := &metal3api.BareMetalHostList{}
	g.Expect(w.lab.Client().List(w.Context(), servers, client.InNamespace(documented))).To(Succeed())
	for i := range servers.Items {
		cluster.Hosts = append(cluster.Hosts, &servers.Items[i])
	}
	return cluster
}

// verifyDocumented waits for the cluster of the README and lists its Nodes, with the commands of the README.
func (w *world) verifyDocumented() {
	out := w.run(readme, "verification")
	NewWithT(w).Expect(out).To(MatchRegexp(`(?m)^openshiftassistedcontrolplane\S+/lab condition met$`))
	NewWithT(w).Expect(out).To(MatchRegexp(`─Installed +True +Installed`))
	for i := range documentedServers {
		NewWithT(w).Expect(out).To(MatchRegexp(`(?m)^\S*rack1-u%d `, i+1))
	}
}
