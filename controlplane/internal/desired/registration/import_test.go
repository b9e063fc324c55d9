package registration

import (
	"cmp"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// given returns a Machine that has its bootstrap data.
func given(name string, change func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Bootstrap.DataSecretName = ptr.To(name)
	if change != nil {
		change(m)
	}
	return m
}

func TestNotImportable(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(f *facts.Facts)
		why    string
		// problem is the reason of a blocker that the user has to remove; empty if it ends automatically.
		problem string
	}{
		"the cluster runs":            {nil, "", ""},
		"it does not answer":          {func(f *facts.Facts) { f.Workload.Connected = false }, "API server answers", ""},
		"it has completed no release": {func(f *facts.Facts) { f.Workload.OpenShiftVersion = "" }, "reports its release", ""},
		"its ClusterDeployment is being deleted": {func(f *facts.Facts) {
			f.Deployment = &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "c1", DeletionTimestamp: ptr.To(metav1.Now())}}
		}, "after the deletion of ClusterDeployment c1", ""},
		"its ClusterDeployment does not state that it is installed": {
			func(f *facts.Facts) { f.Deployment = &hivev1.ClusterDeployment{} }, "set spec.installed", controlplanev1.InvalidConfigurationReason,
		},
		"its ClusterDeployment states that it is installed": {func(f *facts.Facts) {
			f.Deployment = &hivev1.ClusterDeployment{Spec: hivev1.ClusterDeploymentSpec{Installed: true}}
		}, "", ""},
		"a control-plane Machine may be running": {
			func(f *facts.Facts) { f.Machines = append(f.Machines, given("m9", nil)) }, "Node of Machine m9", "",
		},
		"a worker may be running": {
			func(f *facts.Facts) { f.Workers = append(f.Workers, given("w9", nil)) }, "Node of Machine w9", "",
		},
		"a worker is new": {func(f *facts.Facts) { f.Workers = append(f.Workers, &clusterv1.Machine{}) }, "", ""},
		"it has an arbiter, and reports no image": {
			func(f *facts.Facts) { f.ControlPlane.Spec.Arbiter = &controlplanev1.ArbiterSpec{} }, "names the image of the current release", "",
		},
		"it has an arbiter, and reports its image": {func(f *facts.Facts) {
			f.ControlPlane.Spec.Arbiter, f.Workload.ReleaseImage = &controlplanev1.ArbiterSpec{}, "release@sha256:1"
		}, "", ""},
		"its pull secret is missing": {func(f *facts.Facts) { f.PullSecret = nil }, "Secret pull", controlplanev1.PullSecretMissingReason},
		"it needs no pull secret": {
			func(f *facts.Facts) { f.PullSecret, f.ControlPlane.Spec.Config.PullSecretRef = nil, nil }, "", "",
		},
		"the ConfigMap of its mirrors is missing": {
			func(f *facts.Facts) { f.MissingConfigMaps = []string{"manifests", "mirrors"} },
			"ConfigMap mirrors", controlplanev1.ManifestsMissingReason,
		},
		"only manifests are missing, which only an installation reads": {
			func(f *facts.Facts) { f.MissingConfigMaps = []string{"manifests"} }, "", "",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Spec.Config.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
				cp.Spec.Config.ImageRegistryRef = &corev1.LocalObjectReference{Name: "mirrors"}
			})
			f.PullSecret = &metav1.PartialObjectMetadata{}
			f.Workload = workload.State{Connected: true, OpenShiftVersion: "4.19.3"}
			f.Machines = []*clusterv1.Machine{given("m0", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" })}
			if tc.change != nil {
				tc.change(f)
			}
			g := NewWithT(t)
			reason, message := NotImportable(f)
			if tc.why == "" {
				g.Expect(reason + message).To(BeEmpty())
				return
			}
			g.Expect(message).To(ContainSubstring(tc.why))
			g.Expect(reason).To(Equal(cmp.Or(tc.problem, controlplanev1.WaitingForImportReason)))
		})
	}
}
