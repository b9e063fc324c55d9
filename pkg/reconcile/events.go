package reconcile

import (
	"fmt"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// EmitEvents emits the queued Events of a reconcile. statusWritten is false if the status differs from the stored one. Then
// only the Events about actions are emitted. The other Events are about states, which the next reconcile finds again.
func EmitEvents(recorder record.EventRecorder, obj runtime.Object, events []findings.Event, statusWritten bool) {
	for _, e := range events {
		if statusWritten || !e.OfStatus {
			recorder.Event(obj, e.Type, e.Reason, e.Message)
		}
	}
}

// LogEvents returns a recorder that bounds the message of each Event and also logs the Event. The API server
// keeps Events for one hour.
func LogEvents(recorder record.EventRecorder, log logr.Logger) record.EventRecorder {
	return loggedEvents{EventRecorder: recorder, log: log}
}

type loggedEvents struct {
	record.EventRecorder

	log logr.Logger
}

// Event records a bounded message and logs it. It implements record.EventRecorder.
func (e loggedEvents) Event(obj runtime.Object, kind, reason, message string) {
	message = bound.Message(message)
	withObject(e.log, obj).Info(message, "event", reason, "type", kind)
	e.EventRecorder.Event(obj, kind, reason, message)
}

// Eventf formats a message for Event. It implements record.EventRecorder.
func (e loggedEvents) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	e.Event(obj, kind, reason, fmt.Sprintf(format, args...))
}

// withObject adds the object, its Cluster and its Machine to the logger, under the keys of Cluster API's
// controllers.
func withObject(log logr.Logger, obj runtime.Object) logr.Logger {
	object, is := obj.(client.Object)
	if !is {
		return log
	}
	log = log.WithValues("object", klog.KObj(object))
	if cluster := object.GetLabels()[clusterv1.ClusterNameLabel]; cluster != "" {
		log = log.WithValues("Cluster", klog.KRef(object.GetNamespace(), cluster))
	}
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "Machine" {
		log = log.WithValues("Machine", klog.KRef(object.GetNamespace(), owner.Name))
	}
	return log
}
