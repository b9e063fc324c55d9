package autoscaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/capacity"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// state brings the annotations of this provider, and their record, to the wanted ones. It sends no request if they are
// so. It does not touch an annotation of another client, and returns these annotations: the user's value counts.
func (r *Reconciler) state(
	ctx context.Context, again *reconcile.Requeue, d *clusterv1.MachineDeployment, wanted map[string]string,
) (foreign []string, err error) {
	restored := recordedWithoutOwner(d)
	own, free := map[string]string{}, map[string]string{}
	maps.Copy(free, wanted)
	for _, key := range capacity.Annotations {
		value, present := d.Annotations[key]
		_, ours := restored[key]
		switch {
		case present && (ours || r.applier.Owns(d, "metadata", "annotations", key)):
			own[key] = value
		case present:
			foreign = append(foreign, key)
			delete(free, key)
		}
	}
	if restored == nil && maps.Equal(own, free) && d.Annotations[controlplanev1.StatedCapacityAnnotation] == recordOf(free) {
		return foreign, nil
	}
	key := reconcile.Key("capacity", d)
	if left := r.recent.Pending(key, d.ResourceVersion); left > 0 {
		again.In(left)
		return foreign, nil
	}
	version := d.ResourceVersion
	if restored != nil {
		// The removal is an event, after which the wanted annotations are stated.
		err = kube.Annotate(ctx, r.Client, d, restored, writer.FieldOwner)
	} else {
		var kept []string
		kept, err = r.apply(ctx, d, free)
		foreign = append(foreign, kept...)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot state the capacity of MachineDeployment %s: %w", d.Name, err)
	}
	r.recent.Record(key, version)
	return foreign, nil
}

// recordedWithoutOwner returns the annotations to remove from a MachineDeployment that was moved or restored. These are
// the record of this provider, and the annotations with their recorded values. For any other MachineDeployment it
// returns nil. The client that created the object again owns its fields, and this provider owns none.
func recordedWithoutOwner(d *clusterv1.MachineDeployment) map[string]*string {
	record, found := d.Annotations[controlplanev1.StatedCapacityAnnotation]
	if !found || len(d.ManagedFields) > 0 {
		return nil
	}
	remove, stated := map[string]*string{controlplanev1.StatedCapacityAnnotation: nil}, map[string]string{}
	if json.Unmarshal([]byte(record), &stated) != nil {
		return remove // no annotation is known to be ours
	}
	for _, key := range capacity.Annotations {
		if value, known := stated[key]; known && d.Annotations[key] == value {
			remove[key] = nil
		}
	}
	return remove
}

// recordOf returns the record of stated annotations; "" if there are none.
func recordOf(stated map[string]string) string {
	if len(stated) == 0 {
		return ""
	}
	record, err := json.Marshal(stated) // in the order of the keys
	utilruntime.Must(err)               // a map of strings can be encoded
	return string(record)
}

// apply states annotations without taking over those of other clients: of an annotation that another client owns, the
// API server reports a conflict. Then apply states the other annotations, and returns the foreign ones. The record is
// always this provider's: a copy that another client owns, as from a manifest in Git, is removed.
func (r *Reconciler) apply(ctx context.Context, d *clusterv1.MachineDeployment, stated map[string]string) (foreign []string, err error) {
	err = r.send(ctx, d, stated)
	foreign = inConflict(err)
	if len(foreign) == 0 {
		return nil, err
	}
	if copied := slices.Index(foreign, controlplanev1.StatedCapacityAnnotation); copied >= 0 {
		foreign = slices.Delete(foreign, copied, copied+1)
		record := map[string]*string{controlplanev1.StatedCapacityAnnotation: nil}
		if err := kube.Annotate(ctx, r.Client, d, record, writer.FieldOwner); err != nil {
			return nil, err
		}
	}
	left := maps.Clone(stated)
	maps.DeleteFunc(left, func(key, _ string) bool { return slices.Contains(foreign, key) })
	return foreign, r.send(ctx, d, left)
}

// send applies the annotations and their record. The UID prevents that a MachineDeployment is created which was deleted
// meanwhile.
func (r *Reconciler) send(ctx context.Context, d *clusterv1.MachineDeployment, stated map[string]string) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineDeployment"))
	u.SetNamespace(d.Namespace)
	u.SetName(d.Name)
	u.SetUID(d.UID)
	if len(stated) > 0 {
		annotations := maps.Clone(stated)
		annotations[controlplanev1.StatedCapacityAnnotation] = recordOf(stated)
		u.SetAnnotations(annotations)
	}
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), writer.FieldOwner)
}

// inConflict returns the annotations that other clients own, if these are the only conflicts.
func inConflict(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var foreign []string
	for _, cause := range status.Status().Details.Causes {
		key, is := strings.CutPrefix(cause.Field, ".metadata.annotations.")
		if !is || cause.Type != metav1.CauseTypeFieldManagerConflict {
			return nil
		}
		foreign = append(foreign, key)
	}
	slices.Sort(foreign)
	return slices.Compact(foreign) // each other owner is a cause
}

// report emits an Event if the result differs from the last one. foreign are the annotations of other clients. If these
// are all, the capacity does not matter.
func (r *Reconciler) report(d *clusterv1.MachineDeployment, decision capacity.Decision, foreign []string) {
	message := decision.Message
	switch {
	case len(foreign) == len(capacity.Annotations):
		message = ""
	case len(foreign) > 0 && message != "":
		message += ". Not changed, because another client set it: annotation " + bound.List(foreign)
	}
	if last, _ := r.reported.Get(d.UID); last == message {
		return
	}
	r.reported.Add(d.UID, message)
	found := findings.Findings[string]{}
	switch {
	case message == "":
		return
	case decision.Capacity == nil:
		found.Event(corev1.EventTypeWarning, "CapacityUnknown", "%s", message)
	default:
		found.Event(corev1.EventTypeNormal, "CapacityStated", "%s", message)
	}
	reconcile.EmitEvents(r.Recorder, d, found.Events(), true)
}
