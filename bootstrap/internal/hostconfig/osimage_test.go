package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// upgraded returns a world with a cluster that was installed with 4.19.3 and that has completed another release.
func upgraded(t *testing.T, state, release string) *world {
	t.Helper()
	objects := lab()
	install, ok := objects["install"].(*hiveext.AgentClusterInstall)
	NewWithT(t).Expect(ok).To(BeTrue())
	install.Status.DebugInfo.State = state
	if release != "" {
		metav1.SetMetaDataAnnotation(&install.ObjectMeta, bootstrapv1.RunningReleaseAnnotation, release)
	}
	objects["a-cp"] = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "a-cp",
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "c", Version: "v1.30.5"},
	}
	return newWorld(t, values(objects)...)
}

// complete reports another release of the cluster.
func (w *world) complete(release string) {
	w.t.Helper()
	install := read(w, "cp", &hiveext.AgentClusterInstall{})
	w.change(install, func() {
		metav1.SetMetaDataAnnotation(&install.ObjectMeta, bootstrapv1.RunningReleaseAnnotation, release)
	})
	w.reconcile()
}

func (w *world) osImageVersion() string {
	w.t.Helper()
	return read(w, "m", &aiv1beta1.InfraEnv{}).Spec.OSImageVersion
}

func TestDiscoveryImageHasRunningRelease(t *testing.T) {
	for situation, tc := range map[string]struct {
		state, release, own, wanted string
	}{
		"upgraded":                                           {"adding-hosts", "4.21.4", "", "4.21"},
		"upgraded to the next major version":                 {"adding-hosts", "5.0.1", "", "5.0"},
		"to a minor version of two digits":                   {"adding-hosts", "4.10.1", "", "4.10"},
		"no release reported":                                {"adding-hosts", "", "", "4.19"},
		"not installed yet: the release of the installation": {"insufficient", "4.21.4", "", "4.19"},
		"the config requests another release":                {"adding-hosts", "4.21.4", "4.20", "4.20"},
	} {
		t.Run(situation, func(t *testing.T) {
			w := upgraded(t, tc.state, tc.release)
			config := w.config()
			w.change(config, func() { config.Spec.OSImageVersion = tc.own })
			w.reconcile()
			w.Expect(w.osImageVersion()).To(Equal(tc.wanted))
		})
	}
}

// TestDiscoveryImageOfBootingHostStays: the bootstrap data of the host was created from the image.
func TestDiscoveryImageOfBootingHostStays(t *testing.T) {
	w := upgraded(t, "adding-hosts", "4.20.9")
	w.reconcile()
	w.complete("4.21.4")
	w.Expect(w.osImageVersion()).To(Equal("4.21"), "the image was not handed out yet")
	w.makeImage()
	w.reconcile()
	w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty(), "the data is handed out")
	w.complete("4.22.1")
	w.Expect(w.osImageVersion()).To(Equal("4.21"))

	w.remove(read(w, "m", &aiv1beta1.InfraEnv{}))
	w.reconcile()
	w.reconcile()
	w.Expect(w.osImageVersion()).To(Equal("4.22"), "a recreated image has the running release")
}

// TestDiscoveryImageWithoutAssistedService: the host may be booting, while assisted-service reports no state
// of the cluster because its database is unavailable.
func TestDiscoveryImageWithoutAssistedService(t *testing.T) {
	w := upgraded(t, "adding-hosts", "4.20.9")
	machine := read(w, "a-cp", &clusterv1.Machine{})
	w.change(machine, func() { machine.Status.NodeRef.Name = "a-cp" })
	w.reconcile()
	w.makeImage()
	w.reconcile()
	w.Expect(w.config().Status.DataSecretName).NotTo(BeEmpty(), "the data is handed out")
	for _, state := range []string{"", "adding-hosts"} {
		install := read(w, "cp", &hiveext.AgentClusterInstall{})
		w.change(install, func() { install.Status.DebugInfo.State = state })
		w.reconcile()
		w.Expect(w.osImageVersion()).To(Equal("4.20"), "state %q", state)
	}
}
