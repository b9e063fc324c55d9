package reconcile

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestStatusChangesAreLoggedOnce(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	progress := NewProgressLog(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	host := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "config", Labels: map[string]string{clusterv1.ClusterNameLabel: "ha"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Machine", Name: "ha-1", Controller: ptr.To(true)}},
	}}
	texts := map[string]string{"Bound": "The host belongs to the cluster", "Ready": "The host is ready"}
	condition := func(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message}
	}
	before := []metav1.Condition{
		condition("Bound", "False", "Waiting", ""),
		condition("Ready", "True", "Ready", ""),
		condition("Serves", "True", "Serves", ""),
	}
	after := []metav1.Condition{
		condition("Bound", "True", "Bound", "as a"), condition("Ready", "True", "Ready", ""), condition("Other", "True", "Other", ""),
		condition("Serves", "False", "Broken", "no disk"), condition("Too", "False", "Broken", "no disk either"),
	}
	logged := func(before, after []metav1.Condition) []string {
		lines = nil
		progress.BecameTrue(host, before, after, texts)
		progress.NoLongerTrue(host, before, after, "Serves", "It does not serve")
		return lines
	}
	first := logged(before, after)
	g.Expect(first).To(HaveLen(2))
	g.Expect(first[0]).To(And(ContainSubstring(`"msg"="The host belongs to the cluster: as a"`), ContainSubstring(`"condition"="Bound"`),
		ContainSubstring(`"name"="ha"`), ContainSubstring(`"name"="ha-1"`), ContainSubstring(`"name"="config"`)))
	g.Expect(first[1]).To(And(ContainSubstring(`"msg"="It does not serve: no disk"`), ContainSubstring(`"reason"="Broken"`)))
	g.Expect(logged(after, after)).To(BeEmpty(), "nothing has changed")
	g.Expect(logged(nil, before)).To(HaveLen(1), "a condition that starts True is logged, one that starts False is not")

	lines = nil
	progress.StageChanged(host, "Installing", "Rebooting", "The host is in stage Rebooting")
	progress.StageChanged(host, "Rebooting", "Rebooting", "The host is in stage Rebooting")
	g.Expect(lines).To(ConsistOf(ContainSubstring(`"stage"="Rebooting"`)))
}
