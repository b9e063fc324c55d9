package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/measuretest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile/reconciletest"
)

// log makes the reconciler write its log, including Events, into a buffer. messages returns the messages.
func (h *hub) log() (messages func() []string) {
	log, messages := reconciletest.Log(func(keys string) { h.Expect(keys).To(ContainSubstring(`object"={"name"="c1"`)) })
	h.r.progress = reconcile.NewProgressLog(log)
	h.recorder.EventRecorder = reconcile.LogEvents(record.NewFakeRecorder(1000), log)
	return messages
}

// Each message is logged once, however often the control plane is reconciled.
func TestLogShowsEachStageOfAnInstallationOnce(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	messages := h.log()
	step := func() {
		for range 3 {
			h.reconcile()
			h.endDeferral()
		}
	}
	step()
	for _, state := range []string{"preparing-for-installation", "installing", "finalizing"} {
		h.setState(state, hiveext.ClusterInstallationInProgressReason, 10)
		step()
	}
	h.giveKubeconfig("assisted-service")
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	h.workloads.facts = workload.State{Connected: true, LastSuccess: time.Now(), OpenShiftVersion: "4.19.3", KubernetesVersion: "v1.32.6"}
	step()
	h.workloads.facts.Unhealthy = []string{"etcd is degraded"}
	step()
	h.Expect(messages()).To(HaveExactElements(
		"The release image is known",
		"All hosts are known, the installation is being prepared",
		"The installation of v4.19.3 has started",
		"The hosts are installed, the operators of the cluster are coming up",
		"The control plane serves",
		"The API server of the cluster has answered",
		"Published the kubeconfig in Secret cluster1-kubeconfig",
		HavePrefix("Wrote a new token into Secret cluster1-kubeconfig"),
		"The cluster is installed",
		"etcd is degraded", // the Event
	))
}

func TestLogShowsAFailureOnce(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 10)
	h.reconcile()
	messages := h.log()
	h.setState("error", hiveext.ClusterInstallationFailedReason, 10)
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.Expect(messages()).To(ConsistOf(HavePrefix("the installation failed")), "by the Event")

	broken := world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ReleaseImage = ""
		cp.Spec.DistributionVersion = "v3.11.0"
	})
	h = newHub(t, broken...).withTime()
	messages = h.log()
	h.reconcile()
	h.reconcile()
	h.Expect(messages()).To(ConsistOf(HavePrefix("version 3.11.0 is not supported")), "by the Event")
}

func (h *hub) reactions(to measure.Handover) float64 {
	h.t.Helper()
	value, err := measuretest.Count("capi_openshift_agent_reaction_duration_seconds", map[string]string{"handover": string(to)})
	h.Expect(err).NotTo(HaveOccurred())
	return value
}

// date gives the kubeconfig of assisted-service a time of creation.
func (h *hub) date(created time.Time) {
	h.t.Helper()
	secret := &corev1.Secret{}
	h.get("c1-admin-kubeconfig", secret)
	h.Expect(h.Delete(h.t.Context(), secret)).To(Succeed())
	secret.ResourceVersion, secret.CreationTimestamp = "", metav1.NewTime(created)
	h.Expect(h.Create(h.t.Context(), secret)).To(Succeed())
}

func TestReactionsAreMeasuredOnce(t *testing.T) {
	h := newHub(t, world(nil)...)
	kubeconfigs, ends := h.reactions(measure.KubeconfigWritten), h.reactions(measure.ClusterInstalled)
	h.withTime().reconcile()
	h.setState("installing", hiveext.ClusterInstallationInProgressReason, 10)
	h.reconcile()
	h.giveKubeconfig("assisted-service")
	h.date(time.Now().Add(-2 * time.Second))
	h.reconcile()
	h.reconcile()
	h.Expect(h.reactions(measure.KubeconfigWritten) - kubeconfigs).To(BeEquivalentTo(1))
	another := &corev1.Secret{}
	h.get("c1-admin-kubeconfig", another) // with its date
	another.Data["kubeconfig"] = kubeconfigOf("another")
	h.Expect(h.Update(t.Context(), another)).To(Succeed())
	h.reconcile()
	h.Expect(h.reactions(measure.KubeconfigWritten)-kubeconfigs).To(
		BeEquivalentTo(1), "another kubeconfig is not the first: its Secret has the date of the former one",
	)
	h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	aci := h.aci()
	aci.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-2 * time.Second))
	h.Expect(h.Status().Update(t.Context(), aci)).To(Succeed())
	h.reconcile()
	h.reconcile()
	h.Expect(h.controlPlane().Status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
	h.workloads.facts = workload.State{
		Connected: true, LastSuccess: time.Now(), OpenShiftVersion: "4.19.3", Unhealthy: []string{"etcd is degraded"},
	}
	version := h.controlPlane().ResourceVersion
	h.reconcile()
	h.Expect(h.controlPlane().ResourceVersion).NotTo(Equal(version))
	h.Expect(h.reactions(measure.ClusterInstalled)-ends).To(BeEquivalentTo(1), "later reports are no reaction to the end")
}

func TestNoReactionIsMeasuredToAnUnobservedEnd(t *testing.T) {
	for _, before := range []controlplanev1.InstallationPhase{"", controlplanev1.InstallationPending, controlplanev1.InstallationInstalled} {
		was, is := &controlplanev1.OpenshiftAssistedControlPlane{}, &controlplanev1.OpenshiftAssistedControlPlane{}
		was.Status.Installation.Phase, is.Status.Installation.Phase = before, controlplanev1.InstallationInstalled
		NewWithT(t).Expect(installationEnded(was, is)).To(BeFalse(), string(before))
	}
}

// The Secret of a cluster is created again after a user deleted it. This is no reaction to a kubeconfig that
// assisted-service wrote months ago.
func TestNoReactionIsMeasuredToAnOldKubeconfig(t *testing.T) {
	for situation, prepare := range map[string]func(h *hub){
		"the cluster was installed long ago": func(*hub) {},
		"the status was lost, too": func(h *hub) {
			cp := h.controlPlane()
			cp.Status = controlplanev1.OpenshiftAssistedControlPlaneStatus{}
			h.Expect(h.Status().Update(h.t.Context(), cp)).To(Succeed())
		},
		"the installation was not observed": func(h *hub) {
			cp := h.controlPlane()
			cp.Status.Installation.Phase = controlplanev1.InstallationPending
			h.Expect(h.Status().Update(h.t.Context(), cp)).To(Succeed())
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.install()
			h.date(time.Now().Add(-1000 * time.Hour))
			h.Expect(h.Delete(t.Context(), h.published())).To(Succeed())
			prepare(h)
			h.r = New(h.r.Options)
			before := h.reactions(measure.KubeconfigWritten)
			h.reconcile()
			h.Expect(h.published().Data).NotTo(BeEmpty())
			h.Expect(h.reactions(measure.KubeconfigWritten)).To(Equal(before))
		})
	}
}
