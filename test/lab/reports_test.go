package lab

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestReportsKeepPastConditions(t *testing.T) {
	g := NewWithT(t)
	c := &Cluster{Namespace: "lab", Name: "c1", lab: &Lab{reports: newReports()}}
	reporting := func(name, reason string) *controlplanev1.OpenshiftAssistedControlPlane {
		return &controlplanev1.OpenshiftAssistedControlPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name},
			Status: controlplanev1.OpenshiftAssistedControlPlaneStatus{Conditions: []metav1.Condition{{
				Type:   "Installed",
				Status: metav1.ConditionFalse, Reason: reason,
			}}},
		}
	}
	handler := c.lab.reports.handler()
	handler.OnAdd(reporting("c1", "Failed"), true)
	handler.OnUpdate(nil, reporting("c1", "Retrying"))
	handler.OnUpdate(nil, reporting("c1", "Installing"))
	handler.OnAdd(reporting("other", "OnHold"), true)

	g.Expect(c.HasReported("Installed", "False", "Retrying")).To(BeTrue(), "although its current condition differs")
	g.Expect(c.HasReported("Installed", "False", "OnHold")).To(BeFalse(), "another control plane reported that")
	g.Expect(c.HasReported("Installed", "True", "Retrying")).To(BeFalse())
}
