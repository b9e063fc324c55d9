package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/measuretest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile/reconciletest"
)

// log makes the reconciler write its log, with Events, into lines whose messages the returned function
// returns.
func (w *world) log() (messages func() []string) {
	log, messages := reconciletest.Log(func(keys string) {
		w.Expect(keys).To(And(ContainSubstring(`Cluster"={"name"="c"`), ContainSubstring(`object"={"name"="m"`)))
	})
	w.reconciler.progress = reconcile.NewProgressLog(log)
	w.reconciler.Recorder = reconcile.LogEvents(w.events, log)
	return messages
}

// TestLogOfHostInstallation has each line once, independent of the number of reconciles.
func TestLogOfHostInstallation(t *testing.T) {
	w := newWorld(t, values(lab())...)
	messages := w.log()
	step := func() {
		for range 3 {
			w.reconcile()
			w.clock = w.clock.Add(reconcile.DeferralPeriod)
		}
	}
	step()
	w.makeImage()
	step()
	w.create(bareMetalHost())
	step()
	w.create(discovered("a", "m", bootMAC))
	step()
	w.registerWithCluster("a", "known")
	step()
	w.progress("a", "installing-in-progress", aiv1beta1.HostStageWritingImageToDisk, stageTime, 33)
	step()
	w.progress("a", "installing-in-progress", aiv1beta1.HostStageRebooting, stageTime, 55)
	step()
	w.progress("a", "installing-in-progress", aiv1beta1.HostStageJoined, stageTime, 88)
	step()
	w.progress("a", "installed", aiv1beta1.HostStageDone, stageTime, 100)
	step()
	w.Expect(messages()).To(HaveExactElements(
		"The discovery image is ready",
		"Boot image and bootstrap data are in place, the host may be started",
		HavePrefix("waiting for the infrastructure provider to choose a BareMetalHost"),
		"rack1-u7: the condition HostIdentified no longer reports NoHostFits",
		"The host is identified: Agent a runs on BareMetalHost lab/rack1-u7",
		"Host rack1-u7 may be installed as worker rack1-u7",
		"The host belongs to the cluster",
		"The host is in stage Writing image to disk",
		"The host is in stage Rebooting",
		"The host is in stage Joined",
		"Host rack1-u7 is installed",
	))
}

func TestLogReportsRequiredUserActionOnce(t *testing.T) {
	objects := lab()
	delete(objects, "pullSecret")
	w := newWorld(t, values(objects)...)
	messages := w.log()
	w.reconcile()
	w.reconcile()
	w.Expect(messages()).To(ConsistOf(HavePrefix("Secret pull-secret does not exist")))
	w.create(lab()["pullSecret"])
	w.reconcile()
	w.reconcile()
	w.Expect(messages()).To(ContainElement("the condition DiscoveryImageReady no longer reports PullSecretMissing"))

	w = booted(t)
	messages = w.log()
	w.create(discovered("a", "m", "02:00:00:00:00:66"))
	w.reconcile()
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(messages()).To(ConsistOf(
		HavePrefix("Agent a is not BareMetalHost lab/rack1-u7"), HaveSuffix("no longer reports NoHostFits"),
	), "the Events report it")
}

// reactions returns the number of measured reactions to a hand-over.
func (w *world) reactions(to measure.Handover) float64 {
	w.t.Helper()
	value, err := measuretest.Count("capi_openshift_agent_reaction_duration_seconds", map[string]string{"handover": string(to)})
	w.Expect(err).NotTo(HaveOccurred())
	return value
}

// completed makes assisted-service report that the cluster was installed at a time, and accepts hosts.
func (w *world) completed(at time.Time) {
	w.t.Helper()
	install := installOf(w, read(w, "cp", lab()["install"]))
	w.change(install, func() {
		install.Status.DebugInfo.State = "adding-hosts"
		install.Status.Conditions = []hivev1.ClusterInstallCondition{{
			Type: hiveext.ClusterCompletedCondition, Status: corev1.ConditionTrue, Reason: hiveext.ClusterInstalledReason,
			LastTransitionTime: metav1.NewTime(at),
		}}
	})
}

func TestReactionsAreMeasuredOnce(t *testing.T) {
	w := newWorld(t, values(lab())...)
	image, agent, accepts := w.reactions(measure.ImageReady), w.reactions(measure.AgentRegistered), w.reactions(measure.ClusterAcceptsHosts)
	w.reconcile()
	w.makeImage()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() { infraEnv.Status.CreatedTime = &metav1.Time{Time: w.clock.Add(-2 * time.Second)} })
	w.reconcile()
	w.reconcile()
	w.Expect(w.reactions(measure.ImageReady) - image).To(BeEquivalentTo(1))

	w.create(bareMetalHost())
	w.reconcile()
	install := read(w, "cp", lab()["install"])
	w.setState(install, "installing")
	registered := discovered("a", "m", bootMAC)
	registered.CreationTimestamp = metav1.NewTime(w.clock.Add(-time.Minute))
	w.create(registered)
	w.reconcile()
	w.reconcile()
	w.Expect(w.reactions(measure.AgentRegistered) - agent).To(BeEquivalentTo(1))
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.ClusterNotAcceptingHostsReason)

	w.clock = w.clock.Add(time.Minute)
	w.completed(w.clock)
	w.clock = w.clock.Add(2 * time.Second)
	w.reconcile()
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
	w.Expect(w.reactions(measure.ClusterAcceptsHosts) - accepts).To(BeEquivalentTo(1))
}

func TestReactionsToFormerHandoversAreNotMeasured(t *testing.T) {
	w := installing(t)
	agent := w.reactions(measure.AgentRegistered)
	w.restart()
	registered := w.agent("a")
	w.change(registered, func() { registered.CreationTimestamp = metav1.NewTime(w.clock.Add(-time.Minute)) })
	config := w.config()
	config.Status.AgentRef = nil
	w.Expect(w.Status().Update(t.Context(), config)).To(Succeed())
	w.reconcile()
	w.Expect(w.config().Status.AgentRef).NotTo(BeNil())
	w.Expect(w.reactions(measure.AgentRegistered)).To(Equal(agent), "the status was lost")

	w = booted(t)
	w.completed(w.clock.Add(-time.Hour))
	accepts := w.reactions(measure.ClusterAcceptsHosts)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
	w.Expect(w.reactions(measure.ClusterAcceptsHosts)).To(Equal(accepts), "the host did not wait for the cluster")

	w = booted(t)
	config = w.config()
	w.change(config, func() { config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 1000} })
	w.setState(read(w, "cp", lab()["install"]), "installing")
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.HostBelowRequirementsReason)
	w.clock = w.clock.Add(time.Minute)
	w.completed(w.clock)
	config = w.config()
	w.change(config, func() { config.Spec.HostRequirements = nil })
	w.clock = w.clock.Add(2 * time.Second)
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
	w.Expect(w.reactions(measure.ClusterAcceptsHosts)).To(Equal(accepts), "the host had another blocker")
}
