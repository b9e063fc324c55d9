package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestTheKubeconfigIsRenewedAtHalfTime(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.expectToken("token-1")

	h.reconcile()
	h.expectToken("token-1")

	h.r.now = func() time.Time { return time.Now().Add(workload.TokenValidity/2 - time.Hour) }
	scope, err := h.r.gather(t.Context(), h.controlPlane())
	h.Expect(err).NotTo(HaveOccurred())
	scope.workload.Connected = true
	h.Expect(h.r.renewKubeconfig(t.Context(), scope)).To(BeTrue())
	h.Expect(scope.requeueAfter).To(BeNumerically("~", time.Hour, time.Minute), "it comes back when the time has come")
	h.expectToken("token-1")

	h.r.now = func() time.Time { return time.Now().Add(workload.TokenValidity/2 + time.Hour) }
	h.reconcile()
	h.expectToken("token-2")
}

func TestANewKubeconfigOfAssistedServiceReplacesTheToken(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.giveKubeconfig("another")
	h.workloads.facts = workload.Facts{}
	h.reconcile()
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("another")), "which helps when the token does not work any more")

	h.workloads.facts = workload.Facts{Connected: true, OpenShiftVersion: "4.19.3"}
	h.reconcile()
	h.expectToken("token-2")
}

func TestNoTokenForTheUsersOwnKubeconfig(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	own := &corev1.Secret{}
	own.Namespace, own.Name, own.Data = lab, "cluster1-kubeconfig", map[string][]byte{"value": kubeconfigOf("user")}
	h.Expect(h.Create(t.Context(), own)).To(Succeed())
	h.install()
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("user")))
	h.Expect(h.workloads.issued).To(BeZero())
}

func (h *hub) published() *corev1.Secret {
	h.t.Helper()
	secret := &corev1.Secret{}
	h.get("cluster1-kubeconfig", secret)
	return secret
}

// expectToken checks that the token, and nothing of the former credentials, is published.
func (h *hub) expectToken(token string) {
	h.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(h.published().Data["value"])
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(config.BearerToken).To(Equal(token))
	h.Expect(config.CertData).To(BeEmpty())
	h.Expect(config.KeyData).To(BeEmpty())
	h.Expect(config.Host).To(Equal("https://192.168.111.5:6443"))
	h.Expect(config.CAData).To(Equal([]byte("authority")))
}
