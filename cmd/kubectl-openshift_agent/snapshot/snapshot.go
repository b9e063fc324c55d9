// Package snapshot contains the objects of clusters at one time, and how they refer to each other. It has no client and no
// clock.
package snapshot

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Kinds that a snapshot contains.
const (
	KindCluster      = "Cluster"
	KindControlPlane = "OpenshiftAssistedControlPlane"
	KindMachine      = "Machine"
	KindConfig       = "OpenshiftAssistedConfig"
	KindHost         = metal3.HostKind
	KindAgent        = "Agent"
)

// Why a kind cannot be read, also later.
const (
	NoPermission = "no permission"
	NoKind       = "this management cluster does not have the kind"
)

// Snapshot contains the objects of clusters at one time.
type Snapshot struct {
	Time          metav1.Time                                    `json:"time"`
	Clusters      []clusterv1.Cluster                            `json:"clusters,omitempty"`
	ControlPlanes []controlplanev1.OpenshiftAssistedControlPlane `json:"controlPlanes,omitempty"`
	Machines      []clusterv1.Machine                            `json:"machines,omitempty"`
	Configs       []bootstrapv1.OpenshiftAssistedConfig          `json:"configs,omitempty"`
	Hosts         []metal3.Host                                  `json:"hosts,omitempty"`
	Agents        []aiv1beta1.Agent                              `json:"agents,omitempty"`
	// NotReadable are the kinds that could not be read, with the cause.
	NotReadable map[string]string `json:"notReadable,omitempty"`
}

// Cluster is a Cluster with its objects. Objects that do not exist, or cannot be read, are nil.
type Cluster struct {
	*clusterv1.Cluster
	Time         metav1.Time
	ControlPlane *controlplanev1.OpenshiftAssistedControlPlane
	// Machines are sorted: control plane first, then by name.
	Machines []Machine
	// NotReadable are the kinds that could not be read, with the cause.
	NotReadable map[string]string
}

// MayBeReadLater reports whether the request for a kind failed, and was not refused: another request may succeed.
func (c *Cluster) MayBeReadLater() bool {
	for _, cause := range c.NotReadable {
		if cause != NoPermission && cause != NoKind {
			return true
		}
	}
	return false
}

// Machine is a Machine with its objects. Objects that do not exist, or cannot be read, are nil.
type Machine struct {
	*clusterv1.Machine
	Config *bootstrapv1.OpenshiftAssistedConfig
	Host   *metal3.Host
	Agent  *aiv1beta1.Agent
}

// IsControlPlane reports whether a Machine belongs to the control plane.
func (m *Machine) IsControlPlane() bool {
	_, found := m.Labels[clusterv1.MachineControlPlaneLabel]
	return found
}

// IsOurs reports whether the control plane of a Cluster is an OpenshiftAssistedControlPlane. The control plane of a
// Cluster with a topology may be unknown for its first seconds.
func IsOurs(cluster *clusterv1.Cluster) bool {
	return cluster.Spec.ControlPlaneRef.Kind == KindControlPlane &&
		cluster.Spec.ControlPlaneRef.APIGroup == controlplanev1.GroupVersion.Group
}

// All returns the clusters with their objects, by namespace and name.
func (s *Snapshot) All() []*Cluster {
	index := s.index()
	clusters := make([]*Cluster, 0, len(s.Clusters))
	for i := range s.Clusters {
		object := &s.Clusters[i]
		c := &Cluster{Cluster: object, Time: s.Time, NotReadable: s.NotReadable}
		if IsOurs(object) {
			c.ControlPlane = index.controlPlanes[types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.ControlPlaneRef.Name}]
		}
		c.Machines = index.machines[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}]
		slices.SortFunc(c.Machines, compareMachines)
		clusters = append(clusters, c)
	}
	slices.SortFunc(clusters, func(a, b *Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return clusters
}

func compareMachines(a, b Machine) int {
	rank := func(m *Machine) int {
		if m.IsControlPlane() {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Name, b.Name))
}

// index finds the objects of a snapshot by the names by which other objects refer to them.
type index struct {
	controlPlanes map[types.NamespacedName]*controlplanev1.OpenshiftAssistedControlPlane
	// machines are those of a Cluster.
	machines map[types.NamespacedName][]Machine
}

func (s *Snapshot) index() index {
	i := index{controlPlanes: byName(s.ControlPlanes), machines: map[types.NamespacedName][]Machine{}}
	configs, agents := byName(s.Configs), byName(s.Agents)
	hosts := map[types.NamespacedName]*metal3.Host{}
	for n := range s.Hosts {
		hosts[metal3.ConsumerOf(&s.Hosts[n])] = &s.Hosts[n]
	}
	for n := range s.Machines {
		m := Machine{Machine: &s.Machines[n]}
		named := func(name string) types.NamespacedName {
			return types.NamespacedName{Namespace: m.Namespace, Name: name}
		}
		m.Config = configs[named(m.Spec.Bootstrap.ConfigRef.Name)]
		if m.Spec.InfrastructureRef.Kind == metal3.MachineKind {
			m.Host = hosts[named(m.Spec.InfrastructureRef.Name)]
		}
		if m.Config != nil && m.Config.Status.AgentRef != nil {
			m.Agent = agents[named(m.Config.Status.AgentRef.Name)]
		}
		cluster := named(m.Spec.ClusterName)
		i.machines[cluster] = append(i.machines[cluster], m)
	}
	return i
}

// byName returns the objects by their names.
func byName[T any, P interface {
	*T
	metav1.Object
}](objects []T) map[types.NamespacedName]*T {
	found := map[types.NamespacedName]*T{}
	for i := range objects {
		o := P(&objects[i])
		found[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = &objects[i]
	}
	return found
}
