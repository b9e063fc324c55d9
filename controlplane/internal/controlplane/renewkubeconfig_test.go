package controlplane

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestUnpublishedTokenIsRevoked(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for answer, test := range map[string]struct {
		err     error
		kept    []any
		message string
	}{
		"refused because of a missing right": {
			apierrors.NewForbidden(secrets, "cluster1-kubeconfig", errors.New("RBAC")),
			[]any{types.UID("token-1")},
			"cannot publish the renewed kubeconfig",
		},
		"refused as outdated": {
			apierrors.NewConflict(secrets, "cluster1-kubeconfig", errors.New("changed")),
			[]any{types.UID("token-1")},
			"cannot publish the renewed kubeconfig",
		},
		"the write may have succeeded": {
			apierrors.NewInternalError(errors.New("etcd")),
			[]any{types.UID("token-1"), types.UID("token-2")},
			"cannot publish the renewed kubeconfig",
		},
		"no answer": {context.DeadlineExceeded, []any{types.UID("token-1"), types.UID("token-2")}, "cannot publish the renewed kubeconfig"},
	} {
		t.Run(answer, func(t *testing.T) {
			h := newHub(t, world(nil)...).withTime()
			h.install()
			h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
			h.applyFails = test.err
			s := h.gather()
			_, err := h.r.kubeconfig.Renew(t.Context(), s)
			h.Expect(err).To(MatchError(test.err))
			h.Expect(s.Found.Blocked(tasks.KubeconfigRenewal).Message).To(ContainSubstring(test.message))
			h.Expect(h.workloads.tokens.UnsortedList()).To(ConsistOf(test.kept...))
			h.expectToken("token-1")
		})
	}
}

// Responses of the API server of a cluster may contain anything.
func TestResponseOfTheClusterDoesNotReachConditions(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
	h.workloads.issue = apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "a", errors.New("the password is rose"))
	s := h.gather()
	_, err := h.r.kubeconfig.Renew(t.Context(), s)
	h.Expect(err).To(MatchError(ContainSubstring("rose")))
	h.Expect(s.Found.Blocked(tasks.KubeconfigRenewal).Message).To(
		Equal("its credentials could not be renewed: its API server answers with 403 Forbidden. The provider retries"),
	)
}

func TestKubeconfigIsRenewedAtHalfTime(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.expectToken("token-1")

	h.reconcile()
	h.expectToken("token-1")

	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 - time.Hour) }
	s := h.gather()
	h.Expect(s.Workload.Connected).To(BeTrue())
	h.Expect(h.r.kubeconfig.Renew(t.Context(), s)).To(BeTrue())
	h.Expect(s.Again.Delay()).To(BeNumerically("~", time.Hour, time.Minute), "the next reconcile is at the time of renewal")
	h.expectToken("token-1")

	h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
	h.reconcile()
	h.expectToken("token-2")
}

func TestRevokedTokenIsReplaced(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	installed := h.workloads.facts
	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("assisted-service")))
	h.Expect(h.published().Annotations).NotTo(HaveKey(facts.KubeconfigRenewalAnnotation))
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")
	h.Expect(h.workloads.issued).To(Equal(1))

	h.workloads.facts = installed
	h.reconcile()
	h.expectToken("token-2")
}

// The user's load balancer has a certificate of its own, behind a proxy.
func TestUsersChangesAreKeptWhenATokenIsReplaced(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.editPublished(func(s *corev1.Secret) {
		config, err := clientcmd.Load(s.Data["value"])
		h.Expect(err).NotTo(HaveOccurred())
		c := config.Clusters["c1"]
		c.ProxyURL, c.TLSServerName, c.Server = "http://proxy.example.com:3128", "api.example.com", "https://lb.example.com:6443"
		s.Data["value"], err = clientcmd.Write(*config)
		h.Expect(err).NotTo(HaveOccurred())
	})
	expectKept := func(server string) {
		config, err := clientcmd.Load(h.published().Data["value"])
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(config.Clusters["c1"]).To(
			And(HaveField("ProxyURL", "http://proxy.example.com:3128"), HaveField("TLSServerName", "api.example.com"), HaveField("Server", server)),
		)
	}
	installed := h.workloads.facts
	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.Expect(h.published().Annotations).NotTo(HaveKey(facts.KubeconfigRenewalAnnotation), "the token is replaced")
	expectKept("https://lb.example.com:6443")

	h.workloads.facts = installed
	h.reconcile()
	h.Expect(h.published().Annotations).To(HaveKeyWithValue(facts.KubeconfigTokenAnnotation, "token-2"))
	expectKept("https://lb.example.com:6443")

	h.giveKubeconfig("another")
	h.workloads.facts = workload.State{}
	h.reconcile()
	expectKept("https://192.168.111.5:6443")
}

func TestRenewalAddsTheAuthoritiesOfTheCluster(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.editPublished(func(s *corev1.Secret) {
		s.Data["value"] = bytes.Replace(
			s.Data["value"],
			[]byte(base64.StdEncoding.EncodeToString([]byte("authority"))),
			[]byte(base64.StdEncoding.EncodeToString(selfSigned(t, "first"))),
			1,
		)
	})
	for _, fails := range []bool{true, false} {
		h.workloads.authorities, h.workloads.noAuthorities = authorities.Observed{Reported: selfSigned(t, "second")}, nil
		if fails {
			h.workloads.authorities, h.workloads.noAuthorities = authorities.Observed{}, errors.New("forbidden")
		}
		h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
		h.editPublished(func(s *corev1.Secret) { delete(s.Annotations, facts.KubeconfigRenewalAnnotation) })
		h.reconcile()
		h.Expect(h.published().Annotations).To(HaveKey(facts.KubeconfigRenewalAnnotation), "a token without new authorities is better than none")
		config, err := clientcmd.RESTConfigFromKubeConfig(h.published().Data["value"])
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(bytes.Count(config.CAData, []byte("BEGIN CERTIFICATE"))).To(Equal(map[bool]int{true: 1, false: 2}[fails]))
	}
}

// selfSigned returns the certificate of a certificate authority.
func selfSigned(t *testing.T, name string) []byte {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	made, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	g.Expect(err).NotTo(HaveOccurred())
	encoded, err := cert.EncodeCertificates(made)
	g.Expect(err).NotTo(HaveOccurred())
	return encoded
}

func TestUntrustedCertificateIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	failure := &workload.Failure{
		Kind:              workload.Untrusted,
		Message:           "the certificate of its API server is not from the authority in the kubeconfig",
		KubeconfigVersion: h.published().ResourceVersion,
	}
	h.workloads.facts = workload.State{Failure: failure}
	h.reconcile()
	h.expectKubeconfig(
		controlplanev1.KubeconfigUntrustedReason,
		"Secret cluster1-kubeconfig does not accept the server: the certificate of its API server is not from the authority in the "+
			"kubeconfig. Add the authority of the certificate to spec.kubeconfig.additionalTrustBundle",
	)
	h.expectToken("token-1")

	h = newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.giveKubeconfig("assisted-service")
	h.reconcile()
	failure.KubeconfigVersion = h.published().ResourceVersion
	h.workloads.facts = workload.State{Failure: failure}
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "") // another server may answer before the installation is over
}

// A connection that was opened with the client certificate continues when the token is revoked.
func TestRevokedTokenIsReplacedAlthoughTheClusterIsConnected(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.workloads.facts.Tokens = sets.New[types.UID]()
	h.reconcile()
	h.expectToken("token-1")
	h.Expect(h.workloads.issued).To(Equal(1), "the cluster has the Secret, only the cache lacks it")
	s := h.gather()
	h.Expect(h.r.kubeconfig.Renew(t.Context(), s)).To(BeTrue())
	h.Expect(s.Again.Delay()).To(BeNumerically("~", tokens.Validity/2, time.Hour), "the token is renewed in time nevertheless")

	h.workloads.tokens.Delete("token-1")
	h.workloads.facts.Tokens = nil
	h.reconcile()
	h.Expect(h.workloads.issued).To(Equal(1), "an unread state is no evidence")

	h.workloads.facts.Tokens = sets.New[types.UID]("another")
	h.workloads.hasToken = fmt.Errorf("cannot read: %w", apierrors.NewUnauthorized("401"))
	h.reconcile()
	h.Expect(h.workloads.issued).To(Equal(1), "the token made this connection: the next connection uses assisted-service's kubeconfig")

	h.workloads.hasToken = nil
	h.reconcile()
	h.expectToken("token-2")

	h.workloads.facts.Tokens = sets.New[types.UID]("token-2")
	h.reconcile()
	h.Expect(h.workloads.issued).To(Equal(2))
}

func TestInvalidCredentialsWithoutReplacementAreReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.workloads.facts = h.unauthorized()
	writes := len(h.writes)
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigUnauthorizedReason, "put a kubeconfig that works into Secret cluster1-kubeconfig")
	h.Expect(h.writes[writes:]).To(ConsistOf("patch status c1"), "assisted-service's kubeconfig is not published repeatedly")

	h = newHub(t, world(nil)...).withTime()
	h.install()
	h.forget()
	h.Expect(h.Delete(t.Context(), h.recovery())).To(Succeed())
	h.workloads.facts = h.unauthorized()
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigUnauthorizedReason, "put a kubeconfig that works into Secret cluster1-kubeconfig")
	h.expectToken("token-1")
}

func TestUsersOwnKubeconfigGetsNoToken(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	own := &corev1.Secret{}
	own.Namespace, own.Name, own.Data = lab, "cluster1-kubeconfig", map[string][]byte{"value": kubeconfigOf("user")}
	h.Expect(h.Create(t.Context(), own)).To(Succeed())
	h.install()
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("user")))
	h.Expect(h.workloads.issued).To(BeZero())
}

func TestKubeconfigThatReadsFilesGetsNoToken(t *testing.T) {
	_, err := conn.WithToken(withTokenFile(kubeconfigOf("u")), "token")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("it has tokenFile")))
}
