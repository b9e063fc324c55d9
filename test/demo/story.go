package main

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// item is one object of the tree: what it is, how far it is, and what it waits for.
type item struct {
	title, state, waits string
	done                bool
	children            []item
}

// treeOf returns the tree that the view shows for the state of a cluster.
func treeOf(s *snapshot) item {
	root := item{title: "Cluster"}
	if s.Cluster != nil {
		root.title, root.state = "Cluster "+s.Cluster.Name, s.Cluster.Status.Phase
		root.done = s.Available()
		root.waits = clusterWaits(lab.Condition(s.Cluster.Status.Conditions, clusterv1.ClusterAvailableCondition).Message)
	}
	controlPlane, workers := item{title: controlPlaneTitle(s.State)}, item{title: "Workers", done: true}
	for _, m := range s.Machines {
		parent := &workers
		if m.IsControlPlane() {
			parent = &controlPlane
		}
		parent.children = append(parent.children, machine(m))
		workers.done = workers.done && (m.IsControlPlane() || m.Running())
	}
	if s.ControlPlane != nil {
		conditions := s.ControlPlane.Status.Conditions
		controlPlane.state = s.ControlPlane.Status.Installation.Progress
		controlPlane.done = meta.IsStatusConditionTrue(conditions, controlplanev1.AvailableCondition) &&
			!meta.IsStatusConditionTrue(conditions, controlplanev1.RollingOutCondition)
		controlPlane.waits = firstUnmet(s.State)
	}
	if len(s.etcd) > 0 {
		controlPlane.children = append(controlPlane.children, etcd(s))
	}
	root.children = append(root.children, controlPlane)
	if len(workers.children) > 0 {
		root.children = append(root.children, workers)
	}
	return root
}

// etcd returns the item with the members of etcd.
func etcd(s *snapshot) item {
	var names []string
	for _, m := range s.etcd {
		name := cmp.Or(m.Name, "one that was never started")
		if !m.Voter {
			name += " (does not vote yet)"
		}
		names = append(names, name)
	}
	return item{title: "etcd members", state: strings.Join(names, ", "), done: s.settled}
}

func controlPlaneTitle(s *lab.State) string {
	if s.ControlPlane == nil {
		return "Control plane"
	}
	return fmt.Sprintf("Control plane %s (OpenShift %s)", s.ControlPlane.Name, s.ControlPlane.Spec.DistributionVersion)
}

// firstUnmet returns the first blocker of the control plane.
func firstUnmet(s *lab.State) string {
	for _, kind := range []string{controlplanev1.HostsReleasingCondition, controlplanev1.ScalingDownCondition} {
		if c := meta.FindStatusCondition(s.ControlPlane.Status.Conditions, kind); c != nil && c.Status == "True" {
			return c.Reason + ": " + waits(c.Message)
		}
	}
	if c := meta.FindStatusCondition(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition); c != nil &&
		c.Status == "True" && s.Available() {
		return c.Reason + ": " + waits(c.Message)
	}
	for _, kind := range []string{
		controlplanev1.ReleaseImageResolvedCondition, controlplanev1.MachinesCreatedCondition, controlplanev1.InstalledCondition,
		controlplanev1.KubeconfigAvailableCondition, controlplanev1.InitializedCondition, controlplanev1.AvailableCondition,
	} {
		if c := meta.FindStatusCondition(s.ControlPlane.Status.Conditions, kind); c != nil && c.Status != "True" &&
			!strings.HasPrefix(c.Message, "see the condition ") {
			return c.Reason + ": " + waits(c.Message)
		}
	}
	return ""
}

func machine(m lab.Machine) item {
	i := item{title: "Machine " + m.Name, done: m.Running()}
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	add(m.Status.Phase)
	if m.Running() {
		add(m.Spec.Version)
	}
	if m.Host != nil {
		add("host " + m.Host.Name + " " + string(m.Host.Status.Provisioning.State))
	}
	if m.Agent != nil {
		add(m.Agent.Status.DebugInfo.State)
		add(string(m.Agent.Status.Progress.CurrentStage))
	}
	if m.Status.NodeRef.Name != "" {
		add("node " + m.Status.NodeRef.Name)
	}
	i.state = strings.Join(parts, " · ")
	if m.Config != nil && !i.done {
		if ready := lab.Condition(m.Config.Status.Conditions, bootstrapv1.ReadyCondition); ready.Status != "True" {
			i.waits = strings.TrimSuffix(ready.Reason+": "+waits(ready.Message), ": ")
		}
	}
	return i
}

// waits is a message on one line, without the addresses of events and logs that are of use later.
func waits(message string) string {
	message, _, _ = strings.Cut(message, "; events: ")
	return strings.Join(strings.Fields(message), " ")
}

// clusterWaits removes the parts of the message of the Cluster that the items of control plane and workers already
// contain.
func clusterWaits(message string) string {
	var own []string
	for line := range strings.Lines(message) {
		if strings.HasPrefix(line, "* ControlPlane") || strings.HasPrefix(line, "* Workers") || strings.HasPrefix(line, " ") {
			continue
		}
		own = append(own, strings.TrimPrefix(line, "* "))
	}
	return waits(strings.Join(own, " "))
}
