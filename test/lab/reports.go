package lab

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// reports records every condition of control planes since the start of the lab. It shows states of a few
// seconds, which a [Cluster.Wait] on a busy machine misses.
type reports struct {
	mu sync.Mutex
	// byKey has the last message for each condition, status and reason of an object.
	byKey map[types.NamespacedName]map[report]string
}

type report struct{ condition, status, reason string }

func newReports() *reports {
	return &reports{byKey: map[types.NamespacedName]map[report]string{}}
}

// handler records the control planes that an informer sends. The informer sends each version.
func (r *reports) handler() toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    r.record,
		UpdateFunc: func(_, object any) { r.record(object) },
	}
}

func (r *reports) record(object any) {
	cp, ok := object.(*controlplanev1.OpenshiftAssistedControlPlane)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := types.NamespacedName{Namespace: cp.Namespace, Name: cp.Name}
	if r.byKey[key] == nil {
		r.byKey[key] = map[report]string{}
	}
	for _, c := range cp.Status.Conditions {
		r.byKey[key][report{c.Type, string(c.Status), c.Reason}] = c.Message
	}
}

// HasReported reports whether the control plane of the cluster has or had a condition with this status and
// reason.
func (c *Cluster) HasReported(condition, status, reason string) bool {
	r := c.lab.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	_, reported := r.byKey[c.Key()][report{condition, status, reason}]
	return reported
}

// ReportsOf returns each status and reason that a condition of the control plane has or had: "True Available".
func (c *Cluster) ReportsOf(condition string) []string {
	r := c.lab.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for report := range r.byKey[c.Key()] {
		if report.condition == condition {
			found = append(found, report.status+" "+report.reason)
		}
	}
	slices.Sort(found)
	return found
}
