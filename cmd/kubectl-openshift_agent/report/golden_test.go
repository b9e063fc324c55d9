package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// TestRecordedClusters compares what the commands show of recorded objects with the text of the same name. With
// UPDATE_GOLDEN=1 it writes the texts. The objects are from go -C test run ./demo -record=<folder>.
func TestRecordedClusters(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(len(files)).To(BeNumerically(">=", 6))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			g := NewWithT(t)
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			s := &snapshot.Snapshot{}
			g.Expect(yaml.UnmarshalStrict(content, s)).To(Succeed())
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			shown := shownOf(g, s)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				g.Expect(os.WriteFile(golden, shown, 0o644)).To(Succeed())
				return
			}
			expected, err := os.ReadFile(golden)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(shown)).To(Equal(string(expected)))
		})
	}
}

// shownOf returns the line, the tree and the first cause of each cluster.
func shownOf(g Gomega, s *snapshot.Snapshot) []byte {
	var out bytes.Buffer
	clusters := All(s)
	g.Expect(WriteList(&out, s, clusters)).To(Succeed())
	for _, c := range clusters {
		out.WriteString("\n")
		g.Expect(WriteTree(&out, Tree(c))).To(Succeed())
		out.WriteString("\n")
		object := judge.Object{Kind: snapshot.KindCluster, Namespace: c.Namespace, Name: c.Name}
		g.Expect(WriteCause(&out, object, c.Time, &c.Cause)).To(Succeed())
	}
	return out.Bytes()
}
