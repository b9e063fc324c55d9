package judge

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// now is the time of each snapshot, created the creation time of its objects.
var (
	now     = metav1.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	created = ago(2 * time.Hour)
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// cond returns a condition that has changed a minute ago. Its message names its reason.
func cond(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: "message of " + reason, LastTransitionTime: ago(time.Minute), ObservedGeneration: 1,
	}
}

// condAgo returns a condition that has changed some time ago.
func condAgo(since time.Duration, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	c := cond(kind, status, reason)
	c.LastTransitionTime = ago(since)
	return c
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab", Name: name, CreationTimestamp: created, Generation: 1}
}

// installed returns a cluster with a Machine for which nothing is left to do.
func installed() *snapshot.Cluster {
	object := &clusterv1.Cluster{ObjectMeta: named("ha")}
	object.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: controlplanev1.GroupVersion.Group, Kind: snapshot.KindControlPlane, Name: "ha",
	}
	object.Status.Conditions = []metav1.Condition{cond(clusterv1.ClusterAvailableCondition, metav1.ConditionTrue, "Available")}
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: named("ha")}
	cp.Spec.DistributionVersion, cp.Status.DistributionVersion = "4.19.3", "4.19.3"
	cp.Status.ObservedGeneration = 1
	cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
	cp.Status.Conditions = []metav1.Condition{
		cond(controlplanev1.InstalledCondition, metav1.ConditionTrue, "Installed"),
		cond(controlplanev1.AvailableCondition, metav1.ConditionTrue, "Available"),
		cond(controlplanev1.RollingOutCondition, metav1.ConditionFalse, "NotRollingOut"),
		cond(controlplanev1.PreflightPassedCondition, metav1.ConditionFalse, "PreflightWarnings"),
		cond(controlplanev1.ValidationsEnforcedCondition, metav1.ConditionFalse, "ValidationsIgnored"),
	}
	return &snapshot.Cluster{Cluster: object, Time: now, ControlPlane: cp, Machines: []snapshot.Machine{machine("m0")}}
}

// machine returns a Machine with a Node and an installed host.
func machine(name string) snapshot.Machine {
	m := &clusterv1.Machine{ObjectMeta: named(name)}
	m.Status.NodeRef.Name = name
	m.Status.Conditions = []metav1.Condition{cond(clusterv1.MachineNodeHealthyCondition, metav1.ConditionTrue, "NodeHealthy")}
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: named(name)}
	for _, stage := range bootstrapv1.HostStages() {
		config.Status.Conditions = append(config.Status.Conditions, condAgo(90*time.Minute, stage, metav1.ConditionTrue, stage))
	}
	return snapshot.Machine{Machine: m, Config: config}
}

// withCondition replaces a condition.
func withCondition(conditions []metav1.Condition, c metav1.Condition) []metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == c.Type {
			conditions[i] = c
			return conditions
		}
	}
	return append(conditions, c)
}

func setCluster(c *snapshot.Cluster, condition metav1.Condition) {
	c.Status.Conditions = withCondition(c.Status.Conditions, condition)
}

func setControlPlane(c *snapshot.Cluster, condition metav1.Condition) {
	c.ControlPlane.Status.Conditions = withCondition(c.ControlPlane.Status.Conditions, condition)
}

func setMachine(c *snapshot.Cluster, condition metav1.Condition) {
	c.Machines[0].Status.Conditions = withCondition(c.Machines[0].Status.Conditions, condition)
}

// setConfig sets a condition of the first host. The host has no Node, and has not passed the later stages.
func setConfig(c *snapshot.Cluster, condition metav1.Condition) {
	m := &c.Machines[0]
	m.Config.Status.Conditions = withCondition(m.Config.Status.Conditions, condition)
	m.Status.NodeRef.Name = ""
	setCluster(c, cond(clusterv1.ClusterAvailableCondition, metav1.ConditionFalse, "NotAvailable"))
}
