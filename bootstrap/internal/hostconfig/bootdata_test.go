package hostconfig

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/protection"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// TestWhatIsLeftToDoWhenTheImageIsThere: of many hosts that start at once each waits for every write that is made
// before its data is handed out.
func TestWhatIsLeftToDoWhenTheImageIsThere(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.Expect(w.data()).To(Equal(ignition.Empty), "what a live ISO is given is the same for all")
	w.Expect(w.protection()).To(Equal(protection.Value))
	w.Expect(w.config().Status.DataSecretName).To(BeEmpty(), "the infrastructure provider goes on with the data: not before the boot image is in place")
	w.makeImage()
	before := w.writes
	w.reconcile()
	w.Expect(w.infraMachine()).To(bootFrom(isoURL))
	w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
	w.Expect(w.writes-before).To(Equal(2), "the boot image, and the status")
}

// A stranger that boots the live ISO as soon as there is one does not keep the Machine from its host: nobody was told yet to choose one.
func TestAStrangerThatBootsBeforeTheBootImageIsInPlace(t *testing.T) {
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

// TestNothingIsPreparedOfASecretThatIsNotOurs, nor of data that is made from the image.
func TestNothingIsPreparedOfASecretThatIsNotOurs(t *testing.T) {
	for situation, change := range map[string]func(map[string]client.Object){
		"a Secret of somebody else": func(objects map[string]client.Object) {
			objects["theirs"] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}, Data: map[string][]byte{"value": []byte("theirs")}}
		},
		"a disk image": func(objects map[string]client.Object) { objects["metal3"] = metal3Machine("qcow2") },
	} {
		t.Run(situation, func(t *testing.T) {
			objects := lab()
			change(objects)
			w := newWorld(t, values(objects)...)
			w.reconcile()
			w.Expect(w.protection()).To(BeEmpty(), "it is not protected")
			secret := &corev1.Secret{}
			if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "m"}, secret); err == nil {
				w.Expect(secret.Data).To(HaveKeyWithValue("value", []byte("theirs")))
			}
		})
	}
}

// TestBootImageOfAnInfraEnvThatIsGone is a host that was chosen, and boots the image of an InfraEnv that was created again meanwhile.
func TestBootImageOfAnInfraEnvThatIsGone(t *testing.T) {
	const anew = "http://img.example/byid/11112222/4.19/x86_64/full.iso"
	for name, tc := range map[string]struct {
		before   func(w *world)
		offered  string
		outdated bool
	}{
		"the same image":                                  {offered: isoURL},
		"another token or version of the same":            {offered: "http://img.example/byid/988939b3/4.20/x86_64/full.iso"},
		"another InfraEnv's":                              {offered: anew, outdated: true},
		"another InfraEnv's, before a host was chosen":    {before: func(w *world) { w.offer(anew, ""); w.reconcile() }, offered: anew},
		"another InfraEnv's, which the host booted since": {before: func(w *world) { w.create(discovered("a", "m", bootMAC)) }, offered: anew},
		"another InfraEnv's, with an Agent of the former one that never told its hardware": {before: func(w *world) {
			left := discovered("a", "m", bootMAC)
			left.Status = aiv1beta1.AgentStatus{}
			w.create(left)
		}, offered: anew, outdated: true},
		"another InfraEnv's, with an Agent that is the host's and was bound": {before: func(w *world) {
			known := discovered("a", "m", bootMAC)
			known.Status = aiv1beta1.AgentStatus{}
			known.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "c1"}
			w.create(known)
		}, offered: anew},
		"of an InfraEnv that has none yet": {offered: ""},
		"what the BareMetalHost has counts": {before: func(w *world) {
			w.offer(anew, "")
			w.reconcile() // the infrastructure machine has the new one
			host := bareMetalHost()
			host.Spec.Image = &metal3.Image{URL: isoURL} // but the Metal3 controller read it before
			w.create(host)
		}, offered: anew, outdated: true},
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
			w.Expect(w.config().Status.DataSecretName).To(Equal("m"), "the data is not taken back")
			before := w.writes
			w.reconcile()
			w.Expect(w.writes).To(Equal(before), "nothing is written, since nothing changed")
		})
	}
}

// TestIgnitionOfAnInfraEnvThatIsGone is the same for a disk image, on whatever infrastructure.
func TestIgnitionOfAnInfraEnvThatIsGone(t *testing.T) {
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
