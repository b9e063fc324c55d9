package cluster

import (
	"crypto"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn/conntest"
)

const (
	serverCAsPath = "/api/v1/namespaces/openshift-machine-config-operator/configmaps"
	rootCAsPath   = "/api/v1/namespaces/kube-system/configmaps"
)

// authority returns a ConfigMap with a new certificate authority, and that authority (PEM).
func authority(t *testing.T, name, key string) (*corev1.ConfigMap, string) {
	t.Helper()
	raw, err := keyutil.MakeEllipticPrivateKeyPEM()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	private, err := keyutil.ParsePrivateKeyPEM(raw)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	made, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, private.(crypto.Signer)) //nolint:forcetypeassert // a key
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	encoded, err := cert.EncodeCertificates(made)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: string(encoded)}}, string(encoded)
}

func TestServerCAIsWatchedWhileHostsAreExpected(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	first, ca := authority(t, "machine-config-server-ca", "ca-bundle.crt")
	root, _ := authority(t, "root-ca", "ca.crt")
	s.put(serverCAsPath, first)
	s.put(rootCAsPath, root)
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ensureConnection(clusterKey)
	h.visit(t.Context())
	h.Expect(h.observeChange().ServerCA).To(BeEmpty())
	h.settle()
	h.visit(t.Context())
	h.Expect(s.requests()).NotTo(ContainElement(ContainSubstring("configmaps")), "no host is expected")

	h.ExpectHosts(clusterKey, true)
	h.Eventually(h.visits).Should(Receive())
	h.visit(t.Context())
	h.Expect(h.observeChange().ServerCA).To(Equal(ca))
	h.Eventually(func() int { return s.watched(serverCAsPath) }).Should(Equal(1))
	h.Expect(s.requests()).To(ContainElement("GET " + serverCAsPath + " truemetadata.name=machine-config-server-ca"))
	second, renewed := authority(t, "machine-config-server-ca", "ca-bundle.crt")
	s.put(serverCAsPath, second)
	h.Expect(h.observeChange().ServerCA).To(Equal(renewed))
}

func TestServerCAIsReadAgainForLaterHosts(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	first, _ := authority(t, "machine-config-server-ca", "ca-bundle.crt")
	s.put(serverCAsPath, first)
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ensureConnection(clusterKey).watchTime = time.Second
	h.ExpectHosts(clusterKey, true)
	h.visit(t.Context())
	h.ExpectHosts(clusterKey, false)
	s.endWatches(serverCAsPath, nil)
	h.Eventually(func() string { return h.Observe(clusterKey).ServerCA }, time.Minute).Should(BeEmpty(), "the last value may be outdated")
	second, renewed := authority(t, "machine-config-server-ca", "ca-bundle.crt")
	s.put(serverCAsPath, second)
	h.ExpectHosts(clusterKey, true)
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).ServerCA).To(Equal(renewed))
}

// Otherwise it would be read with the next visit, after ten minutes.
func TestServerCAIsReadSoonIfHostsAreExpectedDuringVisit(t *testing.T) {
	t.Parallel()
	s := newAPIServer(t, "secret-token")
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	conn := h.ensureConnection(clusterKey)
	conn.reading = semaphore.NewWeighted(1)
	h.Expect(conn.reading.Acquire(t.Context(), 1)).To(Succeed())
	next := make(chan time.Duration)
	go func() { next <- h.visit(t.Context()) }()
	h.Eventually(s.requests, time.Minute).Should(ContainElement("GET /version"), "the visit has begun")
	h.Consistently(next, 500*time.Millisecond).ShouldNot(Receive(), "the visit waits to read")
	h.ExpectHosts(clusterKey, true)
	conn.reading.Release(1)
	h.Eventually(next, time.Minute).Should(Receive(BeNumerically("<", 4*retryFirst)))
}

func TestServerCAOfOlderReleases(t *testing.T) {
	s := newAPIServer(t, "secret-token")
	root, ca := authority(t, "root-ca", "ca.crt")
	s.put(rootCAsPath, root)
	h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
	h.ensureConnection(clusterKey)
	h.ExpectHosts(clusterKey, true)
	h.visit(t.Context())
	h.Expect(h.observeChange().ServerCA).To(Equal(ca))
	h.Eventually(func() int { return s.watched(serverCAsPath) }).Should(Equal(1))
	own, upgraded := authority(t, "machine-config-server-ca", "ca-bundle.crt")
	s.put(serverCAsPath, own)
	h.Expect(h.observeChange().ServerCA).To(Equal(upgraded), "after an upgrade")
}

func TestUnreadableServerCAHidesNothing(t *testing.T) {
	for name, breakIt := range map[string]func(*apiServer){
		"forbidden":     func(s *apiServer) { s.refuse[serverCAsPath] = true },
		"the older one": func(s *apiServer) { s.refuse[rootCAsPath] = true },
		"no certificates": func(s *apiServer) {
			s.put(serverCAsPath, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "machine-config-server-ca"},
				Data:       map[string]string{"ca-bundle.crt": "none"},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t, "secret-token")
			breakIt(s)
			h := newHub(t, conntest.Kubeconfig(t, s.URL, nil))
			h.ensureConnection(clusterKey)
			h.ExpectHosts(clusterKey, true)
			h.Expect(h.visit(t.Context())).To(BeNumerically("<", 4*retryFirst), "hosts are expected")
			h.Expect(h.observeChange()).To(And(HaveField("ServerCA", BeEmpty()), HaveField("UnreadSince", BeZero())))
		})
	}
}

func TestClusterWithoutServerCAIsNotVisitedAgain(t *testing.T) {
	h := newHub(t, conntest.Kubeconfig(t, newAPIServer(t, "secret-token").URL, nil))
	h.ensureConnection(clusterKey)
	h.ExpectHosts(clusterKey, true)
	h.visit(t.Context())
	h.Expect(h.observeChange().ServerCA).To(BeEmpty())
	h.ExpectHosts(clusterKey, true)
	h.Expect(h.visits).NotTo(Receive())
}
