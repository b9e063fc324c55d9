package hostconfig

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// offer sets other URLs of the image in the InfraEnv, as assisted-service does.
func (w *world) offer(iso, ignition string) {
	w.t.Helper()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() {
		infraEnv.Status.ISODownloadURL = iso
		infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = ignition
		infraEnv.Status.Conditions = []conditionsv1.Condition{{Type: aiv1beta1.ImageCreatedCondition, Status: corev1.ConditionTrue}}
	})
}

func TestBootImageIsUpdatedUntilHostIsChosen(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.offer(isoURL+"?new", "")
	w.reconcile()
	w.Expect(w.infraMachine()).To(bootFrom(isoURL+"?new"), "a new URL is set")
	w.create(bareMetalHost())
	w.offer(isoURL+"?newer", "")
	w.reconcile()
	w.Expect(w.infraMachine()).To(bootFrom(isoURL+"?new"), "a chosen host is not provisioned again when its image changes")
}

// bootFrom matches an infrastructure machine that boots the image.
func bootFrom(url string) OmegaMatcher {
	return Satisfy(func(infraMachine *unstructured.Unstructured) bool { return bootmode.BootsFrom(infraMachine, url) })
}

// data returns the bootstrap data.
func (w *world) data() string {
	w.t.Helper()
	return string(read(w, "m", &corev1.Secret{}).Data["value"])
}

// downloaded waits for the download that the last reconcile started, and reconciles on it.
func (w *world) downloaded() ctrl.Result {
	w.t.Helper()
	w.Eventually(w.reconciler.wake).WithTimeout(discoveryTime).Should(Receive(), "a download ends")
	return w.reconcile()
}

func TestDiskImage(t *testing.T) {
	const first, second = `{"ignition":{"version":"3.1.0"}}`, `{"ignition":{"version":"3.1.0"},"storage":{}}`
	answers := map[string]string{"/first": first, "/second": second}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.URL.Path]; ok {
			_, _ = w.Write([]byte(answer))
			return
		}
		http.Error(w, "", http.StatusServiceUnavailable)
	}))
	defer server.Close()

	objects := lab()
	objects["metal3"] = metal3Machine("qcow2")
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.offer("", server.URL+"/broken?api_key=top-secret")
	w.reconcile()
	delay := w.downloaded().RequeueAfter
	w.Expect(delay).To(BeNumerically(">", time.Second), "a failed download is retried")
	w.clock = w.clock.Add(time.Second)
	w.Expect(w.reconcile().RequeueAfter).To(Equal(delay-time.Second), "an event does not restart the wait")
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.IgnitionDownloadFailedReason)
	for _, c := range w.config().Status.Conditions {
		w.Expect(c.Message).NotTo(ContainSubstring("top-secret"), "condition %s contains no credential", c.Type)
	}
	w.Expect(w.config().Status.DataSecretName).To(BeEmpty(), "no data is handed out")

	w.offer("", server.URL+"/first")
	w.reconcile()
	w.downloaded()
	w.Expect(w.data()).To(Equal(first))
	w.Expect(w.infraMachine()).NotTo(bootFrom(""), "the image is the user's")
	w.Expect(w.config().Status.BootMode).To(Equal(bootstrapv1.BootModeDiskImage))

	w.offer("", server.URL+"/second")
	w.reconcile()
	w.downloaded()
	w.Expect(w.data()).To(Equal(second), "a new URL is used until the host is chosen")

	w.create(bareMetalHost())
	w.offer("", server.URL+"/first")
	w.reconcile()
	w.Expect(w.data()).To(Equal(second), "a chosen host keeps its data")
	w.remove(read(w, "m", &corev1.Secret{}))
	w.reconcile()
	w.downloaded()
	w.Expect(w.data()).To(Equal(first), "deleted data is recreated")
}

// TestOutdatedIgnition: assisted-service without authentication has not applied a change yet. Its URL and the
// content stay the same.
func TestOutdatedIgnition(t *testing.T) {
	const first, second = `{"ignition":{"version":"3.1.0"}}`, `{"ignition":{"version":"3.1.0"},"storage":{}}`
	for name, tc := range map[string]struct {
		modified string
		want     string
	}{
		"applied later":                   {"Sat, 21 Nov 2026 10:00:05 GMT", second},
		"never reported":                  {"Sat, 21 Nov 2026 10:00:00 GMT", second},
		"a service without Last-Modified": {"", second},
	} {
		t.Run(name, func(t *testing.T) {
			var answer, modified atomic.Value
			answer.Store(first)
			modified.Store("Sat, 21 Nov 2026 10:00:00 GMT")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Last-Modified", modified.Load().(string)) //nolint:forcetypeassert // stored above
				_, _ = w.Write([]byte(answer.Load().(string)))            //nolint:forcetypeassert // stored above
			}))
			defer server.Close()
			objects := lab()
			objects["metal3"] = metal3Machine("qcow2")
			w := newWorld(t, values(objects)...)
			w.reconcile()
			w.offer("", server.URL+"/discovery.ign")
			w.reconcile()
			w.downloaded()
			w.Expect(w.data()).To(Equal(first))
			before := read(w, "m", &corev1.Secret{}).Annotations[desired.SourceAnnotation]
			infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
			w.change(infraEnv, func() { infraEnv.Generation++ })
			w.reconcile()
			w.Expect(w.downloaded().RequeueAfter).NotTo(BeZero(), "polled again")
			w.Expect(w.data()).To(Equal(first))
			w.Expect(read(w, "m", &corev1.Secret{}).Annotations).To(HaveKeyWithValue(desired.SourceAnnotation, before),
				"the ignition from before the change is not used")
			answer.Store(second)
			modified.Store(tc.modified)
			for try := 0; w.data() != tc.want && try < 10; try++ {
				w.clock = w.clock.Add(2 * time.Minute)
				w.reconcile()
				w.downloaded()
			}
			w.Expect(w.data()).To(Equal(tc.want))
		})
	}
}

// TestDownloadsAreSpacedByInjectedClock: the injected clock differs from the clock of the machine.
func TestDownloadsAreSpacedByInjectedClock(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		http.Error(w, "", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	objects := lab()
	objects["metal3"] = metal3Machine("qcow2")
	w := newWorld(t, values(objects)...)
	w.clock = w.clock.Add(-24 * time.Hour)
	w.reconcile()
	w.offer("", server.URL+"/discovery.ign")
	w.reconcile()
	for _, next := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		w.Expect(w.downloaded().RequeueAfter).To(Equal(next))
		w.clock = w.clock.Add(next)
		w.reconcile()
	}
}

// TestHangingDownload: a download does not end. No worker of the manager waits for it, and there is only one
// request.
func TestHangingDownload(t *testing.T) {
	hanging := make(chan struct{})
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		<-hanging
		_, _ = w.Write([]byte(`{"ignition":{"version":"3.1.0"}}`))
	}))
	defer server.Close()
	objects := lab()
	objects["metal3"] = metal3Machine("qcow2")
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.offer("", server.URL+"/discovery.ign")
	begin := time.Now()
	for range 3 {
		w.reconcile()
	}
	w.Expect(time.Since(begin)).To(BeNumerically("<=", discoveryTime/2), "no worker waits for the service")
	w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
	close(hanging)
	w.downloaded()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)

	secret := read(w, "m", &corev1.Secret{})
	w.remove(secret) // the cache of a real manager does not have it yet
	result := w.reconcile()
	w.Expect(requests.Load()).To(Equal(int32(1)), "downloaded once")
	w.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", reconcile.CacheLag)),
		"the next reconcile follows when the cache is up to date")
}

// discoveryTime is the time that a download may take.
const discoveryTime = 10 * time.Second

func TestForeignDataSecret(t *testing.T) {
	marked := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{desired.SourceAnnotation: "faaaaaaaaaaaaaaa"}, OwnerReferences: owners}
	}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "m", UID: "foreign"}
	for situation, metadata := range map[string]metav1.ObjectMeta{
		"same name only": {},
		"with our annotation, without owner, not handed out": marked(),
		"with our annotation, of another object":             marked(foreign),
		"with our annotation, of another config": marked(metav1.OwnerReference{
			APIVersion: bootstrapv1.GroupVersion.String(),
			Kind:       "OpenshiftAssistedConfig", Name: "other", UID: "other",
		}),
		"with our annotation, of this config and another object": marked(metav1.OwnerReference{
			APIVersion: bootstrapv1.GroupVersion.String(),
			Kind:       "OpenshiftAssistedConfig", Name: "m", UID: "config-uid",
		}, foreign),
	} {
		t.Run(situation, func(t *testing.T) {
			metadata.Namespace, metadata.Name = namespace, "m"
			theirs := &corev1.Secret{ObjectMeta: metadata, Data: map[string][]byte{"value": []byte("theirs")}}
			w := newWorld(t, append(values(lab()), theirs)...)
			w.reconcile()
			w.makeImage()
			w.reconcile()
			w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
			kept := read(w, "m", &corev1.Secret{})
			w.Expect(kept.Data).To(HaveKeyWithValue("value", []byte("theirs")))
			w.Expect(kept.OwnerReferences).To(Equal(metadata.OwnerReferences))
		})
	}
}

// TestForeignOwnersOfDataStay: foreign owners stay, independent of the source of the Secret and also on
// installed hosts.
func TestForeignOwnersOfDataStay(t *testing.T) {
	w := installing(t)
	w.enter("a", "installed")
	w.knowNode()
	w.reconcile()
	foreign := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "foreign"}}
	secret := read(w, "m", &corev1.Secret{})
	w.change(secret, func() { secret.OwnerReferences = foreign })
	w.restart()
	w.reconcile()
	w.Expect(read(w, "m", &corev1.Secret{}).OwnerReferences).To(Equal(foreign))
}

// behind is a cache that still shows a Secret which another client has replaced.
type behind struct {
	client.Reader

	shown *metav1.PartialObjectMetadata
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if secret, is := obj.(*metav1.PartialObjectMetadata); is && key == client.ObjectKeyFromObject(b.shown) && secret.Kind == "Secret" {
		b.shown.DeepCopyInto(secret)
		return nil
	}
	return b.Reader.Get(ctx, key, obj, opts...)
}

func TestDataOfReplacedSecretStays(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	ours := read(w, "m", &corev1.Secret{})
	w.remove(ours)
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", UID: "theirs"},
		Data:       map[string][]byte{"value": []byte("theirs")},
	})
	w.restart()
	shown := kube.MetadataOf(kube.Secret)
	shown.ObjectMeta = ours.ObjectMeta
	shown.UID, shown.Annotations = "ours", map[string]string{desired.SourceAnnotation: "of a former image"}
	w.metadata.Reader = behind{w.metadata.Reader, shown}
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "m"}})
	w.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	w.Expect(read(w, "m", &corev1.Secret{}).Data).To(HaveKeyWithValue("value", BeEquivalentTo("theirs")))
}

// lacking is a cache that does not show a Secret yet.
type lacking struct {
	client.Reader

	name string
}

func (l lacking) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if secret, is := obj.(*metav1.PartialObjectMetadata); is && key.Name == l.name && secret.Kind == "Secret" {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

// TestForeignSecretMissingInCache: the first write is forced and would overwrite the Secret.
func TestForeignSecretMissingInCache(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", UID: "theirs"},
		Data:       map[string][]byte{"value": []byte("theirs")},
	})
	w.metadata.Reader = lacking{w.metadata.Reader, "m"}
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
	w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).To(ContainSubstring("Secret m exists and was not created by this provider"))
	kept := read(w, "m", &corev1.Secret{})
	w.Expect(kept.Data).To(Equal(map[string][]byte{"value": []byte("theirs")}))
	w.Expect(kept.OwnerReferences).To(BeEmpty())
}

func TestOwnerOfDataIsRestored(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	secret := read(w, "m", &corev1.Secret{})
	w.change(secret, func() { secret.OwnerReferences, secret.Labels = nil, nil })
	w.reconcile()
	secret = read(w, "m", &corev1.Secret{})
	w.Expect(metav1.GetControllerOf(secret)).To(HaveField("UID", w.config().UID))
	w.Expect(secret.Labels).NotTo(BeEmpty())
	w.Expect(secret.Data).NotTo(BeEmpty())
}

// TestRejectedOwnersOfSecretsAreReported: on an OpenShift hub without openshift-hub.yaml, the API server
// rejects other owner references of Secrets. All other steps proceed.
func TestRejectedOwnersOfSecretsAreReported(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	secret := read(w, "m", &corev1.Secret{})
	w.change(secret, func() { secret.OwnerReferences, secret.Labels = nil, nil })
	w.undeletable = kubetest.Undeletable{"Secret"}
	w.Expect(w.reconcile().RequeueAfter).NotTo(BeZero(), "no event reports that the right was granted")
	w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
	w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).To(And(ContainSubstring("Secret m keeps its owner references"),
		ContainSubstring("Apply openshift-hub.yaml")))
	secret = read(w, "m", &corev1.Secret{})
	w.Expect(secret.OwnerReferences).To(BeEmpty())
	w.Expect(secret.Labels).NotTo(BeEmpty(), "all else is restored")
	writes := w.writes
	w.reconcile()
	w.Expect(w.writes).To(Equal(writes), "a rejected request is not repeated at once")

	w.undeletable = nil
	w.clock = w.clock.Add(time.Hour)
	w.reconcile()
	w.Expect(metav1.GetControllerOf(read(w, "m", &corev1.Secret{}))).To(HaveField("UID", w.config().UID))
	w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
	w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).NotTo(ContainSubstring("owner references"))
}

// TestDataIsUpdatedThoughOwnerIsRejected: on the same hub, data lost its owner and has to follow another
// image.
func TestDataIsUpdatedThoughOwnerIsRejected(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	secret := read(w, "m", &corev1.Secret{})
	w.change(secret, func() {
		secret.OwnerReferences, secret.Annotations[desired.SourceAnnotation], secret.Data["value"] = nil, "of a former image", []byte("former")
	})
	w.undeletable = kubetest.Undeletable{"Secret"}
	w.restart()
	w.reconcile()
	secret = read(w, "m", &corev1.Secret{})
	w.Expect(secret.Data).NotTo(HaveKeyWithValue("value", BeEquivalentTo("former")))
	w.Expect(secret.OwnerReferences).To(BeEmpty())
	w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
	w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).To(ContainSubstring("Secret m keeps its owner references"))
	w.create(bareMetalHost(), discovered("a", "m", bootMAC))
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "the host is bound nevertheless")
}

// TestInstalledHostStaysReadyThoughOwnerIsRejected: on the same hub, the conditions of an installed host
// stay.
func TestInstalledHostStaysReadyThoughOwnerIsRejected(t *testing.T) {
	w := installing(t)
	w.enter("a", "installed")
	w.knowNode()
	w.reconcile()
	secret := read(w, "m", &corev1.Secret{})
	w.change(secret, func() { secret.OwnerReferences = nil })
	w.undeletable = kubetest.Undeletable{"Secret"}
	w.restart()
	w.reconcile()
	w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).To(ContainSubstring("Secret m keeps its owner references"))
}

func TestChangedSettingsReachUnusedInfraEnv(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	config := w.config()
	w.change(config, func() { config.Spec.AdditionalNTPSources = []string{"ntp.example"} })
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.AdditionalNTPSources).To(ConsistOf("ntp.example"))
	w.create(discovered("a", "m", bootMAC))
	config = w.config()
	w.change(config, func() { config.Spec.AdditionalNTPSources = nil })
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.AdditionalNTPSources).To(ConsistOf("ntp.example"),
		"an InfraEnv stays unchanged after a host has booted its image")
}

func TestImageFailureAndRecovery(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() {
		infraEnv.Status.Conditions = []conditionsv1.Condition{{
			Type: aiv1beta1.ImageCreatedCondition, Status: corev1.ConditionFalse, Reason: "ImageCreationError", Message: "cannot reach " +
				"https://img/?api_key=top-secret now",
		}}
	})
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.DiscoveryImageFailedReason)
	w.Expect(w.message(bootstrapv1.ReadyCondition)).NotTo(ContainSubstring("top-secret"))
	w.makeImage()
	w.reconcile()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
}
