package openshift

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Objects of etcd that the operators share.
const (
	EtcdNamespace = "openshift-etcd"
	// QuorumGuard is the PodDisruptionBudget of the guard Pods.
	QuorumGuard = "etcd-guard-pdb"
	// EtcdApp is the label app of etcd's pods.
	EtcdApp = "etcd"
)

// RoleLabel is the prefix of the labels for the roles of a Node.
const RoleLabel = "node-role.kubernetes.io/"

// NodeReady reports whether a Node is Ready.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// PodReady reports whether a Pod is Ready.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// InternalIP returns the address of a Node, or an empty string.
func InternalIP(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}
