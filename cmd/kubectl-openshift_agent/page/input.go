// Package page shows the content of an archive as an HTML page that needs neither a server nor scripts. It has no client and no
// clock.
package page

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Input is what a page shows. It contains no credentials.
type Input struct {
	Namespace, Cluster string
	Time               time.Time
	// Version is the version of the plugin.
	Version string
	Objects []Object
	// Events are those of the management cluster.
	Events        []unstructured.Unstructured
	ServiceEvents []ServiceEvent
	Files         []File
	// Gaps are what the archive does not contain.
	Gaps []Gap
}

// Object is an object with the name of its file in the archive. The name is empty if the archive had no space for the file.
type Object struct {
	*unstructured.Unstructured

	File string
}

// File is a file of the archive.
type File struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Bytes int    `json:"bytes"`
}

// Gap is what could not be read, and why.
type Gap struct {
	What  string `json:"what"`
	Cause string `json:"cause"`
}

// ServiceEvent is an event of assisted-service.
type ServiceEvent struct {
	Time time.Time
	// Host is the ID of the host, which is the name of its Agent.
	Host, Severity, Name, Message string
}

// ParseServiceEvents returns the events in an answer of assisted-service. An event without a time is left out.
func ParseServiceEvents(answer []map[string]any) []ServiceEvent {
	var events []ServiceEvent
	for _, fields := range answer {
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		at, err := time.Parse(time.RFC3339, text("event_time"))
		if err != nil {
			continue
		}
		events = append(events, ServiceEvent{
			Time: at, Host: text("host_id"), Severity: text("severity"), Name: text("name"), Message: text("message"),
		})
	}
	return events
}

// snapshotOf returns the cluster with its objects; nil if it is not among the objects.
func snapshotOf(in *Input) *snapshot.Cluster {
	s := &snapshot.Snapshot{Time: metav1.NewTime(in.Time), NotReadable: map[string]string{}}
	for i := range in.Objects {
		addTo(s, in.Objects[i].Unstructured, in.Cluster)
	}
	for _, gap := range in.Gaps {
		s.NotReadable[schema.ParseGroupKind(gap.What).Kind] = gap.Cause
	}
	for title := range s.NotReadable {
		if !shown[title] {
			delete(s.NotReadable, title)
		}
	}
	for _, c := range s.All() {
		return c
	}
	return nil
}

// shown are the kinds of a snapshot.
var shown = map[string]bool{
	snapshot.KindControlPlane: true, snapshot.KindMachine: true, snapshot.KindConfig: true, snapshot.KindHost: true, snapshot.KindAgent: true,
}

// addTo adds an object to a snapshot if it has a kind of a snapshot.
func addTo(s *snapshot.Snapshot, o *unstructured.Unstructured, cluster string) {
	switch o.GroupVersionKind().GroupKind() {
	case clusterv1.GroupVersion.WithKind(snapshot.KindCluster).GroupKind():
		if o.GetName() == cluster {
			s.Clusters = convert[clusterv1.Cluster](s.Clusters, o)
		}
	case clusterv1.GroupVersion.WithKind(snapshot.KindMachine).GroupKind():
		s.Machines = convert[clusterv1.Machine](s.Machines, o)
	case controlplanev1.GroupVersion.WithKind(snapshot.KindControlPlane).GroupKind():
		s.ControlPlanes = convert[controlplanev1.OpenshiftAssistedControlPlane](s.ControlPlanes, o)
	case bootstrapv1.GroupVersion.WithKind(snapshot.KindConfig).GroupKind():
		s.Configs = convert[bootstrapv1.OpenshiftAssistedConfig](s.Configs, o)
	case schema.GroupKind{Group: "metal3.io", Kind: snapshot.KindHost}:
		s.Hosts = convert[metal3.Host](s.Hosts, o)
	case schema.GroupKind{Group: "agent-install.openshift.io", Kind: snapshot.KindAgent}:
		s.Agents = convert[aiv1beta1.Agent](s.Agents, o)
	}
}

// convert adds an object in its own type. An object that does not have that type is shown without it.
func convert[T any](objects []T, o *unstructured.Unstructured) []T {
	object := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, object) != nil {
		return objects
	}
	return append(objects, *object)
}
