// Package report computes from a snapshot what the commands show of clusters. It has no client and no clock.
package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Cluster is the state of a cluster.
type Cluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Time is when the objects were read.
	Time metav1.Time `json:"time"`
	// State and Cause are the first cause of the state.
	State judge.State `json:"state"`
	Cause judge.Cause `json:"cause"`
	// Phase is the phase of the Cluster in Cluster API.
	Phase string `json:"phase,omitempty"`
	// Since is the start of the installation or of the deletion; the creation of an installed cluster.
	Since        metav1.Time   `json:"since,omitzero"`
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// DesiredMachines is the number of Machines that the Cluster requests.
	DesiredMachines int32     `json:"desiredMachines"`
	RunningMachines int32     `json:"runningMachines"`
	Machines        []Machine `json:"machines,omitempty"`
	// NotReadable are the kinds that could not be read, with the cause.
	NotReadable map[string]string `json:"notReadable,omitempty"`
}

// ControlPlane is the state of the control plane of a cluster.
type ControlPlane struct {
	Name string `json:"name"`
	// Release is the release of the spec, Runs the release that the cluster completed last.
	Release string `json:"release"`
	Runs    string `json:"runs,omitempty"`
	// Installation is the phase of the installation with its percentage. StartTime is when the preparation began.
	Installation string       `json:"installation,omitempty"`
	StartTime    *metav1.Time `json:"startTime,omitempty"`
	Available    bool         `json:"available"`
	Upgrade      *Upgrade     `json:"upgrade,omitempty"`
	Etcd         *Etcd        `json:"etcd,omitempty"`
	// Notes are advisory conditions, which block nothing.
	Notes []Note `json:"notes,omitempty"`
}

// Upgrade is the upgrade in progress.
type Upgrade struct {
	To         string `json:"to"`
	Percentage *int32 `json:"percentage,omitempty"`
	// UpToDate is the number of control-plane Machines that are up to date, of Machines.
	UpToDate int32 `json:"upToDate"`
	Machines int32 `json:"machines"`
	// PoolsBehind are the MachineConfigPools with Nodes that do not run the release yet.
	PoolsBehind []string `json:"poolsBehind,omitempty"`
}

// Etcd is the state of etcd as the control plane reports it.
type Etcd struct {
	// Healthy is True, False or Unknown. The message explains it.
	Healthy metav1.ConditionStatus `json:"healthy"`
	Message string                 `json:"message,omitempty"`
	// HealthyMembers is the number of Machines whose member is healthy. Other members are listed with their state.
	HealthyMembers int32    `json:"healthyMembers"`
	OtherMembers   []Member `json:"otherMembers,omitempty"`
}

// Member is the etcd member of a Machine that is not healthy.
type Member struct {
	Machine string `json:"machine"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Note is an advisory condition.
type Note struct {
	Condition string `json:"condition"`
	Message   string `json:"message"`
}

// Machine is the state of a Machine with its host.
type Machine struct {
	Name         string      `json:"name"`
	ControlPlane bool        `json:"controlPlane"`
	Arbiter      bool        `json:"arbiter,omitempty"`
	State        judge.State `json:"state"`
	Cause        judge.Cause `json:"cause"`
	// Phase is the phase of the Machine in Cluster API.
	Phase   string      `json:"phase,omitempty"`
	Version string      `json:"version,omitempty"`
	Since   metav1.Time `json:"since,omitzero"`
	Stage   *Stage      `json:"stage,omitempty"`
	// HostName is the name of the BareMetalHost or, without a BareMetalHost, the hostname.
	HostName string `json:"hostName,omitempty"`
	Host     *Host  `json:"host,omitempty"`
	Agent    *Agent `json:"agent,omitempty"`
	Node     *Node  `json:"node,omitempty"`
}

// Stage is the step that a host is in: the reason of its condition, or the stage of its installation.
type Stage struct {
	Name string `json:"name"`
	// Percentage is the share of stages of the installation that the host has reached.
	Percentage   *int32      `json:"percentage,omitempty"`
	Since        metav1.Time `json:"since,omitzero"`
	UsualSeconds int64       `json:"usualSeconds,omitempty"`
}

// Host is the BareMetalHost of a Machine.
type Host struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	PoweredOn bool   `json:"poweredOn"`
	Error     string `json:"error,omitempty"`
}

// Agent is the Agent of a host.
type Agent struct {
	Name     string `json:"name"`
	Hostname string `json:"hostname,omitempty"`
	Role     string `json:"role,omitempty"`
	State    string `json:"state"`
}

// Node is the Node of a Machine, as Cluster API reports it.
type Node struct {
	Name string `json:"name"`
	// Ready is True, False or Unknown.
	Ready metav1.ConditionStatus `json:"ready"`
}

// Of returns the state of a cluster.
func Of(c *snapshot.Cluster) *Cluster {
	cause := judge.Cluster(c)
	r := &Cluster{
		Namespace: c.Namespace, Name: c.Name, Time: c.Time, State: cause.State, Cause: cause, Phase: c.Status.Phase,
		Since: sinceOf(c), DesiredMachines: desired(c.Cluster), NotReadable: c.NotReadable,
	}
	for i := range c.Machines {
		m := machineOf(c, &c.Machines[i])
		r.Machines = append(r.Machines, m)
		if m.Phase == string(clusterv1.MachinePhaseRunning) && m.Node != nil {
			r.RunningMachines++
		}
	}
	if c.ControlPlane != nil {
		r.ControlPlane = controlPlaneOf(c)
	}
	return r
}

// All returns the state of all clusters, those first that need attention. Equally urgent clusters are sorted by name.
func All(s *snapshot.Snapshot) []*Cluster {
	clusters := []*Cluster{}
	for _, c := range s.All() {
		clusters = append(clusters, Of(c))
	}
	slices.SortStableFunc(clusters, func(a, b *Cluster) int { return a.State.Compare(b.State) })
	return clusters
}

func sinceOf(c *snapshot.Cluster) metav1.Time {
	switch {
	case c.DeletionTimestamp != nil:
		return *c.DeletionTimestamp
	case c.ControlPlane != nil && c.ControlPlane.Status.Installation.AttemptTime != nil:
		return *c.ControlPlane.Status.Installation.AttemptTime
	}
	return c.CreationTimestamp
}

// desired returns the number of Machines that a Cluster requests, as Cluster API counts them.
func desired(c *clusterv1.Cluster) int32 {
	count := int32(0)
	if cp := c.Status.ControlPlane; cp != nil {
		count += ptr.Deref(cp.DesiredReplicas, 0)
	}
	if w := c.Status.Workers; w != nil {
		count += ptr.Deref(w.DesiredReplicas, 0)
	}
	return count
}

// machines returns the number of Machines that a cluster requests, or has if it requests fewer.
func (c *Cluster) machines() int { return max(int(c.DesiredMachines), len(c.Machines)) }

func controlPlaneOf(c *snapshot.Cluster) *ControlPlane {
	cp := c.ControlPlane
	status := &cp.Status
	r := &ControlPlane{
		Name: cp.Name, Release: cp.Spec.DistributionVersion, Runs: status.DistributionVersion,
		Installation: status.Installation.Progress, StartTime: status.Installation.StartTime,
		Available: meta.IsStatusConditionTrue(status.Conditions, controlplanev1.AvailableCondition),
		Etcd:      etcdOf(c),
	}
	if to := status.Upgrade.DistributionVersion; to != "" {
		r.Upgrade = &Upgrade{
			To: to, Percentage: status.Upgrade.Percentage, UpToDate: ptr.Deref(status.UpToDateReplicas, 0),
			Machines:    ptr.Deref(status.Replicas, 0),
			PoolsBehind: status.PoolsBehind,
		}
	}
	for _, kind := range []string{
		controlplanev1.PreflightPassedCondition, controlplanev1.TopologyUpgradeableCondition, controlplanev1.ValidationsEnforcedCondition,
	} {
		if n := meta.FindStatusCondition(status.Conditions, kind); n != nil && n.Status == metav1.ConditionFalse {
			r.Notes = append(r.Notes, Note{Condition: kind, Message: oneLine(n.Message)})
		}
	}
	return r
}

// etcdOf returns the state of etcd. It is nil while the control plane does not report etcd.
func etcdOf(c *snapshot.Cluster) *Etcd {
	health := meta.FindStatusCondition(c.ControlPlane.Status.Conditions, controlplanev1.EtcdClusterHealthyCondition)
	if health == nil {
		return nil
	}
	r := &Etcd{Healthy: health.Status, Message: oneLine(health.Message)}
	for i := range c.Machines {
		m := &c.Machines[i]
		member := meta.FindStatusCondition(m.Status.Conditions, controlplanev1.EtcdMemberHealthyCondition)
		switch {
		case member == nil:
		case member.Status == metav1.ConditionTrue:
			r.HealthyMembers++
		default:
			r.OtherMembers = append(r.OtherMembers, Member{Machine: m.Name, Reason: member.Reason, Message: oneLine(member.Message)})
		}
	}
	return r
}

func machineOf(c *snapshot.Cluster, m *snapshot.Machine) Machine {
	cause := judge.Machine(c, m)
	_, arbiter := m.Labels[bootstrapv1.ArbiterLabel]
	r := Machine{
		Name: m.Name, ControlPlane: m.IsControlPlane(), Arbiter: arbiter, State: cause.State, Cause: cause, Phase: m.Status.Phase,
		Version: m.Spec.Version, Since: m.CreationTimestamp, Stage: stageOf(m.Config), HostName: judge.HostOf(m),
	}
	if m.DeletionTimestamp != nil {
		r.Since = *m.DeletionTimestamp
	}
	if m.Host != nil {
		r.Host = &Host{
			Name: m.Host.Name, State: metal3.StateOf(m.Host), PoweredOn: m.Host.Status.PoweredOn,
			Error: assisted.RedactURLs(metal3.ErrorOf(m.Host)), // the error of a BMC may contain credentials
		}
	}
	if m.Agent != nil {
		r.Agent = &Agent{
			Name: m.Agent.Name, Hostname: cmp.Or(m.Agent.Spec.Hostname, m.Agent.Status.Inventory.Hostname),
			Role: string(m.Agent.Status.Role), State: m.Agent.Status.DebugInfo.State,
		}
	}
	if name := m.Status.NodeRef.Name; name != "" {
		r.Node = &Node{Name: name, Ready: metav1.ConditionUnknown}
		if ready := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineNodeReadyCondition); ready != nil {
			r.Node.Ready = ready.Status
		}
	}
	return r
}

// stageOf returns the step of a host. It is nil once the host is installed.
func stageOf(config *bootstrapv1.OpenshiftAssistedConfig) *Stage {
	if config == nil {
		return nil
	}
	c := judge.Stage(config)
	switch {
	case c == nil:
		return nil
	case c.Reason == bootstrapv1.HostInstallingReason && config.Status.InstallationProgress != "":
		stage := config.Status.InstallationProgress
		return &Stage{
			Name: stage, Percentage: config.Status.InstallationPercentage, Since: judge.StageStart(config, c),
			UsualSeconds: int64(judge.UsualStage(stage) / time.Second),
		}
	}
	return &Stage{Name: c.Reason, Since: judge.StageStart(config, c), UsualSeconds: int64(judge.UsualWait(c) / time.Second)}
}

// oneLine returns a message on one line and without control characters, because a foreign object may contain them. It cuts
// off the addresses of events and logs, which command why shows.
func oneLine(message string) string {
	message, _, _ = strings.Cut(message, "; events: ")
	return strings.Join(strings.Fields(bound.Shorten(message, bound.MessageBytes)), " ")
}
