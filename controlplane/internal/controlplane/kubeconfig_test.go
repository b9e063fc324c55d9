package controlplane

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
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

// withTokenFile makes a kubeconfig read a file.
func withTokenFile(content []byte) []byte {
	return bytes.Replace(content, []byte("client-key-data:"), []byte("tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n    client-key-data:"), 1)
}

func TestAKubeconfigOfAssistedServiceThatReadsFilesIsNotPublished(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.giveKubeconfig("assisted-service")
	h.editAdmin(withTokenFile)
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigRefusedReason, "Secret c1-admin-kubeconfig is not published: it has tokenFile")
	err := h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "cluster1-kubeconfig"}, &corev1.Secret{})
	h.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}

func TestARefusedKubeconfigIsTold(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	published := h.published()
	h.workloads.facts = workload.Facts{Failure: &workload.Failure{Kind: workload.KubeconfigRefused, Message: "it has exec", KubeconfigVersion: published.ResourceVersion}}
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigRefusedReason, "Secret cluster1-kubeconfig is not used: it has exec; delete the Secret")

	published.Labels["changed"] = "yes"
	h.Expect(h.Update(t.Context(), published)).To(Succeed())
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")
}

func TestNoTokenIsPutIntoAKubeconfigThatReadsFiles(t *testing.T) {
	_, err := withToken(withTokenFile(kubeconfigOf("u")), "token")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("it has tokenFile")))
}

// editAdmin changes assisted-service's kubeconfig.
func (h *hub) editAdmin(change func([]byte) []byte) {
	h.t.Helper()
	admin := &corev1.Secret{}
	h.get("c1-admin-kubeconfig", admin)
	admin.Data["kubeconfig"] = change(admin.Data["kubeconfig"])
	h.Expect(h.Update(h.t.Context(), admin)).To(Succeed())
}

func (h *hub) expectKubeconfig(reason, message string) {
	h.t.Helper()
	c := conditions.Get(h.controlPlane(), controlplanev1.KubeconfigAvailableCondition)
	h.Expect(c.Reason).To(Equal(reason), c.Message)
	h.Expect(c.Message).To(ContainSubstring(message))
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
