package objects

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Resource is a kind, or part of a kind, that is watched in a cluster.
type Resource struct {
	// Name is the plural of the kind. Path is the path of the list, Selector a label selector, and Fields a
	// field selector.
	Name, Path, Selector, Fields string
	// Demand reports whether the resource is needed. Nil means always. A resource that is not needed is not
	// watched, and is read once for each connection. With OnlyIfNeeded it is not read at all.
	Demand       func(*State) bool
	OnlyIfNeeded bool
	// Outdated reports whether the resource must be read again although it is not watched. Nil means never,
	// because the resource is watched or matters only while needed.
	Outdated func(*State) bool
	// Read reads the resource, and returns the version at which to start the watch. The version is empty if the
	// cluster does not have the kind yet.
	Read func(ctx context.Context, c client.Client) (version string, apply func(*State), err error)
	// readChange reads the state after an event. apply is nil if the event does not matter. Without readChange
	// the whole resource is read again.
	readChange func(ctx context.Context, cluster Cluster, e Event) (apply func(*State), err error)
}

// Resources are all resources that are read, in the order in which they are read.
var Resources = []Resource{nodes, tokenSecrets, clusterVersions, clusterOperators, requests, serverCAs, pools}

// Cluster is the cluster in which an event happened.
type Cluster struct {
	// Call calls a function with a client of the cluster.
	Call func(requests func(client.Client) error) error
	// Node returns the Node with a name as it was last read, or an empty one if it is not known.
	Node func(name string) workload.Node
	// Follows reports whether a kubelet has the Kubernetes version of the API servers.
	Follows func(kubelet string) bool
}

// Event is an event of a watch. Code and Reason are those of an error.
type Event struct {
	Type   watch.EventType `json:"type"`
	Object struct {
		Metadata struct {
			Name            string            `json:"name"`
			UID             types.UID         `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Labels          map[string]string `json:"labels"`
			// Annotations are those that are needed of Nodes. All others are ignored, because they are many and large.
			Annotations struct {
				CurrentConfig string `json:"machineconfiguration.openshift.io/currentConfig"`
				DesiredConfig string `json:"machineconfiguration.openshift.io/desiredConfig"`
			} `json:"annotations"`
		} `json:"metadata"`
		Code    int32               `json:"code"`
		Reason  metav1.StatusReason `json:"reason"`
		Message string              `json:"message"`
	} `json:"object"`
}

// ReadChange reads the state of the resource after an event. apply is nil if the event does not matter.
func (r Resource) ReadChange(ctx context.Context, cluster Cluster, e Event) (apply func(*State), err error) {
	if r.readChange != nil {
		return r.readChange(ctx, cluster, e)
	}
	err = cluster.Call(func(c client.Client) error {
		_, apply, err = r.Read(ctx, c)
		return err
	})
	return apply, err
}
