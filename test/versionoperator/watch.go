package versionoperator

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch pokes the operator when something changes that it looks at, until ctx ends. An API that is away is asked again and again.
func (o *Operator) watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	seen := map[string]string{}
	for ctx.Err() == nil {
		events, err := o.api.Watch(ctx, list, options...)
		if err != nil {
			pause(ctx, retry)
			continue
		}
		for e := range events.ResultChan() {
			o.see(seen, e)
		}
		events.Stop()
		// What changed meanwhile is told by the next watch, but not what went.
		o.poke()
		pause(ctx, retry)
	}
}

// see pokes the operator unless the event tells nothing new: kubelets post their status all the time.
func (o *Operator) see(seen map[string]string, e watch.Event) {
	object, ok := e.Object.(client.Object)
	if !ok {
		return
	}
	key := object.GetNamespace() + "/" + object.GetName()
	if e.Type == watch.Deleted {
		delete(seen, key)
		o.poke()
		return
	}
	if look := appearance(object); look != seen[key] {
		seen[key] = look
		o.poke()
	}
}

// appearance is what of an object counts.
func appearance(object client.Object) string {
	var parts []any
	switch object := object.(type) {
	case *corev1.Node:
		parts = []any{
			object.UID, object.Labels, object.Annotations, object.Spec.Unschedulable, ready(object),
			object.Status.NodeInfo.KubeletVersion,
		}
	case *configv1.ClusterVersion:
		parts = []any{object.UID, object.Generation, len(object.Status.History) > 0}
		for _, entry := range object.Status.History {
			parts = append(parts, entry.State)
		}
	case *configv1.ClusterOperator:
		parts = []any{object.UID, object.Status.Versions, object.Status.Conditions}
	case *machineconfigv1.MachineConfigPool:
		parts = []any{object.UID, object.Generation}
	case *corev1.ConfigMap:
		parts = []any{object.UID, maps.Clone(object.Data)}
	}
	encoded, err := json.Marshal(parts)
	if err != nil {
		return strings.Join([]string{object.GetName(), object.GetResourceVersion()}, "/")
	}
	return string(encoded)
}
