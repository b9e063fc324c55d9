package controlplane

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubeconfig"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// setTrustBundle writes certificates into the spec.
func (h *hub) setTrustBundle(bundle []byte) {
	h.t.Helper()
	cp := h.controlPlane()
	cp.Spec.Kubeconfig.AdditionalTrustBundle = string(bundle)
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

// expectTrust expects the authorities of the published kubeconfig.
func (h *hub) expectTrust(certificates ...[]byte) {
	h.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(h.published().Data["value"])
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(string(config.CAData)).To(Equal(string(bytes.Join(certificates, nil))))
}

// trustFirst gives the cluster an authority that is a certificate.
func (h *hub) trustFirst() []byte {
	h.t.Helper()
	first := selfSigned(h.t, "first")
	h.editPublished(func(s *corev1.Secret) {
		s.Data["value"] = bytes.Replace(
			s.Data["value"], []byte(base64.StdEncoding.EncodeToString([]byte("authority"))), []byte(base64.StdEncoding.EncodeToString(first)), 1,
		)
	})
	return first
}

func TestAuthoritiesOfTheSpecAreAddedToTheKubeconfigAtOnce(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	now := h.stopClock()
	first, second, users := h.trustFirst(), selfSigned(t, "second"), selfSigned(t, "users")
	connected := h.workloads.facts

	h.workloads.facts = workload.State{
		Failure: &workload.Failure{Kind: workload.Untrusted, Message: "unknown authority", KubeconfigVersion: h.published().ResourceVersion},
	}
	h.setTrustBundle(second)
	h.reconcile()
	h.expectTrust(first, second)
	h.Expect(h.published().Annotations).To(HaveKeyWithValue(facts.KubeconfigTokenAnnotation, "token-1"))
	writes := len(h.writes)
	h.reconcile()
	h.Expect(h.writes[writes:]).NotTo(ContainElement(ContainSubstring("kubeconfig")))

	h.editPublished(func(s *corev1.Secret) {
		both := base64.StdEncoding.EncodeToString(bytes.Join([][]byte{first, second}, nil))
		s.Data["value"] = bytes.Replace(
			s.Data["value"], []byte(both), []byte(base64.StdEncoding.EncodeToString(bytes.Join([][]byte{first, second, users}, nil))), 1,
		)
	})
	h.setTrustBundle(nil)
	h.reconcile()
	h.expectTrust(first, second, users) // without a connection it is unknown whether the API server needs the authority

	h.workloads.facts = connected
	h.passChecks(now)
	h.expectTrust(first, users)
	h.Expect(h.published().Annotations).NotTo(HaveKey(facts.KubeconfigAuthoritiesAnnotation))
	h.Expect(h.published().Annotations).To(HaveKeyWithValue(facts.KubeconfigTokenAnnotation, "token-1"))
}

// The token is renewed while the spec contains an authority. The authority can still be withdrawn afterwards.
func TestRenewalKeepsTheAuthoritiesOfTheSpec(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	first, second := h.trustFirst(), selfSigned(t, "second")
	h.setTrustBundle(second)
	h.reconcile()
	h.expectTrust(first, second)
	connected := h.workloads.facts
	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.Expect(h.published().Annotations).NotTo(HaveKey(facts.KubeconfigTokenAnnotation), "assisted-service's")
	h.Expect(h.published().Annotations).To(HaveKey(facts.KubeconfigAuthoritiesAnnotation))

	h.workloads.facts = connected
	h.reconcile()
	h.Expect(h.published().Annotations).To(
		And(HaveKeyWithValue(facts.KubeconfigTokenAnnotation, "token-2"), HaveKey(facts.KubeconfigAuthoritiesAnnotation)),
	)
	h.setTrustBundle(nil)
	h.passChecks(h.stopClock())
	config, err := clientcmd.RESTConfigFromKubeConfig(h.published().Data["value"])
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(string(config.CAData)).NotTo(ContainSubstring(string(second)))
}

func TestUsersOwnKubeconfigGetsNoAuthority(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.editPublished(func(s *corev1.Secret) { s.OwnerReferences, s.Annotations = nil, nil })
	before := h.published().Data["value"]
	h.setTrustBundle(selfSigned(t, "second"))
	h.reconcile()
	h.Expect(h.published().Data["value"]).To(Equal(before))
}

func TestInvalidAuthoritiesAreReported(t *testing.T) {
	const invalid = "certificate 1 of spec.kubeconfig.additionalTrustBundle cannot be parsed"
	noCertificate := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	h := newHub(t, world(nil)...).withTime()
	h.setTrustBundle(noCertificate)
	h.reconcile()
	waits := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(waits.Reason).To(Equal(controlplanev1.InvalidConfigurationReason))
	h.Expect(waits.Message).To(ContainSubstring(invalid))
	h.Expect(h.writes).NotTo(ContainElement(ContainSubstring("machine")), "no server is powered on")

	h = newHub(t, world(nil)...).withTime()
	h.install()
	first, second := h.trustFirst(), selfSigned(t, "second")
	h.setTrustBundle(second)
	h.reconcile()
	h.setTrustBundle(noCertificate)
	h.editPublished(func(s *corev1.Secret) { delete(s.Annotations, facts.KubeconfigRenewalAnnotation) })
	h.reconcile()
	h.expectTrust(first, second) // the former authorities stay
	h.Expect(h.published().Annotations).To(HaveKeyWithValue(facts.KubeconfigTokenAnnotation, "token-2"))
	h.endDeferral()
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, invalid+". Correct the field")

	h.workloads.facts = workload.State{
		Failure: &workload.Failure{Kind: workload.Untrusted, Message: "unknown authority", KubeconfigVersion: h.published().ResourceVersion},
	}
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigUntrustedReason, "unknown authority. "+invalid)

	h.workloads.facts = workload.State{Connected: true, OpenShiftVersion: "4.19.3"}
	h.setTrustBundle(nil)
	h.passChecks(h.stopClock())
	h.expectTrust(first) // the record still shows that it comes from the spec
}

// withdrawn returns a hub with a kubeconfig that trusts two authorities. The spec has just withdrawn the
// second one.
func withdrawn(t *testing.T) (h *hub, now *time.Time, first, second []byte) {
	t.Helper()
	h = newHub(t, world(nil)...).withTime()
	h.install()
	now = h.stopClock()
	first, second = h.trustFirst(), selfSigned(t, "second")
	h.setTrustBundle(second)
	h.reconcile()
	h.expectTrust(first, second)
	h.setTrustBundle(nil)
	return h, now, first, second
}

// stopClock replaces the clock by one that the test sets.
func (h *hub) stopClock() *time.Time {
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	return &now
}

// passChecks lets the time pass until enough connections were opened since the spec withdrew an authority.
func (h *hub) passChecks(now *time.Time) {
	h.t.Helper()
	for range authorities.WithdrawalChecks {
		h.reconcile()
		*now = now.Add(authorities.WithdrawalInterval)
	}
}

// trust runs only this phase, and returns when to run it again.
func (h *hub) trust() time.Duration {
	h.t.Helper()
	s := h.gather()
	s.Found.Kubeconfig = &metav1.PartialObjectMetadata{ObjectMeta: h.published().ObjectMeta}
	_, err := h.r.kubeconfig.TrustAuthorities(h.t.Context(), s)
	h.Expect(err).NotTo(HaveOccurred())
	return s.Again.Delay()
}

// While API servers roll out another certificate, consecutive connections may reach servers with different
// certificates.
func TestWithdrawnAuthorityStaysUntilEnoughConnectionsDidNotNeedIt(t *testing.T) {
	h, now, first, second := withdrawn(t)
	for range authorities.WithdrawalChecks - 1 {
		h.Expect(h.trust()).To(Equal(authorities.WithdrawalInterval))
		h.expectTrust(first, second)
		reads := h.workloads.authoritiesRead
		for range 10 { // events count no connection, and make none
			h.Expect(h.trust()).To(Equal(authorities.WithdrawalInterval))
		}
		h.Expect(h.workloads.authoritiesRead).To(Equal(reads))
		*now = now.Add(authorities.WithdrawalInterval)
	}
	h.Expect(h.published().Annotations).To(HaveKey(facts.KubeconfigAuthoritiesAnnotation))
	h.reconcile()
	h.expectTrust(first)
	h.Expect(h.published().Annotations).NotTo(HaveKey(facts.KubeconfigAuthoritiesAnnotation))
}

// Otherwise a conflict keeps the authority trusted for as many connections again.
func TestFailedWriteDoesNotEndTheCountOfConnections(t *testing.T) {
	h, now, first, second := withdrawn(t)
	for range authorities.WithdrawalChecks - 1 {
		h.reconcile()
		*now = now.Add(authorities.WithdrawalInterval)
	}
	h.failing, h.applyFails = `"kind":"Secret"`, apierrors.NewConflict(
		schema.GroupResource{Resource: "secrets"}, "c1-kubeconfig", errors.New("changed"),
	)
	_, err := h.r.Reconcile(t.Context(), h.request())
	h.Expect(err).To(HaveOccurred())
	h.applyFails = nil
	h.expectTrust(first, second)
	*now = now.Add(authorities.WithdrawalInterval)
	h.reconcile()
	h.expectTrust(first)
}

func TestConnectionsAreCountedAgain(t *testing.T) {
	for situation, again := range map[string]func(h *hub, second []byte){
		"the spec stated the authority again in between": func(h *hub, second []byte) {
			h.setTrustBundle(second)
			h.reconcile()
			h.setTrustBundle(nil)
		},
		"the record of connections started again": func(h *hub, _ []byte) { h.workloads.authorities.Since = time.Now() },
		"another manager continues": func(h *hub, _ []byte) {
			h.r.kubeconfig = kubeconfig.New(h.live, h.workloads, h.r.writer, h.clock)
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h, now, first, second := withdrawn(t)
			for range authorities.WithdrawalChecks - 1 {
				h.reconcile()
				*now = now.Add(authorities.WithdrawalInterval)
			}
			again(h, second)
			for range authorities.WithdrawalChecks - 1 {
				h.reconcile()
				*now = now.Add(authorities.WithdrawalInterval)
			}
			h.expectTrust(first, second)
			h.reconcile()
			h.expectTrust(first)
		})
	}
}

func TestEachWithdrawalIsCounted(t *testing.T) {
	h, now, first, second := withdrawn(t)
	third := selfSigned(t, "third")
	h.setTrustBundle(bytes.Join([][]byte{second, third}, nil))
	h.reconcile()
	h.expectTrust(first, second, third)
	h.setTrustBundle(third)
	for range authorities.WithdrawalChecks - 1 {
		h.reconcile()
		*now = now.Add(authorities.WithdrawalInterval)
	}
	h.setTrustBundle(nil)
	h.reconcile()
	h.expectTrust(first, second, third)
	*now = now.Add(authorities.WithdrawalInterval)
	h.passChecks(now)
	h.expectTrust(first)
}

// Renewals of the token are connections that follow one another too closely to count.
func TestRenewalDoesNotRemoveRecentlyWithdrawnAuthority(t *testing.T) {
	h, _, first, second := withdrawn(t)
	for range 2 * authorities.WithdrawalChecks {
		h.editPublished(func(s *corev1.Secret) { delete(s.Annotations, facts.KubeconfigRenewalAnnotation) })
		h.reconcile()
		h.expectTrust(first, second)
	}
	h.Expect(h.published().Annotations).To(HaveKeyWithValue(facts.KubeconfigTokenAnnotation, "token-15"))
}

// An authority that the API server needs at the end stays until a later renewal.
func TestWithdrawnAuthorityThatIsInUseStays(t *testing.T) {
	h, now, first, second := withdrawn(t)
	h.workloads.authorities.Serving = sets.New(facts.AuthoritiesOf(h.published()).Added.UnsortedList()...)
	h.passChecks(now)
	h.expectTrust(first, second)
	read := h.workloads.authoritiesRead
	*now = now.Add(authorities.WithdrawalInterval)
	h.reconcile()
	h.Expect(h.workloads.authoritiesRead).To(Equal(read))
}

// A user who withdraws a leaked authority has to know how long the kubeconfig still trusts it.
func TestWithdrawnAuthorityIsReportedWhileItIsTrusted(t *testing.T) {
	const trusted = "Secret cluster1-kubeconfig still trusts certificate authorities that spec.kubeconfig.additionalTrustBundle does not " +
		"contain any more: CN=second (SHA-256 "
	h, now, _, second := withdrawn(t)
	connected := h.workloads.facts
	h.workloads.facts = workload.State{Failure: &workload.Failure{Message: "no connection"}}
	h.endDeferral()
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, trusted)
	h.expectKubeconfig(
		controlplanev1.KubeconfigAvailableReason, "7 connections, 60 minutes apart, in which no API server used them: 0 completed",
	)

	h.workloads.facts = connected
	for checks := 1; checks < authorities.WithdrawalChecks; checks++ {
		h.endDeferral()
		h.reconcile()
		h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, trusted)
		last := now.Add(time.Duration(authorities.WithdrawalChecks-checks) * authorities.WithdrawalInterval).UTC().Format(time.RFC3339)
		h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, fmt.Sprintf(
			"%d completed, the last follows at %s at the earliest", checks, last))
		*now = now.Add(authorities.WithdrawalInterval)
	}
	h.workloads.authorities.Serving = sets.New(facts.AuthoritiesOf(h.published()).Added.UnsortedList()...)
	h.endDeferral()
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "An API server used them. They stay until the next renewal")

	h.setTrustBundle(second)
	h.endDeferral()
	h.reconcile()
	h.expectNoKubeconfigMessage()
}

// The message advises to remove the authority from the Secret: nothing adds it again.
func TestWithdrawnAuthorityIsRemovedFromTheSecretByTheUser(t *testing.T) {
	h, now, first, second := withdrawn(t)
	h.endDeferral()
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "delete them from certificate-authority-data in Secret cluster1-kubeconfig")
	h.editPublished(func(s *corev1.Secret) {
		both := base64.StdEncoding.EncodeToString(bytes.Join([][]byte{first, second}, nil))
		s.Data["value"] = bytes.Replace(s.Data["value"], []byte(both), []byte(base64.StdEncoding.EncodeToString(first)), 1)
	})
	h.endDeferral()
	h.reconcile()
	h.expectNoKubeconfigMessage()
	h.editPublished(func(s *corev1.Secret) { delete(s.Annotations, facts.KubeconfigRenewalAnnotation) })
	h.passChecks(now)
	h.expectTrust(first)
	h.Expect(h.published().Annotations).NotTo(HaveKey(facts.KubeconfigAuthoritiesAnnotation))
}

func (h *hub) expectNoKubeconfigMessage() {
	h.t.Helper()
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.KubeconfigAvailableCondition)).
		To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", BeEmpty())))
}

// Messages change with the number of connections only: the Secret is not read each time.
func TestPublishedKubeconfigIsReadOnceForTheMessage(t *testing.T) {
	h, now, _, _ := withdrawn(t)
	*now = now.Add(time.Second)
	h.reconcile()
	h.reconcile()
	live := &liveReader{Reader: h.Client}
	h.live.Reader = live
	h.reconcile()
	h.Expect(live.secrets).To(BeZero())
}
