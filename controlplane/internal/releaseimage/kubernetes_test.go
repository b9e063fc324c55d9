package releaseimage

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/payload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

func TestKubernetesVersion(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	repository := host + "/ocp/release"
	push := func(of payload.Release) string {
		g := NewWithT(t)
		content, err := payload.Image(of)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := name.ParseReference(repository + ":" + of.Version + "-x86_64")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(remote.Write(ref, content)).To(Succeed())
		digest, err := content.Digest()
		g.Expect(err).NotTo(HaveOccurred())
		return ref.Context().Digest(digest.String()).Name()
	}
	byDigest := push(payload.Release{Version: "4.20.5", Kubernetes: "1.33.5"})
	stale := push(payload.Release{Version: "4.17.30", Kubernetes: "1.29.14"})
	push(payload.Release{Version: "5.1.0", Kubernetes: "1.37.1"})

	for situation, tc := range map[string]struct {
		release, image, mirrors string
		want                    string
		unknown                 error
		message                 string
	}{
		"release by tag":              {release: "4.20.5", want: "v1.33.5"},
		"image by digest":             {release: "4.20.5", image: byDigest, want: "v1.33.5"},
		"release without rule":        {release: "5.1.0", want: "v1.37.1"},
		"release that does not exist": {release: "4.20.99", unknown: release.ErrNotFound, message: "has no such image"},
		"Kubernetes of another release": {
			release: "4.17.30", unknown: release.ErrNoVersion, message: "states v1.29.14, which OpenShift 4.17 does not have",
		},
		"the same by digest": {release: "4.17.30", image: stale, unknown: release.ErrNoVersion, message: "states v1.29.14"},
		"ConfigMap with mirrors missing": {
			release: "4.20.5", mirrors: "mirrors", unknown: release.ErrUnavailable, message: "ConfigMap mirrors does not exist",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			wake := make(chan client.Object, 10)
			r := NewResolver(fake.NewClientBuilder().Build(), nil, release.NewResolver(release.NewTransport(host), clock.RealClock{}),
				versions.Repositories{OCP: repository, OKD: repository},
				func(s *scope.Scope) func() { return func() { wake <- s.ControlPlane } })
			cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c1"}}
			if tc.mirrors != "" {
				cp.Spec.Config.ImageRegistryRef = &corev1.LocalObjectReference{Name: tc.mirrors}
			}
			query := func() (*scope.Scope, string, error) {
				s := scope.New(&facts.Facts{ControlPlane: cp})
				version, unknown, err := r.KubernetesVersion(t.Context(), s, semver.MustParse(tc.release), tc.image)
				g.Expect(err).NotTo(HaveOccurred())
				return s, version, unknown
			}
			s, version, unknown := query()
			for range 2 { // the digest, the contents
				if errors.Is(unknown, release.ErrPending) {
					g.Expect(<-wake).To(BeIdenticalTo(cp))
					s, version, unknown = query()
				}
			}
			g.Expect(version).To(Equal(tc.want))
			g.Expect(s.Found.Blocked(tasks.Installation)).To(BeNil(), "the caller decides what an unknown version blocks")
			if tc.unknown == nil {
				g.Expect(unknown).NotTo(HaveOccurred())
				return
			}
			g.Expect(unknown).To(MatchError(tc.unknown))
			g.Expect(unknown).To(MatchError(ContainSubstring(tc.message)))
			if errors.Is(tc.unknown, release.ErrNotFound) {
				g.Expect(s.Again.Delay()).To(BeNumerically(">", 0))
			} else {
				g.Expect(s.Again.Delay()).To(BeZero())
			}
		})
	}
}
