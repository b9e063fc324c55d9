package hostconfig

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/protection"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// TestWritesBeforeBootstrapData: when many hosts start at once, each waits for every write before its data is
// handed out.
func TestWritesBeforeBootstrapData(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.Expect(w.data()).To(Equal(ignition.Empty), "all live ISOs get the same data")
	w.Expect(w.protection()).To(Equal(protection.Value))
	w.Expect(w.config().Status.DataSecretName).To(BeEmpty(), "the infrastructure provider proceeds with the data, so that the boot image "+
		"is set first")
	w.makeImage()
	before := w.writes
	w.reconcile()
	w.Expect(w.infraMachine()).To(bootFrom(isoURL))
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
	w.Expect(w.writes-before).To(Equal(2), "the boot image, and the status")
}

// TestForeignHostThatBootsBeforeBootImageIsSet: a foreign host that boots the live ISO early does not block
// the Machine's host. No client was requested to choose a host yet.
func TestForeignHostThatBootsBeforeBootImageIsSet(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.create(discovered("stranger", "m", "52:54:00:99:99:99"))
	w.makeImage()
	w.reconcile()
	w.Expect(w.infraMachine()).To(bootFrom(isoURL))
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
	w.create(bareMetalHost())
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(w.agent("stranger").Spec.Approved).To(BeFalse())
}

// TestForeignSecretAndDiskImageAreNotPrepared covers a foreign Secret, and data that is built from the image.
func TestForeignSecretAndDiskImageAreNotPrepared(t *testing.T) {
	for situation, change := range map[string]func(map[string]client.Object){
		"a foreign Secret": func(objects map[string]client.Object) {
			objects["theirs"] = &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"},
				Data:       map[string][]byte{"value": []byte("theirs")},
			}
		},
		"a disk image": func(objects map[string]client.Object) { objects["metal3"] = metal3Machine("qcow2") },
	} {
		t.Run(situation, func(t *testing.T) {
			objects := lab()
			change(objects)
			w := newWorld(t, values(objects)...)
			w.reconcile()
			w.Expect(w.protection()).To(BeEmpty(), "not protected")
			secret := &corev1.Secret{}
			if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "m"}, secret); err == nil {
				w.Expect(secret.Data).To(HaveKeyWithValue("value", []byte("theirs")))
			}
		})
	}
}

// TestBootImageOfDeletedInfraEnv: a chosen host boots the image of an InfraEnv that was recreated meanwhile.
func TestBootImageOfDeletedInfraEnv(t *testing.T) {
	const recreated = "http://img.example/byid/11112222/4.19/x86_64/full.iso"
	for name, tc := range map[string]struct {
		before   func(w *world)
		offered  string
		outdated bool
	}{
		"the same image": {offered: isoURL},
		"another token or version of the same image": {offered: "http://img.example/byid/988939b3/4.20/x86_64/full.iso"},
		"image of another InfraEnv":                  {offered: recreated, outdated: true},
		"image of another InfraEnv, before a host was chosen": {
			before:  func(w *world) { w.offer(recreated, ""); w.reconcile() },
			offered: recreated,
		},
		"image of another InfraEnv, which the host has booted": {
			before:  func(w *world) { w.create(discovered("a", "m", bootMAC)) },
			offered: recreated,
		},
		"image of another InfraEnv, with an Agent of the former one without inventory": {before: func(w *world) {
			left := discovered("a", "m", bootMAC)
			left.Status = aiv1beta1.AgentStatus{}
			w.create(left)
		}, offered: recreated, outdated: true},
		"image of another InfraEnv, with the bound Agent of the host": {before: func(w *world) {
			known := discovered("a", "m", bootMAC)
			known.Status = aiv1beta1.AgentStatus{}
			known.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "c1"}
			w.create(known)
		}, offered: recreated},
		"InfraEnv without image": {offered: ""},
		"the image of the BareMetalHost counts": {before: func(w *world) {
			w.offer(recreated, "")
			w.reconcile() // the infrastructure machine has the new image
			host := bareMetalHost()
			host.Spec.Image = &metal3.Image{URL: isoURL} // but the Metal3 controller read the former one
			w.create(host)
		}, offered: recreated, outdated: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			w.reconcile()
			w.makeImage()
			w.reconcile()
			if tc.before != nil {
				tc.before(w)
			}
			w.Expect(client.IgnoreAlreadyExists(w.Create(t.Context(), bareMetalHost()))).To(Succeed())
			w.offer(tc.offered, "")
			w.reconcile()
			if !tc.outdated {
				w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
				return
			}
			w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.BootImageOutdatedReason)
			w.Expect(w.message(bootstrapv1.ReadyCondition)).To(And(ContainSubstring("delete the Machine"), Not(ContainSubstring("http"))))
			w.Expect(w.config().Status.DataSecretName).To(Equal("m"), "the data is not withdrawn")
			before := w.writes
			w.reconcile()
			w.Expect(w.writes).To(Equal(before), "no write without a change")
		})
	}
}

// TestIgnitionOfDeletedInfraEnv: the same for a disk image, on any infrastructure.
func TestIgnitionOfDeletedInfraEnv(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"ignition":{"version":"3.1.0"}}`))
	}))
	defer server.Close()
	objects := lab()
	objects["metal3"] = metal3Machine("qcow2")
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.offer("", server.URL+"/v2/infra-envs/988939b3/downloads/files?file_name=discovery.ign")
	w.reconcile()
	w.downloaded()
	infraMachine := w.infraMachine()
	w.change(infraMachine, func() {
		w.Expect(unstructured.SetNestedField(infraMachine.Object, "metal3://lab/rack1-u7/m", "spec", "providerID")).To(Succeed())
	})
	w.reconcile()
	w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
	w.offer("", server.URL+"/v2/infra-envs/11112222/downloads/files?file_name=discovery.ign")
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.BootImageOutdatedReason)
}
