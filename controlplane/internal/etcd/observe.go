package etcd

import (
	"context"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// controlPlaneLabels are the labels of control plane Nodes in all releases: of masters, and of arbiters.
var controlPlaneLabels = []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/arbiter"}

// observe reads the members last, because their state changes fastest.
func observe(ctx context.Context, c client.Client, forward forward) (workload.Etcd, error) {
	seen := workload.Etcd{}
	for _, read := range []func(context.Context, client.Client, *workload.Etcd) error{
		readTopology, readMachineAPI, readOperators,
		readOperand, readNodes,
	} {
		if err := read(ctx, c, &seen); err != nil {
			return workload.Etcd{}, err
		}
	}
	if !seen.InPods() {
		return seen, nil // etcd is not managed by this provider, and may not run in Pods
	}
	credentials, err := readCredentials(ctx, c)
	if err != nil {
		return workload.Etcd{}, err
	}
	pods, err := readPods(ctx, c)
	if err != nil {
		return workload.Etcd{}, err
	}
	answers := queryMembers(ctx, credentials, forward, pods)
	seen.Members, seen.Doubt = membersOf(answers)
	seen.Alarms = alarmsIn(answers)
	return seen, nil
}

func readTopology(ctx context.Context, c client.Client, seen *workload.Etcd) error {
	infrastructure := &configv1.Infrastructure{}
	if err := c.Get(ctx, client.ObjectKey{Name: "cluster"}, infrastructure); err != nil {
		return &failure{"cannot read Infrastructure cluster of the workload cluster", err}
	}
	seen.Topology = infrastructure.Status.ControlPlaneTopology
	return nil
}

func readMachineAPI(ctx context.Context, c client.Client, seen *workload.Etcd) (err error) {
	if seen.MachineAPI, err = objects.RunsMachineAPI(ctx, c); err != nil {
		return &failure{"cannot list the Machines of the workload cluster", err}
	}
	return nil
}

func readOperators(ctx context.Context, c client.Client, seen *workload.Etcd) error {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		operator := &configv1.ClusterOperator{}
		switch err := c.Get(ctx, client.ObjectKey{Name: name}, operator); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return &failure{"cannot read ClusterOperator " + name + " of the workload cluster", err}
		}
		status := map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{}
		for _, condition := range operator.Status.Conditions {
			status[condition.Type] = condition.Status
		}
		seen.Operators = append(seen.Operators, workload.ClusterOperator{
			Name:      name,
			Available: status[configv1.OperatorAvailable] == configv1.ConditionTrue,
			// A missing condition counts as true.
			Progressing: status[configv1.OperatorProgressing] != configv1.ConditionFalse,
			Degraded:    status[configv1.OperatorDegraded] != configv1.ConditionFalse,
		})
	}
	return nil
}

// membersDegraded is the condition of Etcd cluster in which the etcd operator names unhealthy members
// (pkg/operator/etcdmemberscontroller of the etcd operator).
const membersDegraded = "EtcdMembersDegraded"

func readOperand(ctx context.Context, c client.Client, seen *workload.Etcd) error {
	operand := &operatorv1.Etcd{}
	if err := c.Get(ctx, client.ObjectKey{Name: "cluster"}, operand); err != nil {
		return &failure{"cannot read Etcd cluster of the workload cluster", err}
	}
	seen.LatestRevision = operand.Status.LatestAvailableRevision
	for _, node := range operand.Status.NodeStatuses {
		seen.Revisions = append(
			seen.Revisions, workload.Revision{Node: node.NodeName, Current: node.CurrentRevision, Target: node.TargetRevision},
		)
	}
	for _, condition := range operand.Status.Conditions {
		if condition.Type == membersDegraded && condition.Status == operatorv1.ConditionTrue {
			seen.Condemned = bound.Cause(condition.Message)
		}
	}
	return nil
}

func readNodes(ctx context.Context, c client.Client, seen *workload.Etcd) error {
	for _, label := range controlPlaneLabels {
		if err := readNodesWith(ctx, c, label, seen); err != nil {
			return err
		}
	}
	return nil
}

func readNodesWith(ctx context.Context, c client.Client, label string, seen *workload.Etcd) error {
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes, client.HasLabels{label}); err != nil {
		return &failure{"cannot list the Nodes of the workload cluster", err}
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if seen.Node(n.Name) != nil {
			continue
		}
		node := workload.ControlPlaneNode{Node: workload.Node{
			Name: n.Name, UID: n.UID, ProviderID: n.Spec.ProviderID,
			HostUID: n.Labels[metal3.HostUIDLabel],
		}, ResourceVersion: n.ResourceVersion}
		node.Configuring, node.Silent, node.Deleting = configuring(n), silent(n), !n.DeletionTimestamp.IsZero()
		for _, address := range n.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				node.Addresses = append(node.Addresses, address.Address)
			}
		}
		seen.Nodes = append(seen.Nodes, node)
	}
	return nil
}

// configuring reports whether the machine config operator is changing the configuration of a Node. A Node
// that it has not handled yet has neither annotation.
func configuring(n *corev1.Node) bool {
	return n.Annotations[objects.DesiredConfigAnnotation] != n.Annotations[objects.CurrentConfigAnnotation]
}

// silent reports whether the kubelet of a Node does not report. A Node without the condition Ready is not
// silent, because nothing is known about it.
func silent(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}
