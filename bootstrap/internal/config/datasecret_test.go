package config

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// offer is assisted-service offering the image under other URLs.
func (w *world) offer(iso, ignition string) {
	w.Helper()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() {
		infraEnv.Status.ISODownloadURL = iso
		infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = ignition
		infraEnv.Status.Conditions = []conditionsv1.Condition{{Type: aiv1beta1.ImageCreatedCondition, Status: corev1.ConditionTrue}}
	})
}

func TestBootImageIsFollowedUntilTheHostIsChosen(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.offer(isoURL+"?new", "")
	w.reconcile()
	if !bootmode.BootsFrom(w.infraMachine(), isoURL+"?new") {
		t.Fatal("a new URL is followed")
	}
	w.create(bareMetalHost())
	w.offer(isoURL+"?newer", "")
	w.reconcile()
	if !bootmode.BootsFrom(w.infraMachine(), isoURL+"?new") {
		t.Fatal("a chosen host is provisioned again when its image changes")
	}
}

// downloaded waits for the download that the last reconcile started, and reconciles on it.
func (w *world) downloaded() ctrl.Result {
	w.Helper()
	select {
	case <-w.reconciler.wake:
	case <-time.After(10 * time.Second):
		w.Fatal("nothing was downloaded")
	}
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
	if result := w.downloaded(); result.RequeueAfter == 0 {
		t.Fatal("a failed download must be tried again")
	}
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.IgnitionDownloadFailedReason)
	for _, c := range w.config().Status.Conditions {
		if strings.Contains(c.Message, "top-secret") {
			t.Fatalf("condition %s holds a credential", c.Type)
		}
	}
	if w.config().Status.DataSecretName != "" {
		t.Fatal("handed out without data")
	}

	w.offer("", server.URL+"/first")
	w.reconcile()
	w.downloaded()
	if got := string(read(w, "m", &corev1.Secret{}).Data["value"]); got != first {
		t.Fatalf("got %s", got)
	}
	if image := bootmode.BootsFrom(w.infraMachine(), ""); image || w.config().Status.BootMode != bootstrapv1.BootModeDiskImage {
		t.Fatal("the image is the user's")
	}

	w.offer("", server.URL+"/second")
	w.reconcile()
	w.downloaded()
	if got := string(read(w, "m", &corev1.Secret{}).Data["value"]); got != second {
		t.Fatalf("a new URL is followed until the host is chosen: got %s", got)
	}

	w.create(bareMetalHost())
	w.offer("", server.URL+"/first")
	w.reconcile()
	if got := string(read(w, "m", &corev1.Secret{}).Data["value"]); got != second {
		t.Fatalf("a chosen host keeps its data: got %s", got)
	}
	w.remove(read(w, "m", &corev1.Secret{}))
	w.reconcile()
	w.downloaded()
	if got := string(read(w, "m", &corev1.Secret{}).Data["value"]); got != first {
		t.Fatalf("data that disappeared is made again: got %s", got)
	}
}

// TestIgnitionBehindItsInfraEnv is assisted-service without authentication that has not taken in a change yet: its URL stays the same, and so does what it
// serves.
func TestIgnitionBehindItsInfraEnv(t *testing.T) {
	const first, second = `{"ignition":{"version":"3.1.0"}}`, `{"ignition":{"version":"3.1.0"},"storage":{}}`
	for name, tc := range map[string]struct {
		modified string
		want     string
	}{
		"taken in later":              {"Sat, 21 Nov 2026 10:00:05 GMT", second},
		"it never says so":            {"Sat, 21 Nov 2026 10:00:00 GMT", second},
		"a service that says nothing": {"", second},
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
			data := func() string { return string(read(w, "m", &corev1.Secret{}).Data["value"]) }
			w.reconcile()
			w.offer("", server.URL+"/discovery.ign")
			w.reconcile()
			w.downloaded()
			if data() != first {
				t.Fatalf("got %s", data())
			}
			infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
			w.change(infraEnv, func() { infraEnv.Generation++ })
			w.reconcile()
			if result := w.downloaded(); result.RequeueAfter == 0 {
				t.Fatal("not looked at again")
			}
			if data() != first || read(w, "m", &corev1.Secret{}).Annotations[SourceAnnotation] == sourceDigest(infraEnv, nil, bootmode.DiskImage{}, server.URL+"/discovery.ign") {
				t.Fatal("the ignition from before the change is taken for the one after it")
			}
			answer.Store(second)
			modified.Store(tc.modified)
			for try := 0; data() != tc.want && try < 10; try++ {
				w.clock = w.clock.Add(maxDownloadBackOff)
				w.reconcile()
				w.downloaded()
			}
			if data() != tc.want {
				t.Fatalf("got %s", data())
			}
		})
	}
}

// TestServiceThatHangs is a download that does not end: no worker of the manager waits for it, and it is made once.
func TestServiceThatHangs(t *testing.T) {
	hanging := make(chan struct{})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
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
	if waited := time.Since(begin); waited > discoveryTime/2 {
		t.Fatalf("a worker waited %s for the service", waited)
	}
	w.lasts(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
	close(hanging)
	w.downloaded()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)

	secret := read(w, "m", &corev1.Secret{})
	w.remove(secret) // the cache of a real manager does not have it yet
	if result := w.reconcile(); asked.Load() != 1 || result.RequeueAfter == 0 || result.RequeueAfter > reconcile.CacheLag {
		t.Errorf("downloaded %d times, next look after %s", asked.Load(), result.RequeueAfter)
	}
}

// discoveryTime is how long a download may take.
const discoveryTime = 10 * time.Second

func TestSecretOfSomeoneElse(t *testing.T) {
	w := newWorld(t, append(values(lab()), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}})...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason)
}

func TestOwnerOfTheDataIsRestored(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	secret := read(w, "m", &corev1.Secret{})
	w.change(secret, func() { secret.OwnerReferences, secret.Labels = nil, nil })
	w.reconcile()
	if secret = read(w, "m", &corev1.Secret{}); !metav1.IsControlledBy(secret, w.config()) || len(secret.Labels) == 0 || len(secret.Data) == 0 {
		t.Fatalf("%+v", secret)
	}
}

func TestChangedSettingsReachAnUnusedInfraEnv(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	config := w.config()
	w.change(config, func() { config.Spec.AdditionalNTPSources = []string{"ntp.example"} })
	w.reconcile()
	if sources := read(w, "m", &aiv1beta1.InfraEnv{}).Spec.AdditionalNTPSources; len(sources) != 1 {
		t.Fatalf("got %v", sources)
	}
	w.create(discovered("a", "m", bootMAC))
	config = w.config()
	w.change(config, func() { config.Spec.AdditionalNTPSources = nil })
	w.reconcile()
	if sources := read(w, "m", &aiv1beta1.InfraEnv{}).Spec.AdditionalNTPSources; len(sources) != 1 {
		t.Fatal("an InfraEnv that a host has booted from is left alone")
	}
}

func TestImageFailureAndRecovery(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.change(infraEnv, func() {
		infraEnv.Status.Conditions = []conditionsv1.Condition{{
			Type: aiv1beta1.ImageCreatedCondition, Status: corev1.ConditionFalse, Reason: "ImageCreationError", Message: "cannot reach https://img/?api_key=top-secret now",
		}}
	})
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.DiscoveryImageFailedReason)
	if c := meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.ReadyCondition); strings.Contains(c.Message, "top-secret") {
		t.Fatal(c.Message)
	}
	w.makeImage()
	w.reconcile()
	w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionTrue, bootstrapv1.DataSecretAvailableReason)
}
