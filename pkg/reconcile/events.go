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
)

// LogEvents returns a recorder that bounds the message of each Event, and also writes the Event into the log: the API
// server forgets Events within the hour.
func LogEvents(recorder record.EventRecorder, log logr.Logger) record.EventRecorder {
	return loggedEvents{EventRecorder: recorder, log: log}
}

type loggedEvents struct {
	record.EventRecorder

	log logr.Logger
}

// Event implements record.EventRecorder.
func (e loggedEvents) Event(about runtime.Object, kind, reason, message string) {
	message = bound.Message(message)
	e.write(about, kind, reason, message)
	e.EventRecorder.Event(about, kind, reason, message)
}

// Eventf implements record.EventRecorder.
func (e loggedEvents) Eventf(about runtime.Object, kind, reason, format string, args ...any) {
	e.Event(about, kind, reason, fmt.Sprintf(format, args...))
}

// write writes an Event into the log.
func (e loggedEvents) write(about runtime.Object, kind, reason, message string) {
	of(e.log, about).Info(message, "event", reason, "type", kind)
}

// of names the object of what is logged, its Cluster and its Machine as controllers of Cluster API do.
func of(log logr.Logger, about runtime.Object) logr.Logger {
	object, is := about.(client.Object)
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
