package controlplane

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/releaseimage"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

const otherDigest = "quay.io/openshift-release-dev/ocp-release@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

// requestRelease changes the release in the spec.
func (h *hub) requestRelease(version, image string) {
	h.t.Helper()
	cp := h.controlPlane()
	cp.Spec.DistributionVersion, cp.Spec.Config.ReleaseImage = version, image
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

func (h *hub) imageSets() map[string]string {
	h.t.Helper()
	list := &hivev1.ClusterImageSetList{}
	h.Expect(h.List(h.t.Context(), list)).To(Succeed())
	sets := map[string]string{}
	for _, set := range list.Items {
		sets[set.Name] = set.Spec.ReleaseImage
	}
	return sets
}

// expectMachines expects a Kubernetes version on all Machines and in the status.
func (h *hub) expectMachines(version string) {
	h.t.Helper()
	for _, m := range h.machines() {
		h.Expect(m.Spec.Version).To(Equal(version))
	}
	h.Expect(h.controlPlane().Status.Version).To(Equal(version))
}

// expectVersions also expects that no other version is desired.
func (h *hub) expectVersions(version string) {
	h.t.Helper()
	h.expectMachines(version)
	h.Expect(h.controlPlane().Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(3)))
	h.Expect(conditions.IsFalse(h.controlPlane(), controlplanev1.RollingOutCondition)).To(BeTrue())
}

func TestRegisteredClusterKeepsItsRelease(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.reconcile()
	_, before := h.registration()
	h.requestRelease("v4.19.9", otherDigest)
	h.reconcile()
	h.reconcile()

	_, install := h.registration()
	h.Expect(install.Spec).To(Equal(before.Spec))
	h.Expect(h.imageSets()).To(Equal(map[string]string{
		assisted.ClusterImageSetName(lab, "c1", digest): digest,
	}), "the registered content, and no other set")
	h.Expect(h.controlPlane().Status.ReleaseImage).To(Equal(digest))
	c := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.VersionChangeNotSupportedReason))
	h.Expect(c.Message).To(And(ContainSubstring("v4.19.3"), ContainSubstring("spec.distributionVersion")))
	h.expectVersions("")

	h.requestRelease("v4.19.3", digest)
	h.reconcile()
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition),
	).NotTo(Equal(controlplanev1.VersionChangeNotSupportedReason))
}

func TestUnregisteredReleaseIsSuperseded(t *testing.T) {
	objects := world(nil)
	stale := assisted.ClusterImageSet(assisted.ClusterImageSetName(lab, "c1", otherDigest), otherDigest, nil, map[string]string{
		facts.OwnerAnnotation: "lab/c1",
	})
	foreign := assisted.ClusterImageSet("mine", otherDigest, nil, nil)
	h := newHub(t, append(objects, stale, foreign)...).withTime()
	h.reconcile()
	h.Expect(h.imageSets()).To(HaveLen(3), "no set is deleted before the cache shows the registered one")
	h.reconcile()
	h.Expect(h.imageSets()).To(Equal(map[string]string{assisted.ClusterImageSetName(lab, "c1", digest): digest, "mine": otherDigest}))
}

// A ClusterImageSet has no namespace. Another cluster of the hub may be registered with the set that has our
// name.
func TestForeignClusterImageSetIsNotChanged(t *testing.T) {
	for situation, annotations := range map[string]map[string]string{
		"the user's": nil, "of another control plane": {facts.OwnerAnnotation: "lab-c1/c"},
	} {
		t.Run(situation, func(t *testing.T) {
			name := assisted.ClusterImageSetName(lab, "c1", digest)
			h := newHub(t, append(world(nil), assisted.ClusterImageSet(name, otherDigest, nil, annotations))...).withTime()
			h.reconcile()
			h.Expect(h.imageSets()).To(Equal(map[string]string{name: otherDigest}))
			c := conditions.Get(h.controlPlane(), controlplanev1.InstalledCondition)
			h.Expect(c.Reason).To(Equal(controlplanev1.InstallationNotOursReason))
			h.Expect(c.Message).To(ContainSubstring("ClusterImageSet " + name + " exists and was not created for this control plane"))
		})
	}
}

// Earlier versions of the provider did not have the image in the name.
func TestClusterKeepsItsRegisteredClusterImageSet(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	former := assisted.ClusterImageSet("lab-c1-0123abcd", digest, nil, map[string]string{facts.OwnerAnnotation: "lab/c1"})
	h.Expect(h.Create(t.Context(), former)).To(Succeed())
	_, install := h.registration()
	install.Spec.ImageSetRef.Name = former.Name
	h.Expect(h.Update(t.Context(), install)).To(Succeed())
	h.reconcile()
	h.reconcile()
	_, install = h.registration()
	h.Expect(install.Spec.ImageSetRef.Name).To(Equal(former.Name), "the reference is immutable")
	h.Expect(h.imageSets()).To(Equal(map[string]string{former.Name: digest}))
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.InstalledCondition),
	).NotTo(Equal(controlplanev1.VersionChangeNotSupportedReason))
}

func TestUpgradeDoesNotChangeTheRegistration(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.reconcile()
	h.requestRelease("v4.19.9", otherDigest)
	h.reconcile()
	h.reconcile()
	h.expectMachines("v1.32.6")
	h.Expect(h.controlPlane().Status.ReleaseImage).To(Equal(digest), "the installed image")
	h.Expect(h.imageSets()).To(HaveLen(1))

	h.workloads.facts = workload.State{} // a restart, and the cluster cannot be read
	h.reconcile()
	h.expectMachines("v1.32.6")
}

func TestExternalUpgradeIsAdopted(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.install()
	h.reconcile()
	h.workloads.facts = workload.State{
		Connected: true, LastSuccess: time.Now(), OpenShiftVersion: "4.19.9", ReleaseImage: otherDigest, KubernetesVersion: "v1.32.7",
	}
	h.reconcile()
	h.reconcile()
	h.expectVersions("v1.32.7")
	h.Expect(h.controlPlane().Status.ReleaseImage).To(Equal(otherDigest))
	c := conditions.Get(h.controlPlane(), controlplanev1.MachinesUpToDateCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.VersionMismatchReason))
	h.Expect(c.Message).To(And(ContainSubstring("never downgraded"), ContainSubstring("set spec.distributionVersion to v4.19.9")))

	h.requestRelease("4.19.9", digest)
	h.reconcile()
	h.reconcile()
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.MachinesUpToDateCondition)).To(BeTrue())
}

func TestMissingClusterImageSetOfOursIsCreatedAgain(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	name := assisted.ClusterImageSetName(lab, "c1", digest)
	h.Expect(h.Delete(t.Context(), &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	h.reconcile()
	h.Expect(h.Get(t.Context(), client.ObjectKey{Name: name}, &hivev1.ClusterImageSet{})).To(Succeed())
}

// serveRelease serves a release image with a digest, under each tag, over plain HTTP.
func serveRelease(t *testing.T, digest string) (address string, lookups chan string) {
	t.Helper()
	return serveReleases(t, func() string { return digest })
}

// serveReleases serves release images whose digest may change.
func serveReleases(t *testing.T, digest func() string) (address string, lookups chan string) {
	t.Helper()
	lookups = make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodHead {
			lookups <- req.URL.Path
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", digest())
			w.Header().Set("Content-Length", "1")
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), lookups
}

// mirrorOf returns a registries.conf with one mirror, which speaks plain HTTP.
func mirrorOf(address string) map[string]string {
	return map[string]string{"registries.conf": "[[registry]]\nlocation = \"quay.io/openshift-release-dev/ocp-release\"\n" +
		"[[registry.mirror]]\nlocation = \"" + address + "/ocp\"\ninsecure = true\n"}
}

// A disconnected hub reaches the mirrors that the hosts use, and nothing else.
func TestReleaseIsResolvedThroughTheMirrorsOfTheCluster(t *testing.T) {
	mirror, lookups := serveRelease(t, "sha256:"+strings.Repeat("b", 64))
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ReleaseImage, cp.Spec.Config.ImageRegistryRef = "", &corev1.LocalObjectReference{Name: "mirrors"}
	})...).withTime()
	h.settle()
	c := h.condition(controlplanev1.InstalledCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.ManifestsMissingReason))
	h.Expect(c.Message).To(ContainSubstring("ConfigMap mirrors does not exist"))

	h.Expect(h.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "mirrors"}, Data: mirrorOf(mirror),
	})).To(Succeed())
	h.settle()
	h.Expect(<-lookups).To(HavePrefix("/v2/ocp/manifests/4.19.3-"))
	<-h.r.wake // the answer is cached
	h.settle()
	h.Expect(h.controlPlane().Status.ReleaseImage).To(Equal(otherDigest), "with the name of its origin")
}

// A digest from a wrong mirror is not installed after the mirror was replaced.
func TestReleaseIsResolvedAgainThroughOtherMirrors(t *testing.T) {
	wrong, _ := serveRelease(t, "sha256:"+strings.Repeat("c", 64))
	right, lookups := serveRelease(t, "sha256:"+strings.Repeat("b", 64))
	mirrors := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "mirrors"}, Data: mirrorOf(wrong)}
	h := newHub(t, append(world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ReleaseImage, cp.Spec.Config.ImageRegistryRef = "", &corev1.LocalObjectReference{Name: mirrors.Name}
	}), mirrors)...).withTime()
	h.settle()
	<-h.r.wake
	h.settle()
	h.Expect(h.controlPlane().Status.ReleaseImage).To(HaveSuffix(strings.Repeat("c", 64)))
	h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)

	h.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(mirrors), mirrors)).To(Succeed())
	mirrors.Data = mirrorOf(right)
	h.Expect(h.Update(t.Context(), mirrors)).To(Succeed())
	h.settle()
	h.Eventually(lookups, 20*time.Second).Should(Receive())
	<-h.r.wake
	h.settle()
	h.Expect(h.controlPlane().Status.ReleaseImage).To(Equal(otherDigest))

	h.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(mirrors), mirrors)).To(Succeed())
	metav1.SetMetaDataLabel(&mirrors.ObjectMeta, "backup", "true")
	h.Expect(h.Update(t.Context(), mirrors)).To(Succeed())
	h.settle()
	h.Expect(lookups).NotTo(Receive(), "a label of the ConfigMap changes no mirror")
}

// unreachable is the transport of a manager that reaches no registry.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to host")
}

// TestRegisteredReleaseIsKept covers a manager that was replaced while a cluster is registered and not installed. The
// mirror has another image for the tag since the registration.
func TestRegisteredReleaseIsKept(t *testing.T) {
	registered, later := "sha256:"+strings.Repeat("b", 64), "sha256:"+strings.Repeat("c", 64)
	dropRecord := func(h *hub) {
		set := &hivev1.ClusterImageSet{}
		key := client.ObjectKey{Name: assisted.ClusterImageSetName(lab, "c1", h.controlPlane().Status.ReleaseImage)}
		h.Expect(h.Get(t.Context(), key, set)).To(Succeed())
		delete(set.Annotations, facts.ResolvedThroughAnnotation)
		h.Expect(h.Update(t.Context(), set)).To(Succeed())
	}
	changePullSecret := func(change func(*corev1.Secret)) func(*hub) {
		return func(h *hub) {
			secret := &corev1.Secret{}
			h.get("pull", secret)
			change(secret)
			h.Expect(h.Update(t.Context(), secret)).To(Succeed())
		}
	}
	labelPullSecret := changePullSecret(func(s *corev1.Secret) { s.Labels = map[string]string{"agent-install.openshift.io/watch": "true"} })
	addMirror := func(h *hub) {
		mirrors := &corev1.ConfigMap{}
		h.get("mirrors", mirrors)
		mirrors.Data["registries.conf"] += "[[registry.mirror]]\nlocation = \"127.0.0.1:1/ocp\"\n"
		h.Expect(h.Update(t.Context(), mirrors)).To(Succeed())
	}
	withdrawMirrors := func(h *hub) {
		h.alter(func(s *controlplanev1.OpenshiftAssistedControlPlaneSpec) { s.Config.ImageRegistryRef = nil })
	}
	for situation, tc := range map[string]struct {
		changes   []func(*hub)
		transport http.RoundTripper
		resolved  bool
		digest    string // of the registered release afterwards; "" if the look-up blocks
	}{
		"sources were not recorded":                                  {[]func(*hub){dropRecord}, http.DefaultTransport, false, registered},
		"sources were not recorded, no registry answers":             {[]func(*hub){dropRecord}, unreachable{}, false, registered},
		"pull secret has a new label, no registry answers":           {[]func(*hub){labelPullSecret}, unreachable{}, true, registered},
		"mirrors changed, no registry answers: blocked":              {[]func(*hub){addMirror}, unreachable{}, true, ""},
		"mirrors changed, sources were not recorded: resolved again": {[]func(*hub){dropRecord, addMirror}, http.DefaultTransport, true, later},
		"mirrors withdrawn, sources were not recorded: blocked":      {[]func(*hub){dropRecord, withdrawMirrors}, unreachable{}, true, ""},
		"pull secret has other credentials: resolved again": {[]func(*hub){changePullSecret(func(s *corev1.Secret) {
			s.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"quay.io":{"auth":"dTpx"}}}`)
		})}, http.DefaultTransport, true, later},
	} {
		t.Run(situation, func(t *testing.T) {
			served := &atomic.Value{}
			served.Store(registered)
			mirror, _ := serveReleases(t, func() string { return served.Load().(string) })
			h := newHub(t, append(world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Spec.Config.ReleaseImage, cp.Spec.Config.ImageRegistryRef = "", &corev1.LocalObjectReference{Name: "mirrors"}
			}), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "mirrors"}, Data: mirrorOf(mirror)})...).withTime()
			h.reconcile()
			<-h.r.wake
			h.settle()
			h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0)
			deployment, before := h.registration()
			deployment.Finalizers = []string{"agent-install.openshift.io/deprovision"}
			h.Expect(h.Update(t.Context(), deployment)).To(Succeed())

			served.Store(later)
			*h.r.images = *releaseimage.NewResolver(h.r.Live, h.r.writer, release.NewResolver(tc.transport, clock.RealClock{}), h.r.Repositories,
				h.r.waker)
			for _, change := range tc.changes {
				change(h)
			}
			h.reconcile()
			if tc.resolved {
				h.Eventually(h.r.wake, 20*time.Second).Should(Receive())
			} else {
				h.Expect(h.r.wake).To(BeEmpty())
			}
			h.settle()
			condition := h.installedCondition()
			deployment, install := h.registration()
			switch tc.digest {
			case registered:
				h.Expect(deployment.DeletionTimestamp).To(BeNil(), condition.Message)
				h.Expect(install.Spec.ImageSetRef).To(Equal(before.Spec.ImageSetRef))
				h.Expect(condition.Reason).NotTo(Equal(controlplanev1.RegistryUnavailableReason), condition.Message)
			case later:
				h.Expect(deployment.DeletionTimestamp).NotTo(BeNil(), condition.Message)
			default:
				h.Expect(deployment.DeletionTimestamp).To(BeNil(), condition.Message)
				h.Expect(condition.Reason).To(Equal(controlplanev1.RegistryUnavailableReason), condition.Message)
			}
		})
	}
}
