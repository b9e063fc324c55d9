package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

// While a host restarts, the API server of a single node does not respond. Planned restarts must be known
// from before.
func TestPlannedRestartsAreKeptWhileDisconnected(t *testing.T) {
	h, s := connectedHub(t)
	node := func(role, desired string) *corev1.Node {
		n := nodeWith("old", "v1.32.6")
		n.Labels[role], n.Annotations[objects.DesiredConfigAnnotation] = "", desired
		return n
	}
	s.put(nodesPath, node("node-role.kubernetes.io/worker", "new"))
	h.Eventually(h.observeChange).Should(HaveField("Nodes", ConsistOf(HaveField("Config", "old"))))
	h.Expect(h.Observe(clusterKey).Restarts).To(BeEmpty(), "a worker runs no API server")
	s.put(nodesPath, node("node-role.kubernetes.io/master", "old"))
	s.put(nodesPath, node("node-role.kubernetes.io/master", "new"))
	h.Eventually(h.observeChange).Should(HaveField("Restarts", ConsistOf("Node n0 is being brought to another machine configuration")))
	rolling := operatorOf("kube-apiserver", configv1.ConditionTrue)
	rolling.Status.Conditions = append(rolling.Status.Conditions,
		configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue})
	s.put(operatorsPath, rolling)
	h.Eventually(h.observeChange).Should(HaveField("Restarts", ConsistOf(ContainSubstring("Node n0"),
		"ClusterOperator kube-apiserver rolls out another revision")))

	s.CloseClientConnections()
	s.Close()
	h.visit(t.Context())
	seen := h.Observe(clusterKey)
	h.Expect(seen.Connected).To(BeFalse())
	h.Expect(seen.Nodes).To(BeEmpty())
	h.Expect(seen.Restarts).To(HaveLen(2))
}

func TestPlannedRestartsEndWithTheChange(t *testing.T) {
	h, s := connectedHub(t)
	n := nodeWith("old", "v1.32.6")
	n.Labels["node-role.kubernetes.io/master"], n.Annotations[objects.DesiredConfigAnnotation] = "", "new"
	s.put(nodesPath, n)
	h.Eventually(h.observeChange).Should(HaveField("Restarts", HaveLen(1)))
	done := nodeWith("new", "v1.32.6")
	done.Labels["node-role.kubernetes.io/master"], done.Annotations[objects.DesiredConfigAnnotation] = "", "new"
	s.put(nodesPath, done)
	h.Eventually(h.observeChange).Should(HaveField("Restarts", BeEmpty()))
}
