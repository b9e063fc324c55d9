package hostconfig

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func staticNetwork(name, mac string, labels map[string]string) *aiv1beta1.NMStateConfig {
	return &aiv1beta1.NMStateConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: aiv1beta1.NMStateConfigSpec{
			Interfaces: []*aiv1beta1.Interface{{Name: "eth0", MacAddress: mac}},
			Config:     json.RawMessage(`{"interfaces":[]}`),
		},
	}
}

// static returns a lab whose Machine gets addresses only from NMStateConfigs with the label net=lab.
func static() map[string]client.Object {
	objects := lab()
	config, _ := objects["config"].(*bootstrapv1.OpenshiftAssistedConfig)
	config.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"net": "lab"}}
	return objects
}

// addNMStateConfigs builds the NMStateConfigs into the image, as assisted-service does.
func (w *world) addNMStateConfigs() {
	w.t.Helper()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() {
		infraEnv.Status.InfraEnvDebugInfo.StaticNetworkDownloadURL = "http://service.example/static-network-config"
	})
}

func TestHostWaitsForNMStateConfig(t *testing.T) {
	w := newWorld(t, append(values(static()), staticNetwork("other", bootMAC, map[string]string{"net": "elsewhere"}))...)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForNMStateConfigReason)
	w.Expect(w.message(bootstrapv1.ReadyCondition)).To(ContainSubstring("net=lab"), "the selector is named")
	w.Expect(w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "m"},
		&aiv1beta1.InfraEnv{})).To(MatchError(apierrors.IsNotFound, "not found"), "no image without addresses is created")
	w.create(staticNetwork("n", bootMAC, map[string]string{"net": "lab"}))
	w.reconcile()
	w.makeImage()
	w.addNMStateConfigs()
	w.reconcile()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
}

// TestImageWithoutNMStateConfig covers an InfraEnv that is older than its NMStateConfig: its image has no
// addresses until assisted-service has built the NMStateConfig into the image.
func TestImageWithoutNMStateConfig(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	config := w.config()
	w.change(config, func() {
		config.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"net": "lab"}}
	})
	w.makeImage()
	w.reconcile()
	w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForNMStateConfigReason)
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.NMStateConfigLabelSelector.MatchLabels).To(HaveKeyWithValue("net", "lab"),
		"the InfraEnv has the selector")
	w.create(staticNetwork("n", bootMAC, map[string]string{"net": "lab"}))
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
	w.Expect(w.config().Status.DataSecretName).To(BeEmpty(), "no data is handed out")
	w.Expect(w.infraMachine()).NotTo(bootFrom(isoURL), "the old image is not handed out")
	w.addNMStateConfigs()
	w.reconcile()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
	w.offer(isoURL+"?new", "")
	w.reconcile()
	w.Expect(w.infraMachine()).To(bootFrom(isoURL+"?new"), "a new image is used until the host is chosen")
}

func TestSelectorWithoutMatch(t *testing.T) {
	objects := lab()
	config, _ := objects["config"].(*bootstrapv1.OpenshiftAssistedConfig)
	config.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{}
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue,
		bootstrapv1.DataSecretAvailableReason) // assisted-service needs no match either
}

func TestInvalidSelector(t *testing.T) {
	objects := lab()
	config, _ := objects["config"].(*bootstrapv1.OpenshiftAssistedConfig)
	config.Spec.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key:      "net",
		Operator: "Like",
	}}}
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
}

// onlyWhen returns the matcher, or its negation if so is false.
func onlyWhen(so bool, matcher OmegaMatcher) OmegaMatcher {
	if so {
		return matcher
	}
	return Not(matcher)
}

func TestNMStateConfigOfAnotherHost(t *testing.T) {
	for name, tc := range map[string]struct {
		networks []client.Object
		warned   bool
	}{
		"an interface of the host": {networks: []client.Object{staticNetwork("n", strings.ToUpper(bootMAC),
			map[string]string{"net": "lab"})}},
		"several interfaces, none of the host": {networks: []client.Object{staticNetwork("n", "02:00:00:00:00:07",
			map[string]string{"net": "lab"})}, warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(values(static()), tc.networks...)...)
			w.reconcile()
			w.makeImage()
			w.addNMStateConfigs()
			w.reconcile()
			w.create(bareMetalHost())
			w.reconcile()
			e := w.event()
			w.Expect(e).To(onlyWhen(tc.warned, HavePrefix("Warning NMStateConfigMismatch ")))
			if tc.warned {
				w.Expect(e).To(And(ContainSubstring("net=lab"), ContainSubstring("lab/rack1-u7"), ContainSubstring(bootMAC)))
			}
			w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
			c := meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.ReadyCondition)
			w.Expect(c.Reason).To(onlyWhen(tc.warned, Equal(bootstrapv1.NMStateConfigMismatchReason)))
			w.Expect(c.Message).To(onlyWhen(tc.warned, ContainSubstring("net=lab")))
			w.Expect(w.event()).To(BeEmpty(), "reported once")
			before := w.writes
			w.reconcile()
			w.Expect(w.writes).To(Equal(before), "no write without a change")
		})
	}
}

func TestNMStateConfigWakesSelectingConfigs(t *testing.T) {
	w := newWorld(t, values(static())...)
	for name, tc := range map[string]struct {
		network *aiv1beta1.NMStateConfig
		mapped  int
	}{
		"selected":     {staticNetwork("n", bootMAC, map[string]string{"net": "lab"}), 1},
		"not selected": {staticNetwork("n", bootMAC, map[string]string{"net": "elsewhere"}), 0},
		"another namespace": {&aiv1beta1.NMStateConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: "other",
			Labels:    map[string]string{"net": "lab"},
		}}, 0},
	} {
		w.Expect(w.reconciler.ofNMStateConfig(t.Context(), tc.network)).To(HaveLen(tc.mapped), name)
	}
}
