package quorum

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Machine holds the data of a control-plane Machine for these decisions.
type Machine struct {
	Name string
	UID  types.UID
	// Node is the Node of its host, if known. ProviderID identifies the host, and so does HostUID, the value
	// of a label of its Node.
	Node, ProviderID, HostUID string
	// Deleted is when its deletion was requested; zero if it was not.
	Deleted time.Time
	// HasHook reports whether it has our hook, Waits whether its deletion waits only for our hook.
	HasHook, Waits bool
	// Blocker is what Cluster API waits for before our hook, for messages; "" if unknown.
	Blocker string
	// Terminating reports that Cluster API has passed all hooks and waits for the deletion of the infra
	// machine.
	Terminating bool
}

// RunsAs reports whether a Node has the identity of the Machine's host. The name of the host alone proves
// nothing.
func (m Machine) RunsAs(n workload.Node) bool {
	if m.ProviderID != "" && n.ProviderID != "" {
		return m.ProviderID == n.ProviderID
	}
	return m.HostUID != "" && m.HostUID == n.HostUID
}

// NotTouched returns a blocker with the Machine whose host is not touched, if there is one.
func (m Machine) NotTouched(b decision.Blocker) decision.Blocker {
	if m.Name == "" {
		return b
	}
	return b.About("the host of Machine %s is not touched", m.Name)
}
