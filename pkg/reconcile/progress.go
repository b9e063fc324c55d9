package reconcile

import (
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Progress writes into the log what a status tells that was written: what people ask about afterwards, and what has no
// Event, which is in the log already. It compares with the status that was replaced; hence each line is written once,
// whoever reconciles how often.
type Progress struct{ log logr.Logger }

// NewProgress returns one that writes into a log.
func NewProgress(log logr.Logger) Progress { return Progress{log} }

// Passed writes a line for each of some conditions that has become True, in words of its own, followed by its message.
func (p Progress) Passed(about client.Object, before, after []metav1.Condition, words map[string]string) {
	for i := range after {
		if said, told := words[after[i].Type]; told && after[i].Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before, after[i].Type) {
			p.write(about, said, &after[i])
		}
	}
}

// Lost writes a line when a condition is not True any more, likewise.
func (p Progress) Lost(about client.Object, before, after []metav1.Condition, conditionType, words string) {
	if c := meta.FindStatusCondition(after, conditionType); c != nil && c.Status != metav1.ConditionTrue && meta.IsStatusConditionTrue(before, conditionType) {
		p.write(about, words, c)
	}
}

// Begun writes a line for each reason of a problem that has begun, with the message of the first condition that has it.
func (p Progress) Begun(about client.Object, after []metav1.Condition, reasons []string) {
	for _, reason := range reasons {
		if i := slices.IndexFunc(after, func(c metav1.Condition) bool { return c.Reason == reason }); i >= 0 {
			p.write(about, "Needs attention", &after[i])
		}
	}
}

// Reached writes that something has come to a stage, if that is another than before.
func (p Progress) Reached(about client.Object, before, after, words string) {
	if before != after {
		of(p.log, about).Info(words, "stage", after)
	}
}

func (p Progress) write(about client.Object, words string, c *metav1.Condition) {
	if c.Message != "" {
		words += ": " + c.Message
	}
	of(p.log, about).Info(words, "condition", c.Type, "reason", c.Reason)
}
