package hosts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// defaultHeartbeat is how often a node posts its status. A kubelet does so every five minutes without changes;
// the laboratory is faster.
const defaultHeartbeat = 15 * time.Second

// lostNodeDeadline is the timeout of a report about a node that went off; the workload API may be down as well.
const lostNodeDeadline = time.Second

// expiredSilence is how long a node with expired certificates has not reported. They are valid for 30 days, and the
// laboratory does not wait that long.
const expiredSilence = 31 * 24 * time.Hour

// ErrClusterDeleted is the error of [Options.Workload] for a cluster that will never answer again.
var ErrClusterDeleted = errors.New("the cluster is deleted")

// join registers the Node of the host as its kubelet does. Labels, taints and providerID are set when the Node
// is created; an existing Node keeps its own.
func (h *Host) join(ctx context.Context, inst *installation) bool {
	return h.withWorkload(ctx, inst, func(ctx context.Context, c client.Client) error {
		node, err := h.newNode(ctx, inst)
		if err != nil {
			return err
		}
		status, uid := node.Status, types.UID("")
		if err := c.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot register Node %s: %w", node.Name, err)
		}
		err = changeNodeStatus(ctx, c, node.Name, func(n *corev1.Node) {
			if kubelet := n.Status.NodeInfo.KubeletVersion; kubelet != "" { // an upgrade may have changed it
				status.NodeInfo.KubeletVersion = kubelet
			}
			status.DeepCopyInto(&n.Status)
			uid = n.UID
		})
		if err != nil {
			return err
		}
		h.mu.Lock()
		inst.node, inst.nodeUID = node.Name, uid
		h.mu.Unlock()
		return nil
	})
}

func (h *Host) newNode(ctx context.Context, inst *installation) (*corev1.Node, error) {
	facts, err := h.rack.options.Cluster(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the cluster: %w", err)
	}
	hardware := h.Hardware()
	identity, err := newNodeIdentity(inst.instruction, hardware, facts, inst.ignition)
	if err != nil {
		return nil, err
	}
	kubelet, err := openshift.KubernetesVersion(facts.Version)
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: identity.name, Labels: identity.labels}}
	node.Spec = corev1.NodeSpec{ProviderID: identity.providerID, Taints: identity.taints}
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		SystemUUID: hardware.UUID, MachineID: hardware.UUID, KubeletVersion: kubelet,
		OperatingSystem: "linux", Architecture: goArchitecture(hardware.Architecture),
		OSImage: "Red Hat Enterprise Linux CoreOS", ContainerRuntimeVersion: "cri-o://1.33.0",
	}
	node.Status.Addresses = append(addresses(hardware), corev1.NodeAddress{Type: corev1.NodeHostName, Address: identity.name})
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = kubeletPort
	setNodeConditions(node, corev1.ConditionFalse, "KubeletNotReady", "container runtime network not ready")
	return node, nil
}

func addresses(hardware Hardware) []corev1.NodeAddress {
	var list []corev1.NodeAddress
	for _, nic := range hardware.NICs {
		for _, address := range nic.Addresses {
			list = append(list, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: hostAddress(address)})
		}
	}
	return list
}

// becomeReady sets the Node Ready, and removes the taint that the API server set before.
func (h *Host) becomeReady(ctx context.Context, inst *installation) bool {
	name := h.nodeName(inst)
	ready := h.withWorkload(ctx, inst, func(ctx context.Context, c client.Client) error {
		err := changeNodeStatus(ctx, c, name, func(n *corev1.Node) {
			setNodeConditions(n, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
		})
		if err != nil {
			return err
		}
		return changeNode(ctx, c, name, func(n *corev1.Node) {
			n.Spec.Taints = withoutTaint(n.Spec.Taints, corev1.TaintNodeNotReady)
		})
	})
	if ready {
		inst.cluster.update(h, func(m *member) { m.ready, m.serving = true, isMaster(inst.instruction) })
	}
	return ready
}

// takeNodeLabels sets the node labels of the Agent on the Ready Node, as the controller in the cluster does. On
// day 2 assisted-service itself sets them.
func (h *Host) takeNodeLabels(ctx context.Context, inst *installation) bool {
	if len(inst.instruction.NodeLabels) == 0 || inst.instruction.DayTwo {
		return true
	}
	name := h.nodeName(inst)
	return h.withWorkload(ctx, inst, func(ctx context.Context, c client.Client) error {
		return changeNode(ctx, c, name, func(n *corev1.Node) {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			maps.Copy(n.Labels, inst.instruction.NodeLabels)
		})
	})
}

// reportNodeLost sets the Node's conditions to Unknown, as the node controller of the cluster does after a
// while. If the API does not answer, it retries until the host runs its installed system again, or the cluster
// is deleted. A host that is switched on may boot another system. The caller holds switching.
func (h *Host) reportNodeLost(inst *installation) {
	h.findNode()
	name := h.nodeName(inst)
	if name == "" || h.nodeLost(h.rack.ctx, inst, name) == nil {
		return
	}
	ctx, cancel := context.WithCancel(h.rack.ctx)
	done := make(chan struct{})
	h.nodeFound = func() {
		cancel()
		<-done
	}
	h.rack.runs.Go(func() {
		defer close(done)
		again := backOff{}
		for ctx.Err() == nil && h.nodeLost(ctx, inst, name) != nil {
			again.wait(ctx)
		}
	})
}

// findNode ends the attempts to report that the Node is lost.
func (h *Host) findNode() {
	if h.nodeFound != nil {
		h.nodeFound()
		h.nodeFound = nil
	}
}

// nodeLost writes the conditions once. A deleted Node, or another one with its name, is left as it is.
func (h *Host) nodeLost(ctx context.Context, inst *installation, name string) error {
	ctx, cancel := context.WithTimeout(ctx, lostNodeDeadline)
	defer cancel()
	c, err := h.rack.options.Workload(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
	if err == nil {
		err = changeNodeStatus(ctx, c, name, func(n *corev1.Node) {
			if n.UID == h.nodeUID(inst) {
				setNodeConditions(n, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
				h.dateBack(inst, n)
			}
		})
	}
	if errors.Is(err, ErrClusterDeleted) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		h.log.V(1).Info("cannot report the lost node", "reason", err.Error())
	}
	return client.IgnoreNotFound(err)
}

// heartbeat posts the status of the Node periodically, as a kubelet does, until the host is switched off or the
// Node is deleted.
func (h *Host) heartbeat(ctx context.Context) {
	h.mu.Lock()
	inst := h.installation
	h.mu.Unlock()
	name := h.nodeName(inst)
	for name != "" && openshift.Pause(ctx, h.rack.options.Heartbeat) {
		c, err := h.rack.options.Workload(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
		if err == nil {
			err = changeNodeStatus(ctx, c, name, func(n *corev1.Node) {
				for i := range n.Status.Conditions {
					n.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
				}
			})
		}
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			h.log.V(1).Info("cannot post the status of the node", "reason", err.Error())
		}
	}
}

// dateBack sets the last heartbeat of a Node with expired certificates to the past.
func (h *Host) dateBack(inst *installation, node *corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range node.Status.Conditions {
		if inst.expired {
			node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(time.Now().Add(-expiredSilence))
		}
	}
}

func (h *Host) nodeName(inst *installation) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return inst.node
}

func (h *Host) nodeUID(inst *installation) types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return inst.nodeUID
}

// withWorkload runs act with a client of the workload cluster, until it succeeds or the host is switched off.
func (h *Host) withWorkload(ctx context.Context, inst *installation, act func(ctx context.Context, c client.Client) error) bool {
	again := backOff{}
	for ctx.Err() == nil {
		c, err := h.rack.options.Workload(ctx, inst.cluster.key.Namespace, inst.cluster.key.Name)
		if err == nil {
			err = act(ctx, c)
		}
		if err == nil {
			h.setProblem(nil)
			return true
		}
		h.setProblem(err)
		again.wait(ctx)
	}
	return false
}

func changeNodeStatus(ctx context.Context, c client.Client, name string, change func(n *corev1.Node)) error {
	return updateNode(ctx, c, name, change, func(n *corev1.Node) error { return c.Status().Update(ctx, n) })
}

func changeNode(ctx context.Context, c client.Client, name string, change func(n *corev1.Node)) error {
	return updateNode(ctx, c, name, change, func(n *corev1.Node) error { return c.Update(ctx, n) })
}

func updateNode(ctx context.Context, c client.Client, name string, change func(n *corev1.Node), write func(n *corev1.Node) error) error {
	var err error
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error { // its own error is nil if ctx ended during an attempt
		node := &corev1.Node{}
		if err = c.Get(ctx, client.ObjectKey{Name: name}, node); err == nil {
			change(node)
			err = write(node)
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot find Node %s: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("cannot update Node %s: %w", name, err)
	}
	return nil
}

// setNodeConditions sets Ready, and the matching pressure conditions of the node.
func setNodeConditions(node *corev1.Node, ready corev1.ConditionStatus, reason, message string) {
	now := metav1.Now()
	pressure := corev1.ConditionFalse
	if ready == corev1.ConditionUnknown {
		pressure = corev1.ConditionUnknown
	}
	wanted := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: pressure, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: pressure, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: pressure, Reason: "KubeletHasSufficientPID"},
		{Type: corev1.NodeReady, Status: ready, Reason: reason, Message: message},
	}
	for i := range wanted {
		wanted[i].LastHeartbeatTime, wanted[i].LastTransitionTime = now, now
		for _, old := range node.Status.Conditions {
			if old.Type == wanted[i].Type && old.Status == wanted[i].Status {
				wanted[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	node.Status.Conditions = wanted
}

func withoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	var kept []corev1.Taint
	for _, t := range taints {
		if t.Key != key {
			kept = append(kept, t)
		}
	}
	return kept
}
