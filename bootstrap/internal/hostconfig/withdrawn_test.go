package hostconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// TestWithdrawnSettingsAreForgotten: assisted-service keeps settings that an InfraEnv no longer states, see
// docs/assisted-service.md. A recreated InfraEnv does not have them.
func TestWithdrawnSettingsAreForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		state, withdraw func(*bootstrapv1.OpenshiftAssistedConfig)
		// before edits the world while the setting is stated.
		before    func(w *world)
		recreated bool
		left      func(*aiv1beta1.InfraEnvSpec) any
		// is has the remaining setting; nil: none.
		is any
	}{
		"an SSH key": {
			state:     func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "ssh-ed25519 former" },
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "" },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.SSHAuthorizedKey },
		},
		"another SSH key": {
			state:    func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "ssh-ed25519 former" },
			withdraw: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "ssh-ed25519 later" },
		},
		"an override": {
			state: func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Annotations = map[string]string{bootstrapv1.DiscoveryIgnitionOverrideAnnotation: `{"ignition":{"version":"3.1.0"}}`}
			},
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Annotations = nil },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.IgnitionConfigOverride },
		},
		"time servers": {
			state:     func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.AdditionalNTPSources = []string{"ntp.example"} },
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.AdditionalNTPSources = nil },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.AdditionalNTPSources },
		},
		"time servers of the only kind": {
			state:     func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.NTPSources = []string{"ntp.example"} },
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.NTPSources = nil },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.NTPSources },
		},
		"time servers of another kind": {
			state: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.NTPSources = []string{"ntp.example"} },
			withdraw: func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.NTPSources, c.Spec.AdditionalNTPSources = nil, []string{"ntp.example"}
			},
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.NTPSources },
		},
		"the time server of assisted-service itself": {
			state:     func(*bootstrapv1.OpenshiftAssistedConfig) {},
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.NTPSources = []string{"ntp.example"} },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return len(s.NTPSources) == 0 },
		},
		"the delay of the network": {
			state:     func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.NetworkDiscoveryDelaySeconds = ptr.To[int32](60) },
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.NetworkDiscoveryDelaySeconds = nil },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.NetworkDiscoveryDelaySeconds },
		},
		"mirrors": {
			state: func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: "former"}
			},
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.MirrorRegistryRef = nil },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.MirrorRegistryRef },
		},
		"other mirrors": {
			state: func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: "former"}
			},
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.MirrorRegistryRef.Name = "later" },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.MirrorRegistryRef }, is: &hiveext.MirrorRegistryConfigMapReference{
				Namespace: "lab", Name: "later",
			},
		},
		"another architecture": {
			state:     func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.CPUArchitecture = "arm64" },
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.CPUArchitecture = "" },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return s.CpuArchitecture },
		},
		"the default architecture, stated explicitly": {
			state:    func(*bootstrapv1.OpenshiftAssistedConfig) {},
			withdraw: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.CPUArchitecture = "x86_64" },
		},
		"the proxy": {
			state: func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://proxy.example"}
			},
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.Proxy = nil },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return ptr.Deref(s.Proxy, aiv1beta1.Proxy{}) },
		},
		"the other proxy": {
			state: func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://proxy.example", HTTPSProxy: "https://proxy.example"}
			},
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.Proxy.HTTPSProxy = "" },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return ptr.Deref(s.Proxy, aiv1beta1.Proxy{}).HTTPSProxy },
		},
		"the exceptions of the proxy": {
			state: func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://proxy.example", NoProxy: "example"}
			},
			withdraw:  func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.Proxy.NoProxy = "" },
			recreated: true, left: func(s *aiv1beta1.InfraEnvSpec) any { return ptr.Deref(s.Proxy, aiv1beta1.Proxy{}).NoProxy },
		},
		"a setting that assisted-service forgets": {
			state:    func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.AdditionalTrustBundle = "bundle" },
			withdraw: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.AdditionalTrustBundle = "" },
		},
		"nothing, if another client states a key": {
			state: func(*bootstrapv1.OpenshiftAssistedConfig) {}, withdraw: func(*bootstrapv1.OpenshiftAssistedConfig) {},
			before: func(w *world) {
				infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
				w.change(infraEnv, func() { infraEnv.Spec.SSHAuthorizedKey = "ssh-ed25519 other" })
			},
		},
		"a key, after the data was handed out": {
			state:    func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "ssh-ed25519 former" },
			withdraw: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "" },
			before: func(w *world) {
				w.makeImage()
				w.reconcile()
				w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty())
			},
		},
		"a key, after the host was chosen": {
			state:    func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "ssh-ed25519 former" },
			withdraw: func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.SSHAuthorizedKey = "" },
			before:   func(w *world) { w.create(bareMetalHost()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			config := w.config()
			w.change(config, func() { tc.state(config) })
			w.reconcile()
			w.reconcile()
			if tc.before != nil {
				tc.before(w)
			}
			w.takeInfraEnvIn()
			config = w.config()
			w.change(config, func() { config.Generation++; tc.withdraw(config) })
			w.reconcile()
			infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
			w.Expect(infraEnv.DeletionTimestamp.IsZero()).To(Equal(!tc.recreated))
			if !tc.recreated {
				return
			}
			w.Expect(tc.left(&infraEnv.Spec)).NotTo(BeZero(), "the removed setting is not written")
			w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
			w.reconcile()
			infraEnv.Finalizers = nil
			w.Expect(client.IgnoreNotFound(w.Update(t.Context(), infraEnv))).To(Succeed())
			w.reconcile()
			infraEnv = read(w, "m", &aiv1beta1.InfraEnv{})
			w.Expect(infraEnv.DeletionTimestamp).To(BeNil())
			if tc.is != nil {
				w.Expect(tc.left(&infraEnv.Spec)).To(Equal(tc.is))
			} else {
				w.Expect(tc.left(&infraEnv.Spec)).To(BeZero())
			}
		})
	}
}

// TestChangedMirrorsAreRegisteredAgain: assisted-service reads the ConfigMap with the mirrors when it
// registers an InfraEnv. Its later reads are not stored.
func TestChangedMirrorsAreRegisteredAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		handedOut, own bool
		change         func(*corev1.ConfigMap)
		again          bool
	}{
		"of the config":     {own: true, change: func(m *corev1.ConfigMap) { m.Data["registries.conf"] = "later" }, again: true},
		"of the cluster":    {change: func(m *corev1.ConfigMap) { m.Data["registries.conf"] = "later" }, again: true},
		"another authority": {own: true, change: func(m *corev1.ConfigMap) { m.Data["ca-bundle.crt"] = "later" }, again: true},
		"an unread key":     {own: true, change: func(m *corev1.ConfigMap) { m.Data["other"] = "later" }},
		"a label":           {own: true, change: func(m *corev1.ConfigMap) { m.Labels = map[string]string{"backup": "true"} }},
		"after the image was handed out": {
			own: true, handedOut: true,
			change: func(m *corev1.ConfigMap) { m.Data["registries.conf"] = "later" },
		},
		"of the cluster, after the handout": {handedOut: true, change: func(m *corev1.ConfigMap) { m.Data["registries.conf"] = "later" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			mirrors := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "mirrors"},
				Data:       map[string]string{"registries.conf": "former"},
			}
			w.Expect(w.Create(t.Context(), mirrors)).To(Succeed())
			if tc.own {
				config := w.config()
				w.change(config, func() { config.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: mirrors.Name} })
			} else {
				install := read(w, "cp", &hiveext.AgentClusterInstall{})
				w.change(install, func() {
					install.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Namespace: "lab", Name: mirrors.Name}
				})
			}
			w.reconcile()
			w.takeInfraEnvIn()
			if tc.handedOut {
				w.makeImage()
				w.reconcile()
				w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty())
			}
			w.change(mirrors, func() { tc.change(mirrors) })
			w.Expect(w.reconciler.ofConfigMap(t.Context(),
				mirrors)).To(ContainElement(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())}))
			for range 2 {
				w.reconcile()
				w.clock = w.clock.Add(reconcile.DeferralPeriod)
			}
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp.IsZero()).To(Equal(!tc.again))
			w.reconcile()
			reported := conditions.GetMessage(w.config(), bootstrapv1.DiscoveryImageReadyCondition)
			if tc.handedOut {
				w.Expect(reported).To(And(ContainSubstring("content of the ConfigMap of mirrorRegistryRef"), ContainSubstring("delete Machine m"),
					ContainSubstring("which wipes")))
			}
		})
	}
}

// TestUnknownContentOfMirrorsRegistersNothingAgain: the registration of an older provider has no digest, and
// a missing ConfigMap has no content. Neither shows a change.
func TestUnknownContentOfMirrorsRegistersNothingAgain(t *testing.T) {
	w := newWorld(t, values(lab())...)
	config := w.config()
	w.change(config, func() { config.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: "mirrors"} })
	w.reconcile()
	w.takeInfraEnvIn()
	mirrors := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "mirrors"},
		Data:       map[string]string{"registries.conf": "former"},
	}
	w.Expect(w.Create(t.Context(), mirrors)).To(Succeed())
	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.Expect(infraEnv.DeletionTimestamp).To(BeNil())
	w.Expect(infraEnv.Annotations).To(HaveKey(bootstrapv1.MirrorsDigestAnnotation))
	w.Expect(w.Delete(t.Context(), mirrors)).To(Succeed())
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
}

// TestRecreatedConfigMapOfMirrorsRegistersInfraEnvAgain: kubectl replace --force deletes the ConfigMap and
// creates it again. The InfraEnv is still registered with the former content.
func TestRecreatedConfigMapOfMirrorsRegistersInfraEnvAgain(t *testing.T) {
	w := newWorld(t, values(lab())...)
	config := w.config()
	w.change(config, func() { config.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: "mirrors"} })
	mirrors := func(content string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "mirrors"},
			Data:       map[string]string{"registries.conf": content},
		}
	}
	w.Expect(w.Create(t.Context(), mirrors("former"))).To(Succeed())
	w.reconcile()
	w.takeInfraEnvIn()
	registered := read(w, "m", &aiv1beta1.InfraEnv{}).Annotations[bootstrapv1.MirrorsDigestAnnotation]
	w.Expect(registered).NotTo(BeEmpty())
	w.Expect(w.Delete(t.Context(), mirrors(""))).To(Succeed())
	w.reconcile()
	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.Expect(infraEnv.DeletionTimestamp).To(BeNil())
	w.Expect(infraEnv.Annotations).To(HaveKeyWithValue(bootstrapv1.MirrorsDigestAnnotation, registered), "what assisted-service registered")
	later := mirrors("later")
	w.Expect(w.Create(t.Context(), later)).To(Succeed())
	w.change(later, func() { later.Labels = map[string]string{"version": "own"} }) // the resource version of the fake client starts at 1 again
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
}

// mirrored returns a world whose InfraEnv was created with mirrors from a ConfigMap.
func mirrored(t *testing.T) (w *world, mirrors *corev1.ConfigMap) {
	t.Helper()
	w = newWorld(t, values(lab())...)
	mirrors = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "mirrors"},
		Data:       map[string]string{"registries.conf": "1"},
	}
	w.create(mirrors)
	config := w.config()
	w.change(config, func() { config.Spec.MirrorRegistryRef = &corev1.LocalObjectReference{Name: mirrors.Name} })
	w.reconcile()
	return w, mirrors
}

// TestInfraEnvIsRecreatedForMirrorsAtLimitedRate: two clients that overwrite the ConfigMap in turn would
// recreate the InfraEnv with each write.
func TestInfraEnvIsRecreatedForMirrorsAtLimitedRate(t *testing.T) {
	w, mirrors := mirrored(t)
	change := func(content string) {
		w.takeInfraEnvIn()
		w.change(mirrors, func() { mirrors.Data["registries.conf"] = content })
		w.reconcile()
	}
	change("2")
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.Expect(infraEnv.DeletionTimestamp).NotTo(BeNil(), "the first correction has no delay")
	infraEnv.Finalizers = nil
	w.Expect(w.Update(t.Context(), infraEnv)).To(Succeed())
	w.reconcile()
	w.reconcile()

	change("1")
	w.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", 0))
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
	w.Expect(conditions.GetMessage(w.config(), bootstrapv1.DiscoveryImageReadyCondition)).To(ContainSubstring("changed again after a " +
		"registration"))

	registered := read(w, "m", &aiv1beta1.InfraEnv{}).Annotations[bootstrapv1.MirrorsDigestAnnotation]
	config := w.config()
	w.change(config, func() { config.Spec.SSHAuthorizedKey = "ssh-ed25519 corrected" })
	w.makeImage()
	w.reconcile()
	infraEnv = read(w, "m", &aiv1beta1.InfraEnv{})
	w.Expect(infraEnv.DeletionTimestamp).To(BeNil())
	w.Expect(infraEnv.Spec.SSHAuthorizedKey).To(Equal("ssh-ed25519 corrected"), "other corrections do not wait")
	w.Expect(infraEnv.Annotations[bootstrapv1.MirrorsDigestAnnotation]).To(Equal(registered))
	w.Expect(w.config().Status.DataSecretName).To(BeEmpty(), "no host boots with outdated mirrors")
	w.clock = w.clock.Add(5 * time.Minute)
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
}

func TestFailedDeletionIsNoRecreation(t *testing.T) {
	w, mirrors := mirrored(t)
	w.takeInfraEnvIn()
	w.change(mirrors, func() { mirrors.Data["registries.conf"] = "2" })
	cached := w.cache.Client
	w.cache.Client = interceptor.NewClient(w.cached(), interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("no answer")
		},
	})
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())})
	w.Expect(err).To(MatchError(ContainSubstring("no answer")))
	w.cache.Client = cached
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
}

// TestRejectedInfraEnvIsNotDeleted: an assisted-service that lacks ntpSources rejects the new InfraEnv. The
// old one must not be deleted before.
func TestRejectedInfraEnvIsNotDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal         error
		reason, message string
	}{
		"a field of a newer assisted-service": {
			errors.New("failed to create typed patch object (lab/m-x; agent-install.openshift.io/v1beta1, Kind=InfraEnv): .spec.ntpSources: " +
				"field not declared in schema"),
			bootstrapv1.InvalidConfigurationReason, "its InfraEnvs have no spec.ntpSources",
		},
		"an admission webhook": {
			apierrors.NewBadRequest("admission webhook denied the request"), bootstrapv1.DiscoveryImageFailedReason,
			"InfraEnv m is refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			config := w.config()
			w.change(config, func() { config.Spec.AdditionalNTPSources = []string{"ntp.example"} })
			w.reconcile()
			w.takeInfraEnvIn()
			config = w.config()
			w.change(config, func() {
				config.Generation++
				config.Spec.AdditionalNTPSources, config.Spec.NTPSources = nil, []string{"ntp.example"}
			})
			w.refusal = tc.refusal
			w.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", 0), "assisted-service may be upgraded")
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
			requests := w.writes - w.reports
			w.Expect(w.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", reconcile.RefusedDelay)))
			w.Expect(w.writes-w.reports).To(Equal(requests), "an event does not send the refused request through all webhooks again")
			w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, tc.reason)
			w.Expect(conditions.GetMessage(w.config(), bootstrapv1.DiscoveryImageReadyCondition)).To(ContainSubstring(tc.message))
			w.refusal = nil
			w.clock = w.clock.Add(reconcile.MaxRefusedDelay)
			w.reconcile()
			w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).NotTo(BeNil())
		})
	}
}

// TestSettingsKeptByImageAreReported: a host that has the image could not register with another InfraEnv. The
// image keeps settings that assisted-service reads only at a registration. The message names the way to
// change them.
func TestSettingsKeptByImageAreReported(t *testing.T) {
	for field, tc := range map[string]struct {
		state, change func(*bootstrapv1.OpenshiftAssistedConfig)
		kept          func(*aiv1beta1.InfraEnvSpec) any
		as            any
	}{
		"cpuArchitecture": {
			func(*bootstrapv1.OpenshiftAssistedConfig) {}, func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.CPUArchitecture = "arm64" },
			func(s *aiv1beta1.InfraEnvSpec) any { return s.CpuArchitecture }, "",
		},
		"ntpSources": {
			func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.NTPSources = []string{"ntp.example"} },
			func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.NTPSources, c.Spec.AdditionalNTPSources = nil, []string{"ntp.example"}
			},
			func(s *aiv1beta1.InfraEnvSpec) any {
				return append(append([]string{}, s.NTPSources...), s.AdditionalNTPSources...)
			},
			[]string{"ntp.example"},
		},
		"proxy": {
			func(c *bootstrapv1.OpenshiftAssistedConfig) {
				c.Spec.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://proxy.example"}
			},
			func(c *bootstrapv1.OpenshiftAssistedConfig) { c.Spec.Proxy = nil },
			func(s *aiv1beta1.InfraEnvSpec) any { return ptr.Deref(s.Proxy, aiv1beta1.Proxy{}).HTTPProxy }, "http://proxy.example",
		},
	} {
		t.Run(field, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			config := w.config()
			w.change(config, func() { tc.state(config) })
			w.reconcile()
			w.makeImage()
			w.reconcile()
			w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty())
			config = w.config()
			w.change(config, func() { config.Generation++; tc.change(config) })
			for range 2 { // it stays reported
				w.reconcile()
				w.clock = w.clock.Add(reconcile.DeferralPeriod)
			}
			infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
			w.Expect(infraEnv.DeletionTimestamp).To(BeNil())
			w.Expect(tc.kept(&infraEnv.Spec)).To(Equal(tc.as))
			w.reconcile()
			reported := conditions.Get(w.config(), bootstrapv1.DiscoveryImageReadyCondition)
			w.Expect(reported.Status).To(Equal(metav1.ConditionTrue))
			w.Expect(reported.Message).To(And(ContainSubstring(field), ContainSubstring("delete Machine m"), ContainSubstring("which wipes")))
		})
	}
}

// TestOutdatedCacheWithdrawsNothing: an outdated cache contains the former config. Settings that it does not
// contain yet are not withdrawn.
func TestOutdatedCacheWithdrawsNothing(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	before, config := w.config(), w.config()
	w.change(config, func() { config.Spec.SSHAuthorizedKey = "ssh-ed25519 other" })
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.SSHAuthorizedKey).NotTo(BeEmpty())
	w.restart()
	w.cache.Client = kubetest.StaleCacheOf(w, before, (*bootstrapv1.OpenshiftAssistedConfig).DeepCopyInto)
	w.Expect(w.reconcile().RequeueAfter).To(Equal(reconcile.CacheLag))
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.SSHAuthorizedKey).NotTo(BeEmpty())
}

func TestStuckDeletionOfInfraEnvIsReported(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.remove(w.takeInfraEnvIn())
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
	w.clock = w.clock.Add(2 * assisted.ResponseTimeout)
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.AssistedServiceNotRespondingReason)
}
