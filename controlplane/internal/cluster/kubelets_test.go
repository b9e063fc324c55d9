package cluster

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// nodeWith returns a Node with a machine configuration and the version of its kubelet.
func nodeWith(config, kubelet string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n0", UID: "n0", Labels: map[string]string{"metal3.io/uuid": "h0"},
			Annotations: map[string]string{objects.CurrentConfigAnnotation: config},
		},
		Spec:   corev1.NodeSpec{ProviderID: "metal3://h0"},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet}},
	}
}

// countRequests counts the requests for an object.
func (s *apiServer) countRequests(path string) int {
	return len(slices.DeleteFunc(s.requests(), func(request string) bool { return request != "GET "+path }))
}

// A Node is read whole only while its kubelet may change: the API servers report v1.32.6 here.
func TestKubeletIsReadUntilItFollowsAPIServers(t *testing.T) {
	h, s := connectedHub(t)
	s.put(nodesPath, nodeWith("old", "v1.31.2"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(workload.Node{
		Name: "n0", UID: "n0", ProviderID: "metal3://h0", HostUID: "h0", Config: "old", KubeletVersion: "v1.31.2",
	})))
	s.put(nodesPath, nodeWith("old", "v1.32.6"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("KubeletVersion", "v1.32.6"))))
	read := s.countRequests(nodesPath + "/n0")
	s.put(nodesPath, nodeWith("old", "v1.32.6"))
	h.Consistently(func() int { return s.countRequests(nodesPath + "/n0") }, "100ms").Should(Equal(read), "the Node is settled")

	s.put(nodesPath, nodeWith("new", "v1.32.7"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("KubeletVersion", "v1.32.7"))))
}

func TestKubeletVersionThatIsNoVersionIsUnknown(t *testing.T) {
	h, s := connectedHub(t)
	for _, version := range []string{"latest", "v1.32", "v1.32.7 <script>"} {
		s.put(nodesPath, nodeWith(version, version))
		h.Eventually(func() []workload.Node { return h.Observe(clusterKey).Nodes }).Should(
			ConsistOf(And(HaveField("Config", version), HaveField("KubeletVersion", ""))), version,
		)
	}
}

// Only a visit reads the version of the API server. After an upgrade the operator reports the new version, and the
// regular visit would follow up to ten minutes later.
func TestClusterIsVisitedWhenItsAPIServersAreUpdated(t *testing.T) {
	h, s := connectedHub(t)
	report := func(version string) {
		operator := operatorOf("kube-apiserver", configv1.ConditionTrue)
		operator.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "4.20.8"}, {Name: "kube-apiserver", Version: version}}
		s.put(operatorsPath, operator)
		h.Eventually(func() string { return h.Observe(clusterKey).APIServersVersion }).Should(Equal(version))
	}
	report("1.32.6")
	h.Consistently(h.visits, "100ms").ShouldNot(Receive(), "it is the version of the last visit")
	report("1.33.5")
	h.Eventually(h.visits).Should(Receive())
}
