package kubelets

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

// fakeCluster is a workload cluster, and the connection to it.
type fakeCluster struct {
	*WithT
	client.Client
	*Kubelets
	// pages counts the lists that were read. subresources are those that were written. listing changes each
	// list.
	pages        int
	subresources []string
	listing      func(client.ObjectList)
}

// Connect implements Clusters.
func (c *fakeCluster) Connect(ctx context.Context, _ client.ObjectKey, requests func(context.Context, *conn.Conn) error) error {
	return requests(ctx, &conn.Conn{Client: c.Client})
}

func newCluster(t *testing.T, objects ...client.Object) *fakeCluster {
	t.Helper()
	c := &fakeCluster{WithT: NewWithT(t)}
	c.Kubelets = New(c)
	scheme := runtime.NewScheme()
	c.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	c.Expect(machinev1beta1.Install(scheme)).To(Succeed())
	signer := func(o client.Object) []string {
		return []string{o.(*certificatesv1.CertificateSigningRequest).Spec.SignerName} //nolint:forcetypeassert // of the index
	}
	c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&certificatesv1.CertificateSigningRequest{},
		"spec.signerName", signer).
		WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, in client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			c.pages++
			err := in.List(ctx, list, opts...)
			if c.listing != nil {
				c.listing(list)
			}
			return err
		},
		SubResourceUpdate: func(ctx context.Context, in client.Client, name string, obj client.Object,
			_ ...client.SubResourceUpdateOption,
		) error {
			c.subresources = append(c.subresources, name)
			return in.Status().Update(ctx, obj)
		},
	}).Build()
	return c
}

func requestOf(t *testing.T, name, node, signer string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	g.Expect(err).NotTo(HaveOccurred())
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	request.Spec.SignerName, request.Spec.Request = signer, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return request
}

func onlyW0(node string) bool { return node == "w0" }

func TestObserveAndApprove(t *testing.T) {
	decided := requestOf(t, "decided", "w0", certificatesv1.KubeletServingSignerName)
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type:   certificatesv1.CertificateDenied,
		Status: corev1.ConditionTrue,
	}}
	c := newCluster(t,
		requestOf(t, "client", "w0", certificatesv1.KubeAPIServerClientKubeletSignerName),
		requestOf(t, "serving", "w0", certificatesv1.KubeletServingSignerName),
		requestOf(t, "foreign", "w1", certificatesv1.KubeletServingSignerName),
		requestOf(t, "operator", "w0", certificatesv1.KubeAPIServerClientSignerName), decided,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}},
	)
	seen, err := c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.Requests).To(HaveExactElements(HaveField("Name", "client"), HaveField("Name", "serving")))
	c.Expect(seen.Nodes).To(And(HaveLen(2), HaveKeyWithValue("w0", HaveField("Name", "w0"))), "all Nodes are needed to compare addresses")
	c.Expect(seen.MachineAPI).To(BeFalse())

	approved, err := c.Approve(t.Context(), client.ObjectKey{}, seen.Requests[0])
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(approved).To(BeTrue())
	c.Expect(c.subresources).To(Equal([]string{"approval"}))
	stored := &certificatesv1.CertificateSigningRequest{}
	c.Expect(c.Get(t.Context(), client.ObjectKey{Name: "client"}, stored)).To(Succeed())
	c.Expect(stored.Status.Conditions).To(HaveExactElements(And(HaveField("Type", certificatesv1.CertificateApproved),
		HaveField("Status", corev1.ConditionTrue))))

	for _, meanwhile := range []string{"changed", "deleted"} {
		c.Expect(c.Get(t.Context(), client.ObjectKey{Name: "serving"}, stored)).To(Succeed())
		stored.Labels = map[string]string{"a": "b"}
		if meanwhile == "changed" {
			c.Expect(c.Update(t.Context(), stored)).To(Succeed())
		} else {
			c.Expect(c.Delete(t.Context(), stored)).To(Succeed())
		}
		approved, err = c.Approve(t.Context(), client.ObjectKey{}, seen.Requests[1])
		c.Expect(err).NotTo(HaveOccurred(), meanwhile)
		c.Expect(approved).To(BeFalse(), meanwhile)
	}
}

// Every client with the token of the bootstrapper can create any number of requests.
func TestManyRequests(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good := requestOf(t, "good", "w0", certificatesv1.KubeAPIServerClientKubeletSignerName)
	good.Spec.Username = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
	good.Spec.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"}
	good.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	good.CreationTimestamp = metav1.NewTime(created)
	objects := []client.Object{good}
	for i := range 500 {
		bad := good.DeepCopy()
		bad.Name, bad.Spec.Username, bad.CreationTimestamp = fmt.Sprintf("bad-%d", i), "system:node:w9",
			metav1.NewTime(created.Add(time.Duration(i+1)*time.Second))
		objects = append(objects, bad)
	}
	c := newCluster(t, objects...)
	seen, err := c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.Requests).To(HaveExactElements(HaveField("Name", "bad-499"), HaveField("Name", "good")))
	c.Expect(seen.More).To(BeFalse())
}

// endless makes each list report one more page.
func endless(c *fakeCluster, kind client.ObjectList) {
	c.listing = func(list client.ObjectList) {
		if reflect.TypeOf(list) == reflect.TypeOf(kind) {
			list.SetContinue("more")
		}
	}
}

func TestEndlessList(t *testing.T) {
	c := newCluster(t)
	endless(c, &certificatesv1.CertificateSigningRequestList{})
	seen, err := c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.More).To(BeTrue())
	c.Expect(c.pages).To(Equal(2 * objects.MaxItems / objects.PageSize))

	c = newCluster(t, requestOf(t, "client", "w0", certificatesv1.KubeAPIServerClientKubeletSignerName))
	endless(c, &corev1.NodeList{})
	_, err = c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).To(MatchError(ContainSubstring("more than 5000 Nodes")), "an address of an unknown Node must not be approved")
}

// The hub does not read all Nodes for decided requests.
func TestNodesAreReadWhileARequestIsPending(t *testing.T) {
	decided := requestOf(t, "decided", "w0", certificatesv1.KubeletServingSignerName)
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type:   certificatesv1.CertificateApproved,
		Status: corev1.ConditionTrue,
	}}
	c := newCluster(t, decided)
	seen, err := c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.Requests).To(HaveExactElements(HaveField("Approved", true)))
	c.Expect(c.pages).To(Equal(2))
}

func TestMissingNode(t *testing.T) {
	c := newCluster(t, requestOf(t, "client", "w0", certificatesv1.KubeAPIServerClientKubeletSignerName))
	seen, err := c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.Nodes["w0"]).To(BeNil())
}

func TestMachineAPIIsReadOnlyForPendingRequests(t *testing.T) {
	master := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "openshift-machine-api", Name: "m", Labels: map[string]string{"machine.openshift.io/cluster-api-machine-role": "master"},
	}}
	master.Status.Phase = ptr.To("Running")
	c := newCluster(t, master)
	seen, err := c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.MachineAPI).To(BeFalse())
	c.Expect(c.pages).To(Equal(2), "one list per signer")

	c = newCluster(t, master.DeepCopy(), requestOf(t, "client", "w0", certificatesv1.KubeAPIServerClientKubeletSignerName))
	seen, err = c.Observe(t.Context(), client.ObjectKey{}, onlyW0)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(seen.MachineAPI).To(BeTrue())
}
