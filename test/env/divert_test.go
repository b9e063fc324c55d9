package env

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
)

// checkDiversion checks that all requests with the kubeconfig pass through the diversion, each with the
// client's identity, and that the lab's own requests do not.
func checkDiversion(ctx context.Context, t *testing.T, e *Env) {
	g := NewWithT(t)
	workload, err := e.ReserveWorkloadCluster("diverted")
	g.Expect(err).NotTo(HaveOccurred())
	var passed atomic.Int64
	var cut atomic.Bool
	g.Expect(workload.Divert(func(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL) {
		passed.Add(1)
		if cut.Load() {
			panic(http.ErrAbortHandler)
		}
		faultproxy.Forward(transport, target).ServeHTTP(rw, r)
	})).To(Succeed())
	published, err := clientcmd.RESTConfigFromKubeConfig(workload.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(published.Host).To(Equal("https://" + workload.address()))
	_, err = whoAmI(ctx, e, published)
	g.Expect(err).To(HaveOccurred(), "no server before the API server runs")
	g.Expect(workload.Start(ctx)).To(Succeed())
	t.Cleanup(workload.Stop)

	direct, err := workload.Client()
	g.Expect(err).NotTo(HaveOccurred())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "someone"}}
	g.Expect(direct.Create(ctx, account)).To(Succeed())
	token := &authenticationv1.TokenRequest{}
	g.Expect(direct.SubResource("token").Create(ctx, account, token)).To(Succeed())
	g.Expect(passed.Load()).To(BeZero(), "the lab bypasses the diversion")

	user, err := whoAmI(ctx, e, published)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user.Username).To(Equal("admin"))
	g.Expect(user.Groups).To(ContainElement(adminGroup))
	byCertificate := rest.AnonymousClientConfig(published)
	byCertificate.CertData, byCertificate.KeyData, err = workload.api.ca.Client("system:node:one", "system:nodes")
	g.Expect(err).NotTo(HaveOccurred())
	user, err = whoAmI(ctx, e, byCertificate)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user.Username).To(Equal("system:node:one"))
	g.Expect(user.Groups).To(ConsistOf("system:nodes", "system:authenticated"))
	byToken := rest.AnonymousClientConfig(published)
	byToken.BearerToken = token.Status.Token
	user, err = whoAmI(ctx, e, byToken)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user.Username).To(Equal("system:serviceaccount:default:someone"))
	_, err = whoAmI(ctx, e, rest.AnonymousClientConfig(published))
	g.Expect(apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
	g.Expect(passed.Load()).To(BeNumerically(">=", 3))

	workload.ReportKubernetes("v1.29.6+aba1e8d")
	g.Expect(reportedVersion(g, published)).To(Equal("v1.29.6+aba1e8d"))
	workload.ReportKubernetes("v1.30.5")
	g.Expect(reportedVersion(g, published)).To(Equal("v1.30.5"))

	cut.Store(true)
	_, err = whoAmI(ctx, e, published)
	g.Expect(err).To(HaveOccurred())
	cut.Store(false)
	workload.Stop()
	_, err = whoAmI(ctx, e, published)
	g.Expect(err).To(HaveOccurred())
	g.Expect(workload.Start(ctx)).To(Succeed())
	_, err = whoAmI(ctx, e, published)
	g.Expect(err).NotTo(HaveOccurred(), "it restarts at the same address")
}

// reportedVersion returns the version of Kubernetes that the API server reports.
func reportedVersion(g *WithT, config *rest.Config) string {
	discovery, err := discovery.NewDiscoveryClientForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	version, err := discovery.ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	return version.GitVersion
}

// whoAmI returns the identity of the client according to the API server.
func whoAmI(ctx context.Context, e *Env, config *rest.Config) (authenticationv1.UserInfo, error) {
	c, err := client.New(config, client.Options{Scheme: e.Scheme()})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review := &authenticationv1.SelfSubjectReview{}
	err = c.Create(ctx, review)
	return review.Status.UserInfo, err
}
