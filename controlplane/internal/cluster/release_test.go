package cluster

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func nodeWith(config string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n0", UID: "n0", Labels: map[string]string{"metal3.io/uuid": "h0"},
			Annotations: map[string]string{objects.CurrentConfigAnnotation: config},
		},
		Spec: corev1.NodeSpec{ProviderID: "metal3://h0"},
	}
}

func configOf(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: objects.MachineConfigs.GroupVersion().String(), Kind: objects.MachineConfigs.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Annotations: map[string]string{objects.ReleaseVersionAnnotation: version},
		},
	}
}

func TestNodeReleaseIsReadDuringUpgrade(t *testing.T) {
	h, s := connectedHub(t)
	s.put(configsPath, configOf("old", "4.19.3"))
	s.put(configsPath, configOf("new", "4.20.1"))
	s.put(nodesPath, nodeWith("old"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(workload.Node{
		Name: "n0", UID: "n0", ProviderID: "metal3://h0",
		HostUID: "h0", Config: "old",
	})))
	h.Expect(s.requests()).NotTo(ContainElement(ContainSubstring(configsPath)), "no upgrade runs")

	upgrading := clusterVersionOf("4.19.3")
	upgrading.Status.History = slices.Insert(upgrading.Status.History, 0, configv1.UpdateHistory{
		State:   configv1.PartialUpdate,
		Version: "4.20.1",
	})
	s.put(versionsPath, upgrading)
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.19.3"))))
	s.put(nodesPath, nodeWith("new"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.20.1"))))
	h.Expect(s.countRequests(configsPath + "/new")).To(Equal(1))
	s.put(nodesPath, nodeWith("new"))
	h.Consistently(func() int { return s.countRequests(configsPath + "/new") }, "100ms").Should(Equal(1), "the Node has the newest release")

	s.put(versionsPath, clusterVersionOf("4.20.1"))
	h.Eventually(h.observeChange).Should(And(HaveField("OpenShiftVersion", "4.20.1"), HaveField("Rollout", BeNil())))
	h.Eventually(func() string { return h.Observe(clusterKey).Nodes[0].Release }).Should(BeEmpty(), "releases are not needed any more")
}

// countRequests counts the requests for an object.
func (s *apiServer) countRequests(path string) int {
	return len(slices.DeleteFunc(s.requests(), func(request string) bool { return request != "GET "+path }))
}

// The machine config operator names a configuration by its content. A release with the same content only
// changes the annotation.
func TestReleaseOfUnchangedConfigurationIsReadAgain(t *testing.T) {
	h, s := connectedHub(t)
	s.put(configsPath, configOf("same", "4.19.3"))
	s.put(nodesPath, nodeWith("same"))
	upgrading := clusterVersionOf("4.19.3")
	upgrading.Status.History = slices.Insert(upgrading.Status.History, 0, configv1.UpdateHistory{
		State:   configv1.PartialUpdate,
		Version: "4.19.4",
	})
	s.put(versionsPath, upgrading)
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.19.3"))))
	s.put(configsPath, configOf("same", "4.19.4"))
	s.put(versionsPath, upgrading.DeepCopy())
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Release", "4.19.4"))))
}

func TestNodeReleaseIsReadWhileRequired(t *testing.T) {
	h, s := connectedHub(t)
	s.put(configsPath, configOf("old", "4.19.3"))
	s.put(nodesPath, nodeWith("old"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Config", "old"))))
	h.RequireReleases(clusterKey, true)
	h.Eventually(h.visits).Should(Receive(), "the cluster must be visited")
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).Nodes).To(ConsistOf(HaveField("Release", "4.19.3")))

	h.RequireReleases(clusterKey, true)
	h.Consistently(h.visits, "100ms").ShouldNot(Receive(), "nothing changed")
	h.RequireReleases(clusterKey, false)
	h.Expect(h.Observe(clusterKey).Nodes).To(ConsistOf(HaveField("Release", "")))
}
