package controlplane

import (
	"context"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// fakeNames is a DNS with some names. It records look-ups of other names.
type fakeNames struct {
	answers map[string]facts.Name
	// counts is how long an answer is valid.
	counts time.Duration
	done   []func()
}

func (n *fakeNames) Addresses(name string, done func()) (facts.Name, time.Duration) {
	answer, known := n.answers[name]
	if !known {
		n.done = append(n.done, done)
	}
	return answer, n.counts
}

const apiOfC1 = "api.cluster1.example.com"

// dnsOf returns a DNS with all names of a cluster.
func dnsOf(cp *controlplanev1.OpenshiftAssistedControlPlane) *fakeNames {
	config := &cp.Spec.Config
	return &fakeNames{counts: 24 * time.Hour, answers: map[string]facts.Name{
		apiOfC1: {Answered: true, Addresses: []netip.Addr{netip.MustParseAddr(config.APIVIPs[0])}},
		"console-openshift-console.apps.cluster1.example.com": {
			Answered: true, Addresses: []netip.Addr{netip.MustParseAddr(config.IngressVIPs[0])},
		},
		"validatenowildcarddns.cluster1.example.com": {Answered: true},
	}}
}

// expectPreflight expects a condition after its deferral.
func (h *hub) expectPreflight(status metav1.ConditionStatus, reason, message string) {
	h.t.Helper()
	h.endDeferral()
	h.reconcile()
	c := conditions.Get(h.controlPlane(), controlplanev1.PreflightPassedCondition)
	h.Expect(c).NotTo(BeNil())
	h.Expect(*c).To(And(HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
}

func TestPreflightUntilTheClusterIsInstalled(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	answer := h.dns.answers[apiOfC1]
	delete(h.dns.answers, apiOfC1)
	h.reconcile()
	h.expectPreflight(metav1.ConditionUnknown, controlplanev1.PreflightIncompleteReason, apiOfC1+" is being resolved")
	h.Expect(h.machines()).To(HaveLen(3), "no Machine waits for DNS")

	for len(h.r.wake) > 0 {
		<-h.r.wake
	}
	h.dns.done[0]()
	h.Expect(h.r.wake).To(Receive(HaveField("Object.GetName()", "c1")), "an answer triggers a reconcile")

	h.dns.counts = 3 * time.Second
	h.dns.answers[apiOfC1] = facts.Name{Answered: true, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	h.expectPreflight(
		metav1.ConditionFalse, controlplanev1.PreflightWarningsReason, "resolves to 10.0.0.1, not to config.apiVIPs (192.168.111.5)",
	)
	s := h.gather()
	_, err := h.r.preflight.Check(t.Context(), s)
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(s.Again.Delay()).To(Equal(h.dns.counts), "DNS cannot be watched")

	h.dns.answers[apiOfC1] = answer
	h.expectPreflight(metav1.ConditionTrue, controlplanev1.PreflightPassedReason, "")
	h.reconcile()
	before := len(h.writes)
	h.reconcile()
	h.Expect(h.writes).To(HaveLen(before), "no write without a change")
	delete(h.dns.answers, apiOfC1)
	h.endDeferral()
	h.reconcile()
	h.Expect(h.writes).To(HaveLen(before), "after a restart no name is resolved yet")

	h.install()
	h.endDeferral()
	h.reconcile()
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.PreflightPassedCondition)).To(BeNil())
	h.dns.answers, h.dns.done = nil, nil
	h.reconcile()
	h.Expect(h.dns.done).To(BeEmpty(), "no name of an installed cluster is resolved")
}

func TestPreflightSeesOtherClustersOfTheHub(t *testing.T) {
	other := controlPlane(nil)
	other.Namespace, other.Name, other.UID, other.OwnerReferences[0].Name = "tenant", "c2", "other-uid", "cluster2"
	h := newHub(t, append(world(nil), other)...).withTime()
	h.reconcile()
	h.expectPreflight(
		metav1.ConditionFalse,
		controlplanev1.PreflightWarningsReason,
		"the VIPs 192.168.111.4, 192.168.111.5 are already used by 1 in other namespaces",
	)
}

// The pull secret is for another registry than that of the release image, and lacks credentials for the
// mirrors.
func TestPreflightReadsThePullSecret(t *testing.T) {
	named := func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ImageRegistryRef = &corev1.LocalObjectReference{Name: "mirrors"}
	}
	mirrors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "mirrors"}, Data: map[string]string{
		"registries.conf": "[[registry]]\nlocation = \"docker.io\"\n[[registry.mirror]]\nlocation = \"registry.lab.example\"\n",
	}}
	objects := append(world(named), mirrors)
	secret := objects[2].(*corev1.Secret) //nolint:forcetypeassert // see world
	secret.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"registry.other.example":{"auth":"dTpw"}}}`)
	h := newHub(t, objects...).withTime()
	reads := 0
	h.live.Reader = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // it is one
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*corev1.ConfigMap); is {
				reads++
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	h.reconcile()
	h.expectPreflight(metav1.ConditionFalse, controlplanev1.PreflightWarningsReason, "no credentials for mirrors (registry.lab.example)")
	h.expectPreflight(metav1.ConditionFalse, controlplanev1.PreflightWarningsReason, "no credentials for the release image "+digest)
	h.Expect(reads).To(Equal(1), "a version of a ConfigMap is read once")

	h.setState("installing", "", 10)
	h.expectPreflight(metav1.ConditionFalse, controlplanev1.PreflightWarningsReason, "no credentials for the release image "+digest)
	h.expectPreflight(metav1.ConditionFalse, controlplanev1.PreflightWarningsReason, "no credentials for mirrors (registry.lab.example)")
	h.setState("insufficient", "", 0)
	h.get("pull", secret)
	secret.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"registry.lab.example":{"auth":"dTpw"},"quay.io":{"auth":"dTpw"}}}`)
	h.Expect(h.Update(t.Context(), secret)).To(Succeed())
	h.expectPreflight(metav1.ConditionTrue, controlplanev1.PreflightPassedReason, "")

	h.get("mirrors", mirrors)
	mirrors.Data = map[string]string{"registries": "x"}
	h.Expect(h.Update(t.Context(), mirrors)).To(Succeed())
	h.expectPreflight(metav1.ConditionFalse, controlplanev1.PreflightWarningsReason, "ConfigMap mirrors has no key registries.conf")
}
