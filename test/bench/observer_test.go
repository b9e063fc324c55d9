package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestFromWhenAHostIsInstalledUntilItsMachineRuns(t *testing.T) {
	start := time.Now()
	installed := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: "m"}}}
	installed.Status.DebugInfo.State = models.HostStatusAddedToExistingCluster
	running := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	running.Status.Phase, running.Status.NodeRef.Name = string(clusterv1.MachinePhaseRunning), "n"
	for name, test := range map[string]struct {
		seen []any
		took time.Duration
	}{
		"the Machine comes last":       {[]any{installed, running}, time.Second},
		"it runs before that is known": {[]any{running, installed}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observer{journal: newJournal()}
			for i, object := range test.seen {
				o.see(object, start.Add(time.Duration(i)*time.Second))
			}
			o.see(running, start.Add(time.Minute))
			measured, unexplained := o.measured()
			g := NewWithT(t)
			g.Expect(unexplained).To(BeEmpty())
			g.Expect(measured[machineRuns]).To(HaveLen(1))
			g.Expect(measured[machineRuns][0].took).To(Equal(test.took))
		})
	}
}
