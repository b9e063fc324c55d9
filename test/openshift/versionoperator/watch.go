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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// watch starts a sync after each change of an object that the operator reads. It retries until ctx ends.
func (o *Operator) watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	seen := map[string]string{}
	for ctx.Err() == nil {
		events, err := o.api.Watch(ctx, list, options...)
		if err != nil {
			openshift.Pause(ctx, retry)
			continue
		}
		for e := range events.ResultChan() {
			o.see(seen, e)
		}
		events.Stop()
		// The next watch reports changes in the meantime, but not deletions.
		o.wakeUp()
		openshift.Pause(ctx, retry)
	}
}

// see starts a sync if an event changes the content that the operator reads. Kubelets write their status continuously.
func (o *Operator) see(seen map[string]string, e watch.Event) {
	object, ok := e.Object.(client.Object)
	if !ok {
		return
	}
	key := object.GetNamespace() + "/" + object.GetName()
	if e.Type == watch.Deleted {
		delete(seen, key)
		o.wakeUp()
		return
	}
	if content := contentOf(object); content != seen[key] {
		seen[key] = content
		o.wakeUp()
	}
}

// contentOf returns the content of an object that the operator reads.
func contentOf(object client.Object) string {
	var parts []any
	switch object := object.(type) {
	case *corev1.Node:
		parts = []any{
			object.UID, object.Labels, object.Annotations, object.Spec.Unschedulable, openshift.NodeReady(object),
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
