package reconcile

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// Events about actions come in any case, those about states only with the status that records them.
func TestStatusEventsNeedTheStatus(t *testing.T) {
	g := NewWithT(t)
	var found findings.Findings[string]
	found.Event(corev1.EventTypeNormal, "HostApproved", "approved")
	found.StatusEvent(corev1.EventTypeWarning, "HostRefused", "100%% refused")
	events := record.NewFakeRecorder(2)
	EmitEvents(events, &corev1.Pod{}, found.Events(), false)
	g.Expect(events.Events).To(HaveLen(1))
	g.Expect(<-events.Events).To(Equal("Normal HostApproved approved"))

	EmitEvents(events, &corev1.Pod{}, found.Events(), true)
	g.Expect(<-events.Events).To(Equal("Normal HostApproved approved"))
	g.Expect(<-events.Events).To(Equal("Warning HostRefused 100% refused"))
}

func TestEventsAreLoggedWithTheirClusterAndMachine(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	events := record.NewFakeRecorder(2)
	recorder := LogEvents(events, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	host := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "config", Labels: map[string]string{clusterv1.ClusterNameLabel: "ha"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Machine", Name: "ha-1", Controller: ptr.To(true)}},
	}}
	recorder.Event(host, corev1.EventTypeWarning, "HostRefused", "hardware differs")
	recorder.Eventf(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "alone"}},
		corev1.EventTypeNormal,
		"MachinesCreated",
		"Created %d Machines",
		3,
	)
	g.Expect(lines).To(HaveLen(2))
	g.Expect(lines[0]).To(And(
		ContainSubstring(`"msg"="hardware differs"`), ContainSubstring(`"event"="HostRefused"`), ContainSubstring(`"type"="Warning"`),
		ContainSubstring(`"name"="ha"`), ContainSubstring(`"name"="ha-1"`), ContainSubstring(`"name"="config"`),
	))
	g.Expect(lines[1]).To(And(ContainSubstring("Created 3 Machines"), Not(ContainSubstring("Machine\"=")), Not(ContainSubstring("Cluster"))))
	g.Expect(<-events.Events).To(Equal("Warning HostRefused hardware differs"))
	g.Expect(<-events.Events).To(Equal("Normal MachinesCreated Created 3 Machines"))
}
