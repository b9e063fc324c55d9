package installed

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestInstalledCondition(t *testing.T) {
	condition := func(
		t hivev1.ClusterInstallConditionType, status corev1.ConditionStatus, reason, message string,
	) hivev1.ClusterInstallCondition {
		return hivev1.ClusterInstallCondition{Type: t, Status: status, Reason: reason, Message: message}
	}
	inProgress := condition(hiveext.ClusterCompletedCondition, "False", hiveext.ClusterInstallationInProgressReason, "")
	three := []aiv1beta1.Agent{agentIn("m0", "known", ""), agentIn("m1", "known", ""), agentIn("m2", "known", "")}
	for situation, tc := range map[string]struct {
		install *hiveext.AgentClusterInstall
		agents  []aiv1beta1.Agent
		reason  string
		message string
	}{
		"not registered": {install: installOf(""), reason: "WaitingForAssistedService", message: "register the cluster"},
		"refused input": {
			install: installOf("", condition(hiveext.ClusterSpecSyncedCondition, "False", hiveext.ClusterInputErrorReason, "bad pull secret")),
			reason:  "InvalidConfiguration", message: "bad pull secret",
		},
		"hosts are missing": {
			install: installOf("insufficient"), agents: three[:1], reason: "WaitingForHosts", message: "hosts bound to the cluster: 1 of 3",
		},
		"hosts are all bound": {install: installOf("ready"), agents: three, reason: "WaitingForHosts", message: "known and approved"},
		"validations fail": {
			install: installOf(
				"insufficient",
				condition(hiveext.ClusterValidatedCondition, "False", "ValidationsFailing", "The cluster's validations are failing: ntp"),
			),
			agents:  append([]aiv1beta1.Agent{agentIn("m9", "insufficient", "no NTP")}, three[:2]...),
			reason:  "ValidationFailed",
			message: "host m9: no NTP",
		},
		"on hold": {
			install: installOf("ready", condition(hiveext.ClusterCompletedCondition, "False", hiveext.ClusterInstallationOnHoldReason, "")),
			agents:  three, reason: "InstallationOnHold", message: "holdInstallation",
		},
		"preparation failed": {
			install: installOf(
				"ready",
				condition(hiveext.ClusterLastInstallationPreparationFailedCondition, "True", "The last installation preparation failed", "no ignition"),
			),
			agents: three, reason: "PreparationFailed", message: "no ignition",
		},
		"a host cannot be prepared": {
			install: installOf("preparing-for-installation", inProgress),
			agents:  []aiv1beta1.Agent{agentIn("m1", "preparing-failed", "cannot pull the image")},
			reason:  "PreparationFailed",
			message: "host m1: cannot pull the image",
		},
		"preparing": {
			install: installOf("preparing-for-installation", inProgress),
			agents:  three,
			reason:  "Preparing",
			message: "events: https://svc/events?cluster_id=1",
		},
		"installing": {
			install: installOf("installing", inProgress), agents: three, reason: "Installing", message: "40%: info of installing",
		},
		"a host boots the wrong disk": {
			install: installOf("installing-pending-user-action", inProgress),
			agents:  []aiv1beta1.Agent{agentIn("m1", "installing-pending-user-action", "booted the ISO")},
			reason:  "UserActionRequired",
			message: "host m1: booted the ISO",
		},
		"finalizing": {install: installOf("finalizing", inProgress), agents: three, reason: "Finalizing", message: "40%"},
		"failed": {
			install: installOf("error", condition(hiveext.ClusterCompletedCondition, "False", hiveext.ClusterInstallationFailedReason, "")),
			agents:  []aiv1beta1.Agent{agentIn("m1", "error", "disk on fire")},
			reason:  "InstallationFailed",
			message: "host m1: disk on fire",
		},
		"installed": {
			install: installOf("adding-hosts", condition(hiveext.ClusterCompletedCondition, "True", hiveext.ClusterInstalledReason, "")),
			reason:  "Installed",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := factsOf(nil)
			s.Install, s.Progress, s.Agents = tc.install, assisted.Observe(tc.install), tc.agents
			c := viewOf(s).Condition()
			g.Expect(c.Reason).To(Equal(tc.reason))
			g.Expect(c.Message).To(ContainSubstring(tc.message))
			g.Expect(c.Message).NotTo(ContainSubstring("hush"))
		})
	}
}

func TestFailedHostsAreNamedWithCause(t *testing.T) {
	s := factsOf(nil)
	s.Agents = []aiv1beta1.Agent{agentIn("a", "error", consequence), agentIn("b", "error", "disk is read-only")}
	g := NewWithT(t)
	g.Expect(viewOf(s).ofHosts("failed", failingStates)).To(Equal("failed; host b: disk is read-only"))
	s.Agents = s.Agents[:1]
	g.Expect(viewOf(s).ofHosts("failed", failingStates)).To(ContainSubstring(consequence))
}

func TestFailedPreparationStaysReportedWhileItIsRetried(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	s.Agents = []aiv1beta1.Agent{agentIn("m0", "known", ""), agentIn("m1", "known", ""), agentIn("m2", "known", "")}
	s.ControlPlane.Status.Conditions = []metav1.Condition{
		condition.False(controlplanev1.InstalledCondition, controlplanev1.PreparationFailedReason, "host m1: cannot pull the image"),
	}
	reported := func(state string) metav1.Condition {
		s.Install = installOf(state)
		s.Progress = assisted.Observe(s.Install)
		return viewOf(s).Condition()
	}
	for _, state := range []string{"ready", "insufficient", "preparing-for-installation"} {
		g.Expect(reported(state).Message).To(ContainSubstring("cannot pull the image"), state)
	}
	g.Expect(reported("installing").Reason).To(Equal(controlplanev1.InstallingReason), "the preparation succeeded")
	s.Agents = s.Agents[:2]
	g.Expect(reported("insufficient").Reason).To(Equal(controlplanev1.WaitingForHostsReason), "a host was removed")
}

func TestFailingValidationStaysAProblemWhenAHostIsAdded(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	s.Agents = []aiv1beta1.Agent{agentIn("m9", "insufficient", "no NTP"), agentIn("m1", "known", "")}
	invalid := hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterValidatedCondition, Status: corev1.ConditionFalse, Reason: "ValidationsFailing", Message: "ntp",
	}
	reported := func(install *hiveext.AgentClusterInstall) string {
		s.Install, s.Progress = install, assisted.Observe(install)
		v := viewOf(s)
		v.Now = time.Now()
		return v.Condition().Reason
	}
	g.Expect(reported(installOf("insufficient", invalid))).To(Equal(controlplanev1.WaitingForHostsReason), "two of three hosts")
	s.ControlPlane.Status.Conditions = []metav1.Condition{
		condition.False(controlplanev1.InstalledCondition, controlplanev1.ValidationFailedReason, "ntp"),
	}
	g.Expect(reported(installOf("insufficient", invalid))).To(Equal(controlplanev1.ValidationFailedReason))
	s.Agents = append(s.Agents, agentIn("m2", "insufficient", ""))
	s.Agents[2].CreationTimestamp = metav1.Now()
	g.Expect(reported(installOf("insufficient", invalid))).To(Equal(controlplanev1.ValidationFailedReason), "a new host")
	g.Expect(reported(installOf("ready"))).To(Equal(controlplanev1.WaitingForHostsReason), "the validations pass")
}

func TestFailedStepEndsNoProblem(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	failed := func() metav1.Condition {
		v := viewOf(s)
		v.Failure = errors.New("connection refused")
		c := v.Condition()
		s.ControlPlane.Status.Conditions = []metav1.Condition{c}
		return c
	}
	g.Expect(failed()).To(And(HaveField("Reason", controlplanev1.WaitingForAssistedServiceReason), HaveField("Message", failedStep)))
	s.ControlPlane.Status.Conditions = []metav1.Condition{
		condition.False(controlplanev1.InstalledCondition, controlplanev1.PullSecretMissingReason, "Secret pull does not exist"),
	}
	first := failed()
	g.Expect(first.Reason).To(Equal(controlplanev1.PullSecretMissingReason))
	g.Expect(first.Message).To(Equal("Secret pull does not exist; " + failedStep))
	g.Expect(failed()).To(Equal(first), "the message does not grow")
}
