package controlplane

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/tokens"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestNewKubeconfigOfAssistedServiceReplacesTheToken(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.giveKubeconfig("another")
	h.workloads.facts = workload.State{}
	h.reconcile()
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("another")), "this helps if the token no longer works")

	h.workloads.facts = workload.State{Connected: true, OpenShiftVersion: "4.19.3"}
	h.reconcile()
	h.expectToken("token-2")
}

// withTokenFile makes a kubeconfig read a file.
func withTokenFile(content []byte) []byte {
	return bytes.Replace(
		content, []byte("client-key-data:"), []byte("tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n    client-key-data:"), 1,
	)
}

func TestKubeconfigOfAssistedServiceThatReadsFilesIsNotPublished(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.giveKubeconfig("assisted-service")
	h.editAdmin(withTokenFile)
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigRefusedReason, "Secret c1-admin-kubeconfig is not published: it has tokenFile")
	err := h.Get(t.Context(), client.ObjectKey{Namespace: lab, Name: "cluster1-kubeconfig"}, &corev1.Secret{})
	h.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}

func TestRefusedKubeconfigIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	published := h.published()
	h.workloads.facts = workload.State{
		Failure: &workload.Failure{Kind: workload.KubeconfigRefused, Message: "it has exec", KubeconfigVersion: published.ResourceVersion},
	}
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigRefusedReason, "Secret cluster1-kubeconfig is not used: it has exec; delete the Secret")

	published.Labels["changed"] = "yes"
	h.Expect(h.Update(t.Context(), published)).To(Succeed())
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")
}

// Backup tools label and annotate the objects that they save and restore.
func TestChangedMetadataOfTheAdminSecretIssuesNoToken(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	live := &liveReader{Reader: h.Client}
	h.live.Reader = live
	admin := &corev1.Secret{}
	h.get("c1-admin-kubeconfig", admin)
	admin.Labels = map[string]string{"touched": "yes"}
	h.Expect(h.Update(t.Context(), admin)).To(Succeed())
	before := h.published().ResourceVersion
	h.reconcile()
	h.reconcile()
	h.Expect(h.workloads.issued).To(Equal(1))
	h.Expect(h.published().ResourceVersion).To(Equal(before), "no write")
	h.Expect(live.secrets).To(Equal(1), "each version of the Secret is read once")
}

// An earlier version of the provider recorded no digest.
func TestRecordedSourceWithoutDigestIsCompleted(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	source := h.published().Annotations[facts.KubeconfigSourceAnnotation]
	h.editPublished(func(s *corev1.Secret) {
		s.Annotations[facts.KubeconfigSourceAnnotation] = source[:strings.LastIndex(source, "/")]
	})
	h.reconcile()
	h.Expect(h.published().Annotations).To(HaveKeyWithValue(facts.KubeconfigSourceAnnotation, source))
	h.expectToken("token-1")
	h.Expect(h.workloads.issued).To(Equal(1))
}

// Backup tools drop owner references. Without adoption the token in the Secret would expire.
func TestRestoredKubeconfigIsAdopted(t *testing.T) {
	for _, moved := range []bool{false, true} { // after a move assisted-service's kubeconfig is missing
		h := newHub(t, world(nil)...).withTime()
		h.install()
		if moved {
			h.forget()
			h.reconcile()
		}
		h.editPublished(func(s *corev1.Secret) { s.OwnerReferences = nil })
		annotations := h.published().Annotations
		h.Expect(annotations).To(And(HaveKey(facts.KubeconfigRenewalAnnotation), HaveKeyWithValue(facts.KubeconfigTokenAnnotation, "token-1")))
		h.reconcile()
		h.Expect(metav1.IsControlledBy(h.published(), h.controlPlane())).To(BeTrue())
		h.Expect(h.published().Annotations).To(Equal(annotations))
		h.expectToken("token-1")

		h.clock.now = func() time.Time { return time.Now().Add(tokens.Validity/2 + time.Hour) }
		h.reconcile()
		h.expectToken("token-2")
	}
}

// unauthorized returns the facts of a cluster that does not accept the credentials in the published
// kubeconfig.
func (h *hub) unauthorized() workload.State {
	h.t.Helper()
	version := h.published().ResourceVersion
	return workload.State{Failure: &workload.Failure{Kind: workload.Unauthorized, Message: "401", KubeconfigVersion: version}}
}

func TestCauseOfMissingConnectionIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.workloads.facts = workload.State{
		LastSuccess: time.Now().Add(-time.Hour), Failure: &workload.Failure{Kind: workload.Unreachable, Message: "the name cannot be resolved"},
	}
	h.clock.now = func() time.Time { return time.Now().Add(2 * workload.GracePeriod) }
	h.reconcile()
	available := conditions.Get(h.controlPlane(), controlplanev1.AvailableCondition)
	h.Expect(available.Reason).To(Equal(controlplanev1.ConnectionDownReason))
	h.Expect(available.Message).To(HaveSuffix(": the name cannot be resolved"))
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")
}

func TestProblemOfTheKubeconfigOutlivesARestart(t *testing.T) {
	h := newInstalledHub(t)
	untrusted := workload.State{Failure: &workload.Failure{
		Kind: workload.Untrusted, Message: "unknown authority", KubeconfigVersion: h.published().ResourceVersion,
	}}
	h.workloads.facts = untrusted
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigUntrustedReason, "unknown authority")

	h.restartAt(time.Now())
	h.workloads.facts = workload.State{}
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigUntrustedReason, "unknown authority")
	h.workloads.facts = workload.State{Connected: true, LastSuccess: time.Now()}
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")

	h.workloads.facts = untrusted
	h.reconcile()
	h.workloads.facts = workload.State{}
	h.restartAt(time.Now().Add(-2 * workload.GracePeriod))
	h.reconcile()
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")
}

// The user created the Secret for a cluster that was deleted, and recreated under the same name.
func TestKubeconfigOfFormerClusterIsReported(t *testing.T) {
	unreachable := func(h *hub) {
		h.workloads.facts = workload.State{
			Failure: &workload.Failure{Kind: workload.Unreachable, Message: "connection refused", KubeconfigVersion: h.published().ResourceVersion},
		}
		h.endDeferral()
		h.reconcile()
	}
	left := func(h *hub) {
		h.reconcile()
		own := &corev1.Secret{}
		own.Namespace, own.Name, own.Data = lab, "cluster1-kubeconfig", map[string][]byte{"value": kubeconfigOf("former")}
		h.Expect(h.Create(t.Context(), own)).To(Succeed())
	}
	installed := func(h *hub) {
		h.giveKubeconfig("assisted-service")
		h.setState("adding-hosts", hiveext.ClusterInstalledReason, 100)
	}
	h := newHub(t, world(nil)...).withTime()
	left(h)
	h.giveKubeconfig("assisted-service")
	unreachable(h)
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "") // no server answers during the installation
	installed(h)
	unreachable(h)
	h.expectKubeconfig(
		controlplanev1.KubeconfigNotOursReason, "delete it: its content is lost, and assisted-service's kubeconfig (Secret c1-admin-kubeconfig)",
	)
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("former")), "the Secret belongs to the user")
	h.Expect(h.Delete(t.Context(), h.published())).To(Succeed())
	h.reconcile()
	h.Expect(h.published().Data["value"]).To(Equal(kubeconfigOf("assisted-service")))
	unreachable(h)
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "")

	h = newHub(t, world(nil)...).withTime()
	left(h)
	installed(h)
	h.workloads.facts = workload.State{Connected: true, LastSuccess: time.Now()}
	h.reconcile()
	unreachable(h)
	h.expectKubeconfig(controlplanev1.KubeconfigAvailableReason, "") // the cluster answered a connection with it
}

// liveReader counts the reads of Secrets.
type liveReader struct {
	client.Reader
	secrets int
}

func (l *liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok {
		l.secrets++
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

// editPublished changes the published kubeconfig.
func (h *hub) editPublished(change func(*corev1.Secret)) {
	h.t.Helper()
	published := h.published()
	change(published)
	h.Expect(h.Update(h.t.Context(), published)).To(Succeed())
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
