package hostconfig

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestRejectedRequestsAreRepeated: the API server rejects the content of a request. Each such request is
// repeated, because the schema or the webhook that rejects it changes without an event.
func TestRejectedRequestsAreRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		world   func(t *testing.T) *world
		stage   string
		refusal error
		reason  string
		message string
		// change requires another write of the object.
		change func(w *world)
	}{
		"an InfraEnv": {
			func(t *testing.T) *world { return newWorld(t, values(lab())...) }, bootstrapv1.DiscoveryImageReadyCondition, errDenied,
			bootstrapv1.DiscoveryImageFailedReason, "InfraEnv m is refused: ", func(w *world) {
				config := w.config()
				w.change(config, func() { config.Spec.AdditionalNTPSources = []string{"ntp.example"} })
			},
		},
		"a boot image": {
			imageMade, bootstrapv1.DataSecretAvailableCondition, errDenied, bootstrapv1.BootImageRejectedReason,
			"Metal3Machine m cannot get the boot image: ", func(w *world) {
				machine := w.infraMachine()
				w.change(machine, func() {
					w.Expect(unstructured.SetNestedField(machine.Object, "http://images/other.iso", "spec", "image", "url")).To(Succeed())
				})
			},
		},
		"an Agent": {
			discoveredAfterBoot, bootstrapv1.HostBoundCondition, errDenied, bootstrapv1.InvalidConfigurationReason,
			"Agent a of host rack1-u7 is refused: ", renameAgent,
		},
		"an Agent with a field that its definition does not have": {
			discoveredAfterBoot, bootstrapv1.HostBoundCondition,
			errors.New("failed to create typed patch object (lab/a; agent-install.openshift.io/v1beta1, Kind=Agent): .spec.machineConfigPool: " +
				"field not declared in schema"),
			bootstrapv1.InvalidConfigurationReason, "assisted-service of this hub does not support this setting: its Agents have no " +
				"spec.machineConfigPool. ", renameAgent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world(t)
			w.refusal = tc.refusal
			result := w.reconcile()
			w.wants(tc.stage, metav1.ConditionFalse, tc.reason)
			w.Expect(w.message(tc.stage)).To(HavePrefix(tc.message))
			w.Expect(result.RequeueAfter).To(Equal(time.Minute))
			w.clock = w.clock.Add(time.Minute)
			w.Expect(w.reconcile().RequeueAfter).To(Equal(2 * time.Minute))

			w.refusal = nil
			w.reconcile()
			tc.change(w)
			w.refusal = tc.refusal
			w.Expect(w.reconcile().RequeueAfter).To(Equal(time.Minute), "the request was accepted meanwhile")
			w.wants(tc.stage, metav1.ConditionFalse, tc.reason)
		})
	}
}

// renameAgent changes a setting of the Agent that the provider writes.
func renameAgent(w *world) {
	agent := read(w, "a", &aiv1beta1.Agent{})
	w.change(agent, func() { agent.Spec.Hostname = "other" })
}

// errDenied is a rejection by an admission webhook.
var errDenied = errors.New(`admission webhook "v.example" denied the request: no`)

// imageMade returns a world in which the discovery image exists, and is not set as boot image.
func imageMade(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	return w
}

// discoveredAfterBoot returns a world in which the host has registered, and its Agent is unchanged.
func discoveredAfterBoot(t *testing.T) *world {
	t.Helper()
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	return w
}
