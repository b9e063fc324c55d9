package hostconfig

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// offerIgnition serves a discovery ignition for download, as assisted-service does.
func (w *world) offerIgnition() {
	w.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"ignition":{"version":"3.1.0"}}`))
	}))
	w.t.Cleanup(server.Close)
	w.offer(isoURL, server.URL+"/discovery.ign")
	w.reconcile()
	w.downloaded()
}

// TestMiswiredHostGetsNoData: in boot mode DiskImage, Metal3 writes the disk before an Agent identifies the
// server.
func TestMiswiredHostGetsNoData(t *testing.T) {
	objects := lab()
	objects["metal3"] = metal3Machine("qcow2")
	wrong := freeHost("wrong", "")
	wrong.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: otherBootMAC}}}
	right := freeHost("right", "")
	right.Spec.BootMACAddress = "02:00:00:00:00:77"
	w := newWorld(t, append(values(objects), wrong, right)...)
	w.reconcile()
	w.offerIgnition()
	for range 2 {
		w.Expect(w.config().Status.DataSecretName).To(BeEmpty())
		w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.BMCOfAnotherServerReason)
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.BMCOfAnotherServerReason)
		w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).To(And(ContainSubstring("lab/wrong"), ContainSubstring(otherBootMAC),
			Not(ContainSubstring("lab/right"))))
		w.restart()
		w.reconcile()
	}
	w.lasts(bootstrapv1.HostAvailableCondition, metav1.ConditionTrue, bootstrapv1.HostsFitReason)
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(Equal("BareMetalHosts that fit: right"))

	w.change(wrong, func() { metav1.SetMetaDataAnnotation(&wrong.ObjectMeta, "capm3.metal3.io/unhealthy", "") })
	w.reconcile()
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"), "CAPM3 does not choose it: %s", w.message(bootstrapv1.ReadyCondition))
}

// TestInvalidHostSelectorGetsNoData until the selector is corrected, in both boot modes.
func TestInvalidHostSelectorGetsNoData(t *testing.T) {
	for format, offer := range map[string]func(*world){
		"qcow2":    (*world).offerIgnition,
		"live-iso": func(w *world) { w.makeImage(); w.reconcile() },
	} {
		t.Run(format, func(t *testing.T) {
			objects := lab()
			infraMachine := metal3Machine(format)
			NewWithT(t).Expect(unstructured.SetNestedMap(infraMachine.Object,
				map[string]any{"matchExpressions": []any{map[string]any{"key": "zone", "operator": "Inn"}}}, "spec", "hostSelector")).To(Succeed())
			objects["metal3"] = infraMachine
			w := newWorld(t, append(values(objects), freeHost("free", ""))...)
			w.reconcile()
			offer(w)
			for range 2 {
				w.Expect(w.config().Status.DataSecretName).To(BeEmpty())
				w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
				w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
				w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).To(And(ContainSubstring("Metal3Machine m"), ContainSubstring(`"inn"`)))
				w.restart()
				w.reconcile()
			}
			infraMachine = read(w, "m", infraMachine)
			w.change(infraMachine, func() { unstructured.RemoveNestedField(infraMachine.Object, "spec", "hostSelector") })
			w.reconcile()
			w.reconcile()
			w.Expect(w.config().Status.DataSecretName).To(Equal("m"), w.message(bootstrapv1.ReadyCondition))
		})
	}
}

// TestMiswiredHostWithLiveISO: the Agent identifies the host before a disk is written. The data is handed
// out, and the Agent is refused.
func TestMiswiredHostWithLiveISO(t *testing.T) {
	wrong := freeHost("wrong", "")
	wrong.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: otherBootMAC}}}
	w := awaiting(t, wrong)
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
	w.lasts(bootstrapv1.HostAvailableCondition, metav1.ConditionFalse, bootstrapv1.NoHostFitsReason)
	w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(And(ContainSubstring(bootMAC), ContainSubstring(otherBootMAC)))
}

// plainMetal returns a Machine of another infrastructure provider, without BareMetalHosts.
func plainMetal(t *testing.T) *world {
	t.Helper()
	objects := lab()
	objects["machine"].(*clusterv1.Machine).Spec.InfrastructureRef.Kind = "PlainMetalMachine"
	crd := objects["crd"].(*apiextensionsv1.CustomResourceDefinition)
	crd.Name = "plainmetalmachines.infrastructure.cluster.x-k8s.io"
	infraMachine := objects["metal3"].(*unstructured.Unstructured)
	infraMachine.SetKind("PlainMetalMachine")
	unstructured.RemoveNestedField(infraMachine.Object, "spec", "image")
	w := newWorld(t, values(objects)...)
	w.reconcile()
	return w
}

// dataFrom sets the creation time of the bootstrap data Secret.
func (w *world) dataFrom(created time.Time) {
	w.t.Helper()
	secret := read(w, "m", &corev1.Secret{})
	w.change(secret, func() { secret.CreationTimestamp = metav1.NewTime(created) })
	w.Expect(read(w, "m", &corev1.Secret{}).CreationTimestamp.Time).To(BeTemporally("==", created))
}

// TestAgentRegisteredBeforeDataIsNotTheHost if only the data identifies a host. The manager's clock does not
// count.
func TestAgentRegisteredBeforeDataIsNotTheHost(t *testing.T) {
	handedOut := time.Now().Add(-time.Hour).Truncate(time.Second)
	w := plainMetal(t)
	w.clock = w.clock.Add(-26 * time.Hour)
	stranger := discovered("stranger", "m", otherBootMAC)
	stranger.CreationTimestamp = metav1.NewTime(handedOut.Add(-time.Second))
	w.create(stranger)
	w.offerIgnition()
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
	w.Expect(w.agent("stranger").Spec.ClusterDeploymentName).To(BeNil(), "the cache does not have the Secret yet")
	w.dataFrom(handedOut)
	for range 2 {
		w.reconcile()
		w.Expect(w.agent("stranger").Spec.ClusterDeploymentName).To(BeNil())
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
		w.Expect(w.message(bootstrapv1.ReadyCondition)).To(And(ContainSubstring("Agent stranger registered before"),
			ContainSubstring("Switch it off")))
		w.restart()
	}
	right := discovered("right", "m", bootMAC)
	right.CreationTimestamp = metav1.NewTime(handedOut)
	w.create(right)
	w.reconcile()
	w.Expect(w.agent("right").Spec.ClusterDeploymentName).To(BeNil(), "another server booted the image")
	w.remove(w.agent("stranger"))
	w.reconcile()
	w.Expect(w.agent("right").Spec.ClusterDeploymentName).NotTo(BeNil(),
		"it registered in the same second as the data was handed out, or later: %s", w.message(bootstrapv1.ReadyCondition))
	w.dataFrom(handedOut.Add(time.Minute))
	w.registerWithCluster("right", "known")
	w.reconcile()
	w.Expect(w.agent("right").Spec.Approved).To(BeTrue(), "the Secret was recreated after the host was identified")
}

// TestInstalledAgentOfSameServerElsewhere: without a BareMetalHost the Agents themselves show the conflict.
func TestInstalledAgentOfSameServerElsewhere(t *testing.T) {
	w := plainMetal(t)
	w.offerIgnition()
	w.create(installedElsewhere("b"), discovered("a", "m", bootMAC))
	w.reconcile()
	w.refusesToApprove("a", "Agent b of InfraEnv elsewhere")
	w.Expect(w.reconciler.ofAgent(t.Context(), installedElsewhere("b"))).To(HaveLen(1), "its changes are reconciled")
	w.remove(w.agent("b"))
	w.approves("a", "the other Agent is deleted")
}
