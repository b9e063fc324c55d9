// Package recorded stores the objects of clusters that run in the laboratory. The kubectl plugin is tested with such files:
// see cmd/kubectl-openshift_agent/report/testdata/recorded.
package recorded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Write writes what [Trim] leaves of a snapshot to a file, and creates its folder.
func Write(path string, s *snapshot.Snapshot) error {
	content, err := yaml.Marshal(Trim(s))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot store a snapshot: %w", err)
	}
	return nil
}

// Trim returns the fields of a snapshot that status and why show. The others are most of its size: hardware, templates and
// older versions of conditions. The URLs of images, which contain keys, are among them.
func Trim(s *snapshot.Snapshot) *snapshot.Snapshot {
	t := &snapshot.Snapshot{Time: s.Time, NotReadable: s.NotReadable}
	for i := range s.Clusters {
		c := s.Clusters[i].DeepCopy()
		trimMetadata(&c.ObjectMeta)
		c.Status.Deprecated = nil
		c.Spec.Topology.Variables = nil
		t.Clusters = append(t.Clusters, *c)
	}
	for i := range s.ControlPlanes {
		c := s.ControlPlanes[i].DeepCopy()
		trimMetadata(&c.ObjectMeta)
		t.ControlPlanes = append(t.ControlPlanes, *c)
	}
	for i := range s.Machines {
		m := s.Machines[i].DeepCopy()
		trimMetadata(&m.ObjectMeta)
		m.Status.Deprecated, m.Status.Addresses, m.Status.NodeInfo = nil, nil, nil
		t.Machines = append(t.Machines, *m)
	}
	for i := range s.Configs {
		c := s.Configs[i].DeepCopy()
		trimMetadata(&c.ObjectMeta)
		t.Configs = append(t.Configs, *c)
	}
	for i := range s.Hosts {
		t.Hosts = append(t.Hosts, trimHost(&s.Hosts[i]))
	}
	for i := range s.Agents {
		t.Agents = append(t.Agents, trimAgent(&s.Agents[i]))
	}
	return t
}

func trimHost(h *metal3.Host) metal3.Host {
	t := metal3.Host{ObjectMeta: kube.Identity(&h.ObjectMeta)}
	t.Spec.ConsumerRef, t.Spec.ExternallyProvisioned = h.Spec.ConsumerRef, h.Spec.ExternallyProvisioned
	t.Status = *h.Status.DeepCopy()
	t.Status.HardwareDetails, t.Status.History = nil, metal3.History{}
	return t
}

func trimAgent(a *aiv1beta1.Agent) aiv1beta1.Agent {
	t := aiv1beta1.Agent{ObjectMeta: kube.Identity(&a.ObjectMeta)}
	t.Spec.Hostname = a.Spec.Hostname
	t.Status.Role, t.Status.DebugInfo, t.Status.Progress = a.Status.Role, a.Status.DebugInfo, a.Status.Progress
	t.Status.Inventory.Hostname = a.Status.Inventory.Hostname
	return t
}

// trimMetadata keeps the annotations of Cluster API, Metal3 and the providers, without those that contain other versions of
// the object.
func trimMetadata(m *metav1.ObjectMeta) {
	m.ManagedFields, m.Finalizers, m.OwnerReferences = nil, nil, nil
	for name := range m.Annotations {
		if strings.Contains(name, "conversion-data") || strings.Contains(name, "last-applied") {
			delete(m.Annotations, name)
		}
	}
}
