package reconcile

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ProgressLog logs the changes of a written status that support needs afterwards and that have no Event;
// Events are logged already. It compares the new status with the replaced one, so that each change is logged
// once, however often the object is reconciled.
type ProgressLog struct{ log logr.Logger }

// NewProgressLog returns a ProgressLog that writes into log.
func NewProgressLog(log logr.Logger) ProgressLog { return ProgressLog{log} }

// BecameTrue logs each condition of a type in texts that became True: its text, followed by the message of
// the condition.
func (p ProgressLog) BecameTrue(obj client.Object, before, after []metav1.Condition, texts map[string]string) {
	for i := range after {
		if text, listed := texts[after[i].Type]; listed && after[i].Status == metav1.ConditionTrue &&
			!meta.IsStatusConditionTrue(before, after[i].Type) {
			p.write(obj, text, &after[i])
		}
	}
}

// NoLongerTrue logs a text and the message of a condition that was True and is not any more.
func (p ProgressLog) NoLongerTrue(obj client.Object, before, after []metav1.Condition, conditionType, text string) {
	if c := meta.FindStatusCondition(
		after,
		conditionType,
	); c != nil && c.Status != metav1.ConditionTrue &&
		meta.IsStatusConditionTrue(before, conditionType) {
		p.write(obj, text, c)
	}
}

// StageChanged logs a text and the new stage when the stage has changed.
func (p ProgressLog) StageChanged(obj client.Object, before, after, text string) {
	if before != after {
		withObject(p.log, obj).Info(text, "stage", after)
	}
}

func (p ProgressLog) write(obj client.Object, text string, c *metav1.Condition) {
	if c.Message != "" {
		text += ": " + c.Message
	}
	withObject(p.log, obj).Info(text, "condition", c.Type, "reason", c.Reason)
}
