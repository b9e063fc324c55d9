package lightapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
)

const soon = time.Minute

// serve starts a server, and returns it with the configuration of an administrator.
func serve(t *testing.T) (*Server, *rest.Config) {
	t.Helper()
	g := NewWithT(t)
	authority, err := pki.New("cluster")
	g.Expect(err).NotTo(HaveOccurred())
	served, err := authority.ServerTLS()
	g.Expect(err).NotTo(HaveOccurred())
	user, key, err := authority.Client("admin", "system:masters")
	g.Expect(err).NotTo(HaveOccurred())
	s := New(served)
	g.Expect(s.Start(t.Context(), "127.0.0.1:0")).To(Succeed())
	t.Cleanup(s.Stop)
	return s, &rest.Config{
		Host: "https://" + s.Address(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority.PEM(), CertData: user, KeyData: key},
	}
}

func clientOf(g *WithT, config *rest.Config) client.WithWatch {
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

func secret(labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a", Labels: labels},
		Data:       map[string][]byte{"k": []byte("v")},
	}
}

func node() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{"example.com/one"}}}
}

func TestCreateReadChangeAndDeleteObject(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	made := secret(nil)
	g.Expect(c.Create(t.Context(), made)).To(Succeed())
	g.Expect(made.UID).NotTo(BeEmpty())
	g.Expect(made.CreationTimestamp.IsZero()).To(BeFalse())
	g.Expect(apierrors.IsAlreadyExists(c.Create(t.Context(), secret(nil)))).To(BeTrue())

	read := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(made), read)).To(Succeed())
	g.Expect(read).To(Equal(made))

	unchanged := made.ResourceVersion
	g.Expect(c.Update(t.Context(), made)).To(Succeed())
	g.Expect(made.ResourceVersion).To(Equal(unchanged), "an equal object is no change")
	made.Data["k"], made.UID = []byte("w"), ""
	g.Expect(c.Update(t.Context(), made)).To(Succeed())
	g.Expect(made.UID).To(Equal(read.UID), "clients cannot set the UID")
	read.Data["k"] = []byte("x")
	g.Expect(apierrors.IsConflict(c.Update(t.Context(), read))).To(BeTrue())

	g.Expect(apierrors.IsConflict(c.Delete(t.Context(), made, client.Preconditions{ResourceVersion: &read.ResourceVersion}))).To(BeTrue())
	g.Expect(c.Delete(t.Context(), made, client.Preconditions{UID: &made.UID})).To(Succeed())
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(made), read))).To(BeTrue())
	g.Expect(apierrors.IsNotFound(c.Delete(t.Context(), made))).To(BeTrue())
	g.Expect(apierrors.IsNotFound(c.Update(t.Context(), made))).To(BeTrue())
}

func TestStatusIsSubresource(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Spec.ClusterID, version.Status.VersionHash = "a", "made"
	g.Expect(c.Create(t.Context(), version)).To(Succeed())
	g.Expect(version.Status.VersionHash).To(BeEmpty())
	version.Spec.ClusterID, version.Status.VersionHash = "b", "status"
	g.Expect(c.Status().Update(t.Context(), version)).To(Succeed())
	g.Expect(version.Spec.ClusterID).To(BeEquivalentTo("a"))
	g.Expect(version.Status.VersionHash).To(Equal("status"))
	version.Spec.ClusterID, version.Status.VersionHash = "b", "spec"
	g.Expect(c.Update(t.Context(), version)).To(Succeed())
	g.Expect(version.Spec.ClusterID).To(BeEquivalentTo("b"))
	g.Expect(version.Status.VersionHash).To(Equal("status"))
}

func TestPatches(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	n := node()
	g.Expect(c.Create(t.Context(), n)).To(Succeed())
	patch := func(kind types.PatchType, content string) error {
		return c.Patch(t.Context(), n, client.RawPatch(kind, []byte(content)))
	}
	g.Expect(patch(types.StrategicMergePatchType, `{"metadata":{"finalizers":["example.com/two"]}}`)).To(Succeed())
	g.Expect(n.Finalizers).To(ConsistOf("example.com/one", "example.com/two"), "a strategic patch adds finalizers")
	g.Expect(patch(types.MergePatchType, `{"metadata":{"labels":{"a":"b"},"finalizers":null},"spec":{"unschedulable":true}}`)).To(Succeed())
	g.Expect(n.Labels).To(Equal(map[string]string{"a": "b"}))
	g.Expect(n.Finalizers).To(BeEmpty())
	g.Expect(n.Spec.Unschedulable).To(BeTrue())
	g.Expect(patch(types.JSONPatchType, `[{"op":"replace","path":"/metadata/labels/a","value":"c"}]`)).To(Succeed())
	g.Expect(n.Labels).To(Equal(map[string]string{"a": "c"}))
	g.Expect(apierrors.IsConflict(patch(types.MergePatchType, `{"metadata":{"resourceVersion":"1","labels":null}}`))).To(BeTrue())
	g.Expect(apierrors.IsUnsupportedMediaType(patch(types.ApplyPatchType, `{}`))).To(BeTrue())
}

// next returns the next event of a watch.
func next(g *WithT, w watch.Interface) watch.Event {
	var e watch.Event
	g.Eventually(w.ResultChan()).WithTimeout(soon).Should(Receive(&e))
	return e
}

func TestWatchContinuesAfterList(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	selected := []client.ListOption{client.InNamespace("kube-system"), client.MatchingLabels{"of": "us"}}
	list := &corev1.SecretList{}
	g.Expect(c.List(t.Context(), list, selected...)).To(Succeed())
	ours := secret(map[string]string{"of": "us"})
	g.Expect(c.Create(t.Context(), ours)).To(Succeed())
	elsewhere := secret(map[string]string{"of": "us"})
	elsewhere.Namespace = "default"
	g.Expect(c.Create(t.Context(), elsewhere)).To(Succeed())

	w, err := c.Watch(t.Context(), list,
		append(selected, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	g.Expect(err).NotTo(HaveOccurred())
	defer w.Stop()
	g.Expect(next(g, w)).To(Equal(watch.Event{Type: watch.Added, Object: ours}))
	ours.Data = nil
	g.Expect(c.Update(t.Context(), ours)).To(Succeed())
	g.Expect(next(g, w)).To(Equal(watch.Event{Type: watch.Modified, Object: ours}))
	ours.Labels = nil
	g.Expect(c.Update(t.Context(), ours)).To(Succeed())
	g.Expect(next(g, w).Type).To(Equal(watch.Deleted), "the object is no longer selected")
	ours.Labels = map[string]string{"of": "us"}
	g.Expect(c.Update(t.Context(), ours)).To(Succeed())
	g.Expect(next(g, w).Type).To(Equal(watch.Added))
	g.Expect(c.Delete(t.Context(), ours)).To(Succeed())
	gone := next(g, w)
	g.Expect(gone.Type).To(Equal(watch.Deleted))
	g.Expect(versionOf(g, gone.Object)).To(BeNumerically(">", versionOf(g, ours)), "the next watch starts after it")
}

func versionOf(g *WithT, object any) int {
	number, err := strconv.Atoi(object.(client.Object).GetResourceVersion())
	g.Expect(err).NotTo(HaveOccurred())
	return number
}

func TestWatchOfOldVersionIsRejected(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	n := node()
	g.Expect(c.Create(t.Context(), n)).To(Succeed())
	began := n.ResourceVersion
	for i := range 2*historySize + 1 {
		n.Labels = map[string]string{"i": strconv.Itoa(i)}
		g.Expect(c.Update(t.Context(), n)).To(Succeed())
	}
	_, err := c.Watch(t.Context(), &corev1.NodeList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: began}})
	g.Expect(apierrors.IsResourceExpired(err)).To(BeTrue())
}

func TestMetadataOnly(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	made := secret(nil)
	g.Expect(c.Create(t.Context(), made)).To(Succeed())
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	g.Expect(c.List(t.Context(), list)).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	g.Expect(list.Items[0].UID).To(Equal(made.UID))
	g.Expect(list.ResourceVersion).To(Equal(made.ResourceVersion))

	answer := get(g, config, "/api/v1/namespaces/kube-system/secrets?watch=true&timeoutSeconds=1",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	g.Expect(answer.protocol).To(Equal(2))
	g.Expect(answer.body).To(MatchRegexp(`^{"type":"ADDED","object":{"kind":"PartialObjectMetadata",` +
		`"apiVersion":"meta.k8s.io/v1","metadata":{"name":"a",.*}}}\n$`))
}

// reply is a response.
type reply struct {
	code, protocol int
	body           string
}

func get(g *WithT, config *rest.Config, path, accept string) reply {
	c, err := rest.HTTPClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, config.Host+path, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", accept)
	answer, err := c.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	g.Expect(err).NotTo(HaveOccurred(), "it ends in time")
	return reply{answer.StatusCode, answer.ProtoMajor, string(content)}
}

func TestInformerGetsChanges(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	g.Expect(c.Create(t.Context(), node())).To(Succeed())
	informers, err := cache.New(config, cache.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	go func() { _ = informers.Start(ctx) }()
	g.Expect(informers.WaitForCacheSync(ctx)).To(BeTrue())
	seen := &corev1.Node{}
	g.Expect(informers.Get(ctx, client.ObjectKey{Name: "n"}, seen)).To(Succeed())
	g.Expect(c.Patch(ctx, seen.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"providerID":"p"}}`)))).To(Succeed())
	g.Eventually(func() (string, error) {
		err := informers.Get(ctx, client.ObjectKey{Name: "n"}, seen)
		return seen.Spec.ProviderID, err
	}).WithTimeout(soon).Should(Equal("p"))
}

func TestWatchBeginsWithExistingObjects(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	g.Expect(c.Create(t.Context(), node())).To(Succeed())
	w, err := c.Watch(t.Context(), &corev1.NodeList{}, &client.ListOptions{Raw: &metav1.ListOptions{
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		TimeoutSeconds: ptr.To[int64](1),
	}})
	g.Expect(err).NotTo(HaveOccurred())
	defer w.Stop()
	g.Expect(next(g, w).Type).To(Equal(watch.Added))
	all := next(g, w)
	g.Expect(all.Type).To(Equal(watch.Bookmark))
	g.Expect(all.Object.(client.Object).GetAnnotations()).To(HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
	last := next(g, w)
	g.Expect(last.Type).To(Equal(watch.Bookmark))
	g.Expect(last.Object.(client.Object).GetAnnotations()).To(BeEmpty())
	g.Expect(versionOf(g, last.Object)).To(Equal(1))
}

func TestTokenEndsWithItsSecret(t *testing.T) {
	g := NewWithT(t)
	s, config := serve(t)
	c := clientOf(g, config)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "us"}}
	request := &authenticationv1.TokenRequest{}
	g.Expect(apierrors.IsNotFound(c.SubResource("token").Create(t.Context(), account, request))).To(BeTrue())
	g.Expect(c.Create(t.Context(), account)).To(Succeed())
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", GenerateName: "token-"}}
	g.Expect(c.Create(t.Context(), bound)).To(Succeed())
	g.Expect(bound.Name).To(MatchRegexp("^token-.+"))
	request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Secret", Name: bound.Name, UID: "another"}
	g.Expect(apierrors.IsConflict(c.SubResource("token").Create(t.Context(), account, request))).To(BeTrue())
	request.Spec.BoundObjectRef.UID = bound.UID
	g.Expect(c.SubResource("token").Create(t.Context(), account, request)).To(Succeed())
	g.Expect(request.Status.ExpirationTimestamp.Time).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))

	answers := func(token string) int {
		anonymous := rest.AnonymousClientConfig(config)
		anonymous.BearerToken = token
		return get(g, anonymous, "/version", "application/json").code
	}
	s.ReportKubernetes("v1.29.6+aba1e8d")
	g.Expect(get(g, config, "/version", "application/json").body).To(MatchJSON(
		`{"major":"1","minor":"29","gitVersion":"v1.29.6+aba1e8d","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"",
			"platform":""}`))
	g.Expect(answers("")).To(Equal(http.StatusUnauthorized))
	g.Expect(answers("guessed")).To(Equal(http.StatusUnauthorized))
	g.Expect(answers(request.Status.Token)).To(Equal(http.StatusOK))
	g.Expect(c.Delete(t.Context(), bound)).To(Succeed())
	g.Expect(answers(request.Status.Token)).To(Equal(http.StatusUnauthorized))
	bound.ResourceVersion = ""
	g.Expect(c.Create(t.Context(), bound)).To(Succeed())
	g.Expect(answers(request.Status.Token)).To(Equal(http.StatusUnauthorized),
		"another Secret with the name does not make the token valid again")
}

func TestCertificateRequestHasUser(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"}}
	request.Spec.Username = "another user"
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "kubelet", Groups: []string{"nodes"}}
	g.Expect(clientOf(g, as).Create(t.Context(), request)).To(Succeed())
	g.Expect(request.Spec.Username).To(Equal("kubelet"))
	g.Expect(request.Spec.Groups).To(Equal([]string{"nodes"}))
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type:   certificatesv1.CertificateApproved,
		Status: corev1.ConditionTrue,
	}}
	g.Expect(clientOf(g, config).SubResource("approval").Update(t.Context(), request)).To(Succeed())
	g.Expect(request.Status.Conditions).To(HaveLen(1))
}

func TestRequestsAreSelectedByTheirSigner(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	c := clientOf(g, config)
	for name, signer := range map[string]string{
		"one":   certificatesv1.KubeletServingSignerName,
		"other": certificatesv1.KubeAPIServerClientSignerName,
	} {
		request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
		request.Spec.SignerName = signer
		g.Expect(c.Create(t.Context(), request)).To(Succeed())
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	g.Expect(c.List(t.Context(), list, client.MatchingFields{"spec.signerName": certificatesv1.KubeletServingSignerName})).To(Succeed())
	g.Expect(list.Items).To(HaveExactElements(HaveField("Name", "one")))
}

func TestUnsupportedRequests(t *testing.T) {
	g := NewWithT(t)
	_, config := serve(t)
	for path, code := range map[string]int{
		"/api/v1/services": http.StatusNotFound, "/apis/apps/v1": http.StatusNotFound, "/api/v1/nodes/absent": http.StatusNotFound,
		"/api/v1/nodes?labelSelector=,,": http.StatusBadRequest, "/": http.StatusOK,
		"/apis/config.openshift.io/v1/infrastructures": http.StatusOK,
	} {
		g.Expect(get(g, config, path, "application/json").code).To(Equal(code), path)
	}
	g.Expect(get(g, config, "/api/v1/nodes", "text/html").code).To(Equal(http.StatusNotAcceptable))
}

func TestServerKeepsDataAfterRestart(t *testing.T) {
	g := NewWithT(t)
	s, config := serve(t)
	g.Expect(clientOf(g, config).Create(t.Context(), node())).To(Succeed())
	address := s.Address()
	s.Stop()
	_, err := client.New(config, client.Options{Scheme: scheme})
	if err == nil {
		err = clientOf(g, config).Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{})
	}
	g.Expect(err).To(HaveOccurred())
	g.Expect(s.Start(t.Context(), address)).To(Succeed())
	g.Expect(clientOf(g, config).Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{})).To(Succeed())
}
