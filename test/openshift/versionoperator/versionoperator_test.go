package versionoperator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

func TestOperatorWaitsForInstallation(t *testing.T) {
	w := newWorld(t)
	w.create("4.20.1", configv1.PartialUpdate)
	w.node("master", 0)
	w.start()
	w.Consistently(w.pool).WithArguments("master").Should(HaveField("Name", BeEmpty()))
	w.Expect(w.annotations("master-0")).NotTo(HaveKey(current))

	cv := w.version()
	cv.Status.History[0].State = configv1.CompletedUpdate
	cv.Status.History[0].CompletionTime = &cv.Status.History[0].StartedTime
	w.Expect(w.api.Status().Update(w.ctx, cv)).To(Succeed())
	w.Eventually(func() map[string]string { return w.annotations("master-0") }).Should(HaveKeyWithValue(stateAnnotation, "Done"),
		"after the installation")
}

func TestInstalledCluster(t *testing.T) {
	w := newWorld(t)
	w.install(3, 2)
	for name, count := range map[string]int{"master": 3, "worker": 2} {
		w.Eventually(w.poolIs).WithArguments(name).Should(Equal(map[string]string{"Updated": "True", "Updating": "False", "Degraded": "False"}))
		pool := w.pool(name)
		w.Expect(pool.Spec.Configuration.Name).To(MatchRegexp("^rendered-" + name + "-[0-9a-f]{32}$"))
		w.Expect(pool.Status.Configuration.Name).To(Equal(pool.Spec.Configuration.Name))
		w.Expect([]int32{
			pool.Status.MachineCount, pool.Status.UpdatedMachineCount,
			pool.Status.ReadyMachineCount,
		}).To(HaveEach(BeEquivalentTo(count)))
		w.Expect([]int32{pool.Status.UnavailableMachineCount, pool.Status.DegradedMachineCount}).To(HaveEach(BeZero()))
		w.Expect(pool.Status.ObservedGeneration).To(Equal(pool.Generation))
		for i := range count {
			annotations := w.annotations(fmt.Sprintf("%s-%d", name, i))
			w.Expect(annotations[current]).To(Equal(pool.Spec.Configuration.Name))
			w.Expect(annotations[desired]).To(Equal(pool.Spec.Configuration.Name))
			w.Expect(w.releaseOf(fmt.Sprintf("%s-%d", name, i))).To(Equal("4.20.1"))
		}
	}
	w.Expect(w.condition("Progressing")).To(Equal("False||Cluster version is 4.20.1"))
	w.Expect(w.condition("Available")).To(Equal("True||Done applying 4.20.1"))
	w.Expect(w.condition("ReleaseAccepted")).To(HavePrefix("True|PayloadLoaded|"))
	w.Expect(w.condition("Upgradeable")).To(BeEmpty())
	w.Expect(w.condition("Invalid")).To(BeEmpty())
	w.Eventually(w.operatorCondition).WithArguments("machine-config", "Available").Should(Equal("True|AsExpected|Cluster has deployed 4.20.1"))
}

func TestUpdateWaitsForPoolOfArbiter(t *testing.T) {
	w := newWorld(t)
	w.install(2, 1)
	name := w.node("arbiter", 0)
	w.Eventually(w.poolIs).WithArguments("arbiter").Should(HaveKeyWithValue("Updated", "True"))
	w.Expect(w.pool("arbiter").Status.MachineCount).To(BeEquivalentTo(1))
	w.Eventually(w.releaseOf).WithArguments(name).Should(Equal("4.20.1"))
	w.pause("arbiter", true)
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.releaseOf).WithArguments("master-1").Should(Equal("4.20.2"))
	w.Consistently(w.last).Should(Equal("4.20.2 Partial"))
	w.pause("arbiter", false)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	w.Expect(w.releaseOf(name)).To(Equal("4.20.2"))
}

func TestUpdateGraph(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	w.Expect(w.available()).To(Equal([]string{"4.20.3", "4.20.2"}), "newest first, only newer and recommended versions")
	w.Expect(w.condition("RetrievedUpdates")).To(HavePrefix("True|"))
	conditional := w.version().Status.ConditionalUpdates
	w.Expect(conditional).To(HaveExactElements(HaveField("Release.Version", "4.20.4")))
	w.Expect(conditional[0].Conditions).To(HaveExactElements(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "SlowBoot"))))

	w.channel(next)
	w.Eventually(w.available).Should(Equal([]string{"4.21.1", "4.21.0", "4.20.5", "4.20.3", "4.20.2"}),
		"the next minor version, but no later one")
	w.Expect(w.version().Status.ConditionalUpdates[0].Conditions).To(HaveExactElements(HaveField("Status", metav1.ConditionTrue)),
		"the cluster is not exposed to the risk")

	w.operator.Disconnect(true)
	w.Eventually(w.condition).WithArguments("RetrievedUpdates").Should(HavePrefix("False|RemoteFailed|"))
	w.Expect(w.available()).To(BeEmpty())
	w.operator.Disconnect(false)
	w.Eventually(w.available).ShouldNot(BeEmpty())
	w.channel("stable-4.99")
	w.Eventually(w.condition).WithArguments("RetrievedUpdates").Should(HavePrefix("False|VersionNotFound|"))
	w.channel("")
	w.Eventually(w.condition).WithArguments("RetrievedUpdates").Should(Equal("False|NoChannel|The update channel has not been configured."))
	w.Expect(w.available()).To(BeEmpty())

	w.operator.Offer(release("4.20.9", "own"))
	w.channel("own")
	w.Eventually(w.available).Should(Equal([]string{"4.20.9"}), "a release that was added later")
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	byImage := func(version, image string) string { return fmt.Sprintf(`{"version":%q,"image":%q}`, version, image) }
	for _, c := range []struct{ situation, request, condition, wanted string }{
		{
			"neither version nor image", `{"force":true}`, "Invalid",
			"True|InvalidClusterVersion|The cluster version is invalid: spec.desiredUpdate.version: Required value",
		},
		{
			"a malformed version", byImage("latest", image("4.20.2")), "Invalid",
			`True|InvalidClusterVersion|The cluster version is invalid: spec.desiredUpdate.version: Invalid value: "latest": ` +
				`must be a semantic version`,
		},
		{
			"a version that is not available", `{"version":"4.21.0"}`, "Invalid",
			`True|InvalidClusterVersion|The cluster version is invalid: spec.desiredUpdate.version: Invalid value: "4.21.0": when image is empty`,
		},
		{"a conditional update without its image", `{"version":"4.20.4"}`, "Invalid", "True|InvalidClusterVersion|"},
		{
			"an image of another version", byImage("4.20.2", image("4.20.3")), "ReleaseAccepted",
			"False|VerifyPayloadVersion|Verifying payload failed",
		},
		{"an unknown image", byImage("", image("4.20.77")), "ReleaseAccepted", "False|RetrievePayload|Retrieving payload failed"},
		{
			"an image by its tag", byImage("", "quay.io/openshift-release-dev/ocp-release:4.20.2-x86_64"), "ReleaseAccepted",
			`False|RetrievePayload|Retrieving payload failed version="" ` +
				`image="quay.io/openshift-release-dev/ocp-release:4.20.2-x86_64" failure=The update cannot be verified: release images`,
		},
		{"an unsigned image", byImage("4.20.6", image("4.20.6")), "ReleaseAccepted", "False|RetrievePayload|Retrieving payload failed"},
		{"an older version", byImage("4.20.0", image("4.20.0")), "ReleaseAccepted", "False|PreconditionChecks|Preconditions failed"},
		{
			"a version behind the next minor one", byImage("4.22.0", image("4.22.0")), "ReleaseAccepted",
			"False|PreconditionChecks|Preconditions failed",
		},
	} {
		t.Run(c.situation, func(t *testing.T) {
			part := *w
			part.WithT, part.t = NewWithT(t), t
			before := w.version().Status
			part.request(c.request)
			part.Eventually(func() bool { // the condition of the request before may be the same
				v := part.version()
				return v.Status.ObservedGeneration == v.Generation
			}, patience).Should(BeTrue())
			part.Eventually(part.condition, patience).WithArguments(c.condition).Should(HavePrefix(c.wanted))
			part.Consistently(part.last, quiet/3).Should(Equal("4.20.1 Completed"))
			after := part.version()
			part.Expect(after.Status.Desired).To(Equal(before.Desired))
			part.Expect(after.Status.History).To(Equal(before.History))
			part.Expect(after.Status.ObservedGeneration).To(Equal(after.Generation))
			message := map[string]string{"Invalid": "Stopped at 4.20.1: the cluster version is invalid"}[c.condition]
			if message == "" {
				message = "Cluster version is 4.20.1"
			}
			part.Expect(part.condition("Progressing")).To(And(HavePrefix("False|"), HaveSuffix("|"+message)))
		})
	}
	w.patch(&configv1.ClusterVersion{}, "version", `{"spec":{"desiredUpdate":null}}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(HavePrefix("True|PayloadLoaded|"), "the request was removed")
	w.Expect(w.condition("Invalid")).To(BeEmpty())
}

func TestAcceptedRequests(t *testing.T) {
	for _, c := range []struct{ situation, request, version, risks string }{
		{"an available update by its version", `{"version":"4.20.2"}`, "4.20.2", ""},
		{"an image in no channel", fmt.Sprintf(`{"image":%q}`, image("5.0.0")), "5.0.0", ""},
		{"a conditional update with its image", fmt.Sprintf(`{"version":"4.20.4","image":%q}`, image("4.20.4")), "4.20.4", ""},
		{"an unsigned image by force", fmt.Sprintf(`{"image":%q,"force":true}`, image("4.20.6")), "4.20.6", "cannot be verified"},
		{"a giant hop by force", fmt.Sprintf(`{"image":%q,"force":true}`, image("4.22.0")), "4.22.0", "ClusterVersionGiantHop"},
		{"a release of a mirror", fmt.Sprintf(`{"image":%q}`, "mirror.example.com/ocp@"+strings.Split(image("4.20.3"), "@")[1]), "4.20.3", ""},
	} {
		t.Run(c.situation, func(t *testing.T) {
			w := newWorld(t)
			w.install(1, 0)
			w.request(c.request)
			w.Eventually(w.last).Should(Equal(c.version + " Completed"))
			entry := w.version().Status.History[0]
			w.Expect(entry.AcceptedRisks).To(ContainSubstring(c.risks))
			w.Expect(entry.Verified).To(Equal(!strings.Contains(c.risks, "verified")))
			w.Expect(entry.CompletionTime).NotTo(BeNil())
			w.Expect(w.condition("ReleaseAccepted")).To(HavePrefix("True|PayloadLoaded|"))
			w.Expect(w.condition("Invalid")).To(BeEmpty(), "the request is valid")
		})
	}
}

func TestRisksAreAccepted(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	accept := fmt.Sprintf(`{"version":"4.20.4","image":%q,"acceptRisks":[{"name":"SlowBoot"}]}`, image("4.20.4"))
	w.request(accept)
	w.Eventually(w.condition).WithArguments("Invalid").Should(HaveSuffix("acceptRisks: Forbidden: acceptRisks must not be specified"))
	w.Consistently(w.last).Should(Equal("4.20.1 Completed"))
	w.Expect(w.version().Status.ConditionalUpdates[0].RiskNames).To(BeEmpty(), "the feature gate is off")

	w.request(`null`)
	w.operator.RecordRisks(true)
	conditional := func() configv1.ConditionalUpdate { return w.version().Status.ConditionalUpdates[0] }
	w.Eventually(conditional).Should(HaveField("RiskNames", []string{"SlowBoot"}))
	w.Expect(w.version().Status.ConditionalUpdateRisks).To(HaveExactElements(HaveField("Name", "SlowBoot")))
	w.Expect(w.available()).NotTo(ContainElement("4.20.4"))
	w.request(`{"acceptRisks":[{"name":"SlowBoot"}]}`)
	w.Eventually(w.available).Should(ContainElement("4.20.4"))
	w.Expect(conditional().Conditions).To(HaveExactElements(HaveField("Reason", "AllExposedRisksAccepted")))
	w.Expect(w.condition("Invalid")).To(BeEmpty())
	w.request(accept)
	w.Eventually(w.last).Should(Equal("4.20.4 Completed"))
	w.Expect(w.version().Status.History[0].AcceptedRisks).To(ContainSubstring("exposed to the risks [SlowBoot]"))
}

func TestPayloadOfUnlistedImage(t *testing.T) {
	w := newWorld(t)
	own := image("4.20.8")
	w.install(1, 0, func(o *versionoperator.Options) {
		o.Payload = func(image string) string { return map[string]string{own: "4.20.8"}[image] }
	})
	w.request(fmt.Sprintf(`{"image":%q}`, own))
	w.Eventually(w.last).Should(Equal("4.20.8 Completed"))
}

func TestPayloadIsRetrievedBeforeUpdate(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0, func(o *versionoperator.Options) { o.Load = 10 * quiet })
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(HavePrefix("Unknown|RetrievePayload|Retrieving and verifying payload"))
	w.Expect(w.last()).To(Equal("4.20.1 Completed"))
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
}

func TestUpgrade(t *testing.T) {
	w := newWorld(t)
	var served []string
	w.install(3, 2, func(o *versionoperator.Options) {
		o.Serve = func(kubernetes string) { served = append(served, kubernetes) }
	})
	events := w.follow()
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	for i := range 3 {
		w.Expect(w.releaseOf(fmt.Sprintf("master-%d", i))).To(Equal("4.20.2"), "the update completes when all masters have the version")
	}
	w.Eventually(w.poolIs).WithArguments("worker").Should(HaveKeyWithValue("Updated", "True"))
	w.Eventually(func() []string {
		var kubelets []string
		for _, node := range w.nodes() {
			kubelets = append(kubelets, node.Status.NodeInfo.KubeletVersion)
		}
		return kubelets
	}).Should(HaveEach("v1.33.9"))
	operator := &configv1.ClusterOperator{}
	w.Expect(w.api.Get(w.ctx, client.ObjectKey{Name: "kube-apiserver"}, operator)).To(Succeed())
	w.Expect(operator.Status.Versions).To(ConsistOf(configv1.OperandVersion{Name: "operator", Version: "4.20.2"},
		configv1.OperandVersion{Name: "kube-apiserver", Version: "1.33.9"}))
	w.Expect(served).To(Equal([]string{"v1.33.9"}), "the API servers have the version of the kubelets")
	cv := w.version()
	w.Expect(cv.Status.Desired).To(Equal(configv1.Release{Version: "4.20.2", Image: image("4.20.2"), Channels: []string{stable, next}}))
	w.Expect(cv.Status.History).To(HaveLen(2))
	w.Expect(cv.Status.ObservedGeneration).To(Equal(cv.Generation))
	w.Expect(w.condition("Progressing")).To(Equal("False||Cluster version is 4.20.2"))
	w.Expect(w.condition("Available")).To(Equal("True||Done applying 4.20.2"))
	w.Expect(w.available()).To(Equal([]string{"4.20.3"}))

	seen := events()
	w.Expect(seen.operators).To(Equal([]string{"etcd", "kube-apiserver", "ingress", "machine-config"}), "one after the other")
	w.Expect(seen.away).To(Equal(map[string]int{"master": 1, "worker": 1}), "concurrently cordoned Nodes of a pool")
	w.Expect(seen.states["master-1"]).To(Equal([]string{"Done", "Working", "Rebooting", "Done"}))
	w.Expect(seen.notReady).To(HaveKey("worker-1"))
	w.Expect(seen.cordoned).To(HaveLen(5))
	w.Expect(seen.early).To(BeEmpty(), "Nodes that were updated before the other ClusterOperators")
	w.Expect(seen.progress).To(ContainElements(
		"Working towards 4.20.2: 29 of 120 done (24% complete), waiting on etcd",
		"Working towards 4.20.2: 119 of 120 done (99% complete), waiting on machine-config"))
}

// seen are the observed changes of a cluster.
type seen struct {
	operators, progress, early []string
	states                     map[string][]string
	notReady, cordoned         map[string]bool
	away                       map[string]int
}

// follow watches the cluster until the returned function is called, which returns the changes.
func (w *world) follow() func() seen {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	s := seen{states: map[string][]string{}, notReady: map[string]bool{}, cordoned: map[string]bool{}, away: map[string]int{}}
	done := make(chan struct{})
	var sources []watch.Interface
	for _, list := range []client.ObjectList{&corev1.NodeList{}, &configv1.ClusterOperatorList{}, &configv1.ClusterVersionList{}} {
		events, err := w.api.Watch(ctx, list)
		w.Expect(err).NotTo(HaveOccurred())
		sources = append(sources, events)
	}
	away := map[string]bool{}
	go func() {
		defer close(done)
		for {
			var e watch.Event
			select {
			case <-ctx.Done():
				return
			case e = <-sources[0].ResultChan():
			case e = <-sources[1].ResultChan():
			case e = <-sources[2].ResultChan():
			}
			switch object := e.Object.(type) {
			case *corev1.Node:
				s.node(object, away)
			case *configv1.ClusterOperator:
				if len(object.Status.Versions) > 0 && object.Status.Versions[0].Version != "4.20.1" && !slices.Contains(s.operators, object.Name) {
					s.operators = append(s.operators, object.Name)
				}
			case *configv1.ClusterVersion:
				for _, c := range object.Status.Conditions {
					if c.Type == configv1.OperatorProgressing {
						s.progress = append(s.progress, c.Message)
					}
				}
			}
		}
	}()
	return func() seen {
		cancel()
		<-done
		return s
	}
}

func (s *seen) node(node *corev1.Node, away map[string]bool) {
	if state, states := node.Annotations[stateAnnotation], s.states[node.Name]; len(states) == 0 || states[len(states)-1] != state {
		s.states[node.Name] = append(states, state)
	}
	if node.Status.Conditions[0].Status != corev1.ConditionTrue {
		s.notReady[node.Name] = true
	}
	away[node.Name] = node.Spec.Unschedulable
	role := strings.Split(node.Name, "-")[0]
	count := 0
	for name, is := range away {
		if is && strings.HasPrefix(name, role) {
			count++
		}
	}
	s.away[role] = max(s.away[role], count)
	if node.Spec.Unschedulable {
		s.cordoned[node.Name] = true
		if len(s.operators) < 3 {
			s.early = append(s.early, node.Name)
		}
	}
}

func TestMinorUpgradeNeedsAcknowledgement(t *testing.T) {
	const gate, description = "ack-4.20-kube-1.34-api-removals-in-4.21", "Kubernetes 1.34 removes APIs."
	w := newWorld(t)
	w.install(1, 0)
	w.channel(next)
	w.gate(gate, description)
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(Equal("False|AdminAckRequired|" + description))
	w.Eventually(w.available).Should(ContainElement("4.21.0"), "the version is available")

	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"), "a patch needs no acknowledgement")
	w.request(`{"version":"4.21.0"}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(And(HavePrefix("False|PreconditionChecks|"), HaveSuffix(
		`Precondition "ClusterVersionUpgradeable" failed because of "AdminAckRequired": `+description)))
	acknowledge := func(value string) {
		w.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: versionoperator.AcksNamespace}}, versionoperator.Acks,
			`{"data":{"`+gate+`":"`+value+`"}}`)
	}
	acknowledge("false")
	w.Consistently(w.last).Should(Equal("4.20.2 Completed"), "false is no acknowledgement")
	acknowledge("true")
	w.Eventually(w.last).Should(Equal("4.21.0 Completed"), "a refused request is judged again")
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(BeEmpty(), "the gate belongs to the former minor version")
}

func TestOperatorBlocksMinorUpgrade(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	w.channel(next)
	w.operator.Refuse("ingress", "Routes are not admitted.")
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(Equal(
		"False|ClusterOperatorsNotUpgradeable|Cluster operator ingress should not be upgraded between minor versions: " +
			"Simulated: Routes are not admitted."))
	w.gate("ack-4.20-x-in-4.21", "Removed.")
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(And(HavePrefix("False|MultipleReasons|"),
		ContainSubstring("ClusterOperatorsNotUpgradeable,AdminAckRequired")))
	w.request(`{"version":"4.21.0"}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(HavePrefix("False|PreconditionChecks|"))
	w.Consistently(w.last).Should(Equal("4.20.1 Completed"))
	w.request(fmt.Sprintf(`{"version":"4.21.0","image":%q,"force":true}`, image("4.21.0")))
	w.Eventually(w.last).Should(Equal("4.21.0 Completed"))
	w.operator.Recover("ingress")
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(BeEmpty())
}

func TestRequestDuringUpdate(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	w.channel(next)
	w.Eventually(w.available).Should(ContainElement("4.21.0"))
	w.operator.Block("kube-apiserver")
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.condition).WithArguments("Progressing").Should(ContainSubstring("Working towards 4.20.2: 59 of 120 " +
		"done (49% complete), waiting on kube-apiserver"))
	w.Expect(w.condition("Failing")).To(HavePrefix("False|"), "the update waits without failure")
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(HavePrefix("False|UpdateInProgress|"))

	w.request(`{"version":"4.21.0"}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(And(HavePrefix("False|PreconditionChecks|"),
		ContainSubstring("UpdateInProgress")), "the next minor version")
	w.Consistently(w.last).Should(Equal("4.20.2 Partial"))
	w.Expect(w.condition("Progressing")).To(ContainSubstring("Working towards 4.20.2"))

	w.patch(&configv1.ClusterVersion{}, "version", `{"spec":{"desiredUpdate":null}}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(HavePrefix("True|"))
	w.Consistently(w.last).Should(Equal("4.20.2 Partial"), "a removed request does not stop the update")

	w.request(`{"version":"4.20.3"}`)
	w.Eventually(w.last).Should(Equal("4.20.3 Partial"), "another patch")
	old := w.version().Status.History[1]
	w.Expect(old.Version).To(Equal("4.20.2"))
	w.Expect(old.State).To(Equal(configv1.PartialUpdate))
	w.Expect(old.CompletionTime).NotTo(BeNil())
	w.operator.Recover("kube-apiserver")
	w.Eventually(w.last).Should(Equal("4.20.3 Completed"))
	w.Expect(w.releaseOf("master-0")).To(Equal("4.20.3"))
}

func TestRollback(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	back := func(version string) { w.request(fmt.Sprintf(`{"version":%q,"image":%q}`, version, image(version))) }
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	back("4.20.0")
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(ContainSubstring("the only supported rollback is " +
		"to the cluster's previous version 4.20.1"))
	back("4.20.1")
	w.Eventually(w.last).Should(Equal("4.20.1 Completed"))
	w.channel(next)
	w.request(`{"version":"4.21.0"}`)
	w.Eventually(w.last).Should(Equal("4.21.0 Completed"))
	back("4.20.1")
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(ContainSubstring("rollbacks that change major or " +
		"minor versions are not recommended"))
}

func TestFailingOperators(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	w.operator.Fail("etcd", "A member is unhealthy.")
	w.Eventually(w.operatorCondition).WithArguments("etcd", "Degraded").Should(Equal("True|Simulated|A member is unhealthy."))
	w.operator.Slow("kube-apiserver")
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.condition).WithArguments("Failing").Should(Equal("True|ClusterOperatorDegraded|Cluster operator etcd is degraded"))
	w.Eventually(w.condition).WithArguments("Progressing").Should(Equal("True|ClusterOperatorDegraded|Unable to apply " +
		"4.20.2: the cluster operator etcd is degraded"))
	w.Consistently(w.last).Should(Equal("4.20.2 Partial"))

	w.operator.Recover("etcd")
	w.Eventually(w.condition).WithArguments("Failing").Should(Equal("Unknown|SlowClusterOperator|waiting on " +
		"kube-apiserver over 30 minutes which is longer than expected"))
	w.Expect(w.condition("Progressing")).To(And(HavePrefix("True|SlowClusterOperator|Working towards 4.20.2: 59 of 120 done"),
		HaveSuffix("waiting on kube-apiserver over 30 minutes which is longer than expected")))
	w.operator.Recover("kube-apiserver")
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	w.Expect(w.condition("Failing")).To(HavePrefix("False|"))
	w.Expect(w.operatorCondition("etcd", "Degraded")).To(HavePrefix("False|"))
}

func TestReleaseFixesOperator(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	w.operator.FailUntil("ingress", "A bug.", "4.20.3")
	w.Eventually(w.operatorCondition).WithArguments("ingress", "Degraded").Should(Equal("True|Simulated|A bug."))
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.condition).WithArguments("Failing").Should(Equal("True|ClusterOperatorDegraded|Cluster operator ingress is degraded"),
		"the fix is not in this release")
	w.request(`{"version":"4.20.3"}`)
	w.Eventually(w.last).Should(Equal("4.20.3 Completed"))
	w.Expect(w.operatorCondition("ingress", "Degraded")).To(HavePrefix("False|"))
}

// A graph may offer a version for one architecture and for several ones.
func TestVersionWithTwoPayloadsNeedsItsImage(t *testing.T) {
	w := newWorld(t)
	other := image("4.20.3 multi")
	w.install(1, 0, func(o *versionoperator.Options) {
		o.Releases = append(o.Releases, versionoperator.Release{Version: "4.20.3", Image: other, Channels: []string{stable}})
	})
	w.Expect(w.available()).To(Equal([]string{"4.20.3", "4.20.3", "4.20.2"}))
	w.request(`{"version":"4.20.3"}`)
	w.Eventually(w.condition).WithArguments("Invalid").Should(HaveSuffix("there are multiple possible payloads for this " +
		"version, specify the exact image"))
	w.request(fmt.Sprintf(`{"version":"4.20.3","image":%q}`, other))
	w.Eventually(w.last).Should(Equal("4.20.3 Completed"))
	w.Expect(w.version().Status.Desired.Image).To(Equal(other))
}

func TestPausedMastersBlockUpdate(t *testing.T) {
	w := newWorld(t)
	w.install(1, 1)
	w.pause("master", true)
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.poolIs).WithArguments("master").Should(Equal(map[string]string{
		"Updated": "False", "Updating": "False",
		"Degraded": "False",
	}))
	w.Eventually(w.releaseOf).WithArguments("worker-0").Should(Equal("4.20.2"))
	w.Consistently(w.last).Should(Equal("4.20.2 Partial"))
	w.Expect(w.releaseOf("master-0")).To(Equal("4.20.1"))
	w.pause("master", false)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
}

func TestPausedWorkersDoNotBlockUpdate(t *testing.T) {
	w := newWorld(t)
	w.install(1, 2)
	w.pause("worker", true)
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	w.Consistently(w.poolIs).WithArguments("worker").Should(Equal(map[string]string{
		"Updated": "False", "Updating": "False",
		"Degraded": "False",
	}))
	w.Expect(w.releaseOf("worker-0")).To(Equal("4.20.1"))
	w.Expect(w.pool("worker").Status.Configuration.Name).To(Equal(w.annotations("worker-0")[current]), "the last completed configuration")
	w.pause("worker", false)
	w.Eventually(w.poolIs).WithArguments("worker").Should(HaveKeyWithValue("Updated", "True"))
	w.Expect(w.releaseOf("worker-1")).To(Equal("4.20.2"))
}

// EUS: from an even minor version to the next even one, and not beyond.
func TestOldKubeletsBlockMinorUpgrade(t *testing.T) {
	w := newWorld(t)
	w.install(1, 2, func(o *versionoperator.Options) { o.Releases = append(o.Releases, release("4.23.0", next)) })
	w.pause("worker", true)
	w.channel(next)
	for _, version := range []string{"4.21.0", "4.22.0"} {
		w.Eventually(w.available).Should(ContainElement(version))
		w.Eventually(w.condition).WithArguments("Upgradeable").Should(BeEmpty(), "upgrade to %s", version)
		w.request(fmt.Sprintf(`{"version":%q}`, version))
		w.Eventually(w.last).Should(Equal(version + " Completed"))
		w.Expect(w.releaseOf("worker-0")).To(Equal("4.20.1"))
	}
	const old = "Kubelet minor versions on nodes worker-0 and worker-1 will not be supported in the next OpenShift minor version upgrade."
	w.Eventually(w.operatorCondition).WithArguments("kube-apiserver",
		"Upgradeable").Should(Equal("False|KubeletMinorVersion_KubeletMinorVersionUnsupportedNextUpgrade|KubeletMinorVersionUpgradeable: " + old))
	w.request(`{"version":"4.23.0"}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(And(HavePrefix("False|PreconditionChecks|"), ContainSubstring(old)))
	w.Consistently(w.last).Should(Equal("4.22.0 Completed"))

	w.pause("worker", false)
	w.Eventually(w.last).Should(Equal("4.23.0 Completed"), "the request was judged again")
	w.Eventually(w.releaseOf).WithArguments("worker-1").Should(Equal("4.23.0"))
	w.Eventually(w.operatorCondition).WithArguments("kube-apiserver", "Upgradeable").Should(HavePrefix("True|AsExpected|"))
}

// Kubelets of an odd minor version support only the next minor version.
func TestKubeletsOfOddMinorVersion(t *testing.T) {
	w := newWorld(t)
	w.install(1, 1)
	w.channel(next)
	w.request(`{"version":"4.21.0"}`)
	w.Eventually(w.releaseOf).WithArguments("worker-0").Should(Equal("4.21.0"))
	w.Eventually(w.last).Should(Equal("4.21.0 Completed"))
	w.pause("worker", true)
	w.request(`{"version":"4.22.0"}`)
	w.Eventually(w.last).Should(Equal("4.22.0 Completed"))
	w.Eventually(w.operatorCondition).WithArguments("kube-apiserver",
		"Upgradeable").Should(And(HavePrefix("False|"), ContainSubstring("Kubelet minor version (1.34.2) on node worker-0 will not")))
}

func TestDegradedWorkerBlocksUpdate(t *testing.T) {
	w := newWorld(t)
	w.install(1, 1)
	w.operator.Break("worker-0", "unexpected on-disk state")
	w.operator.Block("ingress") // a fast master would complete the update
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.condition).WithArguments("Progressing").Should(ContainSubstring("waiting on ingress"))
	w.pause("master", true)
	w.operator.Recover("ingress")
	w.Eventually(w.poolIs).WithArguments("worker").Should(Equal(map[string]string{"Updated": "False", "Updating": "True", "Degraded": "True"}))
	w.pause("master", false)
	w.Eventually(w.releaseOf).WithArguments("master-0").Should(Equal("4.20.2"))
	w.Eventually(w.condition).WithArguments("Failing").
		Should(Equal("True|ClusterOperatorDegraded|Cluster operator machine-config is degraded"))
	w.Consistently(w.last).Should(Equal("4.20.2 Partial"))
	w.Expect(w.pool("worker").Status.DegradedMachineCount).To(BeEquivalentTo(1))
	w.Expect(w.annotations("worker-0")).To(And(HaveKeyWithValue(stateAnnotation, "Degraded"),
		HaveKeyWithValue("machineconfiguration.openshift.io/reason", "unexpected on-disk state")))
	w.operator.Repair("worker-0")
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
}

func TestWorkersAreUpdatedAfterCompletion(t *testing.T) {
	w := newWorld(t)
	w.install(1, 4, func(o *versionoperator.Options) { o.Away = time.Second })
	w.channel(next)
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	w.Expect(w.releaseOf("worker-3")).To(Equal("4.20.1"))
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(And(HavePrefix("False|ClusterOperatorsNotUpgradeable|"),
		ContainSubstring("PoolUpdating")), "the workers block minor upgrades")
	w.Eventually(w.releaseOf).WithArguments("worker-3").Should(Equal("4.20.2"))
	w.Eventually(w.condition).WithArguments("Upgradeable").Should(BeEmpty())
}

func TestConfigurationOfJoiningNodes(t *testing.T) {
	w := newWorld(t)
	w.install(1, 1)
	w.pause("worker", true)
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	joined := func(i int) string {
		name := w.node("worker", i)
		w.Eventually(func() map[string]string { return w.annotations(name) }).Should(HaveKeyWithValue(stateAnnotation, "Done"))
		return w.releaseOf(name)
	}
	w.Expect(joined(1)).To(Equal("4.20.1"), "no Node of the pool has the new configuration")
	w.Eventually(func() int32 { return w.pool("worker").Status.MachineCount }).Should(BeEquivalentTo(2))
	w.pause("worker", false)
	w.Eventually(w.poolIs).WithArguments("worker").Should(HaveKeyWithValue("Updated", "True"))
	w.pause("worker", true)
	w.operator.Reconfigure("worker")
	w.Eventually(w.poolIs).WithArguments("worker").Should(HaveKeyWithValue("Updated", "False"))
	w.pause("worker", false)
	w.Eventually(func() bool { return w.annotations("worker-0")[current] == w.pool("worker").Spec.Configuration.Name }).Should(BeTrue())
	w.pause("worker", true)
	name := w.node("worker", 2)
	w.Eventually(func() string { return w.annotations(name)[current] }).Should(Equal(w.pool("worker").Spec.Configuration.Name),
		"a Node of the pool has the configuration")
	w.Eventually(func() string {
		node := &corev1.Node{}
		w.Expect(w.api.Get(w.ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
		return node.Status.NodeInfo.KubeletVersion
	}).Should(Equal("v1.33.9"), "the kubelet of its configuration")
}

func TestCustomPool(t *testing.T) {
	w := newWorld(t)
	w.install(1, 2)
	pool := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "infra"}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/infra": ""}}
	pool.Status.Conditions, pool.Status.CertExpirys = []machineconfigv1.MachineConfigPoolCondition{}, []machineconfigv1.CertExpiry{}
	w.Expect(w.api.Create(w.ctx, pool)).To(Succeed())
	w.patch(&corev1.Node{}, "worker-0", `{"metadata":{"labels":{"node-role.kubernetes.io/infra":""}}}`)
	w.Eventually(func() string { return w.annotations("worker-0")[current] }).Should(HavePrefix("rendered-infra-"))
	w.Eventually(w.poolIs).WithArguments("infra").Should(HaveKeyWithValue("Updated", "True"))
	w.Expect(w.annotations("worker-1")[current]).To(HavePrefix("rendered-worker-"))
	w.Eventually(func() int32 { return w.pool("worker").Status.MachineCount }).Should(BeEquivalentTo(1))
}

func TestQuorumGuardBlocksDrainOfMaster(t *testing.T) {
	w := newWorld(t)
	w.install(3, 0)
	least := intstr.FromInt32(2)
	guard := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: "etcd-guard-pdb"}}
	guard.Spec.MinAvailable = &least
	w.Expect(w.api.Create(w.ctx, guard)).To(Succeed())
	setReady := func(i int, is corev1.ConditionStatus) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "openshift-etcd", Name: fmt.Sprintf("etcd-master-%d", i),
			Labels: map[string]string{"app": "etcd"},
		}}
		pod.Spec = corev1.PodSpec{NodeName: fmt.Sprintf("master-%d", i), Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}}
		w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, pod))).To(Succeed())
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
		w.Expect(w.api.Status().Update(w.ctx, pod)).To(Succeed())
	}
	for i := range 3 {
		setReady(i, corev1.ConditionTrue)
	}
	setReady(2, corev1.ConditionFalse)
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(func() map[string]string { return w.annotations("master-0") }).Should(HaveKeyWithValue(stateAnnotation, "Working"))
	w.Consistently(func() map[string]string { return w.annotations("master-0") }).Should(HaveKeyWithValue(stateAnnotation, "Working"))
	setReady(2, corev1.ConditionTrue)
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
}

func TestLostNodeBlocksPool(t *testing.T) {
	w := newWorld(t)
	w.install(2, 0)
	lost := &corev1.Node{}
	w.Expect(w.api.Get(w.ctx, client.ObjectKey{Name: "master-1"}, lost)).To(Succeed())
	lost.Status.Conditions[0].Status = corev1.ConditionUnknown
	w.Expect(w.api.Status().Update(w.ctx, lost)).To(Succeed())
	w.Eventually(w.poolIs).WithArguments("master").Should(Equal(map[string]string{
		"Updated": "False", "Updating": "True",
		"Degraded": "False",
	}))
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(w.condition).WithArguments("Progressing").Should(ContainSubstring("waiting on machine-config"))
	w.Consistently(w.releaseOf).WithArguments("master-0").Should(Equal("4.20.1"))
	w.Expect(w.api.Delete(w.ctx, lost)).To(Succeed())
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
}

func TestSingleNodeStopsAPIDuringReboot(t *testing.T) {
	w := newWorld(t)
	var reboots atomic.Int32
	w.install(1, 0, func(o *versionoperator.Options) {
		o.Reboot = func(_ context.Context, node string) error {
			if node != "master-0" {
				return fmt.Errorf("unexpected Node %s", node)
			}
			reboots.Add(1)
			w.server.Process().Kill()
			return w.server.Process().Start(w.ctx)
		}
	})
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(func() (string, error) {
		cv := &configv1.ClusterVersion{}
		if err := w.api.Get(w.ctx, client.ObjectKey{Name: "version"}, cv); err != nil {
			return "", err
		}
		return cv.Status.History[0].Version + " " + string(cv.Status.History[0].State), nil
	}).WithTimeout(time.Minute).Should(Equal("4.20.2 Completed"))
	w.Expect(reboots.Load()).To(BeEquivalentTo(1))
	w.request(`{"version":"4.20.3"}`)
	w.Eventually(w.condition).WithArguments("ReleaseAccepted").Should(HavePrefix("True|"), "the operator watches again")
}

func TestNextOperatorContinuesUpdate(t *testing.T) {
	w := newWorld(t)
	w.install(2, 0, func(o *versionoperator.Options) { o.Away = time.Minute })
	w.request(`{"version":"4.20.2"}`)
	w.Eventually(func() map[string]string { return w.annotations("master-0") }).Should(HaveKeyWithValue(stateAnnotation, "Rebooting"))
	w.stop()
	w.start()
	w.Eventually(w.last).Should(Equal("4.20.2 Completed"))
	w.Expect(w.version().Status.History).To(HaveLen(2))
	w.Expect(w.releaseOf("master-1")).To(Equal("4.20.2"))
}

func TestOperatorKeepsChangesOfTests(t *testing.T) {
	w := newWorld(t)
	w.install(1, 0)
	foreign := fmt.Sprintf(`{"metadata":{"annotations":{%q:"rendered-1",%q:"rendered-2"}}}`, current, desired)
	w.patch(&corev1.Node{}, "master-0", foreign)
	cv := w.version()
	cv.Status.History = slices.Insert(cv.Status.History, 0,
		configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: metav1.Now(), Version: "4.99.0", Image: image("4.99.0")})
	w.Expect(w.api.Status().Update(w.ctx, cv)).To(Succeed())
	w.channel(next)
	w.Eventually(w.available).Should(ContainElement("4.21.0"), "the operator continues")
	w.Consistently(func() string { return w.annotations("master-0")[desired] + " " + w.last() }).Should(Equal("rendered-2 4.99.0 Partial"))
}

func TestQuietClusterCausesNoRequests(t *testing.T) {
	w := newWorld(t)
	var requests atomic.Int64
	direct := w.api
	w.api = interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			requests.Add(1)
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			requests.Add(1)
			return c.List(ctx, list, options...)
		},
	})
	w.create("4.20.1", configv1.CompletedUpdate)
	w.node("master", 0)
	w.start()
	w.api = direct
	w.Eventually(w.poolIs).WithArguments("master").Should(HaveKeyWithValue("Updated", "True"))
	w.Eventually(func() int64 {
		before := requests.Load()
		<-time.After(quiet)
		return requests.Load() - before
	}).Should(BeZero())
	before := requests.Load()
	node := &corev1.Node{}
	for range 5 {
		w.Expect(w.api.Get(w.ctx, client.ObjectKey{Name: "master-0"}, node)).To(Succeed())
		node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(node.Status.Conditions[0].LastHeartbeatTime.Add(time.Minute))
		w.Expect(w.api.Status().Update(w.ctx, node)).To(Succeed())
	}
	w.Consistently(requests.Load).Should(Equal(before), "heartbeats cause no request")
	w.channel(next)
	w.Eventually(w.available).Should(ContainElement("4.21.0"))
	w.Expect(requests.Load()).To(BeNumerically(">", before), "the requests are counted")
}
