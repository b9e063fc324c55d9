package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// State is a snapshot of a cluster. Objects that do not exist are nil.
type State struct {
	Cluster      *clusterv1.Cluster
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	Installation *hiveext.AgentClusterInstall
	// Wanted is the desired number of Machines.
	Wanted int
	// Machines are sorted: control plane first, then by name.
	Machines []Machine
	// Agents of the InfraEnvs of this cluster's Machines, including those of foreign hosts.
	Agents []aiv1beta1.Agent
	// InfraEnvs of the cluster's Machines.
	InfraEnvs []aiv1beta1.InfraEnv
}

// Machine is a Machine and its objects. Objects that do not exist are nil.
type Machine struct {
	*clusterv1.Machine
	Config *bootstrapv1.OpenshiftAssistedConfig
	Infra  *unstructured.Unstructured
	Host   *metal3api.BareMetalHost
	// Agent is the Agent that was identified as the Machine's host.
	Agent *aiv1beta1.Agent
}

// Running reports whether the Machine has its Node.
func (m Machine) Running() bool {
	return m.Status.Phase == string(clusterv1.MachinePhaseRunning) && m.Status.NodeRef.Name != ""
}

// IsControlPlane reports whether the Machine belongs to the control plane.
func (m Machine) IsControlPlane() bool {
	_, found := m.Labels[clusterv1.MachineControlPlaneLabel]
	return found
}

// Role returns the role of the Machine's host: master, arbiter or worker.
func (m Machine) Role() string {
	if !m.IsControlPlane() {
		return "worker"
	}
	if _, arbiter := m.Labels[bootstrapv1.ArbiterLabel]; arbiter {
		return "arbiter"
	}
	return "master"
}

// State reads the cluster.
func (c *Cluster) State(ctx context.Context) (*State, error) { return c.stateIn(ctx, c.lab.Client()) }

func (c *Cluster) stateIn(ctx context.Context, api client.Reader) (*State, error) {
	s := &State{
		Cluster: &clusterv1.Cluster{}, ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{},
		Installation: &hiveext.AgentClusterInstall{},
	}
	for _, object := range []client.Object{s.Cluster, s.ControlPlane, s.Installation} {
		if err := api.Get(ctx, c.Key(), object); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read %T %s: %w", object, c.Key(), err)
		} else if apierrors.IsNotFound(err) {
			s.forget(object)
		}
	}
	if err := c.addWanted(ctx, api, s); err != nil {
		return nil, err
	}
	return s, c.addMachines(ctx, api, s)
}

// addWanted counts the desired Machines. Cluster API creates the MachineDeployments of a topology some time
// after the control plane; until then only the topology has their replicas.
func (c *Cluster) addWanted(ctx context.Context, api client.Reader, s *State) error {
	if s.Cluster != nil && s.Cluster.Spec.Topology.IsDefined() {
		s.Wanted = machinesOfTopology(s.Cluster.Spec.Topology)
		return nil
	}
	deployments := &clusterv1.MachineDeploymentList{}
	if err := api.List(ctx, deployments, c.ours()...); err != nil {
		return fmt.Errorf("cannot list MachineDeployments: %w", err)
	}
	for _, deployment := range deployments.Items {
		s.Wanted += int(orOne(deployment.Spec.Replicas))
	}
	if s.ControlPlane != nil {
		s.Wanted += int(orOne(s.ControlPlane.Spec.Replicas))
	}
	return nil
}

func (s *State) forget(object client.Object) {
	switch object.(type) {
	case *clusterv1.Cluster:
		s.Cluster = nil
	case *controlplanev1.OpenshiftAssistedControlPlane:
		s.ControlPlane = nil
	case *hiveext.AgentClusterInstall:
		s.Installation = nil
	}
}

func orOne(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// addMachines reads the Machines and their objects.
func (c *Cluster) addMachines(ctx context.Context, api client.Reader, s *State) error {
	machines, configs, infra := &clusterv1.MachineList{}, &bootstrapv1.OpenshiftAssistedConfigList{}, &unstructured.UnstructuredList{}
	bmhs, agents, infraEnvs := &metal3api.BareMetalHostList{}, &aiv1beta1.AgentList{}, &aiv1beta1.InfraEnvList{}
	infra.SetGroupVersionKind(Metal3MachineKind)
	namespace := client.InNamespace(c.Namespace)
	for list, options := range map[client.ObjectList][]client.ListOption{
		machines: c.ours(), configs: {namespace}, infra: {namespace}, bmhs: {namespace}, agents: {namespace}, infraEnvs: c.ours(),
	} {
		if err := api.List(ctx, list, options...); err != nil {
			return fmt.Errorf("cannot list %T: %w", list, err)
		}
	}
	s.InfraEnvs = infraEnvs.Items
	ours := map[string]bool{}
	for _, infraEnv := range s.InfraEnvs {
		ours[infraEnv.Name] = true
	}
	for _, agent := range agents.Items {
		if ours[agent.Labels[aiv1beta1.InfraEnvNameLabel]] {
			s.Agents = append(s.Agents, agent)
		}
	}
	for i := range machines.Items {
		m := Machine{Machine: &machines.Items[i]}
		m.Config = find(configs.Items, func(o *bootstrapv1.OpenshiftAssistedConfig) bool { return o.Name == m.Spec.Bootstrap.ConfigRef.Name })
		m.Infra = find(infra.Items, func(o *unstructured.Unstructured) bool { return o.GetName() == m.Spec.InfrastructureRef.Name })
		m.Host = find(bmhs.Items, func(o *metal3api.BareMetalHost) bool {
			return o.Spec.ConsumerRef != nil && o.Spec.ConsumerRef.Name == m.Spec.InfrastructureRef.Name
		})
		m.Agent = find(agents.Items, func(o *aiv1beta1.Agent) bool {
			return m.Config != nil && m.Config.Status.AgentRef != nil && m.Config.Status.AgentRef.Name == o.Name
		})
		s.Machines = append(s.Machines, m)
	}
	slices.SortFunc(s.Machines, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

func rank(m Machine) int {
	if m.IsControlPlane() {
		return 0
	}
	return 1
}

func find[T any](items []T, is func(*T) bool) *T {
	for i := range items {
		if is(&items[i]) {
			return &items[i]
		}
	}
	return nil
}

// Running returns the number of running Machines.
func (s *State) Running() int {
	n := 0
	for _, m := range s.Machines {
		if m.Running() {
			n++
		}
	}
	return n
}

// Available reports whether the Cluster is Available and all desired Machines run.
func (s *State) Available() bool {
	return s.Cluster != nil && meta.IsStatusConditionTrue(s.Cluster.Status.Conditions, clusterv1.ClusterAvailableCondition) &&
		len(s.Machines) == s.Wanted && s.Running() == s.Wanted
}

// Condition returns the condition of a type, or one with empty fields.
func Condition(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{Type: kind}
}

// negative are the conditions whose healthy status is False.
var negative = []string{
	clusterv1.DeletingCondition, clusterv1.PausedCondition, clusterv1.RollingOutCondition, clusterv1.ScalingUpCondition,
	clusterv1.ScalingDownCondition, clusterv1.RemediatingCondition, clusterv1.MachineUpdatingCondition,
	controlplanev1.HostsReleasingCondition,
}

// Unmet returns the conditions without healthy status.
func Unmet(conditions []metav1.Condition) []metav1.Condition {
	var unmet []metav1.Condition
	for _, c := range conditions {
		if wanted := !slices.Contains(negative, c.Type); (c.Status == metav1.ConditionTrue) != wanted {
			unmet = append(unmet, c)
		}
	}
	return unmet
}

// Waiting returns a line for each object and condition that is not in its desired state.
func (s *State) Waiting() []string {
	var lines []string
	add := func(kind, name string, conditions []metav1.Condition) {
		for _, c := range Unmet(conditions) {
			lines = append(lines, fmt.Sprintf("%s %s: %s=%s %s: %s", kind, name, c.Type, c.Status, c.Reason, oneLine(c.Message)))
		}
	}
	if s.Cluster != nil {
		add("Cluster", s.Cluster.Name, s.Cluster.Status.Conditions)
	}
	if s.ControlPlane != nil {
		add("OpenshiftAssistedControlPlane", s.ControlPlane.Name, s.ControlPlane.Status.Conditions)
	}
	if s.Installation != nil {
		lines = append(lines, fmt.Sprintf("AgentClusterInstall %s: %s: %s", s.Installation.Name,
			s.Installation.Status.DebugInfo.State, oneLine(s.Installation.Status.DebugInfo.StateInfo)))
	}
	for _, m := range s.Machines {
		add("Machine", m.Name, m.Status.Conditions)
		if m.Config != nil {
			add("OpenshiftAssistedConfig", m.Config.Name, m.Config.Status.Conditions)
		}
		if m.Host != nil {
			lines = append(lines, fmt.Sprintf("BareMetalHost %s: %s %s", m.Host.Name, m.Host.Status.Provisioning.State, m.Host.Status.ErrorMessage))
		}
		if m.Agent != nil {
			lines = append(lines, fmt.Sprintf("Agent %s: %s: %s", m.Agent.Name, m.Agent.Status.DebugInfo.State,
				oneLine(m.Agent.Status.DebugInfo.StateInfo)))
		}
	}
	return lines
}

// Evidence returns possible causes of a failure on a hub, one per line: messages of control planes, and the
// last errors of managers.
func Evidence(ctx context.Context, hub *env.Env) string {
	return strings.Join(append(controlPlanesWaiting(ctx, hub.Client()), hub.Complaints(2)...), "\n")
}

// controlPlanesWaiting returns the messages of the control planes of a hub, each once.
func controlPlanesWaiting(ctx context.Context, api client.Client) []string {
	list := &controlplanev1.OpenshiftAssistedControlPlaneList{}
	if err := api.List(ctx, list); err != nil {
		return []string{"cannot list the control planes: " + err.Error()}
	}
	var lines []string
	for i := range list.Items {
		seen := sets.New[string]()
		for _, c := range Unmet(list.Items[i].Status.Conditions) {
			if message := oneLine(c.Message); !seen.Has(message) {
				seen.Insert(message)
				lines = append(lines, fmt.Sprintf("%s: %s=%s %s: %s", client.ObjectKeyFromObject(&list.Items[i]), c.Type, c.Status, c.Reason, message))
			}
		}
	}
	return lines
}

func messages(conditions []metav1.Condition, kind string) string {
	return oneLine(Condition(conditions, kind).Message)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
